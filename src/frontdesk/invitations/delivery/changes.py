"""What can become of an invitation in hand: each change of state as a value, and the one way such changes are written."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.invitations.delivery import change_store
from frontdesk.invitations.delivery.hourly_window import HourlyWindows
from frontdesk.invitations.model import (
    TRANSITIONS,
    Delivery,
    InvitationMessage,
    InvitationState,
    InvitationStep,
)

if TYPE_CHECKING:
    from frontdesk.invitations.delivery.claim import DeliveryPolicy

# From these states a message may have left by now: its place in the hourly window is counted.
MAY_HAVE_LEFT = {InvitationState.SENT, InvitationState.AMBIGUOUS}
FINAL = {InvitationState.SENT, InvitationState.FAILED, InvitationState.CANCELLED}


class Held(Protocol):
    """An invitation of one claim: what is written to it counts only while its epoch is still this one."""

    @property
    def id(self) -> int: ...
    @property
    def epoch(self) -> int: ...


class InvitationVersion(NamedTuple):
    """No more than what a change is written by."""

    id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ClaimedInvitation:
    """An invitation that a worker has in hand: of which claim it is (epoch), and what its message is written from."""

    id: int
    epoch: int
    delivery: Delivery
    attempts: int
    losses: int
    letter: InvitationMessage


@dataclass(frozen=True, slots=True)
class StateChange:
    """From one state to another; many invitations can share it. `due_at`: when it has to be looked at again, None: never.

    `closes` ends the claim: what its worker still writes is void. `attempts` and `losses` stay as they are when None.
    """

    from_state: InvitationState
    state: InvitationState
    reason: InvitationStep
    due_at: datetime | None = None
    code: int | None = None
    closes: bool = False
    attempts: int | None = None
    losses: int | None = None


Changes = Sequence[tuple[StateChange, Sequence[Held]]]


def alike(changes: Iterable[tuple[StateChange, Held]]) -> Changes:
    """Those that share a change, together."""
    groups: dict[StateChange, list[Held]] = {}
    for change, one in changes:
        groups.setdefault(change, []).append(one)
    return list(groups.items())


def cancel(reason: InvitationStep) -> StateChange:
    """Nothing is sent: the address is suppressed, the member's access has expired."""
    return StateChange(InvitationState.CLAIMED, InvitationState.CANCELLED, reason, closes=True)


def back_in_line(row: Mapping[str, Any], terms: "DeliveryPolicy", *, now: datetime) -> StateChange:
    """Step 6 and 7: what a lease or a hold that has run out leads to."""
    state = InvitationState(row["state"])
    change = StateChange(state, state, InvitationStep.LEASE_LAPSED, closes=True)
    if state is InvitationState.CLAIMED:
        return replace(change, state=InvitationState.PENDING, due_at=now)
    if state is InvitationState.OFFERED:
        return lost(change, row["losses"], terms, now=now)
    if terms.resend_ambiguous and row["losses"] <= 1:
        return replace(change, state=InvitationState.PENDING, reason=InvitationStep.ONCE_MORE, due_at=now)
    return replace(change, reason=InvitationStep.ANSWER_LOST)  # stays as it is until somebody settles it


def lost(change: StateChange, losses: int, terms: "DeliveryPolicy", *, now: datetime) -> StateChange:
    """Ambiguous: held once, so that it can be settled; after a second loss for as long as it takes."""
    due_at = now + timedelta(seconds=terms.ambiguous_hold_seconds) if losses == 0 else None
    return replace(change, state=InvitationState.AMBIGUOUS, losses=losses + 1, due_at=due_at)


def apply(tx: Tx, changes: Changes, *, now: datetime, meter: HourlyWindows | None = None) -> set[int]:
    """Write the changes that still hold, with their timeline; the ids of those. Others' claims are left alone.

    With a meter, batched invitations that may have left are counted into their account's window.
    """
    unknown = {(change.from_state, change.state) for change, _ in changes} - TRANSITIONS
    if any(start is not end for start, end in unknown):
        raise ValueError("no such change of state (docs/states.md)")
    written = _write(tx, changes, now=now)
    if meter is not None:
        _count(tx, changes, written, now, meter)
    return {row[0] for row in written}


def extend(tx: Tx, changes: Changes, *, now: datetime) -> None:
    """Write changes that lead from a state to itself: no step of the timeline."""
    _write(tx, changes, now=now, is_step=False)


def _write(tx: Tx, changes: Changes, *, now: datetime, is_step: bool = True) -> Sequence[Any]:
    at = stored_time(now)
    ones = [
        {"id": one.id, "epoch": one.epoch, "change": number}
        for number, (_, held) in enumerate(changes)
        for one in held
    ]
    rows = [_row(number, change, at) for number, (change, _) in enumerate(changes)]
    return change_store.change(tx, rows, ones, is_step=is_step)


def _count(tx: Tx, changes: Changes, written: Sequence[Any], now: datetime, meter: HourlyWindows) -> None:
    left = {
        one.id
        for change, held in changes
        if change.from_state is InvitationState.OFFERED and change.state in MAY_HAVE_LEFT
        for one in held
    }
    counts: dict[int, int] = {}
    for id_, account_id, delivery in written:
        if id_ in left and delivery == Delivery.BATCHED:
            counts[account_id] = counts.get(account_id, 0) + 1
    meter.count(tx, counts, now)


def _row(number: int, change: StateChange, at: str) -> dict[str, Any]:
    return {
        "change": number,
        "from_state": change.from_state.value,
        "state": change.state.value,
        "closes": int(change.closes),
        "due_at": stored_time(change.due_at) if change.due_at else None,
        "attempts": change.attempts,
        "losses": change.losses,
        "offered_at": at if change.state is InvitationState.OFFERED else None,
        "settled_at": at if change.state in FINAL else None,
        "reason": change.reason.value,
        "relay_code": change.code,
        "updated_at": at,
    }
