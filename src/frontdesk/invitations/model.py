"""What an invitation is: its states, the rules' input and answer, messages, delivery reports,
suppressed addresses.

docs/states.md draws the states, docs/invitations.md describes messages, reports and the suppression
list.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple

from frontdesk.reach import Reach
from frontdesk.text import DescribedEnum


class Delivery(StrEnum):
    """How an invitation leaves: at once, or in the account's rate-limited batches."""

    IMMEDIATE = "immediate"
    BATCHED = "batched"


class NotInvitedReason(DescribedEnum):
    """Why a record led to no invitation (the answer's `Invitation: none; reason=…`)."""

    NOT_NEW = "not_new", "The record existed already; only new members are invited."
    NO_EMAIL = "no_email", "The record has no e-mail address."
    NOT_REQUESTED = (
        "not_requested",
        "invite_immediately was not true; the account has not set up batches.",
    )
    DISABLED = (
        "disabled",
        "invite_immediately was not true, and the account's batches are switched off.",
    )
    SUPPRESSED = "suppressed", "The address is on the suppression list."
    EXPIRED = "expired", "The member's access has already expired."


class QueuedReason(DescribedEnum):
    """Why an invitation that was asked for at once is expected to wait (the answer's `Invitation:
    queued; reason=…`).
    """

    IMMEDIATE_LIMIT = (
        "immediate_limit",
        "The account's hourly limit of immediate invitations is reached; it leaves as soon as that allows.",
    )


InvitationDecision = Delivery | QueuedReason | NotInvitedReason


@dataclass(frozen=True, slots=True)
class InvitationContext:
    """What the rules need of the database for a chunk: settings by account id, and the (folded)
    addresses that are suppressed because of an account's own mail, each with the account's id.
    """

    batches_enabled: dict[int, bool]
    suppressed: set[tuple[int | None, str]]


class NewInvitation(NamedTuple):
    account_id: int
    plan_id: int
    member_id: int
    delivery: Delivery
    address: str
    reason: QueuedReason | None = None


class InvitationState(StrEnum):
    """Where an invitation is (docs/states.md)."""

    PENDING = "pending"
    CLAIMED = "claimed"
    OFFERED = "offered"
    SENT = "sent"
    FAILED = "failed"
    AMBIGUOUS = "ambiguous"
    CANCELLED = "cancelled"


_S = InvitationState
IN_LINE = (_S.PENDING, _S.CLAIMED, _S.OFFERED)  # a worker will settle it

# Every change of state that there is; docs/states.md draws them.
TRANSITIONS = frozenset(
    (start, end)
    for start, ends in {
        _S.PENDING: (_S.CLAIMED, _S.CANCELLED, _S.AMBIGUOUS, _S.SENT, _S.FAILED),
        _S.CLAIMED: (_S.OFFERED, _S.PENDING, _S.FAILED, _S.CANCELLED, _S.SENT, _S.AMBIGUOUS),
        _S.OFFERED: (_S.SENT, _S.PENDING, _S.FAILED, _S.AMBIGUOUS),
        _S.AMBIGUOUS: (_S.PENDING, _S.SENT, _S.FAILED),
        _S.SENT: (_S.FAILED, _S.PENDING),
        _S.FAILED: (_S.PENDING,),
        _S.CANCELLED: (_S.PENDING,),
    }.items()
    for end in ends
)


