"""The delivery of invitations: claimed, offered, settled, in sets and within limits; it knows no SMTP and no text."""

from frontdesk.invitations.delivery.changes import ClaimedInvitation
from frontdesk.invitations.delivery.claim import (
    ClaimCursor,
    DeliveryClaim,
    DeliveryPolicy,
    claim,
    lapse,
    lapse_waits,
    work_waits,
)
from frontdesk.invitations.delivery.forecast import DeliveryForecast, DeliveryStatistics, figures, forecast
from frontdesk.invitations.delivery.hold import (
    HOLD_REASONS,
    DeliveryMark,
    Hold,
    HoldReason,
    find_hold,
    hold,
    release,
)
from frontdesk.invitations.delivery.hourly_window import HourlyWindows
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
    "ClaimedInvitation",
    "DeliveryClaim",
    "DeliveryForecast",
    "DeliveryMark",
    "DeliveryPolicy",
    "DeliveryStatistics",
    "Hold",
    "HoldReason",
    "HourlyWindows",
    "OutcomePolicy",
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
