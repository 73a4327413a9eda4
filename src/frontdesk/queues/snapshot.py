"""The state of each plan's queue, with the wait estimate; and the snapshot of an account's queues,
served for `ttl` seconds: the same in every process.

The values of all plans come from ONE consistent read. The first process that finds the shared row
expired computes and stores a new one, and the other processes use the stored one. In one process
all readers wait for one renewal. While the database is slow the last snapshot is served for some
ttls more, with its true `expires_at`.
"""

import threading
import time
from collections import Counter
from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from frontdesk.clock import Clock
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_alone
from frontdesk.errors import Unavailable
from frontdesk.queues.estimate.arrivals import recent_classes
from frontdesk.queues.estimate.model import NOBODY_ON_DUTY, Newcomer
from frontdesk.queues.estimate.record import PlanRecord, note_wait
from frontdesk.queues.estimate.waits import estimate_newcomers
from frontdesk.queues.model import EstimateRecords, PlanQueue, QueueInfo, QueueSnapshot
from frontdesk.queues.store import snapshots
from frontdesk.queues.store.pools import plans_by_group, select_pools
from frontdesk.reach import Reach

# A renewal is waited for this long from its start: while there is an older snapshot to serve, and
# when there is none.
READ_SECONDS = 1.0
FIRST_READ_SECONDS = 5.0
LOCK_SECONDS = 1.0  # storing waits this long for locks of others
RETRY_SECONDS = 1.0  # between a failed renewal and the next
THREADS = 4

COUNTED_EVERY = timedelta(minutes=15)
SETTLED = timedelta(minutes=5)  # events of the last minutes may still come
# the longest span of a count: without readers no estimate was given
LONGEST_LOOK = timedelta(days=1)


class QueueSnapshots:
    """`read(db, account_id, plan_ids)` from any thread; a read of a snapshot in time touches no
    database.
    """

    def __init__(self, clock: Clock, ttl_seconds: int) -> None:
        self._clock = clock
        self._ttl_seconds = ttl_seconds
        self._cached: dict[int, QueueSnapshot] = {}
        # In progress, each with the time at which it began.
        self._renewals: dict[int, tuple[Future[QueueSnapshot], float]] = {}
        self._retry_at: dict[int, float] = {}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="queues")

    def in_memory(self, account_id: int, plan_ids: Collection[int]) -> QueueSnapshot | None:
        """The snapshot that is in memory, if it is in time, holds the plans and need not be stored
        again. Never waits.
        """
        cached = self._cached.get(account_id)
        if cached is None or not cached.covers(plan_ids, self._clock()):
            return None
        retry_at = self._retry_at.get(account_id)
        return cached if retry_at is None or time.monotonic() < retry_at else None

    def read(
        self, db: Database, account_id: int, plan_ids: Collection[int]
    ) -> QueueSnapshot | None:
        """The account's snapshot; None if none may be served. It may lack a plan that is newer than
        it.
        """
        snapshot = self._renewed(db, account_id, plan_ids)
        if snapshot is not None and not all(plan_id in snapshot.queues for plan_id in plan_ids):
            # The renewal in progress may have read before the newest plan was made.
            snapshot = self._renewed(db, account_id, plan_ids)
        return snapshot

    def close(self) -> None:
        self._threads.shutdown()

    def _renewed(
        self, db: Database, account_id: int, plan_ids: Collection[int]
    ) -> QueueSnapshot | None:
        with self._lock:
            cached = self.in_memory(account_id, plan_ids)
            if cached is not None:
                return cached  # it needs no renewal, or one has just ended
            renewal = self._renewals.get(account_id)
            if renewal is None and time.monotonic() >= self._retry_at.get(account_id, 0.0):
                future = self._threads.submit(self._renew, db, account_id)
                renewal = self._renewals[account_id] = (future, time.monotonic())
        cached = self._cached.get(account_id)
        now = self._clock()
        if cached is not None and cached.covers(plan_ids, now):
            return cached  # it could not be stored for the others; the renewal tries that again
        last = cached if cached is not None and cached.is_usable(now) else None
        if renewal is None:
            return last
        future, started = renewal
        limit = started + (FIRST_READ_SECONDS if last is None else READ_SECONDS)
        try:
            return future.result(max(0.0, limit - time.monotonic()))
        except (TimeoutError, Unavailable):
            return last

    def _renew(self, db: Database, account_id: int) -> QueueSnapshot:
        """Compute the values and store them for all processes, unless another process has done so.

        When they can't be stored: the last shared snapshot, which all processes have, for a moment.
        """
        is_shared = False
        try:
            shared, snapshot = db.ask(lambda tx: self._compute(tx, account_id))
            fresh = snapshot
            is_shared = snapshot is shared
            if not is_shared:
                snapshot = (
                    shared if shared is not None and shared.is_usable(self._clock()) else fresh
                )
                with suppress(Unavailable):
                    snapshot = write_alone(
                        db,
                        lambda tx: self._publish(tx, account_id, fresh),
                        wait_seconds=LOCK_SECONDS,
                    )
                    is_shared = True
            self._cached[account_id] = snapshot
            return snapshot
        finally:
            with self._lock:
                del self._renewals[account_id]
                if is_shared:
                    self._retry_at.pop(account_id, None)
                else:
                    self._retry_at[account_id] = time.monotonic() + RETRY_SECONDS

    def _compute(self, tx: Tx, account_id: int) -> tuple[QueueSnapshot | None, QueueSnapshot]:
        """The shared snapshot, and the one to serve: the shared one while it is in time, else the
        present state.
        """
        now = self._clock()
        shared = snapshots.find_snapshot(tx, account_id)
        if shared is not None and shared.covers(snapshots.plan_ids_of(tx, account_id), now):
            return shared, shared
        # Whole seconds, as in cache_info, so that the values expire exactly when it says.
        taken_at = now.replace(microsecond=0)
        expires_at = taken_at + timedelta(seconds=self._ttl_seconds)
        records = counted(tx, account_id, shared.records if shared else None, now)
        state = queue_state(tx, Reach.of(account_id), now, records.plans)
        queues = {plan: queue.info for plan, queue in state.items()}
        return shared, QueueSnapshot(queues, self._ttl_seconds, taken_at, expires_at, records)

    def _publish(self, tx: Tx, account_id: int, fresh: QueueSnapshot) -> QueueSnapshot:
        """Store the snapshot for all processes, unless another process was first; returns the
        stored one.

        A plan made since is added to a shared snapshot in time; the values of the other plans stay
        until it expires.
        """
        shared = snapshots.find_snapshot(tx, account_id, lock=True)
        now = self._clock()
        logged: Collection[int] = ()
        if shared is not None and shared.in_time(now):
            if shared.covers(fresh.queues, now):
                return shared
            logged = shared.queues
            fresh = replace(shared, queues=fresh.queues | shared.queues)
        snapshots.save_snapshot(tx, account_id, fresh, logged=logged)
        return fresh


