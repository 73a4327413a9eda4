"""A worker's log: lines of JSON with ids, counts and codes, never an address or a text."""

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from frontdesk.clock import stored_time, system_clock
from frontdesk.invitations.model import AttemptOutcome, Hold
from frontdesk.log_output import LogOutput

COUNT_SECONDS = 10.0


class WorkerLog:
    """Events are written at once; outcomes are counted, and the counts written at most every ten seconds."""

    def __init__(self, output: TextIO | None = None) -> None:
        self._output = LogOutput(sys.stdout if output is None else output)
        self._counts: Counter[str] = Counter()
        self._counts_written_at = time.monotonic()
        self._is_held = False

    def write(self, event: str, **values: float | str | None) -> None:
        line = {"at": stored_time(system_clock()), "event": event, **values}
        self._output.put([json.dumps(line) + "\n"])

    def write_hold(self, hold: Hold | None) -> None:
        """Write a line when delivery comes to be held, and when it goes on."""
        if hold is not None and not self._is_held:
            self.write("delivery_held", reason=hold.reason.value, since=stored_time(hold.since))
        elif hold is None and self._is_held:
            self.write("delivery_released")
        self._is_held = hold is not None

    def count(self, outcomes: Sequence[AttemptOutcome]) -> None:
        self._counts.update(outcome.result.value for outcome in outcomes)
        if time.monotonic() - self._counts_written_at > COUNT_SECONDS:
            self.write_counts()

    def write_counts(self) -> None:
        if self._counts:
            self.write("delivered", **self._counts)
            self._counts.clear()
            self._counts_written_at = time.monotonic()
