"""What operators and files decide about invitations (cancel, settle, keep back; `resend` is beside
it), the forecast and the statistics.
"""

from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from heapq import nlargest
from operator import itemgetter

from frontdesk import codes
from frontdesk.audit import Requester
from frontdesk.db import Tx
from frontdesk.errors import FrontdeskError
from frontdesk.invitations.delivery_hold import find_hold_reason
from frontdesk.invitations.disclosure import as_shown, steps_as_shown
from frontdesk.invitations.hourly_window import SECOND_US, HourlyWindows, WindowKey, window_key
from frontdesk.invitations.model import (
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
from frontdesk.invitations.protocol import CANCELLABLE, apply_changes
from frontdesk.invitations.store import account_settings, claims, limits, queries
from frontdesk.reach import Reach

PAGE_ROWS = 1000
# Accounts in the metric of immediate invitations, so that its series don't grow with the accounts.
MOST_SHOWN = 10
_NO_BATCHES = 2**31  # a batch that is never used up


def get_invitation(
    tx: Tx, reach: Reach, invitation_id: int
) -> tuple[Invitation, list[InvitationEvent]]:
    """The invitation and its timeline, oldest step first; an account sees no reason that would tell
    of another account's mail (`disclosure`). Raises NotFound, also for one out of reach.
    """
    invitation = queries.find_invitation(tx, reach, invitation_id)
    steps = queries.find_events(tx, invitation.id)
    return as_shown(tx, reach, invitation), steps_as_shown(tx, reach, invitation, steps)


def cancel_invitation(tx: Tx, reach: Reach, invitation_id: int, requester: Requester) -> None:
    """It will not be sent; the timeline names the requester. Raises NotFound, also for one out of
    reach, and FrontdeskError `wrong_state` when it has left, or may have left, already.
    """
    invitation = lock_in(tx, reach, invitation_id, CANCELLABLE, "cancelled")
    _change(tx, invitation, InvitationState.CANCELLED, requester)


def settle_invitation(
    tx: Tx, reach: Reach, invitation_id: int, state: InvitationState, requester: Requester
) -> None:
    """Somebody looked up an ambiguous one: it was `sent`, or it `failed`; the timeline names the
    requester. Raises NotFound, also for one out of reach, and FrontdeskError `wrong_state`.
    """
    invitation = lock_in(tx, reach, invitation_id, {InvitationState.AMBIGUOUS}, "settled")
    _change(tx, invitation, state, requester)


def keep_back(tx: Tx, *, now: datetime) -> int:
    """After a backup was restored: make ambiguous all that would be sent by itself, since it may
    have left; their number.

    They stay so until an operator settles or resends each. No worker holds what the backup says is
    claimed or offered, and what it says is ambiguous may have been sent once more.
    """
    count = after = 0
    # By id, so each row is read once.
    while rows := queries.find_unsettled(tx, after=after, count=PAGE_ROWS):
        changes = [(_held_back(row), row) for row in rows]
        count += len(apply_changes(tx, changes, now=now))
        after = rows[-1].id
    return count


def _held_back(invitation: Invitation) -> StateChange:
    change = StateChange(invitation.state, InvitationState.AMBIGUOUS, InvitationStep.RESTORED)
    is_ambiguous = invitation.state is InvitationState.AMBIGUOUS
    return change if is_ambiguous else change._replace(losses=invitation.losses + 1)


def lock_in(
    tx: Tx, reach: Reach, invitation_id: int, states: set[InvitationState], done: str
) -> Invitation:
    """The invitation, locked. Raises NotFound, also for one out of reach, and FrontdeskError
    `wrong_state` in a state that is not among these.
    """
    invitation = queries.find_invitation(tx, reach, invitation_id, lock=True)
    if invitation.state not in states:
        names = ", ".join(sorted(states))
        raise FrontdeskError(
            f"The invitation is {invitation.state}; only these can be {done}: {names}.",
            code=codes.operators.WRONG_STATE,
        )
    return invitation


def _change(tx: Tx, invitation: Invitation, state: InvitationState, requester: Requester) -> None:
    change = StateChange(invitation.state, state, InvitationStep.BY_OPERATOR, actor=requester.actor)
    apply_changes(tx, [(change, invitation)], now=requester.now)


def forecast(
    tx: Tx, account_id: int, *, now: datetime, most: int | None = None
) -> DeliveryForecast:
    """What the account can expect, if nothing new comes and the relay takes every message from now
    on. With `most` no more than so many pending invitations of a kind are counted; where there are
    more, nothing says when the last leaves.
    """
    settings = account_settings.get_deliverability(tx, account_id)
    immediate_limit = limits.find_immediate_limits(tx, [account_id]).get(account_id, 0)
    waiting, held_back = queries.count_pending(tx, account_id, Delivery.BATCHED, now=now, most=most)
    immediate, _ = queries.count_pending(tx, account_id, Delivery.IMMEDIATE, now=now, most=most)
    window, frees = _window_now(tx, _stored_window(tx, (account_id, Delivery.BATCHED), now), now)
    of_immediate = _stored_window(tx, (account_id, Delivery.IMMEDIATE), now)
    immediate_window, immediate_frees = _window_now(tx, of_immediate, now)
    by_hour = DeliverabilitySettings(
        account_id, batch_size=_NO_BATCHES, hourly_limit=immediate_limit
    )
    held = find_hold_reason(tx)
    suspended = any(
        lane.suspended for lane in claims.find_lanes(tx) if lane.account_id == account_id
    )
    last = seconds_until_last(waiting, settings, window, frees)
    last_immediate = seconds_until_last(immediate, by_hour, immediate_window, immediate_frees)
    ends = [seconds for seconds in (last, last_immediate) if seconds is not None]
    counts = (sum(count for _, count in waiting) + held_back, sum(count for _, count in immediate))
    is_whole = most is None or max(counts) < most
    stands_still = held is not None or suspended or (waiting and not settings.enabled)
    seconds = None if stands_still or not is_whole else max(ends, default=None)
    return DeliveryForecast(
        enabled=settings.enabled,
        backlog=sum(count for _, count in waiting),
        immediate=sum(count for _, count in immediate),
        held_back=held_back,
        sent_this_hour=sum(count for _, count in frees),
        hourly_limit=settings.hourly_limit,
        immediate_this_hour=sum(count for _, count in immediate_frees),
        immediate_limit=immediate_limit,
        held=held,
        suspended=suspended,
        last_at=None if seconds is None else now + timedelta(seconds=seconds),
    )


def _stored_window(tx: Tx, key: WindowKey, now: datetime) -> HourlyWindow:
    """The window, an empty one before the account's first invitation of the kind."""
    account_id, delivery = key
    empty = HourlyWindow.empty(account_id, delivery, now)
    return next(iter(limits.find_windows(tx, [key])), empty)


def seconds_until_last(
    waiting: Iterable[tuple[float, int]],
    settings: DeliverabilitySettings,
    window: HourlyWindow,
    frees: Iterable[tuple[int, int]] = (),
) -> float | None:
    """Pure: the invitations leave in the order in which they are due, each as soon as the window
    has a place and the batch is not used up, or the next one may begin.

    `waiting`: (seconds from now, invitations due then). `frees`: (measured time, places that are
    free then). None when nothing waits.
    """
    start = moment = window.measured_us
    interval_us = settings.batch_interval_seconds * SECOND_US
    left = min(window.batch_left, settings.batch_size)
    next_batch_us = start if window.batch_us is None else window.batch_us + interval_us
    places = (at for at, count in sorted(frees) for _ in range(count))
    # the first of the last ones that count must be free
    taken = deque(places, maxlen=settings.hourly_limit)
    waiting = sorted(waiting)
    for due_us in (
        start + int(seconds * SECOND_US) for seconds, count in waiting for _ in range(count)
    ):
        full_until = taken[0] if len(taken) == taken.maxlen else 0
        moment = max(moment, due_us, full_until, 0 if left else next_batch_us)
        if moment >= next_batch_us:
            next_batch_us = moment + interval_us
            left = settings.batch_size
        left -= 1
        taken.append(_WINDOWS.free_at(moment // _WINDOWS.slice_us))
    return (moment - start) / SECOND_US if waiting else None


_WINDOWS = HourlyWindows()  # for its slices only


def _window_now(
    tx: Tx, window: HourlyWindow, now: datetime
) -> tuple[HourlyWindow, list[tuple[int, int]]]:
    """The window with its time advanced to now, and (measured time, places) that become free."""
    # Between writes the window's time stands still in the database; for a forecast the wall clock
    # is good enough.
    passed = max(0.0, (now - window.wall_at).total_seconds())
    window = window._replace(measured_us=window.measured_us + int(passed * SECOND_US))
    held = limits.count_held(tx, window_key(window))  # by workers: as if these left now
    slices = [*_WINDOWS.counted(window), (window.measured_us // _WINDOWS.slice_us, held)]
    return window, [(_WINDOWS.free_at(slice_), count) for slice_, count in slices]


def _count_used(tx: Tx, now: datetime) -> dict[Delivery, dict[int, int]]:
    """The places taken in the hourly windows, by kind of delivery and account."""
    used: dict[Delivery, dict[int, int]] = {kind: {} for kind in Delivery}
    for window in limits.find_windows(tx):
        frees = _window_now(tx, window, now)[1]
        used[window.delivery][window.account_id] = sum(count for _, count in frees)
    return used


def count_immediate(tx: Tx, *, now: datetime) -> dict[int, int]:
    """How many immediate invitations each account has sent in the last 60 minutes; accounts that
    never sent one are missing.
    """
    return _count_used(tx, now)[Delivery.IMMEDIATE]


def read_statistics(tx: Tx, *, now: datetime) -> DeliveryStatistics:
    """The figures of /metrics. Invitations that wait for a limit are due long before their hour, so
    they are not among the oldest.
    """
    used = _count_used(tx, now)
    immediate = used[Delivery.IMMEDIATE]
    hourly_limits = limits.find_immediate_limits(tx, immediate)
    at_limit = {
        account_id for account_id, count in immediate.items() if count >= hourly_limits[account_id]
    }
    lanes = [lane for lane in claims.find_lanes(tx) if lane.delivery is Delivery.IMMEDIATE]
    due = (
        lane.first_due_at
        for lane in lanes
        if not lane.suspended and lane.account_id not in at_limit
    )
    oldest = min(due, default=now)
    waiting = {lane.account_id for lane in lanes if lane.first_due_at <= now}
    shares = {
        account_id: count / hourly_limits[account_id]
        for account_id, count in immediate.items()
        if count
    }
    return DeliveryStatistics(
        by_state=queries.count_by_state(tx),
        oldest_due_seconds=max(0.0, (now - oldest).total_seconds()),
        window_used=used[Delivery.BATCHED],
        immediate_shares=dict(nlargest(MOST_SHOWN, shares.items(), key=itemgetter(1))),
        immediate_at_limit=len(at_limit & waiting),
        held=find_hold_reason(tx) is not None,
    )
