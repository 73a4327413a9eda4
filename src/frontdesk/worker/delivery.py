"""Delivers invitations: claims them, hands them to the connections, and commits what these report,
in sets.

The way of an invitation, with what is committed and what a process leaves that dies in between:

1. `_claim` commits the claim, under a lease. After a death another worker claims it when the lease
   has run out.
2. `_submit` hands the message to a connection (`relay_pool`), which offers it to the relay.
3. `_commit` commits `offered` for every message that is ready, and then gives its go-ahead. Only
   after that the content leaves. After a death it is unknown whether the relay has the message.
4. The next `_commit` commits the outcome that the connection has reported.

One thread commits (docs/decisions/0030). Each of its transactions settles what the connections have
finished and allows what they have ready. So a commit is shared by as many messages as there are
connections, and a slow one holds up no other.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from queue import Empty

from frontdesk import codes
from frontdesk.clock import system_clock
from frontdesk.config import Config, Environment
from frontdesk.db import Database, Tx
from frontdesk.db.engine import database_time, write_alone
from frontdesk.eligibility import find_expired
from frontdesk.errors import FrontdeskError, Unavailable
from frontdesk.invitations import find_worker_status, protocol
from frontdesk.invitations.message import load_message_context
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
from frontdesk.liveness import LoopBeats
from frontdesk.log_output import LogOutput
from frontdesk.mail.allow_list import AllowListMailer
from frontdesk.mail.model import Mailer
from frontdesk.mail.smtp import SmtpMailer
from frontdesk.mail.status import enhanced_code
from frontdesk.mailbox.catcher import SCRIPTED, MailCatcher
from frontdesk.tracing import TRACES
from frontdesk.worker.background import IDLE_SECONDS, Wakeup
from frontdesk.worker.breaker import CircuitBreaker
from frontdesk.worker.refusals import RefusalJudge
from frontdesk.worker.relay_pool import RelayPool, SendJob, SendReport

CONNECTIONS = 8  # to the relay, of one worker
GOODBYE_SECONDS = 2.0
DATABASE_RETRY_SECONDS = 1.0
LOOK_AGAIN_SECONDS = 0.02  # another worker has the account locked for the time of its claim
# Connections that got their go-ahead together report together: the next report may take so long to
# share the commit.
GATHER_SECONDS = 0.001
# The part of a lease in which something may be begun: the content and the answer take time too.
BEGIN_WITHIN = 0.25
RENEW_AFTER = 1 / 3  # of a lease
# The priorities of messages at the connections.
IMMEDIATE_FIRST = 0
BATCHED_AFTER = 1


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a test or a benchmark sets otherwise than the settings say.

    `prefetch`: claimed messages that wait for a connection, per connection. `stop_seconds`: how
    long a worker that stops waits for a relay that has not taken recipients yet. `poll_seconds`:
    the longest wait for reports of connections. `idle_seconds`: the longest wait for work without a
    notification. `read_time`: the time of a transaction. `beats`: those of the process, for which
    this worker is a loop.
    """

    connections: int = CONNECTIONS
    prefetch: int = 4
    stop_seconds: float = 10.0
    poll_seconds: float = 0.2
    idle_seconds: float = IDLE_SECONDS
    read_time: Callable[[Tx], datetime] = database_time
    context: protocol.DeliveryContext | None = None
    beats: LoopBeats | None = None
    log: LogOutput = field(default_factory=lambda: LogOutput(sys.stdout))


