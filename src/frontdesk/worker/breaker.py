"""The circuit breaker of a worker: while the relay as a whole is out of order, nothing is sent."""

import random
import time

from frontdesk.invitations.model import InvitationStep, WorkerStatus
from frontdesk.log_output import LogOutput
from frontdesk.mail.model import RelayRefused
from frontdesk.worker.relay_pool import SendReport

FIRST_PAUSE_SECONDS = 1.0
MAX_PAUSE_SECONDS = 60.0
MAX_DOUBLINGS = 10  # of the pause, far beyond MAX_PAUSE_SECONDS
# Broken connections in a row, without a reply about any message between them: then the relay counts
# as lost.
MAX_BROKEN = 5
# A relay that answers so about a message is in order.
_VERDICTS = (InvitationStep.ACCEPTED, InvitationStep.REFUSED, InvitationStep.REFUSED_FOR_NOW)


class CircuitBreaker:
    """Opens when the relay is lost, and closes at its next reply about a message.

    The pause is a second after the first failure and doubles up to a minute. After a pause one
    message is tried before the others. The log has a line when the relay is lost, and a line when
    it is back.
    """

    def __init__(self, jitter: random.Random, status: WorkerStatus, log: LogOutput) -> None:
        self._jitter = jitter
        self._status = status
        self._log = log
        self._lost_at = 0.0
        self._failures = 0  # in a row; 0 while the relay is in order
        self._broken = 0
        self._paused_until = float("-inf")

    @property
    def seconds_left(self) -> float:
        """How long nothing is sent yet."""
        return max(0.0, self._paused_until - time.monotonic())

    def limit(self, count: int) -> int:
        """How many of `count` messages may be claimed now."""
        if self._failures == 0:
            return count
        return min(count, 1) if self.seconds_left == 0 else 0

    def record(self, report: SendReport) -> None:
        """Note what a connection reports of the relay."""
        connection_broke = report.result is InvitationStep.REFUSED_FOR_NOW and report.code is None
        if report.relay_failure is not None or connection_broke:
            self._record_failure(report.relay_failure)
        elif report.result in _VERDICTS:
            self._record_verdict()

    def _record_failure(self, failure: RelayRefused | None) -> None:
        """`failure`: what the relay answered; None for a connection that broke."""
        self._broken += 1
        is_lost = failure is not None or self._broken >= MAX_BROKEN
        if not is_lost or self.seconds_left > 0:
            return
        self._failures += 1
        self._status.relay_up = False
        if self._failures == 1:
            self._lost_at = time.monotonic()
            known = {name: getattr(failure, name, None) for name in ("stage", "code", "cause")}
            self._log.write("relay_down", **known)
        doublings = min(self._failures - 1, MAX_DOUBLINGS)
        pause = min(MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**doublings)
        self._paused_until = time.monotonic() + pause * self._jitter.uniform(0.75, 1.0)

    def _record_verdict(self) -> None:
        if self._status.relay_up is False:
            # A relay that was lost before this worker started was away for an unknown time.
            seconds = round(time.monotonic() - self._lost_at, 1) if self._failures else None
            self._log.write("relay_back", seconds=seconds)
        self._status.relay_up = True
        self._failures = 0
        self._broken = 0
        self._paused_until = float("-inf")
