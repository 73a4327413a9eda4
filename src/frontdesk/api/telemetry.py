"""What is logged and counted of each request: ids, route, status and milliseconds, never a value that a person sent."""

import asyncio
import json
import sys
import traceback
from typing import Any, TextIO

from prometheus_client import Counter, Histogram

from frontdesk.api.exchange import Exchange
from frontdesk.clock import Clock, stored_time

REQUESTS = Counter("frontdesk_requests", "Answered requests.", ["method", "route", "status"])
SECONDS = Histogram(
    "frontdesk_request_seconds",
    "Time from the request's head to its answer, in seconds.",
    ["route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
UNEXPECTED = Counter("frontdesk_unexpected_errors", "Answers with status 500.", ["route"])

FLUSH_SECONDS = 0.1

_METHODS = {"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"}


class Telemetry:
    """One line of JSON per request on `write` (standard output unless told), and the counters behind /metrics."""

    def __init__(self, clock: Clock, output: TextIO = sys.stdout) -> None:
        self._clock = clock
        self._output = output
        self._lines: list[str] = []
        self._counters: dict[tuple[str, str, int], Any] = {}
        self._timers: dict[str, Any] = {}

    def answered(self, exchange: Exchange, route: str, status: int, seconds: float) -> None:
        method = exchange.method if exchange.method in _METHODS else "other"
        key = (method, route, status)
        counter = self._counters.get(key)
        if counter is None:
            counter = self._counters[key] = REQUESTS.labels(method, route, str(status))
            self._timers.setdefault(route, SECONDS.labels(route))
        counter.inc()
        self._timers[route].observe(seconds)
        caller = getattr(exchange, "caller", None)
        client = f'"{caller.client_id}"' if caller else "null"
        # Every part is an id, a number or a constant of ours, so nothing needs escaping.
        self._write(
            f'{{"at":"{stored_time(self._clock())}","event":"request","request_id":"{exchange.request_id}",'
            f'"client":{client},"method":"{method}","route":"{route}","status":{status},"ms":{seconds * 1000:.2f}}}\n'
        )

    def flush(self) -> None:
        """Write what has gathered; called a moment after the first line, and at the end."""
        lines, self._lines = self._lines, []
        self._output.write("".join(lines))
        self._output.flush()

    def _write(self, line: str) -> None:
        # One write for all the requests of a moment: a system call each would be felt at 5,000 requests a second.
        if not self._lines:
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)
        self._lines.append(line)

    def unexpected(self, error: Exception, exchange: Exchange, route: str) -> None:
        """A fault of ours: the kind of error and where it happened. Its message may hold a person's data, so it is dropped."""
        UNEXPECTED.labels(route).inc()
        frames = traceback.extract_tb(error.__traceback__)
        line = {
            "at": stored_time(self._clock()),
            "event": "unexpected_error",
            "request_id": exchange.request_id,
            "route": route,
            "error": type(error).__name__,
            "where": [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-12:]],
        }
        self._write(json.dumps(line) + "\n")
