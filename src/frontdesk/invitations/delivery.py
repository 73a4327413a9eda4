"""What operators and files decide about invitations (cancel, resend, settle, keep back), the forecast and the statistics."""

from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from frontdesk.db import Tx
from frontdesk.db.sets import lock_name
from frontdesk.errors import FrontdeskError
from frontdesk.invitations import store
from frontdesk.invitations.hourly_window import SECOND_US, HourlyWindows
from frontdesk.invitations.model import (
    IN_LINE,
    DeliverabilitySettings,
    Delivery,
    DeliveryForecast,
    DeliveryStatistics,
    HourlyWindow,
    Invitation,
    InvitationEvent,
    InvitationState,
    InvitationStep,
    StateChange,
)
from frontdesk.invitations.protocol import CANCELLABLE, apply_changes, find_hold_reason
from frontdesk.text import fold_email

PAGE_ROWS = 1000
COOL_DOWN_HOURS = 24  # between two messages to one address that an operator asks for

RESENDABLE = set(InvitationState).difference(IN_LINE)


def get_invitation(tx: Tx, invitation_id: int) -> tuple[Invitation, list[InvitationEvent]]:
    """The invitation and its timeline, oldest step first. Raises NotFound."""
    return store.find_invitation(tx, invitation_id), store.find_events(tx, invitation_id)


def cancel_invitation(tx: Tx, invitation_id: int, *, now: datetime) -> None:
    """It will not be sent. Raises NotFound, and FrontdeskError when it has left, or may have left, already."""
    _change(tx, _lock(tx, invitation_id, CANCELLABLE, "cancelled"), InvitationState.CANCELLED, now=now)


def settle_invitation(tx: Tx, invitation_id: int, state: InvitationState, *, now: datetime) -> None:
    """An operator looked up an ambiguous one: it was `sent`, or it `failed`. Raises NotFound, FrontdeskError."""
    _change(tx, _lock(tx, invitation_id, {InvitationState.AMBIGUOUS}, "settled"), state, now=now)


def resend_invitation(tx: Tx, invitation_id: int, *, now: datetime) -> None:
    """Make it pending again. One that was sent gets a new Message-ID, one that may have been sent keeps its own.

    Raises NotFound, and FrontdeskError when the address is suppressed, another invitation to it is pending, or a message was
    offered to the relay for it less than COOL_DOWN_HOURS ago.
    """
    invitation = _lock(tx, invitation_id, RESENDABLE, "resent")
    if not invitation.address:
        raise FrontdeskError("The invitation has no address any more: it was erased.", code="erased")
    address = fold_email(invitation.address)
    lock_name(tx, address)  # another resend to it waits here, and then sees this invitation pending
    if store.find_suppressed(tx, {address})():
        raise FrontdeskError(
            "The address is on the suppression list; `frontdesk suppression remove` takes it off.",
            code="suppressed",
        )
    # Counted per address: other members, of other accounts too, may have the same one. Pending invitations come first: one
    # that leaves between the two reads is then among those that were offered.
    if store.is_queued(tx, address):
        raise FrontdeskError("Another invitation to the address is in line already.", code="already_pending")
    if store.was_offered(tx, address, since=now - timedelta(hours=COOL_DOWN_HOURS)):
        raise FrontdeskError(
            f"The address was mailed less than {COOL_DOWN_HOURS} hours ago; wait until then.",
            code="mailed_recently",
        )
    if invitation.state is InvitationState.SENT or invitation.reason is InvitationStep.BY_REPORT:
        # A relay took it once: reports about that message must not be taken for reports about the new one.
        invitation = invitation._replace(message_id=None)
    _change(tx, invitation, InvitationState.PENDING, now=now, due_at=now, attempts=0, losses=0)


def keep_back(tx: Tx, *, now: datetime) -> int:
    """After a backup was restored: make ambiguous all that would be sent by itself, since it may have left; their number.

    They stay so until an operator settles or resends each. No worker holds what the backup says is claimed or offered, and
    what it says is ambiguous may have been sent once more.
    """
    count = after = 0
    while rows := store.find_unsettled(tx, after=after, count=PAGE_ROWS):  # by id, so each row is read once
        changes = [(_kept_back(row), row) for row in rows]
        count += len(apply_changes(tx, changes, now=now))
        after = rows[-1].id
    return count


def _kept_back(invitation: Invitation) -> StateChange:
    change = StateChange(invitation.state, InvitationState.AMBIGUOUS, InvitationStep.RESTORED)
    is_ambiguous = invitation.state is InvitationState.AMBIGUOUS
    return change if is_ambiguous else change._replace(losses=invitation.losses + 1)


def _lock(tx: Tx, invitation_id: int, states: set[InvitationState], done: str) -> Invitation:
    invitation = store.find_invitation(tx, invitation_id, lock=True)
    if invitation.state not in states:
        names = ", ".join(sorted(states))
        raise FrontdeskError(
            f"The invitation is {invitation.state}; only these can be {done}: {names}.", code="wrong_state"
        )
    return invitation


