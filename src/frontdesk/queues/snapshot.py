"""The picture of an account's queues that is served for `ttl` seconds, one and the same in every process.

Values of all plans are taken in ONE consistent read. The first process to find the shared row stale computes and stores
it; others take what was stored, so two processes never answer differently inside one ttl. In one process all readers wait
for one renewal. When the database is slow the last snapshot is served on, up to a hard limit, and says that it is old.
"""

import threading
import time
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from frontdesk.clock import Clock
from frontdesk.db import Database, Tx
from frontdesk.db.races import write_together
from frontdesk.errors import Unavailable
from frontdesk.queues import store
from frontdesk.queues.store.upkeep import log_estimates
from frontdesk.queues.take import USUAL, QueueInfo, QueueRules, take_queues

READ_SECONDS = 1.0  # what a reader waits for a renewal while there is an older snapshot to serve
FIRST_READ_SECONDS = 5.0  # and what it waits when there is none
# What it waits, then, for the values to be stored for all: until they are, another process may differ.
SAVE_SECONDS = 1.0
LOCK_SECONDS = 1.0  # what the storing itself waits, for its turn and for others' locks
RETRY_SECONDS = 1.0  # a renewal that failed is not tried again before
STALE_TTLS = 4  # an expired snapshot is served for so many ttls more while no newer one is to be had

