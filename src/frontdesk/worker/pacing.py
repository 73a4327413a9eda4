"""How many webhooks a second leave for one receiver, for all accounts together
(docs/webhooks.md#receivers-are-protected).

Without a bound a customer could have the service flood any server that answers POST requests with
2xx.
"""

import threading
import time
from collections.abc import Callable

WEBHOOKS_PER_SECOND = 200  # to one name of a host, and to one address, from a worker
MOST_RECEIVERS = 10_000  # that are remembered; a pause of 5 ms is soon over


class ReceiverPaces:
    """Spaces what is sent to each receiver evenly. `wait` may be called from any thread."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._free_at: dict[str, float] = {}

    def wait(self, receiver: str) -> None:
        """Wait until the receiver, a name or an address, may be sent the next webhook."""
        with self._lock:
            now = self._clock()
            if len(self._free_at) >= MOST_RECEIVERS:
                self._free_at = {
                    name: free_at for name, free_at in self._free_at.items() if free_at > now
                }
            turn_at = max(now, self._free_at.get(receiver, now))
            self._free_at[receiver] = turn_at + 1 / WEBHOOKS_PER_SECOND
        if turn_at > now:
            self._sleep(turn_at - now)
