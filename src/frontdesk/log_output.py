"""Log lines, written by a thread, so that a slow or missing reader of stdout blocks no request
(docs/decisions/0061).
"""

import atexit
import io
import json
import os
import select
import threading
from collections.abc import Sequence
from typing import TextIO

from frontdesk.clock import system_clock
from frontdesk.text import stored_time

WAITING_LINES = 20_000  # about 4 MB; while so many wait, further lines are dropped and counted
LAST_SECONDS = 1.0
# Of the events whose names end so; others are information.
_LEVELS = {
    "error": ("_error", "_failed", "_away", "_down", "_gave_up", "_process_silent", "_stuck"),
    "warning": (
        "_cut",
        "_held",
        "_not_trusted",
        "_warning",
        "_elsewhere",
        "_process_ended",
        "_lapsed",
    ),
}


def event_line(event: str, **values: object) -> str:
    """A line of JSON with the time and the level, which `values` may set. They hold ids, codes and
    our own sentences, never a person's data.
    """
    level = next((level for level, ends in _LEVELS.items() if event.endswith(ends)), "info")
    return (
        json.dumps({"at": stored_time(system_clock()), "level": level, "event": event, **values})
        + "\n"
    )


class LogOutput:
    """Writes lines, each with its line end, to a stream. A stream without a file descriptor (tests)
    is written to at once.
    """

    def __init__(self, output: TextIO | None, *, waiting_lines: int = WAITING_LINES) -> None:
        self._output = output
        self._descriptor = _descriptor(output)
        self._limit = waiting_lines
        self._changed = threading.Condition()
        self._waiting: list[str] = []
        self._being_written = 0
        self.dropped = 0  # the number of lines that were not written
        self._thread: threading.Thread | None = None

    def write(self, event: str, **values: object) -> None:
        """Queue the line of an event, from any thread."""
        self.put([event_line(event, **values)])

    def put(self, lines: Sequence[str]) -> None:
        """Queue the lines to be written in order. Returns at once."""
        if self._descriptor is None:
            if self._output is not None:
                self._output.write("".join(lines))
                self._output.flush()
            return
        with self._changed:
            room = max(0, self._limit - len(self._waiting) - self._being_written)
            self._waiting += lines[:room]
            self.dropped += max(0, len(lines) - room)
            if self._thread is None:  # not earlier: a thread does not survive a fork
                self._thread = threading.Thread(
                    target=self._write_queued, args=(self._descriptor,), name="log", daemon=True
                )
                self._thread.start()
                atexit.register(self.finish)
            self._changed.notify_all()

    def finish(self, seconds: float = LAST_SECONDS) -> None:
        """Return when every line is written, or after `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._being_written, seconds)

    def _write_queued(self, descriptor: int) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
                lines = self._waiting
                self._waiting = []
                self._being_written = len(lines)
            try:
                _write(descriptor, "".join(lines).encode(errors="backslashreplace"))
                lost = 0
            except OSError:  # the reader is gone, or the disk is full
                lost = len(lines)
            with self._changed:
                self.dropped += lost
                self._being_written = 0
                self._changed.notify_all()


def _write(descriptor: int, left: bytes) -> None:
    """Write without Python's buffer: its lock would be held while stdout is not read, and the
    process could not end.
    """
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:  # another process made the shared pipe non-blocking
            select.select([], [descriptor], [])


def _descriptor(output: TextIO | None) -> int | None:
    try:
        return None if output is None else output.fileno()
    except (io.UnsupportedOperation, AttributeError, ValueError):
        return None
