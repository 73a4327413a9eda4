"""Invitations: the four rules, the message, what comes back of it. The types are in `model`."""

from frontdesk.invitations.enqueue import (
    decide_invitation,
    enqueue_invitations,
    find_invitation_context,
    move_invitations,
)
from frontdesk.invitations.store import (
    get_deliverability,
    list_invitations,
    list_suppressions,
    set_deliverability,
    suppress,
    unsuppress,
)

__all__ = [
    "decide_invitation",
    "enqueue_invitations",
    "find_invitation_context",
    "get_deliverability",
    "list_invitations",
    "list_suppressions",
    "move_invitations",
    "set_deliverability",
    "suppress",
    "unsuppress",
]
