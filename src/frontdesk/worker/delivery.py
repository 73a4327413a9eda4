"""One worker: claims, hands to its connections, commits what they report, in sets; it decides nothing about invitations.

One thread keeps the books. Each of its transactions settles what the connections have finished and allows what they have
ready, however many that are; so a commit is shared by as many messages as there are connections, and a slow one waits alone.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from queue import Empty
from typing import Protocol, TypeVar

from frontdesk.config import Config
from frontdesk.db import Database, Tx
from frontdesk.db.engine import database_time
from frontdesk.db.races import write_alone
from frontdesk.eligibility import find_expired
from frontdesk.errors import Invalid, Unavailable
from frontdesk.invitations import delivery as steps
from frontdesk.invitations.delivery import (
    AttemptOutcome,
    AttemptResult,
    ClaimCursor,
    ClaimedInvitation,
    DeliveryPolicy,
    HourlyWindows,
    OutcomePolicy,
)
from frontdesk.invitations.message import compose, load_message_context
from frontdesk.invitations.model import Delivery, InvitationMessage, MessageContext
from frontdesk.invitations.reports import apply_early_reports
from frontdesk.mail.model import Mailer, MailMessage
from frontdesk.worker.circuit_breaker import CircuitBreaker
from frontdesk.worker.connections import ConnectionPool, SendJob, SendReport
from frontdesk.worker.log import WorkerLog

POLL_SECONDS = 0.2
LAPSE_SECONDS = 1.0
GOODBYE_SECONDS = 2.0
DATABASE_RETRY_SECONDS = 1.0
# Connections that were let go together report together: so long the next report is waited for, to share the commit.
GATHER_SECONDS = 0.001
# The part of a lease in which something may be begun: the content and the answer take time too.
BEGIN_WITHIN = 0.25
RENEW_AFTER = 1 / 3

_MAY_HAVE_LEFT = (AttemptResult.ACCEPTED, AttemptResult.LOST)

Answer = TypeVar("Answer")
Time = Callable[[Tx], datetime]


class Compose(Protocol):
    """Writes a letter; `invitations.message.compose`."""

    def __call__(
        self, letter: InvitationMessage, gathered: MessageContext, /, *, base_url: str, mail_from: str
    ) -> MailMessage: ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How much a worker takes on. `ahead`: claimed messages that wait for a connection, per connection.

    `stop_seconds`: how long one that stops waits for a relay that has not taken recipients yet.
    """

    connections: int = 8
    ahead: int = 4
    stop_seconds: float = 10.0
    poll_seconds: float = POLL_SECONDS


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a test or a benchmark sets otherwise than the settings say."""

    pace: Pace | None = None
    terms: DeliveryPolicy | None = None
    time_of: Time = database_time
    meter: HourlyWindows = field(default_factory=HourlyWindows)
    log: WorkerLog = field(default_factory=WorkerLog)
    seed: int | None = None
    compose: Compose = compose


@dataclass(slots=True)
class Books:
    """What the worker has in hand, and what has been reported and not yet been committed."""

    in_hand: dict[int, SendJob] = field(default_factory=dict)
    ready: list[SendJob] = field(default_factory=list)
    outcomes: list[AttemptOutcome] = field(default_factory=list)


class DeliveryWorker:
    """Delivers the invitations of one database through one mailer, beside any number of other workers."""

    def __init__(
        self, config: Config, db: Database, mailer: Mailer, setup: WorkerOptions | None = None
    ) -> None:
        setup = setup or WorkerOptions()
        self._config = config
        self._db = db
        self._pace = setup.pace or Pace(config.smtp_connections)
        self._terms = setup.terms or terms_of(config)
        self._time_of = setup.time_of
        self._meter = setup.meter
        self._log = setup.log
        self._compose = setup.compose
        self._chance = random.Random(setup.seed)  # noqa: S311 - jitter
        self._crew = ConnectionPool(mailer, self._pace.connections)
        self._rota = ClaimCursor()
        self._pause = CircuitBreaker(self._chance)
        self._books = Books()
        self._count = 0
        self._lapsed_at = float("-inf")
        self._renewed_at = time.monotonic()
        self._stopping = threading.Event()

    def run(self) -> None:
        """Deliver until `stop()`; what is in hand is finished first."""
        self._log.say("worker_started", connections=self._pace.connections)
        while not self._stopping.is_set():
            if not self.step():
                self._stopping.wait(self._pace.poll_seconds)
        self.finish()
        self._log.tell()
        self._log.say("worker_stopped")

    def step(self) -> bool:
        """Take on what there is room for, and commit what has been reported; False when there was nothing to do."""
        try:
            claimed = self._claim()
        except Unavailable:
            self._stopping.wait(DATABASE_RETRY_SECONDS)
            return True
        if not claimed and not self._books.in_hand:
            return False
        self._keep_books(self._pace.poll_seconds)
        return True

    def stop(self) -> None:
        """Claim nothing more, finish what is in hand; from any thread or a signal handler."""
        self._stopping.set()
        self._crew.reports.put(None)

    def turn(self) -> int:
        """Claim once and see it through; how many invitations were claimed. Raises Unavailable."""
        claimed = self._claim(even_if_idle=True)
        while self._books.in_hand:
            self._keep_books(self._pace.poll_seconds)
        return claimed

    def close(self) -> None:
        self._crew.close(GOODBYE_SECONDS)

    def finish(self) -> None:
        """See what is in hand through; what no connection has begun with goes back in line, at once or in a while."""
        self._give_back()
        until = time.monotonic() + self._pace.stop_seconds
        while self._books.in_hand:
            if time.monotonic() > until:
                self._let_go()
            self._keep_books(self._pace.poll_seconds)
        self.close()

    def _claim(self, *, even_if_idle: bool = False) -> int:
        """Take on as much as there is room for; how many invitations that are."""
        room = self._pace.connections * (1 + self._pace.ahead) - len(self._books.in_hand)
        room = self._pause.allowed(room)
        if room <= self._pace.connections * self._pace.ahead // 2 and self._books.in_hand:
            return 0
        if room <= 0 or not (even_if_idle or self._db.ask(self._something_waits)):
            return 0
        claimed, gathered = write_alone(self._db, lambda tx: self._claim_in(tx, room))
        self._log.hold(self._rota.hold)
        for one in claimed:
            self._start(one, gathered)
        return len(claimed)

    def _something_waits(self, tx: Tx) -> bool:
        now = self._time_of(tx)
        if time.monotonic() - self._lapsed_at > LAPSE_SECONDS and steps.lapse_waits(tx, now=now):
            return True
        return steps.work_waits(tx, meter=self._meter, rota=self._rota, now=now)

    def _claim_in(self, tx: Tx, room: int) -> tuple[list[ClaimedInvitation], MessageContext]:
        now = self._time_of(tx)
        unclear = steps.lapse(tx, terms=self._terms, meter=self._meter, now=now)
        if unclear:
            apply_early_reports(tx, unclear, now=now)
        self._lapsed_at = time.monotonic()
        claimed = steps.claim(
            steps.DeliveryClaim(tx, now, self._terms, self._meter),
            count=room,
            rota=self._rota,
            find_expired=find_expired,
        )
        letters = [one.letter for one in claimed]
        return claimed, load_message_context(tx, letters, link_secret=self._config.link_secret, now=now)

    def _start(self, one: ClaimedInvitation, gathered: MessageContext) -> None:
        self._count += 1
        rank = (0 if one.delivery is Delivery.IMMEDIATE else 1, self._count)
        until = time.monotonic() + self._terms.lease_seconds
        job = SendJob(rank, one, partial(self._written, one, gathered), until)
        self._books.in_hand[one.id] = job
        self._crew.take(job)

    def _written(self, one: ClaimedInvitation, gathered: MessageContext) -> MailMessage | None:
        try:
            return self._compose(
                one.letter, gathered, base_url=self._config.base_url, mail_from=self._config.mail_from
            )
        except Invalid:
            self._log.say("letter_not_writable", invitation_id=one.id)
            return None

    def _keep_books(self, seconds: float) -> None:
        """Wait for reports, at most so long, and commit all that have come."""
        for report in self._reports(seconds):
            self._enter(report)
        if time.monotonic() - self._renewed_at > self._terms.lease_seconds * RENEW_AFTER:
            self._renew()
        if not (self._books.ready or self._books.outcomes):
            return
        try:
            self._commit()
        except Unavailable:
            # Kept in the books until the database is back. If that takes longer than the lease, it is void then.
            time.sleep(DATABASE_RETRY_SECONDS)

    def _renew(self) -> None:
        """Keep what is in hand, as long as connections are at work on it."""
        self._renewed_at = time.monotonic()
        jobs = list(self._books.in_hand.values())
        try:
            write_alone(
                self._db,
                lambda tx: steps.renew(
                    tx, [job.claimed for job in jobs], terms=self._terms, now=self._time_of(tx)
                ),
            )
        except Unavailable:
            return
        for job in jobs:
            job.until = self._renewed_at + self._terms.lease_seconds

    def _reports(self, seconds: float) -> list[SendReport]:
        reports: list[SendReport] = []
        patience = 0.0 if self._books.ready or self._books.outcomes else seconds
        while True:
            try:
                report = self._crew.reports.get(timeout=patience)
            except Empty:
                return reports
            if report is None:
                return reports
            reports.append(report)
            patience = GATHER_SECONDS

    def _enter(self, report: SendReport) -> None:
        if report.job.let_go:
            report.job.gate.put(None)
            return
        self._pause.hear(report)
        if report.error is not None:
            self._log.say("unexpected_error", error=report.error, invitation_id=report.job.claimed.id)
        if report.relay_down:
            told = {"stage": report.stage, "code": report.code, "cause": report.cause}
            self._log.say("relay_down", **told, pause_seconds=round(self._pause.seconds, 1))
            self._give_back()
        if report.kind is None:
            self._books.ready.append(report.job)
            return
        self._books.outcomes.append(
            AttemptOutcome(report.job.claimed, report.kind, report.code, offered=report.offered)
        )

    def _give_back(self) -> None:
        """What no connection has begun with goes back in line."""
        for job in self._crew.give_back():
            self._books.outcomes.append(AttemptOutcome(job.claimed, AttemptResult.NOT_TRIED))

    def _let_go(self) -> None:
        """What a silent relay keeps waiting before its content goes back in line, and never gets leave to be sent."""
        reported = {outcome.one.id for outcome in self._books.outcomes}
        reported |= {job.claimed.id for job in self._books.ready}
        for job in self._books.in_hand.values():
            if not (job.may_leave or job.let_go or job.claimed.id in reported):
                job.let_go = True
                self._books.outcomes.append(AttemptOutcome(job.claimed, AttemptResult.NOT_TRIED))

    def _commit(self) -> None:
        ready, outcomes = self._books.ready, self._books.outcomes
        until = time.monotonic() + self._terms.offer_lease_seconds * BEGIN_WITHIN
        granted, mark = write_alone(self._db, lambda tx: self._commit_in(tx, ready, outcomes))
        if mark is not None and ready:
            mark.write()
        self._books.ready, self._books.outcomes = [], []
        for outcome in outcomes:
            self._books.in_hand.pop(outcome.one.id, None)
        for job in ready:
            job.may_leave = job.claimed.id in granted
            job.gate.put(until if job.may_leave else None)
        self._log.count(outcomes)

    def _commit_in(
        self, tx: Tx, ready: Sequence[SendJob], outcomes: Sequence[AttemptOutcome]
    ) -> tuple[set[int], steps.DeliveryMark | None]:
        now = self._time_of(tx)
        judge = OutcomePolicy(self._terms, self._meter, self._chance)
        answer = steps.offer_and_settle(tx, [job.claimed for job in ready], outcomes, judge, now=now)
        left = {outcome.one.letter.message_id for outcome in outcomes if _may_have_left(outcome)}
        if left:
            apply_early_reports(tx, left, now=now)
        return answer


def _may_have_left(outcome: AttemptOutcome) -> bool:
    """Now, or when an answer was lost before: it can have been reported while this attempt was under way."""
    return outcome.kind in _MAY_HAVE_LEFT or outcome.one.losses > 0


def terms_of(config: Config) -> DeliveryPolicy:
    return DeliveryPolicy(
        message_domain=config.host_name or "localhost",
        ambiguous_hold_seconds=config.ambiguous_hold_hours * 3600.0,
        resend_ambiguous=config.ambiguous_resend,
        most_attempts=config.delivery_attempts,
    )
