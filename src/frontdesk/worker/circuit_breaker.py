"""When the relay as a whole is out of order: how long nothing is tried, and the single try after it."""

import random
import time
from collections.abc import Callable

from frontdesk.invitations.delivery import AttemptResult
from frontdesk.worker.connections import SendReport

FIRST_SECONDS, LONGEST_SECONDS = 1.0, 60.0
SILENT_FAILURES = 5  # broken connections in a row, with no reply about any letter between them


class CircuitBreaker:
    """A second after the first failure, doubling to a minute; then one message is tried before the others follow."""

    def __init__(self, chance: random.Random, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._chance = chance
        self._monotonic = monotonic
        self._failures = 0
        self._silent = 0
        self._until = float("-inf")

    @property
    def seconds(self) -> float:
        """What is left of it."""
        return max(0.0, self._until - self._monotonic())

    def allowed(self, room: int) -> int:
        """How many messages may be taken on."""
        if self._failures == 0:
            return room
        return min(room, 1) if self.seconds == 0 else 0

    def hear(self, report: SendReport) -> None:
        if report.relay_down or report.silent:
            self._silent += 1
            if (report.relay_down or self._silent >= SILENT_FAILURES) and self.seconds == 0:
                self._failures += 1
                longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** min(self._failures - 1, 10))
                self._until = self._monotonic() + longest * self._chance.uniform(0.75, 1.0)
        elif report.kind in (AttemptResult.ACCEPTED, AttemptResult.REFUSED, AttemptResult.REFUSED_FOR_NOW):
            self._failures = self._silent = 0
            self._until = float("-inf")
