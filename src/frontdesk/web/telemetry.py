"""The log line and the metrics of each request: ids, route, status and milliseconds, never a value that a person sent.

Log lines gather in memory for a tenth of a second and leave in one write: a log call for each request would take a tenth of its
time (docs/decisions/0060). Serving processes add up their metrics by prometheus-client's multiprocess mode.
"""

import asyncio
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from prometheus_client import Counter, Histogram, disable_created_metrics, values
from prometheus_client.core import Metric
from prometheus_client.multiprocess import MultiProcessCollector

from frontdesk.clock import stored_time, system_clock
from frontdesk.log_output import LogOutput, event_line
from frontdesk.web.request import Request

FLUSH_SECONDS = 0.1

# The folder of the serving processes' counts; prometheus-client reads the variable when it is imported.
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
METRICS_FILE_BYTES = 1 << 20  # of each file of a process: more than the counts of every route and status take

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_METHODS = {"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"}
_LABELS = ("method", "route", "status")

disable_created_metrics()


class Telemetry:
    """One line of JSON per request on `output`, and the collector of the requests' metrics."""

    def __init__(self, output: TextIO = sys.stdout) -> None:
        if METRICS_FOLDER in os.environ:
            _reserve_metrics_space(Path(os.environ[METRICS_FOLDER]))
        self._output = LogOutput(output)
        self._lines: list[str] = []
        self._requests = Counter("frontdesk_requests", "Answered requests.", _LABELS, registry=None)
        self._seconds = Histogram(
            "frontdesk_request_seconds",
            "Time to the answer, in seconds.",
            _LABELS,
            buckets=BOUNDS,
            registry=None,
        )
        self._dropped = Counter(
            "frontdesk_log_lines_dropped", "Log lines that were not written: nobody took them.", registry=None
        )
        self._dropped_before = 0
        self._has_seen_proxy = False
        self._by_labels: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def answered(self, request: Request, route: str, status: int, seconds: float) -> None:
        method = request.method if request.method in _METHODS else "other"
        labels = (method, route, status)
        metrics = self._by_labels.get(labels)
        if metrics is None:
            metrics = (self._requests.labels(*labels), self._seconds.labels(*labels))
            self._by_labels[labels] = metrics
        metrics[0].inc()
        metrics[1].observe(seconds)
        caller = request.known_caller
        client = f'"{caller.client_id}"' if caller is not None else "null"
        # Every part is an id, a number or a constant of ours, so nothing needs escaping.
        self._write(
            f'{{"at":"{stored_time(system_clock())}","event":"request","request_id":"{request.request_id}","client":{client},'
            f'"method":"{method}","route":"{route}","status":{status},"ms":{seconds * 1000:.2f}}}\n'
        )

    def unexpected(self, error: Exception, request: Request, route: str) -> None:
        """Log a fault of ours: the kind of error and where it happened. Its message may hold a person's data and is left
        out."""
        self._write(_error_line("unexpected_error", error, request_id=request.request_id, route=route))

    def response_cut(self, request: Request, route: str) -> None:
        """Log that a reader took nothing of a response for so long that it was broken off."""
        self._write(event_line("response_cut", request_id=request.request_id, route=route))

    def proxy_seen(self) -> None:
        """Log, once in each process, that a proxy forwards and FRONTDESK_TRUSTED_PROXIES names none."""
        if not self._has_seen_proxy:
            self._has_seen_proxy = True
            detail = "A proxy forwards, and FRONTDESK_TRUSTED_PROXIES names none: its callers share the limit of failed attempts."
            self._write(event_line("proxy_not_trusted", detail=detail))

    def event(self, event: str, **values: object) -> None:
        """Log what happened to the process, from any thread. `values` hold codes and sentences of ours."""
        self._output.write(event, **values)

    def failed_to_start(self, error: Exception) -> None:
        """Log that the process can't serve. Returns when the line is written."""
        self._output.put([_error_line("serving_process_failed", error, pid=os.getpid())])
        self._output.finish()

    def flush(self) -> None:
        """Hand the gathered lines on; called a moment after the first of them, and at the end."""
        lines, self._lines = self._lines, []
        self._output.put(lines)
        dropped = self._output.dropped
        self._dropped.inc(dropped - self._dropped_before)
        self._dropped_before = dropped

    def close(self) -> None:
        """Write the last lines; those that nobody takes within a second are lost."""
        self.flush()
        self._output.finish()

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        """The metrics of all serving processes that share the folder, or of this one where there is no folder."""
        if METRICS_FOLDER in os.environ:
            yield from MultiProcessCollector(None).collect()
        else:
            for metric in (self._requests, self._seconds, self._dropped):
                yield from metric.collect()

    def _write(self, line: str) -> None:
        if not self._lines:
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)
        self._lines.append(line)


def _error_line(event: str, error: Exception, **values: object) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-12:]
    where = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
    return event_line(event, **values, error=type(error).__name__, where=where)


def _reserve_metrics_space(folder: Path) -> None:
    """Fill this process's files of counts with zeros before prometheus-client maps them into memory.

    It makes them sparse: a count that needs a new page while the disk is full would kill the process (SIGBUS). Without space for
    the files the process counts in memory and shows its own metrics only.
    """
    for kind in ("counter", "histogram"):
        file = folder / f"{kind}_{os.getpid()}.db"
        written = file.with_suffix(".new")
        try:
            if not file.exists():
                written.write_bytes(bytes(METRICS_FILE_BYTES))
                written.replace(file)  # whole at once: another process may be reading the folder
        except OSError:
            written.unlink(missing_ok=True)
            values.ValueClass = values.MutexValue
            del os.environ[METRICS_FOLDER]
            return
