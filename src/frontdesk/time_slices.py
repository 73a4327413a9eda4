"""Time slices for computations in the event loop: a long one is cut into slices, and other requests
go on between them.

A thread would be no gain, since it and the event loop take the interpreter's lock from each other.
A computation that could take longer than SLICE_SECONDS calls `await time_slice.pause_if_due()`
after each step. A step has a bound of its own: it is one record, or one block of a body. One slice
runs in each turn of the event loop, whatever the number of computations.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter

SLICE_SECONDS = 0.002
# A computation goes on after so long, also while short requests are under way all the time. So it
# keeps a third of the time.
GIVE_WAY_SECONDS = 0.004
LOOK_AGAIN_SECONDS = 0.001  # the resolution of uvloop's timers


class SliceScheduler:
    """Decides when each computation of one process may run its next slice: in the order in which
    they paused, one for each turn of the event loop, and while a short request is under way not
    before GIVE_WAY_SECONDS.
    """

    def __init__(self, now: Callable[[], float] = perf_counter) -> None:
        self.now = now  # the time of uvloop stands still during a callback
        self.short_requests = 0  # under way now; computations give way to them
        self._paused: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False
        self._gives_way_until = 0.0

    def begin(self) -> "TimeSlice":
        """The first slice of a computation."""
        return TimeSlice(self)

    async def pause(self) -> None:
        """Return when the next slice may run."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._paused.append(turn)
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._give_way, loop)
        await turn

    def _give_way(self, loop: asyncio.AbstractEventLoop) -> None:
        self._gives_way_until = self.now() + GIVE_WAY_SECONDS
        self._start_next(loop)

    def _start_next(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.short_requests and self.now() < self._gives_way_until:
            loop.call_later(LOOK_AGAIN_SECONDS, self._start_next, loop)
            return
        while self._paused:
            turn = self._paused.popleft()
            if not turn.done():  # its request may be gone
                turn.set_result(None)
                break
        self._is_scheduled = bool(self._paused)
        if self._paused:
            loop.call_soon(self._give_way, loop)  # the slice that was started runs before that


class TimeSlice:
    """The present slice of one computation."""

    def __init__(self, scheduler: SliceScheduler) -> None:
        self._scheduler = scheduler
        self._began_at = scheduler.now()

    async def pause_if_due(self) -> None:
        """Let others go on if this slice has lasted SLICE_SECONDS; a new one begins then."""
        if self._scheduler.now() - self._began_at >= SLICE_SECONDS:
            await self._scheduler.pause()
            self._began_at = self._scheduler.now()