THREADS = 2


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All queues of one account at `taken_at`; from `expires_at` on they are taken anew."""

    queues: dict[int, QueueInfo]
    ttl_seconds: int
    taken_at: datetime
    expires_at: datetime

    def in_time(self, now: datetime) -> bool:
        """Whether it has not expired, and is not from a future that a set-back clock left behind."""
        return self.taken_at - timedelta(seconds=self.ttl_seconds) <= now < self.expires_at

    def covers(self, plan_ids: Collection[int], now: datetime) -> bool:
        """Whether it may be served: in time, no plan missing."""
        return self.in_time(now) and all(plan_id in self.queues for plan_id in plan_ids)

    def bearable(self, now: datetime) -> bool:
        """Whether it may be served while no newer one is to be had."""
        ttl = timedelta(seconds=self.ttl_seconds)
        return self.taken_at - ttl <= now < self.expires_at + STALE_TTLS * ttl


@dataclass(slots=True)
class _Renewal:
    """A renewal under way. `fresh` is there once the values were read, `result` once they are stored for all."""

    started: float
    was_read: threading.Event = field(default_factory=threading.Event)
    read_at: float = 0.0
    fresh: Snapshot | None = None
    result: "Future[Snapshot]" = field(default_factory=Future)


class QueueSnapshots:
    """`read(db, account_id, plan_ids)` from any thread; a warm read touches no database."""

    def __init__(self, clock: Clock, ttl_seconds: int, rules: QueueRules = USUAL) -> None:
        self._clock = clock
        self._ttl_seconds = ttl_seconds
        self._rules = rules
        self._kept: dict[int, Snapshot] = {}
        self._renewals: dict[int, _Renewal] = {}
        self._retry_at: dict[int, float] = {}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="queues")
        # Apart, so that an account whose snapshot waits to be stored keeps no other one's from being read.
        self._storing = ThreadPoolExecutor(THREADS, thread_name_prefix="snapshots")

    def read(self, db: Database, account_id: int, plan_ids: Collection[int]) -> Snapshot | None:
        """The account's snapshot; None when there is none that may be served. It may lack a plan made since it was taken."""
        kept = self._kept.get(account_id)
        if kept is not None and kept.covers(plan_ids, self._clock()):
            return kept
        shown = self._renewed(db, account_id, plan_ids)
        if shown is not None and not all(plan_id in shown.queues for plan_id in plan_ids):
            # The renewal that was under way may have read before the newest plan was made.
            shown = self._renewed(db, account_id, plan_ids)
        return shown

    def close(self) -> None:
        self._threads.shutdown()
        self._storing.shutdown()

    def _renewed(self, db: Database, account_id: int, plan_ids: Collection[int]) -> Snapshot | None:
        with self._lock:
            kept = self._kept.get(account_id)
            if kept is not None and kept.covers(plan_ids, self._clock()):
                return kept  # a renewal has just ended
            renewal = self._renewals.get(account_id)
            # After one that failed there is none for a moment.
            if renewal is None and time.monotonic() >= self._retry_at.get(account_id, 0.0):
                renewal = self._renewals[account_id] = _Renewal(time.monotonic())
                self._threads.submit(self._run, renewal, db, account_id)
        return self._shown(renewal, kept)

    def _shown(self, renewal: _Renewal | None, kept: Snapshot | None) -> Snapshot | None:
        """What a reader gets: the renewed values, else the last ones that are bearable, else what was read, else nothing."""
        last = kept if kept is not None and kept.bearable(self._clock()) else None
        if renewal is None:
            return last
        limit = renewal.started + (FIRST_READ_SECONDS if last is None else READ_SECONDS)
        if not renewal.was_read.wait(max(0.0, limit - time.monotonic())):
            return last
        try:
            return renewal.result.result(max(0.0, renewal.read_at + SAVE_SECONDS - time.monotonic()))
        except (TimeoutError, Unavailable):
            return last or renewal.fresh

    def _run(self, renewal: _Renewal, db: Database, account_id: int) -> None:
        """Take the values anew, and have them stored, unless another process has done so."""
        with self._answering(renewal, account_id):
            shared, fresh = db.ask(lambda tx: self._look(tx, account_id))
            renewal.fresh, renewal.read_at = fresh, time.monotonic()
            if fresh is shared:
                self._end(renewal, account_id, fresh)
            else:
                renewal.was_read.set()
                self._storing.submit(self._store, renewal, db, account_id, shared)

    def _store(self, renewal: _Renewal, db: Database, account_id: int, shared: Snapshot | None) -> None:
        with self._answering(renewal, account_id):
            self._end(renewal, account_id, self._shared_by_all(renewal, db, account_id, shared))

    @contextmanager
    def _answering(self, renewal: _Renewal, account_id: int) -> Iterator[None]:
        """Whatever happens in the block, nobody waits for ever."""
        try:
            yield
        except BaseException as error:  # noqa: BLE001  # it is the readers' answer
            self._finish(renewal, account_id, failed=True)
            renewal.result.set_exception(error)
            renewal.read_at = renewal.read_at or time.monotonic()
            renewal.was_read.set()

    def _end(self, renewal: _Renewal, account_id: int, snapshot: Snapshot) -> None:
        self._kept[account_id] = snapshot
        self._finish(renewal, account_id, failed=not snapshot.in_time(self._clock()))
        renewal.result.set_result(snapshot)
        renewal.was_read.set()

    def _finish(self, renewal: _Renewal, account_id: int, *, failed: bool) -> None:
        with self._lock:
            del self._renewals[account_id]
            self._retry_at.pop(account_id, None)
            if failed:
                self._retry_at[account_id] = time.monotonic() + RETRY_SECONDS

    def _shared_by_all(
        self, renewal: _Renewal, db: Database, account_id: int, shared: Snapshot | None
    ) -> Snapshot:
        """What everybody is to be shown once it was tried to store the fresh values."""
        fresh = renewal.fresh
        if fresh is None:
            raise ValueError("nothing was read")
        instead = shared if shared is not None and shared.bearable(self._clock()) else fresh
        if time.monotonic() - renewal.read_at > LOCK_SECONDS:  # others before it could not be stored
            return instead
        try:
            [shown] = write_together(
                db,
                [fresh],
                lambda tx, snapshots: [self._share(tx, account_id, snapshots[0])],
                wait_seconds=LOCK_SECONDS,
            )
        except Unavailable:
            return instead  # others can't store either: what all of them have is the last shared one
        if isinstance(shown, Exception):
            raise shown
        return shown

    def _look(self, tx: Tx, account_id: int) -> tuple[Snapshot | None, Snapshot]:
        """What is shared, and what is to be served: the shared one, or what is so now."""
        now = self._clock()
        shared = self._stored(tx, account_id)
        if shared is not None and shared.covers(store.plan_ids_of(tx, account_id), now):
            return shared, shared
        # Whole seconds, so that cache_info, which has no smaller ones, tells when the values really expire.
        taken_at = now.replace(microsecond=0)
        expires_at = taken_at + timedelta(seconds=self._ttl_seconds)
        queues = take_queues(tx, account_id, now, self._rules)
        return shared, Snapshot(queues, self._ttl_seconds, taken_at, expires_at)

    def _share(self, tx: Tx, account_id: int, fresh: Snapshot) -> Snapshot:
        """Store the snapshot for all, unless another process was first: the one stored is everybody's.

        A plan made since is added to it; what it says of the others stays until it expires.
        """
        shared, now = self._stored(tx, account_id, lock=True), self._clock()
        known: dict[int, QueueInfo] = {}
        if shared is not None and shared.in_time(now):
            if shared.covers(fresh.queues, now):
                return shared
            known, fresh = shared.queues, fresh_at(shared, fresh)
        queues = {str(id_): _packed(queue) for id_, queue in fresh.queues.items()}
        store.save_snapshot(
            tx, account_id, taken_at=fresh.taken_at, expires_at=fresh.expires_at, queues=queues
        )
        log_estimates(
            tx,
            [
                {
                    "plan_id": plan_id,
                    "taken_at": fresh.taken_at,
                    "expires_at": fresh.expires_at,
                    "estimate_seconds": queue.estimated_wait_seconds,
                }
                for plan_id, queue in fresh.queues.items()
                if queue.doctors_on_duty and plan_id not in known
            ],
        )
        return fresh

    def _stored(self, tx: Tx, account_id: int, *, lock: bool = False) -> Snapshot | None:
        row = store.find_snapshot(tx, account_id, lock=lock)
        if row is None:
            return None
        queues = {
            int(id_): QueueInfo(wait, length, on_duty) for id_, (wait, length, on_duty) in row.queues.items()
        }
        ttl_seconds = round((row.expires_at - row.taken_at).total_seconds())
        return Snapshot(queues, ttl_seconds, row.taken_at, row.expires_at)


def fresh_at(shared: Snapshot, fresh: Snapshot) -> Snapshot:
    """The shared snapshot with the plans that only the fresh one knows."""
    return Snapshot(fresh.queues | shared.queues, shared.ttl_seconds, shared.taken_at, shared.expires_at)


def _packed(queue: QueueInfo) -> list[int | bool]:
    return [queue.estimated_wait_seconds, queue.queue_length, queue.doctors_on_duty]
