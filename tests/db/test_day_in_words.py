"""The trail of a day, as the console tells it: every action has words, and no entry shows a value of a
person.
"""

from contextlib import ExitStack

import pytest

from frontdesk.audit import list_newest
from frontdesk.audit.actions import ACTIONS, subject_of
from frontdesk.console.trail_words import Around, describe_entry
from frontdesk.disclosures.looks import LAST
from frontdesk.users.model import Role, User, UserState
from tests.db.day import Installation
from tests.factories import NOW

MARKERS = ("Sample", "robin.", "AB 1", "1977-01-11", "M-1", "@example")
READER = User(
    *(1, "a@b.c", "A", None, None, {Role.AUDITOR: NOW}, None, UserState.ACTIVE),
    *(False, True, "cli:a", NOW, None, None),
)


@pytest.mark.parametrize("new_database_url", ["sqlite"], indirect=True)
def test_no_entry_of_a_day_shows_a_value_of_a_person(new_database_url: str) -> None:
    around = Around("/console/trail", READER, {}, lambda _: True, {})
    with ExitStack() as stack:
        one = Installation(new_database_url, stack)
        one.a_day()
        with one.db.read() as tx:
            entries = list_newest(tx, before_id=LAST, limit=100_000)
    assert len({entry["action"] for entry in entries}) > 50
    assert {entry["action"] for entry in entries} <= set(ACTIONS)
    for entry in entries:
        shown = describe_entry(entry, around)
        text = " ".join(map(str, shown))
        assert not any(marker in text for marker in MARKERS), text
        if entry["subject_id"] is not None:
            assert subject_of(entry["action"]) is not None, entry["action"]
