"""Delivers invitations: claims them, hands them to the connections, and commits what these report, in sets.

One thread commits (docs/decisions/0034). Each of its transactions settles what the connections have finished and allows what
they have ready. So a commit is shared by as many messages as there are connections, and a slow one holds up no other.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from queue import Empty

from frontdesk.config import Config
from frontdesk.db import Database, Tx
from frontdesk.db.engine import database_time
from frontdesk.db.races import write_alone
from frontdesk.eligibility import find_expired
from frontdesk.errors import Invalid, Unavailable
from frontdesk.invitations.message import compose, load_message_context
from frontdesk.invitations.model import (
    AttemptOutcome,
    AttemptResult,
    ClaimedInvitation,
    Delivery,
    DeliveryPolicy,
    MessageContext,
)
from frontdesk.invitations.protocol import (
    DeliveryContext,
    claim,
    expire_leases,
    offer_and_settle,
    renew_leases,
    seconds_to_work,
)
from frontdesk.mail.model import Mailer, MailMessage
from frontdesk.worker.connections import CircuitBreaker, ConnectionPool, SendJob, SendReport
from frontdesk.worker.log import WorkerLog
from frontdesk.worker.wakeup import IDLE_SECONDS, Wakeup

GOODBYE_SECONDS = 2.0
DATABASE_RETRY_SECONDS = 1.0
# Connections that got their go-ahead together report together: the next report may take so long to share the commit.
GATHER_SECONDS = 0.001
# The part of a lease in which something may be begun: the content and the answer take time too.
BEGIN_WITHIN = 0.25
RENEW_AFTER = 1 / 3


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a test or a benchmark sets otherwise than the settings say.

    `prefetch`: claimed messages that wait for a connection, per connection. `stop_seconds`: how long a worker that stops
    waits for a relay that has not taken recipients yet. `poll_seconds`: the longest wait for reports of connections.
    `idle_seconds`: the longest wait for work that nobody tells of. `read_time`: the time of a transaction.
    """

    connections: int | None = None
    prefetch: int = 4
    stop_seconds: float = 10.0
    poll_seconds: float = 0.2
    idle_seconds: float = IDLE_SECONDS
    read_time: Callable[[Tx], datetime] = database_time
    context: DeliveryContext | None = None
    log: WorkerLog = field(default_factory=WorkerLog)
    compose: Callable[..., MailMessage] = compose  # with the arguments of invitations.message.compose


