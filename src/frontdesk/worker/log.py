"""What a worker tells: lines of JSON with ids, counts and codes, never an address or a text."""

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from frontdesk.clock import stored_time, system_clock
from frontdesk.invitations.delivery import AttemptOutcome, Hold
from frontdesk.log_output import LogOutput

COUNT_SECONDS = 10.0


class WorkerLog:
    """Events at once; outcomes counted, and told every ten seconds in which there were any."""

    def __init__(self, output: TextIO | None = None) -> None:
        self._output = LogOutput(sys.stdout if output is None else output)
        self._counts: Counter[str] = Counter()
        self._told_at = time.monotonic()
        self._held = False

    def say(self, event: str, **values: float | str | None) -> None:
        line = {"at": stored_time(system_clock()), "event": event, **values}
        self._output.put([json.dumps(line) + "\n"])

    def hold(self, hold: Hold | None) -> None:
        """Say so when delivery has come to be held, and when it goes on."""
        if hold is not None and not self._held:
            self.say("delivery_held", reason=hold.reason.value, since=stored_time(hold.since))
        elif hold is None and self._held:
            self.say("delivery_released")
        self._held = hold is not None

    def count(self, outcomes: Sequence[AttemptOutcome]) -> None:
        self._counts.update(outcome.kind.value for outcome in outcomes)
        if self._counts and time.monotonic() - self._told_at > COUNT_SECONDS:
            self.tell()

    def tell(self) -> None:
        if self._counts:
            self.say("delivered", **self._counts)
        self._counts.clear()
        self._told_at = time.monotonic()
