"""The sandbox's mailbox: every mail that was caught instead of being sent. The types are in `model`."""

from frontdesk.mailbox.messages import decode_message, get_message
from frontdesk.mailbox.store import delete_messages, list_messages

__all__ = ["decode_message", "delete_messages", "get_message", "list_messages"]