class InvitationStep(DescribedEnum):
    """Why an invitation changed its state: the reason of a step on its timeline."""

    CLAIMED = "claimed", "A worker has claimed it."
    RELAY_ASKED = "relay_asked", "The relay accepts the recipient; the content is about to be sent."
    ACCEPTED = "accepted", "The relay has taken the message."
    REFUSED_FOR_NOW = (
        "refused_for_now",
        "The relay did not take the message now; it is tried again later.",
    )
    REFUSED = "refused", "The relay refuses the message for good."
    TOO_MANY_ATTEMPTS = (
        "too_many_attempts",
        "The relay did not take the message in the attempts allowed.",
    )
    ANSWER_LOST = (
        "answer_lost",
        "The message was sent, but the relay's answer was lost: it may have taken it.",
    )
    PUT_ASIDE = (
        "put_aside",
        "Others go first: the relay is out of order, or this message is what it refuses.",
    )
    NOT_OFFERED = "not_offered", "The worker gave it back before anything was sent."
    LEASE_LAPSED = "lease_lapsed", "The lease of its worker ran out."
    ONCE_MORE = (
        "once_more",
        "It was not settled in time: it is sent once more, with the same Message-ID.",
    )
    SUPPRESSED = "suppressed", "The address is on the suppression list."
    EXPIRED = "expired", "The member's access has ended."
    WITHDRAWN = "withdrawn", "The file that created the member was undone."
    MERGED = "merged", "The member was merged with another."
    ERASED = "erased", "The member was erased."
    NOT_WRITABLE = (
        "not_writable",
        "No message could be written, for instance because a template is at fault.",
    )
    # The word of the wire stays; the timeline has the actor, who need not be an operator.
    BY_OPERATOR = "by_operator", "A person decided so: it was cancelled, sent again or settled."
    BY_REPORT = "by_report", "A delivery report says so."
    COMPLAINED = "complained", "The reader complained about the message."
    IMMEDIATE_LIMIT = QueuedReason.IMMEDIATE_LIMIT.value, QueuedReason.IMMEDIATE_LIMIT.description
    MAILBOX_LIMIT = (
        "mailbox_limit",
        "The mailbox has had its five mails for one day; it leaves when the mailbox has a place again.",
    )
    RESTORED = (
        "restored",
        "A backup was restored; whether it has been sent since then is not known.",
    )


# No account sees these: they would tell what another account sends to the same mailbox.
HIDDEN_STEPS = frozenset({InvitationStep.MAILBOX_LIMIT})
# With no answer lost, the relay has not taken the message of an invitation that failed by one of these.
DEFINITE_REFUSALS = (InvitationStep.REFUSED, InvitationStep.TOO_MANY_ATTEMPTS)


class Invitation(NamedTuple):
    """A stored invitation; the fields are the columns of its table, in their order."""

    id: int
    account_id: int
    plan_id: int
    member_id: int
    kind: str
    delivery: Delivery
    state: InvitationState
    address: str
    created_at: datetime
    updated_at: datetime
    due_at: datetime | None
    offered_at: datetime | None
    settled_at: datetime | None
    epoch: int
    attempts: int
    losses: int
    message_id: str | None
    reason: InvitationStep | None
    relay_code: int | None
    address_folded: str | None
    relay_words: str | None  # with `relay_code`; the first is often an enhanced code (RFC 3463)
    mailbox_digest: str | None
    mailbox_at: datetime | None


class FailedSince(NamedTuple):
    """Which failed invitations are asked for: settled in the time, within reach, and with the
    relay's code, None for any.
    """

    reach: Reach
    since: datetime
    until: datetime
    relay_code: int | None = None


class FailedPlace(NamedTuple):
    """The last invitation of a page, in the order of an index."""

    account_id: int
    id: int


class InvitationChange(NamedTuple):
    """The last change of an invitation. `reason` is None until a worker first claims it,
    `address_folded` once it is erased.
    """

    state: InvitationState
    reason: InvitationStep | None
    updated_at: datetime
    address_folded: str | None


@dataclass(frozen=True, slots=True)
class DeliverabilitySettings:
    """`batch_size` messages every `batch_interval_seconds`, never more than `hourly_limit` in any
    60 minutes.
    """

    account_id: int
    enabled: bool = False
    batch_size: int = 100
    batch_interval_seconds: int = 60
    hourly_limit: int = 1000
    sender_name: str | None = None
    sender_address: str | None = None
    registration_url: str | None = None


class ClaimedInvitation(NamedTuple):
    """An invitation that a worker holds by the claim with this epoch; of the member it has only the
    address.

    `message_id` (no <>) and the links stay the same over every attempt.
    """

    id: int
    account_id: int
    plan_id: int
    member_id: int
    delivery: str
    address: str
    message_id: str
    epoch: int = 0
    attempts: int = 0
    losses: int = 0
    address_folded: str | None = None
    mailbox_digest: str | None = None
    mailbox_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LinkTokens:
    """The secrets of one message: the bearer may register, or unsubscribe the address."""

    registration: str
    unsubscribe: str