class DeliveryWorker:
    """Delivers the invitations of one database through one mailer, beside any number of other
    workers.
    """

    def __init__(
        self, config: Config, db: Database, mailer: Mailer, options: WorkerOptions | None = None
    ) -> None:
        self._options = options or WorkerOptions()
        self._config = config
        self._db = db
        self._log = self._options.log
        self._context = self._options.context or protocol.DeliveryContext(policy_of(config))
        self._size = self._options.connections
        self._pool = RelayPool(
            mailer, self._size, base_url=config.base_url, mail_from=config.mail_from
        )
        self.status = WorkerStatus()
        self._breaker = CircuitBreaker(self._context.jitter, self.status, self._log)
        self._refusals = RefusalJudge()
        self._jobs: dict[int, SendJob] = {}  # the claims of this worker, by invitation id
        self._ready: list[SendJob] = []  # reported ready for the content, not yet committed
        self._outcomes: list[AttemptOutcome] = []  # reported, not yet committed
        self._count = 0
        self._renewed_at = time.monotonic()
        self._is_held = False
        self._is_stopping = False
        self._due_in = 0.0  # seconds until the next claim can find something, as far as is known
        self._wakeup = Wakeup()

    def run(self) -> None:
        """Deliver until `stop()`; the claims of the worker are finished first."""
        self._recall_relay()
        while not self._is_stopping:
            self._advance()
            if not self.step():
                idle = self._breaker.seconds_left or self._due_in
                self._wakeup.wait(min(self._options.idle_seconds, idle))
        self.finish()

    def step(self) -> bool:
        """Claim what there is room for, and commit what was reported; False when there was nothing
        to do.
        """
        try:
            claimed = self._claim_if_due()
        except Unavailable:
            self._wakeup.wait(DATABASE_RETRY_SECONDS)
            return True
        if not claimed and not self._jobs:
            return False
        self._handle_reports()
        return True

    def turn(self) -> int:
        """Claim once and finish the claims; returns how many invitations were claimed. Raises
        Unavailable.
        """
        claimed = self._claim(self._room())
        while self._jobs:
            self._handle_reports()
        return claimed

    def stop(self) -> None:
        """Claim nothing more, finish the claims; from any thread or a signal handler."""
        self._is_stopping = True
        self._wakeup.set()
        self._pool.reports.put(None)

    def wake(self) -> None:
        """There may be something to deliver: look now. From any thread."""
        self._wakeup.set()

    def finish(self) -> None:
        """Finish the claims. Invitations that no connection has begun are pending again, at once or
        after a while.
        """
        self._withdraw()
        until = time.monotonic() + self._options.stop_seconds
        while self._jobs:
            self._advance()
            if time.monotonic() > until:
                self._abandon()
            self._handle_reports()
        self.close()
        if self._options.beats is not None:
            self._options.beats.leave(type(self).__name__)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close(GOODBYE_SECONDS)

    def _recall_relay(self) -> None:
        """Take over that the relay was lost when the last worker saw it: its return is logged."""
        with suppress(Unavailable):
            self.status.relay_up = self._db.ask(find_worker_status).get("relay_up")

    def _advance(self) -> None:
        if self._options.beats is not None:
            self._options.beats.advance(type(self).__name__)

    def _room(self) -> int:
        """How many more invitations to claim; 0 until half of the prefetched ones are begun."""
        prefetched = self._size * self._options.prefetch
        room = self._breaker.limit(self._size + prefetched - len(self._jobs))
        worthwhile = prefetched // 2 if self._jobs else 0
        return room if room > worthwhile else 0

    def _claim_if_due(self) -> int:
        """Claim unless nothing is due, which a read finds out; returns how many invitations."""
        room = self._room()
        if room == 0:
            return 0
        self._due_in = self._db.ask(self._seconds_to_work)
        return self._claim(room) if self._due_in <= 0 else 0

    def _seconds_to_work(self, tx: Tx) -> float:
        now = self._options.read_time(tx)
        return protocol.seconds_to_work(tx, self._context, now=now)

    def _claim(self, room: int) -> int:
        """Claim up to `room` invitations and hand them to the connections; returns how many."""
        if room == 0:
            return 0
        claimed, message_context = write_alone(self._db, partial(self._claim_in, count=room))
        self._log_hold()
        self._log_ended()
        self._due_in = self._next_look()
        for invitation in claimed:
            self._submit(invitation, message_context)
        return len(claimed)

    def _claim_in(self, tx: Tx, count: int) -> tuple[list[ClaimedInvitation], MessageContext]:
        """The transaction of a claim."""
        now = self._options.read_time(tx)
        protocol.expire_leases(tx, self._context, now=now)
        claimed = protocol.claim(tx, self._context, now=now, count=count, find_expired=find_expired)
        link_secret = self._config.link_secret
        return claimed, load_message_context(tx, claimed, link_secret=link_secret, now=now)

    def _next_look(self) -> float:
        """Seconds until the next claim: other workers may have been quicker, or hold locks."""
        if self._context.looks_again:
            return LOOK_AGAIN_SECONDS
        is_held = self._context.hold is not None
        return self._options.idle_seconds if is_held else self._options.poll_seconds

    def _log_hold(self) -> None:
        hold = self._context.hold
        if hold is not None and not self._is_held:
            self._log.write("delivery_held", reason=hold.value)
        elif hold is None and self._is_held:
            self._log.write("delivery_released")
        self._is_held = hold is not None

    def _submit(self, invitation: ClaimedInvitation, context: MessageContext) -> None:
        """Hand a claimed invitation to the connections."""
        self._count += 1
        is_immediate = invitation.delivery == Delivery.IMMEDIATE
        job = SendJob(
            priority=(IMMEDIATE_FIRST if is_immediate else BATCHED_AFTER, self._count),
            invitation=invitation,
            context=context,
            until=time.monotonic() + self._context.policy.lease_seconds,
            due_seconds=self._context.due_seconds,
        )
        self._jobs[invitation.id] = job
        self._pool.submit(job)

    def _handle_reports(self) -> None:
        """Wait for reports, for `poll_seconds` at most, and commit all that have come."""
        for report in self._reports():
            # Without its go-ahead the invitation is no longer this worker's.
            if report.job.granted is not False:
                for decided in self._refusals.judge(report):
                    self._handle(decided)
        for decided in self._refusals.release(has_others=self._has_others()):
            self._handle(decided)
        if time.monotonic() - self._renewed_at > self._context.policy.lease_seconds * RENEW_AFTER:
            self._renew()
        if not (self._ready or self._outcomes):
            return
        try:
            self._commit()
        except Unavailable:
            # The reports stay until the database is back. If that takes longer than the lease, they
            # are void.
            time.sleep(DATABASE_RETRY_SECONDS)

    def _has_others(self) -> bool:
        """Whether the relay has yet to answer about an invitation in hand."""
        settled = {outcome.invitation.id for outcome in self._outcomes}
        return not self._jobs.keys() <= settled | self._refusals.held_ids

    def _reports(self) -> Iterator[SendReport]:
        timeout = 0.0 if self._ready or self._outcomes else self._options.poll_seconds
        with suppress(Empty):
            while (report := self._pool.reports.get(timeout=timeout)) is not None:
                yield report
                timeout = GATHER_SECONDS

    def _handle(self, report: SendReport) -> None:
        """Note a report for the next commit."""
        job = report.job
        self._breaker.record(report)
        if report.error is not None:
            self._log.write("unexpected_error", error=report.error, invitation_id=job.invitation.id)
        if report.relay_failure is not None:
            self._withdraw()
        if report.result is None:
            self._ready.append(job)
            return
        outcome = AttemptOutcome(
            job.invitation,
            report.result,
            code=report.code,
            words=report.words,
            offered=job.granted is True,
        )
        self._outcomes.append(outcome)

    def _commit(self) -> None:
        """Commit `offered` and the outcomes, then let the ready messages send their content."""
        until = time.monotonic() + self._context.policy.offer_lease_seconds * BEGIN_WITHIN
        granted, note_offers = write_alone(self._db, self._commit_in)
        if note_offers is not None and self._ready:
            note_offers()
        self._log_ended()
        ready = self._ready
        outcomes = self._outcomes
        self._ready = []
        self._outcomes = []
        for outcome in outcomes:
            self._jobs.pop(outcome.invitation.id, None)
        for job in ready:
            job.granted = job.invitation.id in granted
            job.go_ahead.put(until if job.granted else None)
            if not job.granted:
                self._jobs.pop(job.invitation.id, None)

    def _commit_in(self, tx: Tx) -> tuple[set[int], Callable[[], None] | None]:
        """The transaction of a commit."""
        now = self._options.read_time(tx)
        offered = [job.invitation for job in self._ready]
        return protocol.offer_and_settle(tx, self._context, offered, self._outcomes, now=now)

    def _log_ended(self) -> None:
        """Log and count how attempts have ended, once that is committed."""
        for change, invitation in self._context.ended:
            result = ATTEMPT_ENDS[change.state]
            self.status.counts[result] += 1
            seconds = 0.0
            job = self._jobs.get(invitation.id)
            if job is not None:
                seconds = time.monotonic() - job.claimed_at
                if result == "sent" and invitation.delivery == Delivery.IMMEDIATE:
                    self.status.lag_seconds = job.due_seconds + seconds
            entry = {
                "invitation_id": invitation.id,
                "result": result,
                "reason": change.reason,
                # No words of the relay: they name people.
                "code": change.code,
                "enhanced_code": enhanced_code(change.words),
                "attempt": invitation.attempts + 1,
            }
            self._log.write("delivery", level="info" if result == "sent" else "warning", **entry)
            if TRACES.tracer is not None:
                TRACES.record("delivery", seconds, entry)

    def _renew(self) -> None:
        """Renew the leases of all claims: the connections still work on them."""
        self._renewed_at = time.monotonic()
        jobs = list(self._jobs.values())
        try:
            write_alone(self._db, partial(self._renew_in, jobs=jobs))
        except Unavailable:
            return
        for job in jobs:
            job.until = self._renewed_at + self._context.policy.lease_seconds

    def _renew_in(self, tx: Tx, jobs: list[SendJob]) -> None:
        """The transaction of a renewal."""
        claimed = [job.invitation for job in jobs]
        now = self._options.read_time(tx)
        protocol.renew_leases(tx, self._context, claimed, now=now)

    def _withdraw(self) -> None:
        """Make pending again what no connection has begun."""
        for job in self._pool.withdraw():
            self._outcomes.append(AttemptOutcome(job.invitation, InvitationStep.NOT_OFFERED))

    def _abandon(self) -> None:
        """Make pending again what a silent relay holds up before its content, and never give it the
        go-ahead.
        """
        reported = {outcome.invitation.id for outcome in self._outcomes}
        reported |= {job.invitation.id for job in self._ready} | self._refusals.held_ids
        for job in self._jobs.values():
            if job.granted is None and job.invitation.id not in reported:
                job.granted = False
                job.go_ahead.put(None)
                self._outcomes.append(AttemptOutcome(job.invitation, InvitationStep.NOT_OFFERED))


