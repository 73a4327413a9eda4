"""What delivery works with: the invitations that a worker holds, each change of state as a value, and the rules it follows."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from frontdesk.invitations.model import ClaimedInvitation, Delivery, InvitationState, InvitationStep


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """The installation's rules of delivery. `message_domain` is the right side of Message-IDs."""

    message_domain: str
    # A claim's lease is short, so that what a killed worker held does not wait long. Nothing is sent before `offered`,
    # and its lease is longer than RFC 5321 lets the content and its answer take.
    lease_seconds: float = 120.0
    offer_lease_seconds: float = 1200.0
    ambiguous_hold_seconds: float = 86_400.0
    max_attempts: int = 20
    first_retry_seconds: float = 60.0


class HoldReason(StrEnum):
    """Why delivery is held (docs/decisions/0032)."""

    BY_OPERATOR = "by_operator"
    MOVED = "moved"  # this database is not where it delivered last: restored, copied or failed over to
    OLDER = "older"  # this database is older than what it has delivered: a backup was restored over it


@dataclass(frozen=True, slots=True)
class Hold:
    """Delivery is held since then, for this reason."""

    reason: HoldReason
    since: datetime


class DeliveryHome(NamedTuple):
    """The stored row: where this database delivered last, after how many commits mail left, and why delivery is held."""

    home: str | None
    offers: int
    held_reason: str | None
    held_at: datetime | None


class Lane(NamedTuple):
    """The pending invitations of one plan with one kind of delivery; `first_due_at` is the earliest due time."""

    delivery: Delivery
    account_id: int
    plan_id: int
    first_due_at: datetime
    accepting_patients: bool
    batches_enabled: bool
    suspended: bool


class InvitationEvent(NamedTuple):
    """A step of an invitation's timeline. `code`: the relay's reply code, if there was one."""

    at: datetime
    from_state: InvitationState
    to_state: InvitationState
    reason: InvitationStep
    code: int | None


class StateChange(NamedTuple):
    """From one state to another; many invitations can share it. `due_at`: when it must be looked at again, None for never.

    `closes` ends the claim: later writes of its worker are void. `attempts` and `losses` stay as they are when None.
    """

    from_state: InvitationState
    state: InvitationState
    reason: InvitationStep
    due_at: datetime | None = None
    code: int | None = None
    closes: bool = False
    attempts: int | None = None
    losses: int | None = None


class AttemptResult(StrEnum):
    """What became of an attempt."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    REFUSED_FOR_NOW = "refused_for_now"
    LOST = "lost"
    NOT_TRIED = "not_tried"
    PUT_ASIDE = "put_aside"  # not tried; others go first: this message may be what breaks the connection
    NOT_WRITABLE = "not_writable"


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """What became of one invitation. `offered`: its stored state is `offered` by now, no longer `claimed`."""

    invitation: ClaimedInvitation
    result: AttemptResult
    code: int | None = None
    offered: bool = False


class HourlyWindow(NamedTuple):
    """An account's measured time (µs) and its present batch, as they are stored; `batch_us` is None before the first batch."""

    account_id: int
    version: int
    measured_us: int
    wall_at: datetime
    batch_us: int | None
    batch_left: int


@dataclass(frozen=True, slots=True)
class DeliveryForecast:
    """An account's outlook. `backlog`: pending batched invitations; `held_back`: those of plans that accept no patients.

    `held`: why no account's invitations are delivered at present. `last_at`: when the last invitation leaves, None when
    none waits or delivery stands still.
    """

    enabled: bool
    backlog: int
    held_back: int
    sent_this_hour: int
    hourly_limit: int
    held: HoldReason | None
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeliveryStatistics:
    """Invitations by state, the age of the oldest due one, and the places taken in each account's hourly window."""

    by_state: dict[str, int]
    oldest_due_seconds: float
    window_used: dict[int, int]
    held: bool
