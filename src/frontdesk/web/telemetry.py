"""The log line and the metrics of each request: ids, route, status and milliseconds, never a value
that a person sent.

Log lines gather in memory for a tenth of a second and leave in one write: a log call for each
request would take a tenth of its time. Serving processes write down their counts each second, and
whichever is asked adds them up (docs/decisions/0061).
"""

import asyncio
import json
import os
import sys
import threading
import time
import traceback
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import accumulate
from operator import add
from pathlib import Path
from typing import TextIO

import orjson
from prometheus_client import Gauge, Info, ProcessCollector
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from frontdesk import PROGRAM
from frontdesk.app import App
from frontdesk.log_output import LogOutput, event_line
from frontdesk.text import stored_time
from frontdesk.tracing import TRACES
from frontdesk.web.request import Network, Request, caller_address

FLUSH_SECONDS = 0.1

METRICS_FOLDER = (
    "FRONTDESK_METRICS"  # the variable that names the folder of the serving processes' counts
)
STORE_SECONDS = 1.0
# That are kept as they are written; longer headers would fill the memory.
ADDRESSES = 1024
LONGEST = 200

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_METHODS = {"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"}
_LABELS = ("method", "route", "status")
_LEVELS = {500: "error", 503: "warning"}

Labels = tuple[str, str, int]


class RequestCounts:
    """Counts requests by their labels, beside other processes that share `folder`: each writes a
    file there every second.

    A process that finds no space on the disk counts in memory: the others then show its older
    counts.
    """

    def __init__(self, folder: Path | None) -> None:
        # Of each labels how many requests ended within each bound, and their seconds.
        self.rows: defaultdict[Labels, list[float]] = defaultdict(lambda: [0.0] * (len(BOUNDS) + 2))
        self.dropped_lines = 0
        self._file = None if folder is None else folder / f"{os.getpid()}.json"
        self._is_due = False

    def add(self, labels: Labels, seconds: float) -> None:
        row = self.rows[labels]
        row[bisect_left(BOUNDS, seconds)] += 1
        row[-1] += seconds

    def store_soon(self) -> None:
        """Write the file a second from now, in a thread: a slow disk must not hold up requests."""
        if self._file is not None and not self._is_due:
            self._is_due = True
            timer = threading.Timer(STORE_SECONDS, self.store)
            timer.daemon = True
            timer.start()

    def store(self) -> None:
        self._is_due = False  # first: what is counted from here on may be missing
        if self._file is not None:
            rows = [(*labels, row) for labels, row in [*self.rows.items()]]
            written = self._file.with_suffix(f".{threading.get_ident()}")
            with suppress(OSError):
                written.write_bytes(orjson.dumps([self.dropped_lines, rows]))
                # whole at once: another process may be reading the folder
                written.replace(self._file)

    def totals(self) -> tuple[int, dict[Labels, list[float]]]:
        """The dropped log lines and the counts of all processes that share the folder."""
        total = {labels: [*row] for labels, row in [*self.rows.items()]}
        dropped = self.dropped_lines
        others = [] if self._file is None else self._file.parent.glob("*.json")
        for file in others:
            if file != self._file:
                theirs, rows = orjson.loads(file.read_bytes())
                dropped += theirs
                for method, route, status, row in rows:
                    known = total.get((method, route, status), [0.0] * len(row))
                    total[method, route, status] = [*map(add, known, row)]
        return dropped, total