LinkPurpose = Literal["registration", "unsubscribe"]


class LinkTarget(NamedTuple):
    """The invitation that a link belongs to, and where a registration leads: the account's own
    page, when it has one.
    """

    invitation_id: int
    account_id: int
    address: str
    plan_name: str
    registration_url: str | None


@dataclass(frozen=True, slots=True)
class MessageTemplate:
    """An account's own templates; None is the product's. Text without HTML makes a message of text
    alone.
    """

    subject: str | None = None
    text: str | None = None
    html: str | None = None


class SenderProfile(NamedTuple):
    """The plan's name, and what the account has set for its messages; None where it has set
    nothing.
    """

    plan_name: str
    sender_name: str | None
    sender_address: str | None
    registration_url: str | None
    template: MessageTemplate = MessageTemplate()


@dataclass(frozen=True, slots=True)
class MessageContext:
    """What messages are written with: tokens by invitation id, senders by plan id, their Date."""

    tokens: Mapping[int, LinkTokens]
    senders: Mapping[int, SenderProfile]
    date: str


class ReportEvent(StrEnum):
    """What a delivery report says; of several in one report the first in this order counts."""

    BOUNCED = "bounced"
    COMPLAINED = "complained"
    DELAYED = "delayed"
    DELIVERED = "delivered"


class ReportEffect(StrEnum):
    """What a delivery report changed."""

    APPLIED = "applied"
    KNOWN = "known"  # the same was reported before
    UNKNOWN = "unknown"  # no message of this installation has the Message-ID
    NO_NEWS = "no_news"  # a delay: the relay goes on trying


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """One event of the message with this Message-ID (without <>).

    `status`: the enhanced status code (RFC 3463), if the report has one. `permanent`: the relay's
    own judgement of a bounce.
    """

    message_id: str
    event: ReportEvent
    status: str | None = None
    permanent: bool | None = None


class SuppressionReason(StrEnum):
    """Why an address must not be mailed."""

    HARD_BOUNCE = "hard_bounce"
    COMPLAINT = "complaint"
    UNSUBSCRIBE = "unsubscribe"
    BY_HAND = "by_hand"


# What people may lift. Nobody lifts an unsubscription: it is the person's own decision.
LIFTED_BY_SUPPORT = frozenset({SuppressionReason.HARD_BOUNCE})
LIFTED_BY_OPERATORS = LIFTED_BY_SUPPORT | {SuppressionReason.COMPLAINT, SuppressionReason.BY_HAND}


class Suppression(NamedTuple):
    """An address on the suppression list, or the hash of an erased member's. `only_account_id`: the
    account whose mail it concerns, 0 for everybody's.
    """

    address: str
    only_account_id: int
    reason: SuppressionReason
    created_at: datetime


class LiftedSuppression(NamedTuple):
    """The reasons that were lifted from an address, and those that still keep it on the list."""

    lifted: frozenset[SuppressionReason]
    left: list[Suppression]


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """The installation's rules of delivery. `message_domain` is the right side of Message-IDs."""

    message_domain: str
    # A claim's lease is short, so that what a killed worker held does not wait long. Nothing is
    # sent before `offered`, and its lease is longer than RFC 5321 lets the content and its answer
    # take.
    lease_seconds: float = 120.0
    offer_lease_seconds: float = 1200.0
    ambiguous_hold_seconds: float = 86_400.0
    max_attempts: int = 20
    # Beginnings of addresses that stand for no person's mailbox: the sandbox's scripted ones.
    unlimited_mailboxes: frozenset[str] = frozenset()
    first_retry_seconds: float = 60.0


class HoldReason(StrEnum):
    """Why delivery is held (docs/decisions/0032)."""

    BY_OPERATOR = "by_operator"
    MOVED = (
        "moved"  # this database is not where it delivered last: restored, copied or failed over to
    )
    OLDER = (
        "older"  # this database is older than what it has delivered: a backup was restored over it
    )


class DeliveryHome(NamedTuple):
    """The stored row: where this database delivered last, after how many commits mail left, and why
    delivery is held.
    """

    home: str | None
    offers: int
    held_reason: str | None


