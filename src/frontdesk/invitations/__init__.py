"""Invitations: who gets one (the four rules), in what state it is, and the account's deliverability settings."""

from frontdesk.invitations.enqueue import (
    Circumstances,
    CircumstancesFound,
    NewInvitation,
    enqueue,
    find_circumstances,
    follow_members,
)
from frontdesk.invitations.rules import REASONS, Candidate, Decision, Delivery, Reason, decide_invitation
from frontdesk.invitations.settings import Deliverability, get_deliverability, set_deliverability
from frontdesk.invitations.states import STEPS, TRANSITIONS, InvitationState, InvitationStep
from frontdesk.invitations.store import list_invitations

__all__ = [
    "REASONS",
    "STEPS",
    "TRANSITIONS",
    "Candidate",
    "Circumstances",
    "CircumstancesFound",
    "Decision",
    "Deliverability",
    "Delivery",
    "InvitationState",
    "InvitationStep",
    "NewInvitation",
    "Reason",
    "decide_invitation",
    "enqueue",
    "find_circumstances",
    "follow_members",
    "get_deliverability",
    "list_invitations",
    "set_deliverability",
]
