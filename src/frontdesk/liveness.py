"""Signs of life: when a process beats, and which requests it works on, in memory that its
supervisor can read.

A process that hangs can't say what it hangs in. So each request is written down when it begins and
when its body has arrived.
"""

import mmap
import os
import threading
import time
from collections.abc import Callable
from itertools import count
from struct import Struct
from typing import Any, NamedTuple

BEAT_SECONDS = 2.0
# A process without a beat for so long is ended. A busy machine and a blocked event loop of some
# seconds stay far below it.
SILENT_SECONDS = 30.0
# A process that starts has no loop yet: a slow machine loads the modules for long, and a database
# is waited for.
START_SECONDS = 300.0
# One step of a worker's loop: a chunk of a file, a page of what is deleted. Each statement has a
# far shorter limit of its own.
STUCK_SECONDS = 600.0

_SLOTS = 256
_SLOT = Struct("<Q72s64s")  # number, route, request id
_NUMBER = Struct("<Q")
_SHARED_SLOT = 0  # of all requests that find no free slot: it has the newest of them
MEMORY_BYTES = _SLOTS * _SLOT.size


class NotedRequest(NamedTuple):
    """A request in work, as a supervisor finds it."""

    number: int
    route: str
    request_id: str


class RequestsInWork:
    """The requests that one process works on: their routes and ids, and nothing that a caller sent
    but the id.

    The process writes, its supervisor reads. A request gets a higher number with each step that it
    takes, so the process most likely runs the one with the highest.
    """

    def __init__(self, memory: mmap.mmap | bytearray | None = None) -> None:
        self._memory = bytearray(MEMORY_BYTES) if memory is None else memory
        self._free = list(range(_SLOTS - 1, _SHARED_SLOT, -1))
        self._numbers = count(1)

    def begin(self, route: bytes, request_id: str) -> int:
        """Note a request; the slot is for `advance` and `end`."""
        slot = self._free.pop() if self._free else _SHARED_SLOT
        _SLOT.pack_into(
            self._memory, slot * _SLOT.size, next(self._numbers), route, request_id.encode("ascii")
        )
        return slot

    def advance(self, slot: int) -> None:
        """The request of the slot goes on now, after it has waited."""
        _NUMBER.pack_into(self._memory, slot * _SLOT.size, next(self._numbers))

    def end(self, slot: int) -> None:
        _NUMBER.pack_into(self._memory, slot * _SLOT.size, 0)
        if slot != _SHARED_SLOT:
            self._free.append(slot)

    def newest(self, most: int) -> list[NotedRequest]:
        """Up to `most` requests in work, the one that most likely runs first."""
        found = []
        for number, route, request_id in _SLOT.iter_unpack(self._memory):
            if number:
                found.append(NotedRequest(number, _text(route), _text(request_id)))
        return sorted(found, reverse=True)[:most]


def _text(field: bytes) -> str:
    return field.rstrip(b"\0").decode("ascii", "replace")


def make_shared_memory() -> int | None:
    """The number of a file in memory for the requests of a process; None where the system has no
    such files.
    """
    try:
        number = os.memfd_create("frontdesk-requests")
    except (AttributeError, OSError):
        return None
    os.write(number, bytes(MEMORY_BYTES))  # all of it exists now: no later write can fail
    return number


def map_shared_memory(number: int) -> mmap.mmap:
    return mmap.mmap(number, MEMORY_BYTES)


class LoopBeats:
    """The beats of a process with several loops: it beats as long as all of them advance.

    The loops themselves beat, and no thread does it for them. A loop calls `advance` from its own
    thread, each `beat_seconds` when it waits. `beat` is called by whichever loop comes first when a
    beat is due, unless another one is in the same step for over `stuck_seconds`; `tell` writes that
    to the log.
    """

    def __init__(
        self,
        beat: Callable[[], None],
        tell: Callable[..., Any],
        *,
        beat_seconds: float = BEAT_SECONDS,
        stuck_seconds: float = STUCK_SECONDS,
    ) -> None:
        self.beat_seconds = beat_seconds
        self._beat = beat
        self._tell = tell
        self._stuck_seconds = stuck_seconds
        self._advanced_at: dict[str, float] = {}
        self._beaten_at = float("-inf")
        self._stuck: set[str] = set()
        self._lock = threading.Lock()

    def advance(self, loop: str) -> None:
        """The loop of this name goes on."""
        with self._lock:
            now = time.monotonic()
            self._advanced_at[loop] = now
            self._stuck.discard(loop)
            if now < self._beaten_at + self.beat_seconds:
                return
            since = now - self._stuck_seconds
            stuck = {name for name, advanced_at in self._advanced_at.items() if advanced_at < since}
            for name in sorted(stuck - self._stuck):
                self._tell(
                    "worker_loop_stuck", loop=name, seconds=round(now - self._advanced_at[name])
                )
            self._stuck = stuck
            if not stuck:
                self._beaten_at = now
                self._beat()

    def leave(self, loop: str) -> None:
        """The loop has ended in order."""
        with self._lock:
            self._advanced_at.pop(loop, None)
