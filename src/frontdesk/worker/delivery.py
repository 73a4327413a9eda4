"""Delivers invitations: claims them, hands them to the connections, and commits what these report, in sets.

One thread commits (docs/decisions/0030). Each of its transactions settles what the connections have finished and allows what
they have ready. So a commit is shared by as many messages as there are connections, and a slow one holds up no other.
"""

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from queue import Empty, PriorityQueue, SimpleQueue

from frontdesk.clock import system_clock
from frontdesk.config import Config, Environment
from frontdesk.db import Database, Tx
from frontdesk.db.engine import database_time, write_alone
from frontdesk.eligibility import find_expired
from frontdesk.errors import FrontdeskError, Invalid, Unavailable
from frontdesk.invitations import protocol
from frontdesk.invitations.message import compose, load_message_context
from frontdesk.invitations.model import (
    ATTEMPT_ENDS,
    AttemptOutcome,
    ClaimedInvitation,
    Delivery,
    DeliveryPolicy,
    InvitationStep,
    MessageContext,
    WorkerStatus,
)
from frontdesk.log_output import LogOutput
from frontdesk.mail.model import AnswerLost, Mailer, MailMessage, MailSession, RelayRefused, RelayReply
from frontdesk.mail.smtp import SmtpMailer, enhanced_code
from frontdesk.mailbox.catcher import MailCatcher
from frontdesk.text import fold_email
from frontdesk.tracing import TRACES
from frontdesk.worker.background import IDLE_SECONDS, Wakeup

CONNECTIONS = 8  # to the relay, of one worker
IDLE_CONNECTION_SECONDS = 10.0  # then it is closed
GOODBYE_SECONDS = 2.0
DATABASE_RETRY_SECONDS = 1.0
# Connections that got their go-ahead together report together: the next report may take so long to share the commit.
GATHER_SECONDS = 0.001
# The part of a lease in which something may be begun: the content and the answer take time too.
BEGIN_WITHIN = 0.25
RENEW_AFTER = 1 / 3
# Of the circuit breaker: its pauses, and the broken connections in a row, with no reply about any message between them.
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS, MAX_BROKEN = 1.0, 60.0, 5
_LAST = 9  # the rank behind every job's
# A relay that says one of these about a message is in order.
_VERDICTS = (InvitationStep.ACCEPTED, InvitationStep.REFUSED, InvitationStep.REFUSED_FOR_NOW)


@dataclass(slots=True)
class SendJob:
    """One message to send. A smaller `rank` goes first. `until`: from then on (monotonic) another worker may claim it.

    `go_ahead` brings a connection the permission for DATA, valid until a moment, or None: refused. `granted`: which of the
    two was sent, None before. Once it is refused, its invitation is no longer this worker's, and its report is void.
    `due_seconds`: for how long an immediate one had been due when it was claimed.
    """

    rank: tuple[int, int]
    invitation: ClaimedInvitation
    compose: Callable[[], MailMessage]  # raises Invalid when it can't be written. Runs beside the commits
    until: float
    go_ahead: SimpleQueue[float | None] = field(default_factory=SimpleQueue)
    granted: bool | None = None
    due_seconds: float = 0.0
    claimed_at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class SendReport:
    """The report of a connection: ready for DATA (`result` None), or done with the job.

    `relay_failure`: the relay as a whole is out of order, so it was not about this message. `error`: the kind of an unexpected
    error of ours.
    """

    job: SendJob
    result: InvitationStep | None = None
    code: int | None = None
    words: str | None = None
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
                _, job = self._jobs.get(timeout=IDLE_CONNECTION_SECONDS)
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
            return SendReport(job, InvitationStep.NOT_OFFERED)
        try:
            session.offer(job.compose())
        except Invalid:
            return SendReport(job, InvitationStep.NOT_WRITABLE)
        except RelayRefused as refused:
            return _report_refusal(job, refused)
        except Exception as error:  # noqa: BLE001 - must not end the connection's thread; nothing was sent
            session.close()
            return SendReport(job, InvitationStep.REFUSED_FOR_NOW, error=type(error).__name__)
        self.reports.put(SendReport(job))
        # The go-ahead comes after the commit of `offered`. A process that was stopped past its lease sends nothing.
        until = job.go_ahead.get()
        if until is None or time.monotonic() > until:
            session.abandon()
            return SendReport(job, InvitationStep.NOT_OFFERED)
        return _finish(session, job)


