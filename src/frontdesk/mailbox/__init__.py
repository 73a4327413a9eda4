"""The sandbox's mailbox: every mail that was caught instead of being sent. The types are in
`model`.
"""

from frontdesk.mailbox.store import delete_messages as delete_messages
from frontdesk.mailbox.store import get_message as get_message
from frontdesk.mailbox.store import list_messages as list_messages