def _change(tx: Tx, invitation: Invitation, state: InvitationState, *, now: datetime, **changes: Any) -> None:
    change = StateChange(invitation.state, state, InvitationStep.BY_OPERATOR, **changes)
    apply_changes(tx, [(change, invitation)], now=now)


def forecast(tx: Tx, account_id: int, *, now: datetime) -> DeliveryForecast:
    """What the account can expect, if nothing new comes and the relay takes every message from now on."""
    settings = store.get_deliverability(tx, account_id)
    waiting, held_back = store.count_pending(tx, account_id, Delivery.BATCHED, now=now)
    immediate, _ = store.count_pending(tx, account_id, Delivery.IMMEDIATE, now=now)
    stored = store.find_windows(tx, [account_id]) or [HourlyWindow(account_id, 0, 0, now, None, 0, ())]
    window, frees = _window_now(tx, stored[0], now)
    held = find_hold_reason(tx)
    suspended = any(lane.suspended for lane in store.find_lanes(tx) if lane.account_id == account_id)
    last = seconds_until_last(waiting, settings, window, frees)
    ends = [seconds for seconds, _ in immediate] + ([] if last is None else [last])
    stands_still = held is not None or suspended or (waiting and not settings.enabled)
    seconds = None if stands_still else max(ends, default=None)
    return DeliveryForecast(
        enabled=settings.enabled,
        backlog=sum(count for _, count in waiting),
        immediate=sum(count for _, count in immediate),
        held_back=held_back,
        sent_this_hour=sum(count for _, count in frees),
        hourly_limit=settings.hourly_limit,
        held=held,
        suspended=suspended,
        last_at=None if seconds is None else now + timedelta(seconds=seconds),
    )


def seconds_until_last(
    waiting: Iterable[tuple[float, int]],
    settings: DeliverabilitySettings,
    window: HourlyWindow,
    frees: Iterable[tuple[int, int]] = (),
) -> float | None:
    """Pure: the invitations leave in the order in which they are due, each as soon as the window has a place and the batch is
    not used up, or the next one may begin.

    `waiting`: (seconds from now, invitations due then). `frees`: (measured time, places that are free then). None when
    nothing waits.
    """
    start = moment = window.measured_us
    interval_us = settings.batch_interval_seconds * SECOND_US
    left = min(window.batch_left, settings.batch_size)
    next_batch_us = start if window.batch_us is None else window.batch_us + interval_us
    places = (at for at, count in sorted(frees) for _ in range(count))
    taken = deque(places, maxlen=settings.hourly_limit)  # the first of the last ones that count must be free
    waiting = sorted(waiting)
    for due_us in (start + int(seconds * SECOND_US) for seconds, count in waiting for _ in range(count)):
        full_until = taken[0] if len(taken) == taken.maxlen else 0
        moment = max(moment, due_us, full_until, 0 if left else next_batch_us)
        if moment >= next_batch_us:
            next_batch_us, left = moment + interval_us, settings.batch_size
        left -= 1
        taken.append(_WINDOWS.free_at(moment // _WINDOWS.slice_us))
    return (moment - start) / SECOND_US if waiting else None


_WINDOWS = HourlyWindows()  # for its slices only


def _window_now(tx: Tx, window: HourlyWindow, now: datetime) -> tuple[HourlyWindow, list[tuple[int, int]]]:
    """The window with its time advanced to now, and (measured time, places) that become free."""
    # Between writes the window's time stands still in the database; for a forecast the wall clock is good enough.
    passed = max(0.0, (now - window.wall_at).total_seconds())
    window = window._replace(measured_us=window.measured_us + int(passed * SECOND_US))
    held = store.count_held(tx, window.account_id)  # by workers: as if these left now
    slices = [*_WINDOWS.counted(window), (window.measured_us // _WINDOWS.slice_us, held)]
    return window, [(_WINDOWS.free_at(slice_), count) for slice_, count in slices]


def read_statistics(tx: Tx, *, now: datetime) -> DeliveryStatistics:
    """The figures of /metrics. Batched invitations are due long before their hour, so they are not among the oldest."""
    lanes = (lane for lane in store.find_lanes(tx) if lane.delivery is Delivery.IMMEDIATE)
    oldest = min((lane.first_due_at for lane in lanes if not lane.suspended), default=now)
    return DeliveryStatistics(
        by_state=store.count_by_state(tx),
        oldest_due_seconds=max(0.0, (now - oldest).total_seconds()),
        window_used={
            each.account_id: sum(count for _, count in _window_now(tx, each, now)[1])
            for each in store.find_windows(tx)
        },
        held=find_hold_reason(tx) is not None,
    )
