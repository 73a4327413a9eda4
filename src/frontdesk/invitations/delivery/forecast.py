"""When an account's last invitation will have gone at its present limits, and the figures of delivery; it changes nothing."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from frontdesk.db import Tx
from frontdesk.invitations import get_deliverability
from frontdesk.invitations.delivery import store
from frontdesk.invitations.delivery.hold import HoldReason, find_reason
from frontdesk.invitations.delivery.hourly_window import BatchLimits, HourlyWindows

MOST_STEPS = 1_000_000  # a forecast further ahead than that says nothing

# Moments in seconds from now, with how many invitations (or places) each is about.
Moments = Iterable[tuple[float, int]]


@dataclass(frozen=True, slots=True)
class DeliveryForecast:
    """`backlog`: batched invitations in line; `held_back`: those whose plan accepts no patients, not in the backlog.

    `held`: why nothing is delivered at present, to nobody. `last_at`: when the last one will have gone, None when that is
    not to be told or nothing goes.
    """

    enabled: bool
    backlog: int
    held_back: int
    sent_this_hour: int
    hourly_limit: int
    held: HoldReason | None
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class WindowForecast:
    """How an account's window stands now: its measured time, its open batch, and when which places become free.

    `batch_age_seconds` is None when no batch was ever begun.
    """

    measured_us: int = 0
    batch_age_seconds: float | None = None
    batch_left: int = 0
    frees: tuple[tuple[float, int], ...] = ()

    @property
    def used(self) -> int:
        return sum(count for _, count in self.frees)


def forecast(tx: Tx, account_id: int, *, now: datetime) -> DeliveryForecast:
    """What the account can expect, if nothing new comes and the relay takes everything from now on."""
    settings = get_deliverability(tx, account_id)
    due = store.count_due(tx, account_id, now=now)
    standing = _standing(tx, account_id, now)
    held = find_reason(tx)
    limits = BatchLimits(settings.batch_size, settings.batch_interval_seconds, settings.hourly_limit)
    waits = [(max(0.0, (at - now).total_seconds()), count) for at, count in due]
    goes = settings.enabled and held is None
    seconds = seconds_until_last(waits, limits, standing) if goes else None
    return DeliveryForecast(
        enabled=settings.enabled,
        backlog=sum(count for _, count in due),
        held_back=store.count_held_back(tx, account_id),
        sent_this_hour=standing.used,
        hourly_limit=settings.hourly_limit,
        held=held,
        last_at=None if seconds is None else now + timedelta(seconds=seconds),
    )


def _standing(tx: Tx, account_id: int, now: datetime) -> WindowForecast:
    row = store.find_window(tx, account_id)
    if row is None:
        return WindowForecast()
    # Between writes the window's time stands in the database; for a forecast the wall clock is good enough.
    passed = max(0.0, (now - row["wall_at"]).total_seconds())
    measured = row["measured_us"] + int(passed * 1_000_000)
    age = None if row["batch_us"] is None else (measured - row["batch_us"]) / 1_000_000
    return WindowForecast(measured, age, row["batch_left"], tuple(_frees(tx, account_id, measured)))


def _frees(tx: Tx, account_id: int, measured: int) -> list[tuple[float, int]]:
    """What left within the window, and what is in hand, as if it left now."""
    meter = HourlyWindows()
    slices = store.sent_by_slice(tx, account_id, since_slice=meter.oldest_slice(measured))
    frees = [(max(0.0, meter.seconds_until_free(measured, slice_)), sent) for slice_, sent in slices]
    in_hand = store.count_in_hand(tx, account_id)
    return [*frees, (_free_again(meter, measured, 0.0), in_hand)] if in_hand else frees


def _free_again(meter: HourlyWindows, measured: int, moment: float) -> float:
    """When the place of one that leaves at a moment is free: it counts for the whole of its slice."""
    slice_ = meter.slice_at(measured + int(moment * 1_000_000))
    return meter.seconds_until_free(measured, slice_)


def seconds_until_last(
    waiting: Moments, limits: BatchLimits, standing: WindowForecast | None = None
) -> float | None:
    """Pure: `limits.allowance` again and again, each time at the next moment at which it allows something that is due.

    None when nothing waits.

    >>> seconds_until_last([(0, 250)], Limits(100, 60, 1000))
    120.0
    """
    course = _Simulation(limits, standing or WindowForecast(), waiting)
    for _ in range(MOST_STEPS):
        if course.waiting == 0:
            return course.last
        course.step()
    return None


class _Simulation:
    """An account's delivery as it will be: what is due, its batch and its window, from one event to the next."""

    def __init__(self, limits: BatchLimits, standing: WindowForecast, waiting: Moments) -> None:
        self._limits = limits
        self._meter = HourlyWindows()
        self._measured = standing.measured_us
        self._coming = deque(sorted(waiting))
        self._frees = deque(sorted(standing.frees))
        self._used = standing.used
        self._left = standing.batch_left
        age = standing.batch_age_seconds
        self._next_batch = 0.0 if age is None else limits.batch_interval_seconds - age
        self._due = 0
        self._moment = 0.0
        self.waiting = sum(count for _, count in self._coming)
        self.last: float | None = None

    def step(self) -> None:
        """Send what may be sent at this moment, then go on to the next at which something may."""
        self._catch_up()
        is_new = self._moment >= self._next_batch
        left = self._limits.batch_size if is_new else min(self._left, self._limits.batch_size)
        count = min(left, self._limits.hourly_limit - self._used, self._due)
        if count > 0:
            self._send(count, left)
            if is_new:
                self._next_batch = self._moment + self._limits.batch_interval_seconds
        else:
            self._moment = self._next_moment(left)

    def _catch_up(self) -> None:
        while self._coming and self._coming[0][0] <= self._moment:
            self._due += self._coming.popleft()[1]
        while self._frees and self._frees[0][0] <= self._moment:
            self._used -= self._frees.popleft()[1]

    def _send(self, count: int, left: int) -> None:
        self._left = left - count
        self._used += count
        self._due -= count
        self.waiting -= count
        self._frees.append((_free_again(self._meter, self._measured, self._moment), count))
        self.last = self._moment

    def _next_moment(self, left: int) -> float:
        """All that stands against it must have passed."""
        against = [self._moment]
        if self._due == 0:
            against.append(self._coming[0][0])
        if left == 0:
            against.append(self._next_batch)
        if self._used >= self._limits.hourly_limit:
            against.append(self._frees[0][0])
        return max(against)


@dataclass(frozen=True, slots=True)
class DeliveryStatistics:
    """How delivery stands: invitations by state, the age of the oldest that is due, each account's window."""

    by_state: dict[str, int]
    oldest_due_seconds: float
    window_used: dict[int, int]
    held: bool


def figures(tx: Tx, *, now: datetime) -> DeliveryStatistics:
    oldest = store.oldest_due(tx)
    return DeliveryStatistics(
        by_state=store.count_by_state(tx),
        oldest_due_seconds=0.0 if oldest is None else max(0.0, (now - oldest).total_seconds()),
        window_used={account: _standing(tx, account, now).used for account in store.window_versions(tx)},
        held=find_reason(tx) is not None,
    )
