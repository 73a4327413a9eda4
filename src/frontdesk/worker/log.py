"""What a worker tells: lines of JSON with ids, counts and codes, never an address or a text."""

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from frontdesk.clock import stored_time, system_clock
from frontdesk.invitations.delivery import Outcome
from frontdesk.log_output import LogOutput

COUNT_SECONDS = 10.0


class Log:
    """Events at once; outcomes counted, and told every ten seconds in which there were any."""

    def __init__(self, output: TextIO | None = None) -> None:
        self._output = LogOutput(sys.stdout if output is None else output)
        self._counts: Counter[str] = Counter()
        self._told_at = time.monotonic()

    def say(self, event: str, **values: float | str | None) -> None:
        line = {"at": stored_time(system_clock()), "event": event, **values}
        self._output.put([json.dumps(line) + "\n"])

    def count(self, outcomes: Sequence[Outcome]) -> None:
        self._counts.update(outcome.kind.value for outcome in outcomes)
        if self._counts and time.monotonic() - self._told_at > COUNT_SECONDS:
            self.tell()

    def tell(self) -> None:
        if self._counts:
            self.say("delivered", **self._counts)
        self._counts.clear()
        self._told_at = time.monotonic()