class Telemetry:
    """One line of JSON per request on `output`, and the collector of the requests' metrics."""

    def __init__(self, output: TextIO = sys.stdout) -> None:
        folder = os.environ.get(METRICS_FOLDER)
        self._output = LogOutput(output)
        self._lines: list[str] = []
        self._counts = RequestCounts(None if folder is None else Path(folder))
        self._has_seen_proxy = False
        self._address = _cached_address(())

    def watch(self, app: App) -> None:
        """Show the metrics of this process, which serves the App, and log addresses as its trusted
        proxies forward them.
        """
        self._address = _cached_address(app.config.trusted_proxies)
        registry = app.metrics
        db = app.db
        registry.register(self)
        ProcessCollector(registry=registry)
        Info("frontdesk_build", "The program that answers.", registry=registry).info(PROGRAM)
        pool = Gauge(
            "frontdesk_pool_connections", "Connections of the pool.", ["state"], registry=registry
        )
        for number, state in enumerate(("used", "idle")):
            pool.labels(state).set_function(
                partial(lambda number: db.count_connections()[number], number)
            )
        waiting = Gauge(
            "frontdesk_group_commit_waiting", "Records in no group yet.", registry=registry
        )
        waiting.set_function(app.enrolments.count_waiting)
        free = "Free space where SQLite's file lies, or else temporary files, in bytes."
        Gauge("frontdesk_disk_free_bytes", free, registry=registry).set_function(db.free_disk_bytes)

    def answered(self, request: Request, route: str, status: int, seconds: float) -> None:
        method = request.method if request.method in _METHODS else "other"
        self._counts.add((method, route, status), seconds)
        caller = request.known_caller
        client = f'"{caller.client_id}"' if caller is not None else "null"
        # Invited people call the routes with a {token}.
        address = "null" if "{token}" in route else self._address(*request.forwarding)
        trace = "" if (parent := request.trace_parent) is None else f',"trace_id":"{parent[1]}"'
        if TRACES.tracer is not None:
            known = {
                "http.route": route,
                "http.response.status_code": status,
                "request_id": request.request_id,
            }
            TRACES.record(f"{method} {route}", seconds, known, parent[0] if parent else "")
        at, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        # Every other part is an id, a number or a constant of ours, so nothing needs escaping.
        self._write(
            f'{{"at":"{_second(at)}{nanoseconds // 1000:06}Z",'
            f'"level":"{_LEVELS.get(status, "info")}","event":"request",'
            f'"request_id":"{request.request_id}","client":{client},"address":{address},'
            f'"method":"{method}","route":"{route}","status":{status},'
            f'"ms":{seconds * 1000:.2f}{trace}}}\n'
        )

    def unexpected(self, error: Exception, request: Request, route: str) -> None:
        """Log a fault of ours: the kind of error and where it happened. Its message may hold a
        person's data and is left out.
        """
        self._write(
            _error_line("unexpected_error", error, request_id=request.request_id, route=route)
        )

    def response_cut(self, request: Request, route: str) -> None:
        """Log that a reader took nothing of a response for so long that it was broken off."""
        self._write(event_line("response_cut", request_id=request.request_id, route=route))

    def proxy_seen(self) -> None:
        """Log, once in each process, that a proxy forwards and FRONTDESK_TRUSTED_PROXIES names
        none.
        """
        if not self._has_seen_proxy:
            self._has_seen_proxy = True
            detail = (
                "A proxy forwards, and FRONTDESK_TRUSTED_PROXIES names none: its callers share "
                "the limit of failed attempts."
            )
            self._write(event_line("proxy_not_trusted", detail=detail))

    def event(self, event: str, **values: object) -> None:
        """Log what happened to the process, from any thread. `values` hold codes and sentences of
        ours.
        """
        self._output.write(event, **values)

    def failed_to_start(self, error: Exception) -> None:
        """Log that the process can't serve. Returns when the line is written."""
        self._output.put([_error_line("serving_process_failed", error, pid=os.getpid())])
        self._output.finish()

    def flush(self) -> None:
        """Hand the gathered lines on; called a moment after the first of them, and at the end."""
        lines = self._lines
        self._lines = []
        self._output.put(lines)
        self._counts.dropped_lines = self._output.dropped
        self._counts.store_soon()

    def close(self) -> None:
        """Write the last lines and counts; lines that nobody takes within a second are lost."""
        self.flush()
        self._output.finish()
        self._counts.dropped_lines = self._output.dropped
        self._counts.store()

    def collect(self) -> Iterator[Metric]:
        """The metrics of all serving processes, or of this one where there is no folder."""
        dropped, rows = self._counts.totals()
        requests = CounterMetricFamily("frontdesk_requests", "Answered requests.", labels=_LABELS)
        seconds = HistogramMetricFamily(
            "frontdesk_request_seconds", "Time to the answer, in seconds.", labels=_LABELS
        )
        bounds = (*map(str, BOUNDS), "+Inf")
        for labels, (*counts, total_seconds) in rows.items():
            texts = [*map(str, labels)]
            requests.add_metric(texts, sum(counts))
            seconds.add_metric(
                texts, [*zip(bounds, accumulate(counts), strict=True)], total_seconds
            )
        yield from (requests, seconds)
        yield CounterMetricFamily(
            "frontdesk_log_lines_dropped",
            "Log lines that were not written: nobody took them.",
            value=dropped,
        )

    def _write(self, line: str) -> None:
        if not self._lines:
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)
        self._lines.append(line)


@lru_cache(maxsize=2)  # to write out each time would take as long as the rest of a request's line
def _second(at: int) -> str:
    return stored_time(datetime.fromtimestamp(at, UTC))[:20]


def _cached_address(trusted: Sequence[Network]) -> Callable[[str, str], str]:
    """Gives the caller's address as JSON, of the connection's address and X-Forwarded-For."""

    def find(peer: str, forwarded: str) -> str:
        return json.dumps(caller_address(peer, forwarded, trusted))

    cached = lru_cache(ADDRESSES)(find)
    return lambda peer, forwarded: (find if len(forwarded) > LONGEST else cached)(peer, forwarded)


def _error_line(event: str, error: Exception, **values: object) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-12:]
    where = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
    return event_line(event, **values, error=type(error).__name__, where=where)