class Lane(NamedTuple):
    """The pending invitations of one plan with one kind of delivery; `first_due_at` is the earliest
    due time.
    """

    delivery: Delivery
    account_id: int
    plan_id: int
    first_due_at: datetime
    accepting_patients: bool
    batches_enabled: bool
    suspended: bool
    immediate_limit: int


class InvitationEvent(NamedTuple):
    """A step of an invitation's timeline. `code`: the relay's reply code, if there was one.
    `actor`: who cancelled it, sent it again or settled it (`audit.Requester`); None for the steps
    of the service itself.
    """

    at: datetime
    from_state: InvitationState
    to_state: InvitationState
    reason: InvitationStep
    code: int | None
    actor: str | None = None


class StateChange(NamedTuple):
    """From one state to another; many invitations can share it. `due_at`: when it must be looked at
    again, None for never.

    `attempts` and `losses` stay as they are when None. `words`: the relay's own, beside their
    `code`. `actor`: as of `InvitationEvent`.
    """

    from_state: InvitationState
    state: InvitationState
    reason: InvitationStep
    due_at: datetime | None = None
    code: int | None = None
    attempts: int | None = None
    losses: int | None = None
    words: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """What became of one invitation. `offered`: its stored state is `offered` by now, no longer
    `claimed`.
    """

    invitation: ClaimedInvitation
    result: InvitationStep
    code: int | None = None
    words: str | None = None
    offered: bool = False


# How the log and the metrics call the end of an attempt, by the state that follows.
ATTEMPT_ENDS = {
    _S.SENT: "sent",
    _S.PENDING: "deferred",
    _S.FAILED: "failed",
    _S.AMBIGUOUS: "ambiguous",
}


@dataclass(slots=True)
class WorkerStatus:
    """What a worker has seen since it began: None is nothing yet. `lag_seconds`: from due to sent,
    of the newest immediate mail; `counts`: the ends of attempts, by ATTEMPT_ENDS.
    """

    relay_up: bool | None = None
    lag_seconds: float | None = None
    counts: Counter[str] = field(
        default_factory=lambda: Counter(dict.fromkeys(ATTEMPT_ENDS.values(), 0))
    )


class HourlyWindow(NamedTuple):
    """Of an account and a kind of delivery: measured time (µs) and the present batch, as they are
    stored; `batch_us` is None before the first batch.

    `sent`: how many invitations left in each slice of measured time that may still count.
    """

    account_id: int
    version: int
    measured_us: int
    wall_at: datetime
    batch_us: int | None
    batch_left: int
    sent: Sequence[tuple[int, int]]
    delivery: Delivery = Delivery.BATCHED

    @classmethod
    def empty(cls, account_id: int, delivery: Delivery, wall_at: datetime) -> "HourlyWindow":
        """The window before the first invitation."""
        return cls(
            account_id,
            version=0,
            measured_us=0,
            wall_at=wall_at,
            batch_us=None,
            batch_left=0,
            sent=[],
            delivery=delivery,
        )


@dataclass(frozen=True, slots=True)
class DeliveryForecast:
    """An account's outlook. `backlog`: pending batched invitations; `held_back`: those of plans
    that accept no patients.

    `immediate`: pending immediate ones, which no batch delays, only a limit of their own.
    `last_at`: when the last invitation leaves, None when none waits or delivery stands still.
    `held`: why no account's invitations are delivered at present.
    """

    enabled: bool
    backlog: int
    immediate: int
    held_back: int
    sent_this_hour: int
    hourly_limit: int
    immediate_this_hour: int
    immediate_limit: int
    held: HoldReason | None
    suspended: bool
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeliveryStatistics:
    """Invitations by state, the age of the oldest due immediate one, and the places taken in each
    account's hourly window.

    `immediate_shares`: of the accounts that have used most of their hour of immediate invitations,
    how much of it; `immediate_at_limit`: the number of accounts with immediate invitations that
    wait for theirs.
    """

    by_state: dict[str, int]
    oldest_due_seconds: float
    window_used: dict[int, int]
    immediate_shares: dict[int, float]
    immediate_at_limit: int
    held: bool
