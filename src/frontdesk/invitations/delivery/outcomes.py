"""What a relay's answer means for an invitation: steps 3 to 5 of the delivery protocol, pure but for the two writes."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from frontdesk.db import Tx
from frontdesk.invitations.delivery.changes import (
    Changes,
    ClaimedInvitation,
    StateChange,
    apply,
    extend,
    lost,
)
from frontdesk.invitations.delivery.claim import DeliveryPolicy
from frontdesk.invitations.delivery.hold import DeliveryMark, count_offer
from frontdesk.invitations.delivery.hourly_window import HourlyWindows
from frontdesk.invitations.model import InvitationState, InvitationStep

LONGEST_RETRY_SECONDS = 3600.0


class AttemptResult(StrEnum):
    """What became of an attempt."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    REFUSED_FOR_NOW = "refused_for_now"
    LOST = "lost"
    NOT_TRIED = "not_tried"
    PUT_ASIDE = (
        "put_aside"  # not tried as far as we know, yet others go first: it may be what is in their way
    )
    NOT_WRITABLE = "not_writable"


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """What became of one. `offered`: it is written down as that by now, not only as claimed."""

    one: ClaimedInvitation
    kind: AttemptResult
    code: int | None = None
    offered: bool = False


def offer(
    tx: Tx, claimed: Sequence[ClaimedInvitation], *, terms: DeliveryPolicy, now: datetime
) -> tuple[set[int], DeliveryMark | None]:
    """Step 4: `offered`, committed before DATA. The ids of those that may go on, and what to note before they do.

    One that was cancelled meanwhile, or whose lease has lapsed, is not among them.
    """
    granted = apply(tx, _offers(claimed, terms, now), now=now)
    return granted, count_offer(tx) if granted else None


def renew(tx: Tx, claimed: Sequence[ClaimedInvitation], *, terms: DeliveryPolicy, now: datetime) -> None:
    """Let the leases of those that are still claimed run anew: their worker lives, the relay is slow."""
    due_at = now + timedelta(seconds=terms.lease_seconds)
    extend(
        tx,
        [
            (
                StateChange(InvitationState.CLAIMED, InvitationState.CLAIMED, InvitationStep.CLAIMED, due_at),
                claimed,
            )
        ],
        now=now,
    )


@dataclass(frozen=True, slots=True)
class OutcomePolicy:
    """What outcomes are judged by: the terms, the measure of the hourly windows, the jitter."""

    terms: DeliveryPolicy
    meter: HourlyWindows
    chance: random.Random


def settle(tx: Tx, outcomes: Sequence[AttemptOutcome], judge: OutcomePolicy, *, now: datetime) -> set[int]:
    """Write what became of attempts; the ids of those that were still of their worker's claim."""
    return apply(tx, _settlements(outcomes, judge, now), now=now, meter=judge.meter)


def offer_and_settle(
    tx: Tx,
    claimed: Sequence[ClaimedInvitation],
    outcomes: Sequence[AttemptOutcome],
    judge: OutcomePolicy,
    *,
    now: datetime,
) -> tuple[set[int], DeliveryMark | None]:
    """`offer` some and `settle` others in the same statements."""
    changes = [*_offers(claimed, judge.terms, now), *_settlements(outcomes, judge, now)]
    written = apply(tx, changes, now=now, meter=judge.meter)
    granted = {one.id for one in claimed} & written
    return granted, count_offer(tx) if granted else None


def _offers(claimed: Sequence[ClaimedInvitation], terms: DeliveryPolicy, now: datetime) -> Changes:
    due_at = now + timedelta(seconds=terms.offer_lease_seconds)
    return [
        (
            StateChange(InvitationState.CLAIMED, InvitationState.OFFERED, InvitationStep.RELAY_ASKED, due_at),
            claimed,
        )
    ]


# What these lead to depends on nothing else, so all of a kind are written as one change.
_SHARED = {
    AttemptResult.ACCEPTED,
    AttemptResult.REFUSED,
    AttemptResult.NOT_WRITABLE,
    AttemptResult.NOT_TRIED,
    AttemptResult.PUT_ASIDE,
}


def _settlements(outcomes: Sequence[AttemptOutcome], judge: OutcomePolicy, now: datetime) -> Changes:
    changes: list[tuple[StateChange, list[ClaimedInvitation]]] = []
    shared: dict[tuple[AttemptResult, int | None, bool], list[ClaimedInvitation]] = {}
    for outcome in outcomes:
        key = (outcome.kind, outcome.code, outcome.offered)
        if key in shared:
            shared[key].append(outcome.one)
            continue
        ones = [outcome.one]
        changes.append((_change(outcome, judge.terms, now, judge.chance), ones))
        if outcome.kind in _SHARED:
            shared[key] = ones
    return changes


def _change(
    outcome: AttemptOutcome, terms: DeliveryPolicy, now: datetime, chance: random.Random
) -> StateChange:
    start, code = InvitationState.OFFERED if outcome.offered else InvitationState.CLAIMED, outcome.code
    match outcome.kind:
        case AttemptResult.ACCEPTED:
            return StateChange(start, InvitationState.SENT, InvitationStep.ACCEPTED, code=code)
        case AttemptResult.REFUSED:
            return StateChange(start, InvitationState.FAILED, InvitationStep.REFUSED, code=code)
        case AttemptResult.NOT_WRITABLE:
            return StateChange(start, InvitationState.FAILED, InvitationStep.NOT_WRITABLE)
        case AttemptResult.LOST:
            return lost(
                StateChange(start, InvitationState.AMBIGUOUS, InvitationStep.ANSWER_LOST),
                outcome.one.losses,
                terms,
                now=now,
            )
        case AttemptResult.NOT_TRIED:
            return StateChange(
                start, InvitationState.PENDING, InvitationStep.NOT_OFFERED, due_at=now, code=code
            )
        case AttemptResult.PUT_ASIDE:
            due_at = now + timedelta(seconds=terms.first_retry_seconds)
            return StateChange(
                start, InvitationState.PENDING, InvitationStep.NOT_OFFERED, due_at=due_at, code=code
            )
        case AttemptResult.REFUSED_FOR_NOW:
            return _once_again(start, outcome, terms, now, chance)


def _once_again(
    start: InvitationState,
    outcome: AttemptOutcome,
    terms: DeliveryPolicy,
    now: datetime,
    chance: random.Random,
) -> StateChange:
    attempts = outcome.one.attempts + 1
    if attempts >= terms.most_attempts:
        change = StateChange(
            start, InvitationState.FAILED, InvitationStep.TOO_MANY_ATTEMPTS, code=outcome.code
        )
    else:
        due_at = now + timedelta(seconds=retry_seconds(attempts, terms.first_retry_seconds, chance))
        change = StateChange(
            start, InvitationState.PENDING, InvitationStep.REFUSED_FOR_NOW, due_at, outcome.code
        )
    return replace(change, attempts=attempts)


def retry_seconds(attempts: int, first: float, chance: random.Random) -> float:
    """The first (a minute), doubling to an hour, and up to a quarter more: what failed together must not return together."""
    seconds: float = min(LONGEST_RETRY_SECONDS, first * 2 ** min(attempts - 1, 10))
    return seconds * chance.uniform(1.0, 1.25)
