"""How many batched invitations an account may send now: batches, and a true sliding window; it knows no message.

The window runs on measured time, which no clock can jump: it goes on by what the wall clock says has passed since the row
was last written, but never by more than what a worker's own monotonic clock has seen pass since then. A wall clock that
leaps ahead or back moves it by a moment at most; while no worker runs it stands still. So after a restart the last hour
may count for up to an hour longer, and never more than the limit leaves in any 60 minutes.

A message takes a place from the moment it is claimed. If it may have left, it is counted into a slice of measured time
when its outcome is written, so later than it left; if it did not leave, the place is free again.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from frontdesk.clock import stored_time
from frontdesk.db import Tx
from frontdesk.invitations.delivery import store

HOUR_SECONDS = 3600
SLICES = 720  # of a window: a message counts for at most 1/720 longer than the window
# A jump of the clock is believed for as long as a worker has not looked; workers look every LOOK_SECONDS.
LOOK_SECONDS = 2.0
STALE_SECONDS = 6.0
SLACK_SECONDS = 12

_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The account's agreement: `batch_size` every `batch_interval_seconds`, at most `hourly_limit` in any window."""

    batch_size: int
    batch_interval_seconds: float
    hourly_limit: int


@dataclass(frozen=True, slots=True)
class HourlyWindow:
    """An account's measured time and its present batch, as they are in the database."""

    account_id: int
    version: int
    measured_us: int
    wall_at: datetime
    batch_us: int | None
    batch_left: int

    def row(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class _Look:
    version: int
    first: float  # when this version was first seen
    last: float  # when the window was last looked at


class HourlyWindows:
    """One worker's measure of time, over all accounts. `monotonic` is this process's; `window_seconds` is an hour."""

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, *, window_seconds: float = HOUR_SECONDS
    ) -> None:
        self._monotonic = monotonic
        self._slice_us = int(window_seconds * _SECOND / SLICES)
        slack = min(SLACK_SECONDS, window_seconds / 10)
        self.window_seconds = window_seconds + slack
        self._window_us = int(self.window_seconds * _SECOND)
        self._looks: dict[int, _Look] = {}
        self._looked_at = float("-inf")
        self._lock = threading.Lock()

    def now(self) -> float:
        """This process's own clock, in seconds."""
        return self._monotonic()

    def look(self, tx: Tx) -> None:
        """See how far the windows are; called often, and asks the database every LOOK_SECONDS."""
        now = self._monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        for account_id, version in store.window_versions(tx).items():
            self._see(account_id, version, now)

    def lock(self, tx: Tx, account_id: int, wall: datetime, *, wait: bool) -> HourlyWindow | None:
        """The account's window with its time brought up to now, locked. None when another worker has it (`wait` false)."""
        row = store.lock_window(tx, account_id, wait=wait)
        if row is None:
            store.make_window(tx, account_id, wall)
            row = store.lock_window(tx, account_id, wait=wait)
        if row is None:
            return None
        return self._brought_up(row, wall)

    def save(self, tx: Tx, window: HourlyWindow) -> None:
        """Write the window that `lock` gave; from here on time is measured from it."""
        store.save_window(tx, window.row())
        self._saved(window)

    def used(self, tx: Tx, window: HourlyWindow) -> int:
        """The places taken: what is in hand, and what left within the window."""
        since_slice = self.oldest_slice(window.measured_us)
        return store.count_used(tx, window.account_id, since_slice=since_slice)

    def count(self, tx: Tx, counts: Mapping[int, int], wall: datetime) -> None:
        """Count messages that left, or may have left, by their account."""
        if not counts:
            return
        # Locked in one order, so that two workers can't wait for each other.
        windows = [self._brought_up(row, wall) for row in store.lock_windows(tx, sorted(counts))]
        rows = [
            window.row()
            | {
                "wall_at": stored_time(wall),
                "slice": self.slice_at(window.measured_us),
                "sent": counts[window.account_id],
                "oldest": self.oldest_slice(window.measured_us),
            }
            for window in windows
        ]
        store.count_into_windows(tx, rows)
        for window in windows:
            self._saved(window)

    def slice_at(self, measured_us: int) -> int:
        return measured_us // self._slice_us

    def oldest_slice(self, measured_us: int) -> int:
        """The first slice of which any part is still inside the window."""
        return (measured_us - self._window_us) // self._slice_us

    def seconds_until_free(self, measured_us: int, slice_: int) -> float:
        """How long until a slice no longer counts."""
        return ((slice_ + 1) * self._slice_us + self._window_us - measured_us) / _SECOND

    def _brought_up(self, row: Mapping[str, Any], wall: datetime) -> HourlyWindow:
        window = HourlyWindow(**row)
        now = self._monotonic()
        passed = min((wall - window.wall_at).total_seconds(), self._seen_pass(window, now))
        self._see(window.account_id, window.version, now)
        measured = window.measured_us + int(max(0.0, passed) * _SECOND)
        return replace(window, measured_us=measured, wall_at=wall, version=window.version + 1)

    def _saved(self, window: HourlyWindow) -> None:
        now = self._monotonic()
        self._looks[window.account_id] = _Look(window.version, now, now)

    def _seen_pass(self, window: HourlyWindow, now: float) -> float:
        """The seconds that this process knows to have passed at most since the window was written."""
        look = self._looks.get(window.account_id)
        if look is None:
            return 0.0
        if look.version == window.version:
            return now - look.first
        # Another wrote it since the last look. A look too long ago (a stopped process) proves nothing.
        return now - look.last if now - look.last <= STALE_SECONDS else 0.0

    def _see(self, account_id: int, version: int, now: float) -> None:
        look = self._looks.get(account_id)
        if look is None or look.version != version:
            self._looks[account_id] = _Look(version, now, now)
        else:
            look.last = now


@dataclass(frozen=True, slots=True)
class MailAllowance:
    """How many may be claimed now; when none may, `retry_seconds` says when to ask again."""

    count: int
    window: HourlyWindow
    retry_seconds: float = 0.0


def allowance(window: HourlyWindow, limits: BatchLimits, *, used: int) -> MailAllowance:
    """Pure: the batch that is open (a new one when the interval has passed), within what the window leaves."""
    interval_us = int(limits.batch_interval_seconds * _SECOND)
    if window.batch_us is None or window.measured_us - window.batch_us >= interval_us:
        window = replace(window, batch_us=window.measured_us, batch_left=limits.batch_size)
    left = min(window.batch_left, limits.batch_size)
    count = max(0, min(left, limits.hourly_limit - used))
    if count:
        return MailAllowance(count, window)
    until_batch = (
        (interval_us - (window.measured_us - (window.batch_us or 0))) / _SECOND if left == 0 else 1.0
    )
    return MailAllowance(0, window, max(0.05, until_batch))


def after(window: HourlyWindow, claimed: int) -> HourlyWindow:
    """The window once that many of its batch have been claimed."""
    return replace(window, batch_left=window.batch_left - claimed)
