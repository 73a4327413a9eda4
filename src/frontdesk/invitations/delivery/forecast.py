"""When an account's last pending invitation leaves at its present limits, and the statistics of delivery. Read-only."""

from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from frontdesk.db import Tx
from frontdesk.invitations.delivery import change_store, store, window_store
from frontdesk.invitations.delivery.hold import find_hold_reason
from frontdesk.invitations.delivery.hourly_window import HourlyWindows
from frontdesk.invitations.delivery.model import DeliveryForecast, DeliveryStatistics, HourlyWindow
from frontdesk.invitations.model import DeliverabilitySettings
from frontdesk.invitations.store import get_deliverability

_MAX_STEPS = 1_000_000  # a forecast that needs more has no use


class WindowForecast(NamedTuple):
    """An account's window now: its measured time, its open batch, and (seconds from now, places) that become free.

    `batch_age_seconds` is None before the first batch.
    """

    measured_us: int = 0
    batch_age_seconds: float | None = None
    batch_left: int = 0
    frees: tuple[tuple[float, int], ...] = ()

    @property
    def used(self) -> int:
        return sum(count for _, count in self.frees)


def forecast(tx: Tx, account_id: int, *, now: datetime) -> DeliveryForecast:
    """What the account can expect, if nothing new comes and the relay takes every message from now on."""
    settings = get_deliverability(tx, account_id)
    due, held_back = store.count_batched(tx, account_id, now=now)
    windows = window_store.find_windows(tx, [account_id])
    window = _window_forecast(tx, windows[0], now) if windows else WindowForecast()
    held = find_hold_reason(tx)
    waiting = [(max(0.0, (at - now).total_seconds()), count) for at, count in due]
    goes = settings.enabled and held is None
    seconds = seconds_until_last(waiting, settings, window) if goes else None
    return DeliveryForecast(
        enabled=settings.enabled,
        backlog=sum(count for _, count in due),
        held_back=held_back,
        sent_this_hour=window.used,
        hourly_limit=settings.hourly_limit,
        held=held,
        last_at=None if seconds is None else now + timedelta(seconds=seconds),
    )


def read_statistics(tx: Tx, *, now: datetime) -> DeliveryStatistics:
    """The figures of /metrics."""
    oldest = min((lane.first_due_at for lane in change_store.find_lanes(tx)), default=now)
    return DeliveryStatistics(
        by_state=store.count_by_state(tx),
        oldest_due_seconds=max(0.0, (now - oldest).total_seconds()),
        window_used={
            window.account_id: _window_forecast(tx, window, now).used
            for window in window_store.find_windows(tx)
        },
        held=find_hold_reason(tx) is not None,
    )


def seconds_until_last(
    waiting: Iterable[tuple[float, int]],
    settings: DeliverabilitySettings,
    window: WindowForecast | None = None,
) -> float | None:
    """Pure: `hourly_window.allowance` again and again, each time at the next moment at which it allows an invitation.

    `waiting`: (seconds from now, invitations due then). None when nothing waits.

    >>> seconds_until_last([(0, 250)], DeliverabilitySettings(1, batch_size=100, batch_interval_seconds=60))
    120.0
    """
    window = window or WindowForecast()
    coming, frees = deque(sorted(waiting)), deque(sorted(window.frees))
    remaining, due, used, left = sum(count for _, count in coming), 0, window.used, window.batch_left
    age = window.batch_age_seconds
    next_batch = 0.0 if age is None else settings.batch_interval_seconds - age
    moment, last = 0.0, None
    for _ in range(_MAX_STEPS):
        if remaining == 0:
            return last
        while coming and coming[0][0] <= moment:
            due += coming.popleft()[1]
        while frees and frees[0][0] <= moment:
            used -= frees.popleft()[1]
        is_new_batch = moment >= next_batch
        batch = settings.batch_size if is_new_batch else min(left, settings.batch_size)
        count = min(batch, settings.hourly_limit - used, due)
        if count > 0:
            left, used, due, remaining = batch - count, used + count, due - count, remaining - count
            frees.append((_free_after(window.measured_us, moment), count))
            last = moment
            if is_new_batch:
                next_batch = moment + settings.batch_interval_seconds
            continue
        obstacles = [moment]
        if due == 0:
            obstacles.append(coming[0][0])
        if batch == 0:
            obstacles.append(next_batch)
        if used >= settings.hourly_limit:
            obstacles.append(frees[0][0])
        moment = max(obstacles)
    return None


_WINDOWS = HourlyWindows()  # for its slices only


def _window_forecast(tx: Tx, window: HourlyWindow, now: datetime) -> WindowForecast:
    # Between writes the window's time stands still in the database; for a forecast the wall clock is good enough.
    passed = max(0.0, (now - window.wall_at).total_seconds())
    measured_us = window.measured_us + int(passed * 1_000_000)
    age = None if window.batch_us is None else (measured_us - window.batch_us) / 1_000_000
    since_slice = _WINDOWS.oldest_slice(measured_us)
    frees = [
        (max(0.0, _WINDOWS.seconds_until_free(measured_us, slice_)), sent)
        for slice_, sent in window_store.sent_by_slice(tx, window.account_id, since_slice=since_slice)
    ]
    if held := window_store.count_held(tx, window.account_id):
        frees.append((_free_after(measured_us, 0.0), held))  # as if they left now
    return WindowForecast(measured_us, age, window.batch_left, tuple(frees))


def _free_after(measured_us: int, moment: float) -> float:
    """When the place of a message that leaves at `moment` is free: the message counts for the whole of its slice."""
    slice_ = _WINDOWS.slice_at(measured_us + int(moment * 1_000_000))
    return _WINDOWS.seconds_until_free(measured_us, slice_)
