"""The delivery of invitations: claimed, offered, settled, in sets and within limits. The types are in `model`."""

from frontdesk.invitations.delivery.forecast import forecast, read_statistics
from frontdesk.invitations.delivery.hold import hold, release
from frontdesk.invitations.delivery.operations import (
    cancel_invitation,
    cancel_of_members,
    get_invitation,
    keep_back,
    resend_invitation,
    settle_invitation,
)

__all__ = [
    "cancel_invitation",
    "cancel_of_members",
    "forecast",
    "get_invitation",
    "hold",
    "keep_back",
    "read_statistics",
    "release",
    "resend_invitation",
    "settle_invitation",
]
