from frontdesk.mailbox.model import CaughtMessage
from frontdesk.mailbox.tables import caught_messages


def test_a_caught_message_has_the_columns_of_its_table_in_order() -> None:
    assert CaughtMessage._fields == tuple(column.name for column in caught_messages.columns)
