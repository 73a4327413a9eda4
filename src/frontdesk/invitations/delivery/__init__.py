"""The delivery of invitations: claimed, offered, settled, in sets and within limits; it knows no SMTP and no text."""

from frontdesk.invitations.delivery.changes import Claimed
from frontdesk.invitations.delivery.claim import Rota, Terms, claim, lapse, lapse_waits, work_waits
from frontdesk.invitations.delivery.home import HOLD_REASONS, Hold, HoldReason, Mark, find_hold, hold, release
from frontdesk.invitations.delivery.limits import Meter
from frontdesk.invitations.delivery.outcomes import Kind, Outcome, offer, settle
from frontdesk.invitations.delivery.store import database_time

__all__ = [
    "HOLD_REASONS",
    "Claimed",
    "Hold",
    "HoldReason",
    "Kind",
    "Mark",
    "Meter",
    "Outcome",
    "Rota",
    "Terms",
    "claim",
    "database_time",
    "find_hold",
    "hold",
    "lapse",
    "lapse_waits",
    "offer",
    "release",
    "settle",
    "work_waits",
]
