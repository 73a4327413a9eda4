"""The sandbox's mailbox: every mail that was caught instead of being sent."""

from frontdesk.mailbox.caught import (
    CatchingMailbox,
    CaughtMessage,
    DecodedMail,
    catcher,
    clear_messages,
    get_message,
    list_messages,
    read_content,
)

__all__ = [
    "CatchingMailbox",
    "CaughtMessage",
    "DecodedMail",
    "catcher",
    "clear_messages",
    "get_message",
    "list_messages",
    "read_content",
]
