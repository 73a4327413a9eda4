"""The states of an invitation and why it came into them; how it gets there is `delivery` (docs/states.md has the picture)."""

from enum import StrEnum


class State(StrEnum):
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
        State.PENDING: (State.CLAIMED, State.CANCELLED, State.AMBIGUOUS, State.SENT, State.FAILED),
        State.CLAIMED: (State.OFFERED, State.PENDING, State.FAILED, State.CANCELLED, State.SENT),
        State.OFFERED: (State.SENT, State.PENDING, State.FAILED, State.AMBIGUOUS),
        State.AMBIGUOUS: (State.PENDING, State.SENT, State.FAILED),
        State.SENT: (State.FAILED, State.PENDING),
        State.FAILED: (State.PENDING,),
        State.CANCELLED: (State.PENDING,),
    }.items()
    for end in ends
)


class Step(StrEnum):
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
    Step.CLAIMED: "A worker has taken it in hand.",
    Step.RELAY_ASKED: "The relay accepts the recipient; the content is about to be sent.",
    Step.ACCEPTED: "The relay has taken the message.",
    Step.REFUSED_FOR_NOW: "The relay did not take the message now; it is tried again later.",
    Step.REFUSED: "The relay refuses the message for good.",
    Step.TOO_MANY_ATTEMPTS: "The relay did not take the message in as many attempts as there may be.",
    Step.ANSWER_LOST: "The message was handed over and the relay's answer was lost: it may have been taken.",
    Step.NOT_OFFERED: "The worker gave it back before anything was sent.",
    Step.LEASE_LAPSED: "The worker that had it in hand was not heard of for too long.",
    Step.ONCE_MORE: "Nobody settled it in the time set for that, so it is sent once more, with the same Message-ID.",
    Step.SUPPRESSED: "The address is on the suppression list.",
    Step.EXPIRED: "The member's access has ended.",
    Step.WITHDRAWN: "The file that created the member was undone.",
    Step.NOT_WRITABLE: "No message could be written, for instance because a template is at fault.",
    Step.BY_OPERATOR: "An operator decided so.",
    Step.BY_REPORT: "A delivery report says so.",
    Step.COMPLAINED: "The reader complained about the message.",
    Step.RESTORED: "A backup was restored; whether it has been sent since then is not known.",
}
