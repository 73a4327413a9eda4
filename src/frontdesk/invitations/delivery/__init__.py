"""The delivery of invitations: claimed, offered, settled, in sets and within limits; it knows no SMTP and no text."""

from frontdesk.invitations.delivery.changes import Claimed
from frontdesk.invitations.delivery.claim import (
    ClaimCursor,
    DeliveryClaim,
    Terms,
    claim,
    lapse,
    lapse_waits,
    work_waits,
)
from frontdesk.invitations.delivery.forecast import Figures, Forecast, figures, forecast
from frontdesk.invitations.delivery.home import HOLD_REASONS, Hold, HoldReason, Mark, find_hold, hold, release
from frontdesk.invitations.delivery.limits import Meter
from frontdesk.invitations.delivery.operations import (
    cancel_invitation,
    cancel_of_members,
    get_invitation,
    keep_back,
    resend_invitation,
    settle_invitation,
)
from frontdesk.invitations.delivery.outcomes import (
    AttemptOutcome,
    AttemptResult,
    OutcomePolicy,
    offer,
    offer_and_settle,
    renew,
    settle,
)

__all__ = [
    "HOLD_REASONS",
    "AttemptOutcome",
    "AttemptResult",
    "ClaimCursor",
    "Claimed",
    "DeliveryClaim",
    "Figures",
    "Forecast",
    "Hold",
    "HoldReason",
    "Mark",
    "Meter",
    "OutcomePolicy",
    "Terms",
    "cancel_invitation",
    "cancel_of_members",
    "claim",
    "figures",
    "find_hold",
    "forecast",
    "get_invitation",
    "hold",
    "keep_back",
    "lapse",
    "lapse_waits",
    "offer",
    "offer_and_settle",
    "release",
    "renew",
    "resend_invitation",
    "settle",
    "settle_invitation",
    "work_waits",
]
