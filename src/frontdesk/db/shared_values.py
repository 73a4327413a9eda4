"""Values that many viewers see, each computed once in a while for all of them, by one viewer."""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from frontdesk.clock import Clock

MOST_KEPT = 200  # values in a process; the day of a plan has up to 125 kB


@dataclass(slots=True)
class _Shared:
    """A value that viewers share, and the lock of the viewer that renews it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    value: Any = None
    read_at: datetime | None = None


class SharedValues:
    """Values by key, each computed once for all viewers of a process. From any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._shared: dict[Hashable, _Shared] = {}

    def in_memory(self, key: Hashable, most_age: timedelta) -> Any:
        """The value if it is recent, else None. Never waits."""
        shared = self._shared.get(key)
        if shared is None or not _is_recent(shared, self._clock(), most_age):
            return None
        return shared.value

    def last(self, key: Hashable) -> Any:
        """The value however old it is, None without one. Never waits."""
        shared = self._shared.get(key)
        return None if shared is None else shared.value

    def get(self, key: Hashable, most_age: timedelta, compute: Callable[[], Any]) -> Any:
        """The value if it is recent, else what `compute` gives; the last one while another viewer
        computes it. Raises as `compute` does.
        """
        shared = self._of(key)
        if _is_recent(shared, self._clock(), most_age):
            return shared.value
        # The first viewers wait for the value; later ones take the last while one renews it.
        is_mine = shared.lock.acquire(blocking=shared.read_at is None)
        if not is_mine:
            return shared.value
        try:
            if not _is_recent(shared, self._clock(), most_age):
                shared.value = compute()
                shared.read_at = self._clock()
            return shared.value
        finally:
            shared.lock.release()

    def _of(self, key: Hashable) -> _Shared:
        with self._lock:
            shared = self._shared.get(key)
            if shared is None:
                if len(self._shared) >= MOST_KEPT:
                    del self._shared[next(iter(self._shared))]  # the oldest
                shared = self._shared[key] = _Shared()
            return shared


def _is_recent(shared: _Shared, now: datetime, most_age: timedelta) -> bool:
    """False too when a clock that was set back makes it a value of the future."""
    return shared.read_at is not None and timedelta(0) <= now - shared.read_at < most_age
