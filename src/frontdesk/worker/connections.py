"""The connections of one worker to the relay: threads that each hold a session, and the breaker for a relay out of order."""

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, PriorityQueue, SimpleQueue

from frontdesk.invitations.model import AttemptResult, ClaimedInvitation
from frontdesk.mail.model import AnswerLost, Mailer, MailMessage, MailSession, RelayRefused

IDLE_SECONDS = 10.0  # an idle connection is closed after this time
_LAST = 9  # the rank behind every job's

FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 60.0
MAX_BROKEN = 5  # broken connections in a row, with no reply about any message between them


@dataclass(slots=True)
class SendJob:
    """One message to send. A smaller `rank` goes first. `until`: from then on (monotonic) another worker may claim it.

    `go_ahead` brings a connection the permission for DATA, valid until a moment, or None: refused. `granted`: which of the
    two was sent, None before. `abandoned`: the invitation was given back while the connection still waits for the relay; its
    report is void.
    """

    rank: tuple[int, int]
    invitation: ClaimedInvitation
    compose: Callable[[], MailMessage | None]  # None when it can't be written. Runs beside the commits
    until: float
    go_ahead: SimpleQueue[float | None] = field(default_factory=SimpleQueue)
    granted: bool | None = None
    abandoned: bool = False


@dataclass(frozen=True, slots=True)
class SendReport:
    """The report of a connection: ready for DATA (`result` None), or done with the job.

    `relay_failure`: the relay as a whole is out of order, so it was not about this message. `error`: the kind of an unexpected
    error of ours.
    """

    job: SendJob
    result: AttemptResult | None = None
    code: int | None = None
    relay_failure: RelayRefused | None = None
    error: str | None = None


class ConnectionPool:
    """Up to `size` connections, opened as they are needed. Jobs go in by `submit`, reports come out of `reports`."""

    def __init__(self, mailer: Mailer, size: int) -> None:
        self.reports: SimpleQueue[SendReport | None] = SimpleQueue()
        self._mailer = mailer
        self._size = size
        self._jobs: PriorityQueue[tuple[tuple[int, int], SendJob | None]] = PriorityQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._lock = threading.Lock()

    def submit(self, job: SendJob) -> None:
        self._jobs.put((job.rank, job))
        with self._lock:
            if self._jobs.qsize() > self._idle and len(self._threads) < self._size:
                name = f"connection-{len(self._threads) + 1}"
                thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()

    def withdraw(self) -> list[SendJob]:
        """Take back the jobs that no connection has begun."""
        jobs: list[SendJob] = []
        with suppress(Empty):
            while True:
                _, job = self._jobs.get_nowait()
                if job is not None:
                    jobs.append(job)
        return jobs

    def close(self, seconds: float) -> None:
        """Let every session end with QUIT. Those that don't in that time end with the process."""
        for number in range(len(self._threads)):
            self._jobs.put(((_LAST, number), None))
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        session = self._mailer.open()
        while True:
            with self._lock:
                self._idle += 1
            try:
                _, job = self._jobs.get(timeout=IDLE_SECONDS)
            except Empty:
                session.close()
                continue
            finally:
                with self._lock:
                    self._idle -= 1
            if job is None:
                break
            self.reports.put(self._send(session, job))
        session.close()

    def _send(self, session: MailSession, job: SendJob) -> SendReport:
        if time.monotonic() > job.until:
            return SendReport(job, AttemptResult.NOT_TRIED)
        try:
            message = job.compose()
            if message is None:
                return SendReport(job, AttemptResult.NOT_WRITABLE)
            session.offer(message)
        except RelayRefused as refused:
            return _report_refusal(job, refused)
        except Exception as error:  # noqa: BLE001 - must not end the connection's thread; nothing was sent
            session.close()
            return SendReport(job, AttemptResult.REFUSED_FOR_NOW, error=type(error).__name__)
        self.reports.put(SendReport(job))
        # The go-ahead comes after the commit of `offered`. A process that was stopped past its lease sends nothing.
        until = job.go_ahead.get()
        if until is None or time.monotonic() > until:
            session.abandon()
            return SendReport(job, AttemptResult.NOT_TRIED)
        return _finish(session, job)


def _finish(session: MailSession, job: SendJob) -> SendReport:
    try:
        return SendReport(job, AttemptResult.ACCEPTED, session.finish())
    except RelayRefused as refused:
        return _report_refusal(job, refused)
    except AnswerLost:
        return SendReport(job, AttemptResult.LOST)
    except Exception as error:  # noqa: BLE001 - whatever happened, the relay may have taken the message
        return SendReport(job, AttemptResult.LOST, error=type(error).__name__)


def _report_refusal(job: SendJob, refused: RelayRefused) -> SendReport:
    if refused.is_about_message:
        result = AttemptResult.REFUSED if refused.permanent else AttemptResult.REFUSED_FOR_NOW
        return SendReport(job, result, refused.code)
    result = AttemptResult.PUT_ASIDE if refused.recipient_was_sent else AttemptResult.NOT_TRIED
    return SendReport(job, result, refused.code, relay_failure=refused)


class CircuitBreaker:
    """Stops sending while the relay as a whole is out of order.

    The pause is a second after the first failure and doubles to a minute. After it one message is tried before the others.
    """

    def __init__(self, jitter: random.Random) -> None:
        self._jitter = jitter
        self._failures = 0
        self._broken = 0
        self._until = float("-inf")

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._until - time.monotonic())

    def limit(self, count: int) -> int:
        """How many of `count` messages may be claimed now."""
        if self._failures == 0:
            return count
        return min(count, 1) if self.seconds_left == 0 else 0

    def record(self, report: SendReport) -> None:
        is_down = report.relay_failure is not None
        connection_broke = report.result is AttemptResult.REFUSED_FOR_NOW and report.code is None
        if is_down or connection_broke:
            self._broken += 1
            if (is_down or self._broken >= MAX_BROKEN) and self.seconds_left == 0:
                self._failures += 1
                pause = min(MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(self._failures - 1, 10))
                self._until = time.monotonic() + pause * self._jitter.uniform(0.75, 1.0)
        elif report.result in (AttemptResult.ACCEPTED, AttemptResult.REFUSED, AttemptResult.REFUSED_FOR_NOW):
            self._failures = self._broken = 0
            self._until = float("-inf")