def _finish(session: MailSession, job: SendJob) -> SendReport:
    try:
        return SendReport(job, InvitationStep.ACCEPTED, *session.finish())
    except RelayRefused as refused:
        return _report_refusal(job, refused)
    except AnswerLost:
        return SendReport(job, InvitationStep.ANSWER_LOST)
    except Exception as error:  # noqa: BLE001 - whatever happened, the relay may have taken the message
        return SendReport(job, InvitationStep.ANSWER_LOST, error=type(error).__name__)


def _report_refusal(job: SendJob, refused: RelayRefused) -> SendReport:
    if refused.is_about_message:
        result = InvitationStep.REFUSED if refused.permanent else InvitationStep.REFUSED_FOR_NOW
        return SendReport(job, result, refused.code, refused.words)
    result = InvitationStep.PUT_ASIDE if refused.recipient_was_sent else InvitationStep.NOT_OFFERED
    return SendReport(job, result, refused.code, refused.words, relay_failure=refused)


class CircuitBreaker:
    """Stops sending while the relay as a whole is out of order.

    The pause is a second after the first failure and doubles to a minute. After it one message is tried before the others. The
    log has a line when the relay is lost, and one when it is back.
    """

    def __init__(self, jitter: random.Random, status: WorkerStatus, log: LogOutput) -> None:
        self._jitter, self._status, self._log = jitter, status, log
        self._lost_at = 0.0
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
        connection_broke = report.result is InvitationStep.REFUSED_FOR_NOW and report.code is None
        if is_down or connection_broke:
            self._broken += 1
            if (is_down or self._broken >= MAX_BROKEN) and self.seconds_left == 0:
                self._failures += 1
                self._status.relay_up = False
                if self._failures == 1:
                    self._lost_at, failure = time.monotonic(), report.relay_failure
                    known = {name: getattr(failure, name, None) for name in ("stage", "code", "cause")}
                    self._log.write("relay_down", **known)
                pause = min(MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(self._failures - 1, 10))
                self._until = time.monotonic() + pause * self._jitter.uniform(0.75, 1.0)
        elif report.result in _VERDICTS:
            if self._failures:
                self._log.write("relay_back", seconds=round(time.monotonic() - self._lost_at, 1))
            self._status.relay_up = True
            self._failures = self._broken = 0
            self._until = float("-inf")


@dataclass(frozen=True, slots=True)
class AllowListMailer:
    """Sends messages to the allowed addresses and `@domains` through the relay, and catches all others."""

    allowed: tuple[str, ...]
    relay: Mailer
    catcher: Mailer

    def open(self) -> MailSession:
        return _AllowListSession(self.allowed, self.relay.open(), self.catcher.open())


