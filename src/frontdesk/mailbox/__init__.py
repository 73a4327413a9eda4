"""The sandbox's mailbox: every mail that was caught instead of being sent. The types are in `model`."""

from frontdesk.mailbox.store import delete_messages, get_message, list_messages

__all__ = ["delete_messages", "get_message", "list_messages"]
