"""The states of an invitation and why it came into them; how it gets there is `delivery` (docs/states.md has the picture)."""

from enum import StrEnum


class InvitationState(StrEnum):
    """Where an invitation is (docs/states.md)."""

    PENDING = "pending"
    CLAIMED = "claimed"
    OFFERED = "offered"
    SENT = "sent"
    FAILED = "failed"
    AMBIGUOUS = "ambiguous"
    CANCELLED = "cancelled"


# Every change of state that there is; docs/states.md draws them.
TRANSITIONS = frozenset(
    (start, end)
    for start, ends in {
        InvitationState.PENDING: (
            InvitationState.CLAIMED,
            InvitationState.CANCELLED,
            InvitationState.AMBIGUOUS,
            InvitationState.SENT,
            InvitationState.FAILED,
        ),
        InvitationState.CLAIMED: (
            InvitationState.OFFERED,
            InvitationState.PENDING,
            InvitationState.FAILED,
            InvitationState.CANCELLED,
            InvitationState.SENT,
        ),
        InvitationState.OFFERED: (
            InvitationState.SENT,
            InvitationState.PENDING,
            InvitationState.FAILED,
            InvitationState.AMBIGUOUS,
        ),
        InvitationState.AMBIGUOUS: (InvitationState.PENDING, InvitationState.SENT, InvitationState.FAILED),
        InvitationState.SENT: (InvitationState.FAILED, InvitationState.PENDING),
        InvitationState.FAILED: (InvitationState.PENDING,),
        InvitationState.CANCELLED: (InvitationState.PENDING,),
    }.items()
    for end in ends
)


class InvitationStep(StrEnum):
    """Why an invitation changed its state: what its timeline says."""

    CLAIMED = "claimed"
    RELAY_ASKED = "relay_asked"
    ACCEPTED = "accepted"
    REFUSED_FOR_NOW = "refused_for_now"
    REFUSED = "refused"
    TOO_MANY_ATTEMPTS = "too_many_attempts"
    ANSWER_LOST = "answer_lost"
    NOT_OFFERED = "not_offered"
    LEASE_LAPSED = "lease_lapsed"
    ONCE_MORE = "once_more"
    SUPPRESSED = "suppressed"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    NOT_WRITABLE = "not_writable"
    BY_OPERATOR = "by_operator"
    BY_REPORT = "by_report"
    COMPLAINED = "complained"
    RESTORED = "restored"


STEPS = {
    InvitationStep.CLAIMED: "A worker has taken it in hand.",
    InvitationStep.RELAY_ASKED: "The relay accepts the recipient; the content is about to be sent.",
    InvitationStep.ACCEPTED: "The relay has taken the message.",
    InvitationStep.REFUSED_FOR_NOW: "The relay did not take the message now; it is tried again later.",
    InvitationStep.REFUSED: "The relay refuses the message for good.",
    InvitationStep.TOO_MANY_ATTEMPTS: "The relay did not take the message in as many attempts as there may be.",
    InvitationStep.ANSWER_LOST: "The message was handed over and the relay's answer was lost: it may have been taken.",
    InvitationStep.NOT_OFFERED: "The worker gave it back before anything was sent.",
    InvitationStep.LEASE_LAPSED: "The worker that had it in hand was not heard of for too long.",
    InvitationStep.ONCE_MORE: "Nobody settled it in the time set for that, so it is sent once more, with the same Message-ID.",
    InvitationStep.SUPPRESSED: "The address is on the suppression list.",
    InvitationStep.EXPIRED: "The member's access has ended.",
    InvitationStep.WITHDRAWN: "The file that created the member was undone.",
    InvitationStep.NOT_WRITABLE: "No message could be written, for instance because a template is at fault.",
    InvitationStep.BY_OPERATOR: "An operator decided so.",
    InvitationStep.BY_REPORT: "A delivery report says so.",
    InvitationStep.COMPLAINED: "The reader complained about the message.",
    InvitationStep.RESTORED: "A backup was restored; whether it has been sent since then is not known.",
}
