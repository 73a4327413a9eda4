"""The connections of a worker to the relay: each sends one message at a time, in a thread.

A message takes two steps, because the content may leave only after `offered` is committed:

1. The connection writes the message, offers it up to RCPT, and reports that it is ready.
2. It waits for the go-ahead of the worker, sends the content, and reports how the attempt ended.

A process that dies before the go-ahead has sent nothing; after it the relay may have the message,
and the stored state says so (docs/states.md).
"""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, PriorityQueue, SimpleQueue

from frontdesk.errors import Invalid
from frontdesk.invitations.message import compose
from frontdesk.invitations.model import ClaimedInvitation, InvitationStep, MessageContext
from frontdesk.mail.model import AnswerLost, Mailer, MailSession, RelayRefused

IDLE_CONNECTION_SECONDS = 10.0  # then it is closed
_LAST_PRIORITY = 9  # behind the priority of every job


@dataclass(slots=True)
class SendJob:
    """One message to send. A smaller `priority` goes first; no two jobs have the same. From `until`
    on (monotonic) another worker may claim the invitation.

    `go_ahead` brings the connection the permission to send the content, valid until a moment, or
    None: refused. `granted` is which of the two was sent, None before. After a refusal the
    invitation is no longer this worker's, and the job's report is void. `due_seconds`: for how long
    an immediate invitation had been due when it was claimed.
    """

    priority: tuple[int, int]
    invitation: ClaimedInvitation
    context: MessageContext
    until: float
    due_seconds: float
    go_ahead: SimpleQueue[float | None] = field(default_factory=SimpleQueue)
    granted: bool | None = None
    claimed_at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class SendReport:
    """The report of a connection: ready for the content (`result` None), or done with the job.

    `relay_failure`: the relay as a whole is out of order, so the failure was not about this
    message. `doubted`: the message was refused, by words that may be about every message
    (`refusals`). `error`: the kind of an unexpected error of ours.
    """

    job: SendJob
    result: InvitationStep | None = None
    code: int | None = None
    words: str | None = None
    relay_failure: RelayRefused | None = None
    doubted: RelayRefused | None = None
    error: str | None = None


class RelayPool:
    """Up to `size` connections, opened as they are needed. Jobs go in by `submit`, reports come out
    of `reports`. Messages have links to `base_url` and the envelope sender `mail_from`.
    """

    def __init__(self, mailer: Mailer, size: int, *, base_url: str, mail_from: str) -> None:
        self.reports: SimpleQueue[SendReport | None] = SimpleQueue()
        self._mailer = mailer
        self._size = size
        self._base_url = base_url
        self._mail_from = mail_from
        self._jobs: PriorityQueue[tuple[tuple[int, int], SendJob | None]] = PriorityQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._lock = threading.Lock()

    def submit(self, job: SendJob) -> None:
        """Send the message as soon as a connection is free."""
        self._jobs.put((job.priority, job))
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
        """End every session with QUIT. A session that takes longer ends with the process."""
        for number in range(len(self._threads)):
            self._jobs.put(((_LAST_PRIORITY, number), None))
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        """One connection, in its thread, until `close`."""
        session = self._mailer.open()
        while True:
            with self._lock:
                self._idle += 1
            try:
                _, job = self._jobs.get(timeout=IDLE_CONNECTION_SECONDS)
            except Empty:
                session.close()
                continue
            finally:
                with self._lock:
                    self._idle -= 1
            if job is None:
                break
            report = self._send(session, job)
            self.reports.put(report)
        session.close()

    def _send(self, session: MailSession, job: SendJob) -> SendReport:
        """Write, offer and send the message; returns how the attempt ended."""
        if time.monotonic() > job.until:
            return SendReport(job, InvitationStep.NOT_OFFERED)
        failure = self._offer(session, job)
        if failure is not None:
            return failure
        self.reports.put(SendReport(job))
        # The go-ahead comes after the commit of `offered`. A process that was stopped past its
        # lease sends nothing.
        until = job.go_ahead.get()
        if until is None or time.monotonic() > until:
            session.abandon()
            return SendReport(job, InvitationStep.NOT_OFFERED)
        return _finish(session, job)

    def _offer(self, session: MailSession, job: SendJob) -> SendReport | None:
        """Write the message and offer it up to RCPT. Returns the report of a failure."""
        try:
            message = compose(
                job.invitation, job.context, base_url=self._base_url, mail_from=self._mail_from
            )
            session.offer(message)
        except Invalid:
            return SendReport(job, InvitationStep.NOT_WRITABLE)
        except RelayRefused as refused:
            return _report_refusal(job, refused)
        except Exception as error:  # noqa: BLE001 - must not end the connection's thread; nothing was sent
            session.close()
            return SendReport(job, InvitationStep.REFUSED_FOR_NOW, error=type(error).__name__)
        return None


def _finish(session: MailSession, job: SendJob) -> SendReport:
    """Send the content of the offered message."""
    try:
        code, words = session.finish()
    except RelayRefused as refused:
        return _report_refusal(job, refused)
    except AnswerLost:
        return SendReport(job, InvitationStep.ANSWER_LOST)
    except Exception as error:  # noqa: BLE001 - whatever happened, the relay may have taken the message
        return SendReport(job, InvitationStep.ANSWER_LOST, error=type(error).__name__)
    return SendReport(job, InvitationStep.ACCEPTED, code, words)


def _report_refusal(job: SendJob, refused: RelayRefused) -> SendReport:
    if refused.is_about_message:
        result = InvitationStep.REFUSED if refused.permanent else InvitationStep.REFUSED_FOR_NOW
        doubted = refused if refused.may_be_about_all else None
        return SendReport(job, result, refused.code, refused.words, doubted=doubted)
    result = InvitationStep.PUT_ASIDE if refused.recipient_was_sent else InvitationStep.NOT_OFFERED
    return SendReport(job, result, refused.code, refused.words, relay_failure=refused)