def queue_state(
    tx: Tx, reach: Reach, now: datetime, records: Mapping[int, PlanRecord] | None = None
) -> dict[int, PlanQueue]:
    """By plan id: the queues of the plans within reach, from one consistent read, in seven
    statements.

    `records`: by plan, what its estimates have taught; None: as stored, which takes one statement
    more.
    """
    if records is None:
        records = snapshots.list_records(tx, reach)
    plans = plans_by_group(tx, reach)
    pools = select_pools(tx, plans.keys(), now)
    queues = {}
    for group, pool in pools.items():
        classes = recent_classes(pool)
        newcomers = [
            Newcomer(plan, patient_class)
            for plan in plans[group]
            for patient_class in (None, *classes.get(plan, ()))
        ]
        waits = estimate_newcomers(pool, newcomers, records)
        lengths = Counter(pool.waiting)
        for plan in plans[group]:
            seconds, low, high, basis = waits[Newcomer(plan)]
            info = QueueInfo(
                seconds,
                lengths[plan],
                seconds != NOBODY_ON_DUTY,
                low,
                high,
                basis,
                {name: waits[Newcomer(plan, name)] for name in classes.get(plan, ())},
            )
            serving = [doctor for doctor in pool.doctors if doctor.serves(plan)]
            idle = [doctor for doctor in serving if not doctor.visits]
            paused = sum(doctor.paused_seconds > 0 for doctor in idle)
            queues[plan] = PlanQueue(info, len(serving), len(serving) - len(idle), paused)
    return dict(sorted(queues.items()))


def counted(
    tx: Tx, account_id: int, records: EstimateRecords | None, now: datetime
) -> EstimateRecords:
    """The records of the account's plans with the waits that ended since they were last counted; the
    same records while a count is not due. A wait counts once, when it is over.
    """
    until = now - SETTLED
    if records is None:
        return EstimateRecords(until, {})
    if records.until > now:
        return EstimateRecords(until, records.plans)  # the clock was set back
    if until - records.until < COUNTED_EVERY:
        return records
    plans = dict(records.plans)
    ended = max(records.until, until - LONGEST_LOOK), until
    outcomes = snapshots.list_outcomes(
        tx, Reach.of(account_id), ended[0] - LONGEST_LOOK, ended=ended
    )
    for outcome in outcomes:
        note_wait(
            plans, outcome.plan_id, outcome.wait_seconds, outcome.estimate, outcome.patient_class
        )
    return EstimateRecords(until, plans)