def policy_of(config: Config) -> DeliveryPolicy:
    """The installation's rules. While every mail is caught, the addresses with a simulated outcome
    have no daily limit: no person reads them.
    """
    catches_all = config.environment is Environment.SANDBOX and config.smtp_url is None
    return DeliveryPolicy(
        message_domain=config.host_name or "localhost",
        unlimited_mailboxes=frozenset(SCRIPTED) if catches_all else frozenset(),
    )


def make_mailer(config: Config, db: Database) -> Mailer:
    """The mailer that the settings ask for. Raises FrontdeskError in production without a relay or
    a link secret.
    """
    relay = None
    if config.smtp_url is not None:
        relay = SmtpMailer(config.smtp_url, hello_name=config.host_name or None)
    if config.environment is Environment.PRODUCTION:
        if relay is None:
            raise FrontdeskError(
                "There is no relay to deliver invitations to: set FRONTDESK_SMTP_URL.",
                code=codes.operators.NO_RELAY,
            )
        if not config.link_secret:
            raise FrontdeskError(
                "The links in invitations could be guessed: set FRONTDESK_LINK_SECRET.",
                code=codes.operators.NO_LINK_SECRET,
            )
        return relay
    catcher = MailCatcher(db, system_clock)
    return catcher if relay is None else AllowListMailer(config.sandbox_recipients, relay, catcher)
