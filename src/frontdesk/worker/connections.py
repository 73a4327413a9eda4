"""The connections of one worker: threads that each hold one conversation and report every step; they know no database."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from queue import Empty, PriorityQueue, SimpleQueue

from frontdesk.invitations.delivery import AttemptResult, ClaimedInvitation
from frontdesk.mail.model import AnswerLost, Mailer, MailMessage, MailSession, RelayRefused

IDLE_SECONDS = 10.0  # a connection that nobody needs for so long is closed
_LAST = 9  # the rank that is behind every job's


@dataclass(slots=True)
class SendJob:
    """One letter to send. Smaller `rank` goes first. `until`: after that (monotonic) another worker may have it.

    The gate gives leave for DATA, up to a moment, or refuses it: `may_leave` once it was given, `let_go` when the job was
    given back without its connection, which is still waiting for the relay, and what that reports is void.
    """

    rank: tuple[int, int]
    claimed: ClaimedInvitation
    write: Callable[
        [], MailMessage | None
    ]  # the letter; None when it can't be written. Runs beside the commits
    until: float
    gate: SimpleQueue[float | None] = field(default_factory=SimpleQueue)
    may_leave: bool = False
    let_go: bool = False


@dataclass(frozen=True, slots=True)
class SendReport:
    """What a connection says of its job: ready for DATA (`kind` None), or done with it.

    `relay_down` says that the failure was not this letter's, `stage` and `cause` where and how the relay failed; `offered`
    that DATA had been allowed.
    """

    job: SendJob
    kind: AttemptResult | None = None
    code: int | None = None
    offered: bool = False
    relay_down: bool = False
    stage: str | None = None
    cause: str | None = None
    silent: bool = False  # refused without a reply: the connection broke
    error: str | None = None  # a fault of ours, by its kind


class ConnectionPool:
    """Up to `size` connections, opened as they are needed. Jobs go in by `take`, reports come out of `reports`."""

    def __init__(self, mailer: Mailer, size: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.reports: SimpleQueue[SendReport | None] = SimpleQueue()
        self._mailer = mailer
        self._size = size
        self._monotonic = monotonic
        self._jobs: PriorityQueue[tuple[tuple[int, int], SendJob | None]] = PriorityQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._lock = threading.Lock()

    def take(self, job: SendJob) -> None:
        self._jobs.put((job.rank, job))
        with self._lock:
            if self._jobs.qsize() > self._idle and len(self._threads) < self._size:
                name = f"connection-{len(self._threads) + 1}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()

    def give_back(self) -> list[SendJob]:
        """The jobs that no connection has begun with."""
        jobs: list[SendJob] = []
        while True:
            try:
                _, job = self._jobs.get_nowait()
            except Empty:
                return jobs
            if job is not None:
                jobs.append(job)

    def close(self, seconds: float) -> None:
        """Let every connection say goodbye; those that don't in that time are left to the end of the process."""
        for number in range(len(self._threads)):
            self._jobs.put(((_LAST, number), None))
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        conversation = self._mailer.open()
        while True:
            with self._lock:
                self._idle += 1
            try:
                _, job = self._jobs.get(timeout=IDLE_SECONDS)
            except Empty:
                conversation.close()
                continue
            finally:
                with self._lock:
                    self._idle -= 1
            if job is None:
                break
            self._do(conversation, job)
        conversation.close()

    def _do(self, conversation: MailSession, job: SendJob) -> None:
        if self._monotonic() > job.until:
            self.reports.put(SendReport(job, AttemptResult.NOT_TRIED))
            return
        try:
            letter = job.write()
            if letter is None:
                self.reports.put(SendReport(job, AttemptResult.NOT_WRITABLE))
                return
            conversation.offer(letter)
        except RelayRefused as refused:
            self.reports.put(_refusal(job, refused, offered=False))
            return
        except Exception as error:  # noqa: BLE001 - must not take the connection along; nothing was sent
            conversation.close()
            self.reports.put(
                SendReport(job, AttemptResult.REFUSED_FOR_NOW, silent=True, error=type(error).__name__)
            )
            return
        self.reports.put(SendReport(job))
        # The answer comes after the commit of `offered`. A process that was stopped past its lease sends nothing.
        until = job.gate.get()
        if until is None or self._monotonic() > until:
            conversation.abandon()
            self.reports.put(SendReport(job, AttemptResult.NOT_TRIED, offered=True))
            return
        self.reports.put(self._finish(conversation, job))

    def _finish(self, conversation: MailSession, job: SendJob) -> SendReport:
        try:
            return SendReport(job, AttemptResult.ACCEPTED, conversation.finish(), offered=True)
        except RelayRefused as refused:
            return _refusal(job, refused, offered=True)
        except AnswerLost:
            return SendReport(job, AttemptResult.LOST, offered=True)
        except Exception as error:  # noqa: BLE001 - whatever it was, the letter may have been taken
            return SendReport(job, AttemptResult.LOST, offered=True, error=type(error).__name__)


def _refusal(job: SendJob, refused: RelayRefused, *, offered: bool) -> SendReport:
    if not refused.is_about_message:
        kind = AttemptResult.PUT_ASIDE if refused.recipient_was_sent else AttemptResult.NOT_TRIED
        down = SendReport(job, kind, refused.code, offered, relay_down=True)
        return replace(down, stage=refused.stage, cause=refused.cause)
    kind = AttemptResult.REFUSED if refused.permanent else AttemptResult.REFUSED_FOR_NOW
    return SendReport(job, kind, refused.code, offered, silent=refused.code is None and not refused.permanent)
