"""When an account's last pending invitation leaves at its present limits, and the statistics of delivery. Read-only."""

from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta

from frontdesk.db import Tx
from frontdesk.invitations.delivery import change_store, store, window_store
from frontdesk.invitations.delivery.hold import find_hold_reason
from frontdesk.invitations.delivery.hourly_window import SECOND_US, HourlyWindows, allowance
from frontdesk.invitations.delivery.model import DeliveryForecast, DeliveryStatistics, HourlyWindow
from frontdesk.invitations.model import DeliverabilitySettings
from frontdesk.invitations.store import get_deliverability

_MAX_STEPS = 1_000_000  # a forecast that needs more has no use


def forecast(tx: Tx, account_id: int, *, now: datetime) -> DeliveryForecast:
    """What the account can expect, if nothing new comes and the relay takes every message from now on."""
    settings = get_deliverability(tx, account_id)
    due, held_back = store.count_batched(tx, account_id, now=now)
    windows = window_store.find_windows(tx, [account_id])
    empty = HourlyWindow(account_id, 0, 0, now, None, 0)
    window, frees = _window_now(tx, windows[0], now) if windows else (empty, [])
    held = find_hold_reason(tx)
    waiting = [(max(0.0, (at - now).total_seconds()), count) for at, count in due]
    lanes = change_store.find_lanes(tx)
    suspended = any(lane.suspended for lane in lanes if lane.account_id == account_id)
    goes = settings.enabled and held is None and not suspended
    seconds = seconds_until_last(waiting, settings, window, frees) if goes else None
    return DeliveryForecast(
        enabled=settings.enabled,
        backlog=sum(count for _, count in due),
        held_back=held_back,
        sent_this_hour=sum(count for _, count in frees),
        hourly_limit=settings.hourly_limit,
        held=held,
        last_at=None if seconds is None else now + timedelta(seconds=seconds),
    )


def read_statistics(tx: Tx, *, now: datetime) -> DeliveryStatistics:
    """The figures of /metrics."""
    lanes = change_store.find_lanes(tx)
    oldest = min((lane.first_due_at for lane in lanes if not lane.suspended), default=now)
    return DeliveryStatistics(
        by_state=store.count_by_state(tx),
        oldest_due_seconds=max(0.0, (now - oldest).total_seconds()),
        window_used={
            window.account_id: sum(count for _, count in _window_now(tx, window, now)[1])
            for window in window_store.find_windows(tx)
        },
        held=find_hold_reason(tx) is not None,
    )


def seconds_until_last(
    waiting: Iterable[tuple[float, int]],
    settings: DeliverabilitySettings,
    window: HourlyWindow,
    frees: Iterable[tuple[int, int]] = (),
) -> float | None:
    """Pure: `hourly_window.allowance` again and again, each time at the next moment at which it allows an invitation.

    `waiting`: (seconds from now, invitations due then). `frees`: (measured time, places that are free then). None when
    nothing waits.
    """
    start = moment = window.measured_us
    coming = deque(sorted((start + int(seconds * SECOND_US), count) for seconds, count in waiting))
    taken = deque(sorted(frees))
    due, used, last = 0, sum(count for _, count in taken), None
    for _ in range(_MAX_STEPS):
        while coming and coming[0][0] <= moment:
            due += coming.popleft()[1]
        while taken and taken[0][0] <= moment:
            used -= taken.popleft()[1]
        if not (due or coming):
            return None if last is None else (last - start) / SECOND_US
        allowed, batch, _seconds = allowance(window._replace(measured_us=moment), settings, used=used)
        if count := min(allowed, due):
            window = batch._replace(batch_left=batch.batch_left - count)
            due, used, last = due - count, used + count, moment
            taken.append((_WINDOWS.free_at(_WINDOWS.slice_at(moment)), count))
            continue
        obstacles = [] if due else [coming[0][0]]
        if batch.batch_left <= 0:
            obstacles.append((batch.batch_us or 0) + settings.batch_interval_seconds * SECOND_US)
        if used >= settings.hourly_limit:
            obstacles.append(taken[0][0])
        moment = max(obstacles)
    return None


_WINDOWS = HourlyWindows()  # for its slices only


def _window_now(tx: Tx, window: HourlyWindow, now: datetime) -> tuple[HourlyWindow, list[tuple[int, int]]]:
    """The window with its time advanced to now, and (measured time, places) that become free."""
    # Between writes the window's time stands still in the database; for a forecast the wall clock is good enough.
    passed = max(0.0, (now - window.wall_at).total_seconds())
    window = window._replace(measured_us=window.measured_us + int(passed * SECOND_US))
    oldest = _WINDOWS.oldest_slice(window.measured_us)
    slices = window_store.sent_by_slice(tx, window.account_id, since_slice=oldest)
    slices.append(
        (_WINDOWS.slice_at(window.measured_us), window_store.count_held(tx, window.account_id))
    )  # as if they left now
    return window, [(_WINDOWS.free_at(slice_), count) for slice_, count in slices]