class _AllowListSession:
    def __init__(self, allowed: tuple[str, ...], relay: MailSession, catcher: MailSession) -> None:
        self._allowed = allowed
        self._relay = relay
        self._catcher = self._current = catcher

    def offer(self, message: MailMessage) -> None:
        address = fold_email(message.recipient)
        is_allowed = address in self._allowed or f"@{address.rpartition('@')[2]}" in self._allowed
        self._current = self._relay if is_allowed else self._catcher
        self._current.offer(message)

    def finish(self) -> RelayReply:
        return self._current.finish()

    def abandon(self) -> None:
        self._current.abandon()

    def close(self) -> None:
        self._relay.close()
        self._catcher.close()


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a test or a benchmark sets otherwise than the settings say.

    `prefetch`: claimed messages that wait for a connection, per connection. `stop_seconds`: how long a worker that stops
    waits for a relay that has not taken recipients yet. `poll_seconds`: the longest wait for reports of connections.
    `idle_seconds`: the longest wait for work that nobody tells of. `read_time`: the time of a transaction.
    """

    connections: int = CONNECTIONS
    prefetch: int = 4
    stop_seconds: float = 10.0
    poll_seconds: float = 0.2
    idle_seconds: float = IDLE_SECONDS
    read_time: Callable[[Tx], datetime] = database_time
    context: protocol.DeliveryContext | None = None
    log: LogOutput = field(default_factory=lambda: LogOutput(sys.stdout))


class DeliveryWorker:
    """Delivers the invitations of one database through one mailer, beside any number of other workers."""

    def __init__(
        self, config: Config, db: Database, mailer: Mailer, options: WorkerOptions | None = None
    ) -> None:
        self._options = options or WorkerOptions()
        self._config = config
        self._db = db
        self._log = self._options.log
        self._context = self._options.context or protocol.DeliveryContext(policy_of(config))
        self._size = self._options.connections
        self._connections = ConnectionPool(mailer, self._size)
        self.status = WorkerStatus()
        self._breaker = CircuitBreaker(self._context.jitter, self.status, self._log)
        self._jobs: dict[int, SendJob] = {}  # of what this worker holds, by invitation id
        self._ready: list[SendJob] = []  # reported ready for DATA, not yet committed
        self._outcomes: list[AttemptOutcome] = []  # reported, not yet committed
        self._count = 0
        self._renewed_at = time.monotonic()
        self._is_held = self._is_stopping = False
        self._due_in = 0.0  # seconds until the next claim can find something, as far as is known
        self._wakeup = Wakeup()

    def run(self) -> None:
        """Deliver until `stop()`; what the worker holds is finished first."""
        while not self._is_stopping:
            if not self.step():
                self._wakeup.wait(min(self._options.idle_seconds, self._breaker.seconds_left or self._due_in))
        self.finish()

    def step(self) -> bool:
        """Claim what there is room for, and commit what was reported; False when there was nothing to do."""
        try:
            claimed = self._claim()
        except Unavailable:
            self._wakeup.wait(DATABASE_RETRY_SECONDS)
            return True
        if not claimed and not self._jobs:
            return False
        self._handle_reports()
        return True

    def stop(self) -> None:
        """Claim nothing more, finish what the worker holds; from any thread or a signal handler."""
        self._is_stopping = True
        self._wakeup.set()
        self._connections.reports.put(None)

    def wake(self) -> None:
        """There may be something to deliver: look now. From any thread."""
        self._wakeup.set()

    def turn(self) -> int:
        """Claim once and see it through; returns how many invitations were claimed. Raises Unavailable."""
        claimed = self._claim(even_if_idle=True)
        while self._jobs:
            self._handle_reports()
        return claimed

    def finish(self) -> None:
        """See through what the worker holds. What no connection has begun is pending again, at once or in a while."""
        self._withdraw()
        until = time.monotonic() + self._options.stop_seconds
        while self._jobs:
            if time.monotonic() > until:
                self._abandon()
            self._handle_reports()
        self.close()

    def close(self) -> None:
        self._connections.close(GOODBYE_SECONDS)

    def _claim(self, *, even_if_idle: bool = False) -> int:
        """Claim as much as there is room for; returns how many invitations."""
        prefetched = self._size * self._options.prefetch
        room = self._breaker.limit(self._size + prefetched - len(self._jobs))
        if room <= (prefetched // 2 if self._jobs else 0):
            return 0
        if not even_if_idle:
            self._due_in = self._db.ask(
                lambda tx: protocol.seconds_to_work(tx, self._context, now=self._options.read_time(tx))
            )
            if self._due_in > 0:
                return 0
        claimed, context = write_alone(self._db, lambda tx: self._claim_in(tx, room))
        if (hold := self._context.hold) is not None and not self._is_held:
            self._log.write("delivery_held", reason=hold.value)
        elif hold is None and self._is_held:
            self._log.write("delivery_released")
        self._is_held = hold is not None
        self._tell_ended()
        # Others may have been quicker, or have locked what is due.
        self._due_in = self._options.poll_seconds if hold is None else self._options.idle_seconds
        for invitation in claimed:
            self._submit(invitation, context)
        return len(claimed)

    def _claim_in(self, tx: Tx, room: int) -> tuple[list[ClaimedInvitation], MessageContext]:
        now = self._options.read_time(tx)
        protocol.expire_leases(tx, self._context, now=now)
        claimed = protocol.claim(tx, self._context, now=now, count=room, find_expired=find_expired)
        return claimed, load_message_context(tx, claimed, link_secret=self._config.link_secret, now=now)

    def _submit(self, invitation: ClaimedInvitation, context: MessageContext) -> None:
        self._count += 1
        rank = (0 if invitation.delivery == Delivery.IMMEDIATE else 1, self._count)
        until = time.monotonic() + self._context.policy.lease_seconds
        addresses = {"base_url": self._config.base_url, "mail_from": self._config.mail_from}
        job = SendJob(rank, invitation, partial(compose, invitation, context, **addresses), until)
        job.due_seconds = self._context.due_seconds
        self._jobs[invitation.id] = job
        self._connections.submit(job)

    def _handle_reports(self) -> None:
        """Wait for reports, for `poll_seconds` at most, and commit all that have come."""
        for report in self._reports():
            self._handle(report)
        if time.monotonic() - self._renewed_at > self._context.policy.lease_seconds * RENEW_AFTER:
            self._renew()
        if not (self._ready or self._outcomes):
            return
        try:
            self._commit()
        except Unavailable:
            # Kept until the database is back. If that takes longer than the lease, it is void then.
            time.sleep(DATABASE_RETRY_SECONDS)

    def _reports(self) -> Iterator[SendReport]:
        timeout = 0.0 if self._ready or self._outcomes else self._options.poll_seconds
        with suppress(Empty):
            while (report := self._connections.reports.get(timeout=timeout)) is not None:
                yield report
                timeout = GATHER_SECONDS

    def _handle(self, report: SendReport) -> None:
        job = report.job
        if job.granted is False:
            return
        self._breaker.record(report)
        if report.error is not None:
            self._log.write("unexpected_error", error=report.error, invitation_id=job.invitation.id)
        if report.relay_failure is not None:
            self._withdraw()
        if report.result is None:
            self._ready.append(job)
        else:
            offered, reply = job.granted is True, (report.code, report.words)
            self._outcomes.append(AttemptOutcome(job.invitation, report.result, *reply, offered=offered))

    def _tell_ended(self) -> None:
        """Log and count how attempts have ended, once that is stored."""
        for change, invitation in self._context.ended:
            result = ATTEMPT_ENDS[change.state]
            self.status.counts[result] += 1
            job = self._jobs.get(invitation.id)
            seconds = 0.0 if job is None else time.monotonic() - job.claimed_at
            if job is not None and result == "sent" and invitation.delivery == Delivery.IMMEDIATE:
                self.status.lag_seconds = job.due_seconds + seconds
            known = {"invitation_id": invitation.id, "result": result, "reason": change.reason}
            # No words of the relay: they name people.
            known |= {"code": change.code, "enhanced_code": enhanced_code(change.words)}
            known["attempt"] = invitation.attempts + 1
            self._log.write("delivery", level="info" if result == "sent" else "warning", **known)
            if TRACES.tracer is not None:
                TRACES.record("delivery", seconds, known)

    def _renew(self) -> None:
        """Keep what the worker holds for as long as its connections work on it."""
        self._renewed_at = time.monotonic()
        jobs = list(self._jobs.values())
        claimed = [job.invitation for job in jobs]
        try:
            write_alone(
                self._db,
                lambda tx: protocol.renew_leases(tx, self._context, claimed, now=self._options.read_time(tx)),
            )
        except Unavailable:
            return
        for job in jobs:
            job.until = self._renewed_at + self._context.policy.lease_seconds

    def _withdraw(self) -> None:
        """Make pending again what no connection has begun."""
        for job in self._connections.withdraw():
            self._outcomes.append(AttemptOutcome(job.invitation, InvitationStep.NOT_OFFERED))

    def _abandon(self) -> None:
        """Make pending again what a silent relay holds up before its content, and never give it the go-ahead."""
        reported = {outcome.invitation.id for outcome in self._outcomes}
        reported |= {job.invitation.id for job in self._ready}
        for job in self._jobs.values():
            if job.granted is None and job.invitation.id not in reported:
                job.granted = False
                job.go_ahead.put(None)
                self._outcomes.append(AttemptOutcome(job.invitation, InvitationStep.NOT_OFFERED))

    def _commit(self) -> None:
        until = time.monotonic() + self._context.policy.offer_lease_seconds * BEGIN_WITHIN
        granted, mark = write_alone(self._db, self._commit_in)
        if mark is not None and self._ready:
            mark()
        self._tell_ended()
        ready, outcomes = self._ready, self._outcomes
        self._ready, self._outcomes = [], []
        for outcome in outcomes:
            self._jobs.pop(outcome.invitation.id, None)
        for job in ready:
            job.granted = job.invitation.id in granted
            job.go_ahead.put(until if job.granted else None)
            if not job.granted:
                self._jobs.pop(job.invitation.id, None)

    def _commit_in(self, tx: Tx) -> tuple[set[int], Callable[[], None] | None]:
        now = self._options.read_time(tx)
        offered = [job.invitation for job in self._ready]
        return protocol.offer_and_settle(tx, self._context, offered, self._outcomes, now=now)


def policy_of(config: Config) -> DeliveryPolicy:
    return DeliveryPolicy(message_domain=config.host_name or "localhost")


def make_mailer(config: Config, db: Database) -> Mailer:
    """The mailer that the settings ask for. Raises FrontdeskError in production without a relay or a link secret."""
    relay = None
    if config.smtp_url is not None:
        relay = SmtpMailer(config.smtp_url, hello_name=config.host_name or None)
    if config.environment is Environment.PRODUCTION:
        if relay is None:
            raise FrontdeskError(
                "There is no relay to deliver invitations to: set FRONTDESK_SMTP_URL.", code="no_relay"
            )
        if not config.link_secret:
            raise FrontdeskError(
                "The links in invitations could be guessed: set FRONTDESK_LINK_SECRET.", code="no_link_secret"
            )
        return relay
    catcher = MailCatcher(db, system_clock)
    return catcher if relay is None else AllowListMailer(config.sandbox_recipients, relay, catcher)
