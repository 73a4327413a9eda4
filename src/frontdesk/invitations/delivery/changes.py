"""What can become of an invitation in hand: each change of state as a value, and the one way such changes are written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.invitations.delivery import store
from frontdesk.invitations.delivery.limits import Meter
from frontdesk.invitations.letters import InvitationLetter
from frontdesk.invitations.rules import Delivery
from frontdesk.invitations.states import TRANSITIONS, State, Step

if TYPE_CHECKING:
    from frontdesk.invitations.delivery.claim import Terms

# From these states a message may have left by now: its place in the hourly window is counted.
MAY_HAVE_LEFT = {State.SENT, State.AMBIGUOUS}


@dataclass(frozen=True, slots=True)
class Claimed:
    """An invitation in hand: of which claim it is (epoch), in what state, and what its message is written from."""

    id: int
    epoch: int
    delivery: Delivery
    state: State
    attempts: int
    losses: int
    letter: InvitationLetter


@dataclass(frozen=True, slots=True)
class Change:
    """From one state of one claim to another. `due_at` is when it has to be looked at again, None for never.

    `closes` ends the claim: what its worker still writes is void.
    """

    id: int
    epoch: int
    from_state: State
    state: State
    reason: Step
    attempts: int
    losses: int
    due_at: datetime | None = None
    code: int | None = None
    closes: bool = False


def change_of(one: Claimed, state: State, reason: Step, **more: Any) -> Change:
    return Change(one.id, one.epoch, one.state, state, reason, one.attempts, one.losses, **more)


def cancel(one: Claimed, reason: Step) -> Change:
    """Nothing is sent: the address is suppressed, the member's access has expired."""
    return change_of(one, State.CANCELLED, reason, closes=True)


def back_in_line(row: Mapping[str, Any], terms: "Terms", *, now: datetime) -> Change:
    """Step 6 and 7: what a lease or a hold that has run out leads to."""
    state = State(row["state"])
    change = Change(
        row["id"], row["epoch"], state, state, Step.LEASE_LAPSED, row["attempts"], row["losses"], closes=True
    )
    if state is State.CLAIMED:
        return replace(change, state=State.PENDING, due_at=now)
    if state is State.OFFERED:
        return lost(change, terms, now=now)
    if terms.resend_ambiguous and row["losses"] <= 1:
        return replace(change, state=State.PENDING, reason=Step.ONCE_MORE, due_at=now)
    return replace(change, reason=Step.ANSWER_LOST)  # stays as it is until somebody settles it


def lost(change: Change, terms: "Terms", *, now: datetime) -> Change:
    """Ambiguous: held once, so that it can be settled; after a second loss for as long as it takes."""
    due_at = now + timedelta(seconds=terms.ambiguous_hold_seconds) if change.losses == 0 else None
    return replace(change, state=State.AMBIGUOUS, losses=change.losses + 1, due_at=due_at)


def apply(tx: Tx, changes: Sequence[Change], *, now: datetime, meter: Meter | None = None) -> set[int]:
    """Write the changes that still hold, with their timeline; the ids of those. Others' claims are left alone.

    With a meter, batched invitations that may have left are counted into their account's window.
    """
    unknown = {(change.from_state, change.state) for change in changes} - TRANSITIONS
    if any(start is not end for start, end in unknown):
        raise ValueError("no such change of state (docs/states.md)")
    at = stored_time(now)
    written = store.change(tx, [_row(change, at) for change in changes])
    ids = {row[0] for row in written}
    store.insert_events(tx, [_event(change, at) for change in changes if change.id in ids])
    if meter is not None:
        _count(tx, changes, written, now, meter)
    return ids


def extend(tx: Tx, changes: Sequence[Change], *, now: datetime) -> None:
    """Write changes that lead from a state to itself: no step of the timeline."""
    at = stored_time(now)
    store.change(tx, [_row(change, at) for change in changes])


def _count(tx: Tx, changes: Sequence[Change], written: Sequence[Any], now: datetime, meter: Meter) -> None:
    left = {
        change.id
        for change in changes
        if change.from_state is State.OFFERED and change.state in MAY_HAVE_LEFT
    }
    counts: dict[int, int] = {}
    for id_, account_id, delivery in written:
        if id_ in left and delivery == Delivery.BATCHED:
            counts[account_id] = counts.get(account_id, 0) + 1
    for account_id in sorted(counts):  # in one order, so that two workers can't wait for each other
        window = meter.lock(tx, account_id, now, wait=True)
        if window is not None:
            meter.save(tx, window)
            meter.add(tx, window, counts[account_id])


def _row(change: Change, at: str) -> dict[str, Any]:
    final = change.state in (State.SENT, State.FAILED, State.CANCELLED)
    return {
        "id": change.id,
        "epoch": change.epoch,
        "from_state": change.from_state.value,
        "state": change.state.value,
        "next_epoch": change.epoch + change.closes,
        "due_at": stored_time(change.due_at) if change.due_at else None,
        "attempts": change.attempts,
        "losses": change.losses,
        "offered_at": at if change.state is State.OFFERED else None,
        "settled_at": at if final else None,
        "reason": change.reason.value,
        "relay_code": change.code,
        "updated_at": at,
    }


def _event(change: Change, at: str) -> dict[str, Any]:
    return {
        "invitation_id": change.id,
        "at": at,
        "from_state": change.from_state.value,
        "to_state": change.state.value,
        "reason": change.reason.value,
        "code": change.code,
    }
