"""The delivery of invitations: claimed, offered, settled, in sets and within limits. The types are in `model`."""

from frontdesk.invitations.delivery.operations import (
    cancel_invitation,
    cancel_of_members,
    forecast,
    get_invitation,
    keep_back,
    read_statistics,
    resend_invitation,
    settle_invitation,
)
from frontdesk.invitations.delivery.protocol import hold, release

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