class DeliveryWorker:
    """Delivers the invitations of one database through one mailer, beside any number of other workers."""

    def __init__(
        self, config: Config, db: Database, mailer: Mailer, options: WorkerOptions | None = None
    ) -> None:
        self._options = options or WorkerOptions()
        self._config = config
        self._db = db
        self._log = self._options.log
        self._context = self._options.context or DeliveryContext(policy_of(config))
        self._size = self._options.connections or config.smtp_connections
        self._connections = ConnectionPool(mailer, self._size)
        self._breaker = CircuitBreaker(self._context.jitter)
        self._jobs: dict[int, SendJob] = {}  # of what this worker holds, by invitation id
        self._ready: list[SendJob] = []  # reported ready for DATA, not yet committed
        self._outcomes: list[AttemptOutcome] = []  # reported, not yet committed
        self._count = 0
        self._renewed_at = time.monotonic()
        self._is_stopping = False
        self._due_in = 0.0  # seconds until the next claim can find something, as far as is known
        self._wakeup = Wakeup()

    def run(self) -> None:
        """Deliver until `stop()`; what the worker holds is finished first."""
        self._log.write("worker_started", connections=self._size)
        while not self._is_stopping:
            if not self.step():
                self._wakeup.wait(min(self._options.idle_seconds, self._breaker.seconds_left or self._due_in))
        self.finish()
        self._log.write_counts()
        self._log.write("worker_stopped")

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
        if room <= prefetched // 2 and self._jobs:
            return 0
        if room <= 0:
            return 0
        if not even_if_idle:
            self._due_in = self._db.ask(self._seconds_to_work)
            if self._due_in > 0:
                return 0
        claimed, context = write_alone(self._db, lambda tx: self._claim_in(tx, room))
        self._log.write_hold(self._context.hold)
        # Others may have been quicker, or have locked what is due.
        self._due_in = (
            self._options.poll_seconds if self._context.hold is None else self._options.idle_seconds
        )
        for invitation in claimed:
            self._submit(invitation, context)
        return len(claimed)

    def _seconds_to_work(self, tx: Tx) -> float:
        return seconds_to_work(tx, self._context, now=self._options.read_time(tx))

    def _claim_in(self, tx: Tx, room: int) -> tuple[list[ClaimedInvitation], MessageContext]:
        now = self._options.read_time(tx)
        expire_leases(tx, self._context, now=now)
        claimed = claim(tx, self._context, now=now, count=room, find_expired=find_expired)
        return claimed, load_message_context(tx, claimed, link_secret=self._config.link_secret, now=now)

    def _submit(self, invitation: ClaimedInvitation, context: MessageContext) -> None:
        self._count += 1
        rank = (0 if invitation.delivery == Delivery.IMMEDIATE else 1, self._count)
        until = time.monotonic() + self._context.policy.lease_seconds
        job = SendJob(rank, invitation, partial(self._compose, invitation, context), until)
        self._jobs[invitation.id] = job
        self._connections.submit(job)

    def _compose(self, invitation: ClaimedInvitation, context: MessageContext) -> MailMessage | None:
        base_url, mail_from = self._config.base_url, self._config.mail_from
        try:
            return self._options.compose(invitation, context, base_url=base_url, mail_from=mail_from)
        except Invalid:
            self._log.write("letter_not_writable", invitation_id=invitation.id)
            return None

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
        if job.abandoned:
            job.go_ahead.put(None)
            return
        self._breaker.record(report)
        if report.error is not None:
            self._log.write("unexpected_error", error=report.error, invitation_id=job.invitation.id)
        if (failure := report.relay_failure) is not None:
            pause = round(self._breaker.seconds_left, 1)
            known = {"stage": failure.stage, "code": failure.code, "cause": failure.cause}
            self._log.write("relay_down", **known, pause_seconds=pause)
            self._withdraw()
        if report.result is None:
            self._ready.append(job)
        else:
            is_offered = job.granted is not None
            self._outcomes.append(AttemptOutcome(job.invitation, report.result, report.code, is_offered))

    def _renew(self) -> None:
        """Keep what the worker holds for as long as its connections work on it."""
        self._renewed_at = time.monotonic()
        jobs = list(self._jobs.values())
        claimed = [job.invitation for job in jobs]
        try:
            write_alone(
                self._db,
                lambda tx: renew_leases(tx, self._context, claimed, now=self._options.read_time(tx)),
            )
        except Unavailable:
            return
        for job in jobs:
            job.until = self._renewed_at + self._context.policy.lease_seconds

    def _withdraw(self) -> None:
        """Make pending again what no connection has begun."""
        for job in self._connections.withdraw():
            self._outcomes.append(AttemptOutcome(job.invitation, AttemptResult.NOT_TRIED))

    def _abandon(self) -> None:
        """Make pending again what a silent relay holds up before its content, and never give it the go-ahead."""
        reported = {outcome.invitation.id for outcome in self._outcomes}
        reported |= {job.invitation.id for job in self._ready}
        for job in self._jobs.values():
            if not (job.granted or job.abandoned or job.invitation.id in reported):
                job.abandoned = True
                self._outcomes.append(AttemptOutcome(job.invitation, AttemptResult.NOT_TRIED))

    def _commit(self) -> None:
        until = time.monotonic() + self._context.policy.offer_lease_seconds * BEGIN_WITHIN
        granted, mark = write_alone(self._db, self._commit_in)
        if mark is not None and self._ready:
            mark()
        ready, outcomes = self._ready, self._outcomes
        self._ready, self._outcomes = [], []
        for outcome in outcomes:
            self._jobs.pop(outcome.invitation.id, None)
        for job in ready:
            job.granted = job.invitation.id in granted
            job.go_ahead.put(until if job.granted else None)
        self._log.count(outcomes)

    def _commit_in(self, tx: Tx) -> tuple[set[int], Callable[[], None] | None]:
        now = self._options.read_time(tx)
        offered = [job.invitation for job in self._ready]
        return offer_and_settle(tx, self._context, offered, self._outcomes, now=now)


def policy_of(config: Config) -> DeliveryPolicy:
    return DeliveryPolicy(
        message_domain=config.host_name or "localhost",
        ambiguous_hold_seconds=config.ambiguous_hold_hours * 3600.0,
        resend_ambiguous=config.ambiguous_resend,
        max_attempts=config.delivery_attempts,
    )
