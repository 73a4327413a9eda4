"""How many invitations an account may send now: a sliding window of an hour for each kind of
delivery, and batches.

The window runs on measured time, which no clock can jump: it advances by what the wall clock says
has passed since the row was last written, but never by more than a worker's own monotonic clock has
seen pass since then. A wall clock that leaps ahead or back moves it by a moment at most; while no
worker runs it stands still. So after a restart the last hour may count for up to an hour longer,
and never more than the limit leaves in any 60 minutes. Fixed windows would let twice the limit
through, and a log of wall-clock times would let more through whenever the clock leaps ahead.

A message takes a place when it is claimed. If it may have left, it is counted into a slice of
measured time when its outcome is written, so later than it left; if it did not leave, the place is
free again.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from frontdesk.db import Tx
from frontdesk.invitations.model import DeliverabilitySettings, Delivery, HourlyWindow
from frontdesk.invitations.store import limits

HOUR_SECONDS = 3600
SLICES = 120  # of a window: a message counts for at most 1/120 longer than the window
# A worker believes a jump of the clock for as long as it has not looked; it looks every
# OBSERVE_SECONDS.
OBSERVE_SECONDS = 2.0
STALE_SECONDS = 6.0
SLACK_SECONDS = 12

SECOND_US = 1_000_000

WindowKey = tuple[int, Delivery]  # an account and a kind of delivery


@dataclass(slots=True)
class _Observation:
    version: int
    first: float  # when this version was first seen
    last: float  # when the window was last looked at


class HourlyWindows:
    """One worker's measure of time, over all accounts. `monotonic` is this process's clock,
    `window_seconds` an hour.
    """

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        window_seconds: float = HOUR_SECONDS,
    ) -> None:
        self.monotonic = monotonic
        self.window_seconds = window_seconds + min(SLACK_SECONDS, window_seconds / 10)
        self.slice_us = int(window_seconds * SECOND_US / SLICES)
        self._window_us = int(self.window_seconds * SECOND_US)
        self._observations: dict[WindowKey, _Observation] = {}
        self._observed_at = float("-inf")

    def observe(self, tx: Tx) -> None:
        """Note which version each window has; called often, and asks the database every
        OBSERVE_SECONDS.
        """
        now = self.monotonic()
        if now - self._observed_at < OBSERVE_SECONDS:
            return
        self._observed_at = now
        for window in limits.find_windows(tx):
            self._note(window, now)

    def lock(self, tx: Tx, key: WindowKey, wall: datetime) -> HourlyWindow | None:
        """The window with its time advanced to now, locked. None when another worker has locked it."""
        find = partial(limits.find_windows, tx, [key], lock=True, skip_locked=True)
        rows = find()
        if not rows:
            limits.make_window(tx, key, wall)
            rows = find()
        return self._advance(rows[0], wall) if rows else None

    def save(self, tx: Tx, windows: Sequence[HourlyWindow]) -> None:
        """Write locked windows; from here on time is measured from them."""
        limits.save_windows(tx, windows)
        for window in windows:
            self._note(window, self.monotonic())

    def used(self, tx: Tx, window: HourlyWindow) -> int:
        """The places taken: invitations that workers hold, and those that left within the window."""
        held = limits.count_held(tx, window_key(window))
        return held + sum(count for _, count in self.counted(window))

    def counted(self, window: HourlyWindow) -> list[tuple[int, int]]:
        """Each slice of which any part is still inside the window, with what was counted into it."""
        oldest = (window.measured_us - self._window_us) // self.slice_us
        return [(slice_, count) for slice_, count in window.sent if slice_ >= oldest]

    def count_sent(self, tx: Tx, counts: Mapping[WindowKey, int], wall: datetime) -> None:
        """Count messages that left, or may have left, by their window."""
        windows = []
        for locked in limits.find_windows(tx, counts, lock=True) if counts else ():
            window = self._advance(locked, wall)
            sent = Counter(dict(self.counted(window)))
            sent[window.measured_us // self.slice_us] += counts[window_key(window)]
            windows.append(window._replace(sent=sorted(sent.items())))
        if windows:
            self.save(tx, windows)

    def free_at(self, slice_: int) -> int:
        """The measured time at which a slice no longer counts; until then all of it does."""
        return (slice_ + 1) * self.slice_us + self._window_us

    def seconds_until_free(self, window: HourlyWindow) -> float:
        """Until the oldest slice stops counting; 0 when none counts."""
        oldest = min((slice_ for slice_, _ in self.counted(window)), default=None)
        return 0.0 if oldest is None else (self.free_at(oldest) - window.measured_us) / SECOND_US

    def _advance(self, window: HourlyWindow, wall: datetime) -> HourlyWindow:
        """The window now: by the wall clock, but at most by what this process's own clock can vouch
        for since the last write.
        """
        now = self.monotonic()
        seen = self._observations.get(window_key(window))
        vouched = 0.0
        if seen is not None and seen.version == window.version:
            vouched = now - seen.first
        elif seen is not None and now - seen.last <= STALE_SECONDS:
            vouched = now - seen.last  # another worker wrote it since
        # An observation of too long ago (a stopped process) proves nothing.
        passed = max(0.0, min((wall - window.wall_at).total_seconds(), vouched))
        self._note(window, now)
        measured_us = window.measured_us + int(passed * SECOND_US)
        return window._replace(measured_us=measured_us, wall_at=wall, version=window.version + 1)

    def _note(self, window: HourlyWindow, now: float) -> None:
        """From a version that is new to this worker, time is measured anew."""
        seen = self._observations.get(window_key(window))
        if seen is None or seen.version != window.version:
            self._observations[window_key(window)] = _Observation(window.version, now, now)
        else:
            seen.last = now


def window_key(window: HourlyWindow) -> WindowKey:
    return window.account_id, window.delivery


def allowance(
    window: HourlyWindow, settings: DeliverabilitySettings, *, used: int
) -> tuple[int, HourlyWindow, float]:
    """How many may be claimed now, the window with the batch they belong to, and if none, seconds
    until there may be some.

    Pure: the open batch (a new one when the interval has passed), within what the window leaves.

    >>> from frontdesk.invitations.model import DeliverabilitySettings
    >>> settings = DeliverabilitySettings(account_id=7, batch_size=100, hourly_limit=1000)
    >>> window = HourlyWindow(7, 1, 0, datetime(2026, 11, 20), batch_us=None, batch_left=0, sent=())
    >>> allowance(window, settings, used=0)[0]
    100
    >>> allowance(window, settings, used=950)[0]
    50
    """
    interval_us = int(settings.batch_interval_seconds * SECOND_US)
    if window.batch_us is None or window.measured_us - window.batch_us >= interval_us:
        window = window._replace(batch_us=window.measured_us, batch_left=settings.batch_size)
    left = min(window.batch_left, settings.batch_size)
    count = max(0, min(left, settings.hourly_limit - used))
    if count or left > 0:
        return count, window, 1.0
    until_batch = (interval_us - (window.measured_us - (window.batch_us or 0))) / SECOND_US
    return 0, window, max(0.05, until_batch)
