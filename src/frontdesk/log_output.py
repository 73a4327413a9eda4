"""The way of log lines out of a process: a thread of their own writes them, so that a reader who is slow, or gone, holds
nobody up. It knows nothing of what the lines say.
"""

import atexit
import io
import os
import select
import threading
from collections.abc import Sequence
from typing import TextIO

WAITING_LINES = 20_000  # about 4 MB; what comes while so many wait is dropped and counted
LAST_SECONDS = 1.0


class LogOutput:
    """Lines, each with its end, to a stream. An output without a descriptor, as tests have, is written to at once."""

    def __init__(self, output: TextIO | None, *, waiting_lines: int = WAITING_LINES) -> None:
        self._output = output
        self._descriptor = _descriptor(output)
        self._limit = waiting_lines
        self._change = threading.Condition()
        self._waiting: list[str] = []
        self._in_hand = 0
        self._dropped = 0
        self._thread: threading.Thread | None = None

    @property
    def dropped(self) -> int:
        """How many lines were not written."""
        return self._dropped

    def put(self, lines: Sequence[str]) -> None:
        """Have the lines written soon, in order; never waits."""
        if self._descriptor is None:
            if self._output is not None:
                self._output.write("".join(lines))
                self._output.flush()
            return
        with self._change:
            room = max(0, self._limit - len(self._waiting) - self._in_hand)
            self._waiting += lines[:room]
            self._dropped += max(0, len(lines) - room)
            if self._thread is None:  # not earlier: a thread does not survive a fork
                self._thread = threading.Thread(target=self._write_on, name="log", daemon=True)
                self._thread.start()
                atexit.register(self.finish)
            self._change.notify_all()

    def finish(self, seconds: float = LAST_SECONDS) -> None:
        """Return when everything is written, or after so long."""
        with self._change:
            self._change.wait_for(lambda: not self._waiting and not self._in_hand, seconds)

    def _write_on(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: bool(self._waiting))
                lines, self._waiting = self._waiting, []
                self._in_hand = len(lines)
            try:
                self._write("".join(lines).encode(errors="backslashreplace"))
                lost = 0
            except OSError:  # the reader is gone, or the disk is full
                lost = len(lines)
            with self._change:
                self._dropped += lost
                self._in_hand = 0
                self._change.notify_all()

    def _write(self, left: bytes) -> None:
        """Past Python's own buffer: its lock would be held as long as nobody reads, and keep the process from ending."""
        descriptor = self._descriptor
        if descriptor is None:
            return
        while left:
            try:
                left = left[os.write(descriptor, left) :]
            except BlockingIOError:  # somebody who shares the pipe made it so
                select.select([], [descriptor], [])


def _descriptor(output: TextIO | None) -> int | None:
    try:
        return None if output is None else output.fileno()
    except (io.UnsupportedOperation, AttributeError, ValueError):
        return None
