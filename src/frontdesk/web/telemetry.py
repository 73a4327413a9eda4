"""What is logged and counted of each request: ids, route, status and milliseconds, never a value that a person sent.

Requests are noted in memory and told a moment later, in one write for all of them: a log call and three counters each
would take a fifth of the time of a request. Processes that serve together add up their counts through files in a folder.
"""

import asyncio
import json
import os
import sys
import time
import traceback
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from frontdesk.log_output import LogOutput
from frontdesk.web.request import Request

FLUSH_SECONDS = 0.1
SHARE_SECONDS = 1.0

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_METHODS = {"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"}

Key = tuple[str, str, int]


@dataclass(slots=True)
class Counts:
    """Requests of one method, route and status. `buckets` counts by duration; seconds are summed."""

    seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))


class Telemetry:
    """One line of JSON per request on `output`, and the counts behind /metrics (shared through `folder`, if any)."""

    def __init__(self, output: TextIO = sys.stdout, folder: Path | None = None) -> None:
        self._output = LogOutput(output)
        self._folder = folder
        self._lines: list[str] = []
        self._counts: dict[Key, Counts] = {}
        self._second = (0, "")
        self._shared_at = 0.0

    def answered(self, request: Request, route: str, status: int, seconds: float) -> None:
        method = request.method if request.method in _METHODS else "other"
        key = (method, route, status)
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = Counts()
        counts.seconds += seconds
        counts.buckets[bisect_left(BOUNDS, seconds)] += 1
        caller = request.known_caller
        client = f'"{caller.client_id}"' if caller is not None else "null"
        # Every part is an id, a number or a constant of ours, so nothing needs escaping.
        self._write(
            f'{{"at":"{self._time()}","event":"request","request_id":"{request.request_id}","client":{client},'
            f'"method":"{method}","route":"{route}","status":{status},"ms":{seconds * 1000:.2f}}}\n'
        )

    def unexpected(self, error: Exception, request: Request, route: str) -> None:
        """A fault of ours: the kind of error and where it happened. Its message may hold a person's data and is dropped."""
        about: dict[str, object] = {
            "event": "unexpected_error",
            "request_id": request.request_id,
            "route": route,
        }
        self._write(self._told(error, about))

    def failed_to_start(self, error: Exception) -> None:
        """The process can't serve, told in the same way. Returns when it is written."""
        self._output.put([self._told(error, {"event": "serving_process_failed", "pid": os.getpid()})])
        self._output.finish()

    def flush(self) -> None:
        """Hand on what has gathered; called a moment after the first line, and at the end."""
        lines, self._lines = self._lines, []
        self._output.put(lines)
        if self._folder is not None and time.monotonic() - self._shared_at > SHARE_SECONDS:
            self._share(self._folder)

    def close(self) -> None:
        """Write the last lines; those that nobody takes within a second are lost."""
        self.flush()
        self._output.finish()

    def collect(self) -> Iterator[Metric]:
        """The counts of every process that shares the folder, this one's as they are now (a Prometheus collector)."""
        total = {key: Counts(counts.seconds, list(counts.buckets)) for key, counts in self._counts.items()}
        dropped = self._output.dropped
        for path in self._folder.glob("*.json") if self._folder else ():
            if path.stem != str(os.getpid()):
                shared = json.loads(path.read_text())
                _add(total, shared["requests"])
                dropped += shared["dropped"]
        requests = CounterMetricFamily(
            "frontdesk_requests", "Answered requests.", labels=["method", "route", "status"]
        )
        duration = HistogramMetricFamily(
            "frontdesk_request_seconds",
            "Time to the answer, in seconds.",
            labels=["method", "route", "status"],
        )
        for (method, route, status), counts in total.items():
            labels = [method, route, str(status)]
            requests.add_metric(labels, sum(counts.buckets))
            duration.add_metric(labels, _cumulative(counts.buckets), counts.seconds)
        yield requests
        yield duration
        yield CounterMetricFamily(
            "frontdesk_log_lines_dropped", "Log lines that were not written: nobody took them.", value=dropped
        )

    def _share(self, folder: Path) -> None:
        self._shared_at = time.monotonic()
        rows = [[*key, counts.seconds, *counts.buckets] for key, counts in self._counts.items()]
        written = folder / f"{os.getpid()}.new"
        written.write_text(json.dumps({"requests": rows, "dropped": self._output.dropped}))
        written.replace(folder / f"{os.getpid()}.json")

    def _write(self, line: str) -> None:
        if not self._lines:
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)
        self._lines.append(line)

    def _told(self, error: Exception, about: dict[str, object]) -> str:
        frames = traceback.extract_tb(error.__traceback__)[-12:]
        where = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
        line = {"at": self._time(), **about, "error": type(error).__name__, "where": where}
        return json.dumps(line) + "\n"

    def _time(self) -> str:
        now = time.time()
        second = int(now)
        if second != self._second[0]:
            self._second = (second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)))
        return f"{self._second[1]}.{int((now - second) * 1e6):06d}Z"


def _add(total: dict[Key, Counts], rows: list[list[float | int | str]]) -> None:
    for method, route, status, seconds, *buckets in rows:
        counts = total.setdefault((str(method), str(route), int(status)), Counts())
        counts.seconds += float(seconds)
        counts.buckets = [mine + int(theirs) for mine, theirs in zip(counts.buckets, buckets, strict=True)]


def _cumulative(buckets: list[int]) -> list[tuple[str, float]]:
    bounds = [*(str(bound) for bound in BOUNDS), "+Inf"]
    return [(bound, float(sum(buckets[: n + 1]))) for n, bound in enumerate(bounds)]
