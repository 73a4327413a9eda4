"""Invitations: the four rules, the message, what comes back of it. The types are in `model`."""

from frontdesk.invitations.deliverability import set_deliverability
from frontdesk.invitations.enqueue import (
    InvitationContextQuery,
    decide_invitation,
    enqueue_invitations,
    find_invitation_context,
    move_invitations,
)
from frontdesk.invitations.store import get_deliverability, list_invitations

__all__ = [
    "InvitationContextQuery",
    "decide_invitation",
    "enqueue_invitations",
    "find_invitation_context",
    "get_deliverability",
    "list_invitations",
    "move_invitations",
    "set_deliverability",
]
