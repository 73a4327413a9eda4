"""The snapshot of an account's queues, served for `ttl` seconds: one and the same in every process.

The values of all plans come from ONE consistent read. The first process that finds the shared row expired computes and stores
a new one, and the others take what was stored. In one process all readers wait for one renewal. When the database is slow the
last snapshot is served for some ttls more; its `expires_at` says that it is old.
"""

import threading
import time
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

from frontdesk.clock import Clock
from frontdesk.db import Database, Tx
from frontdesk.db.races import write_alone
from frontdesk.errors import Unavailable
from frontdesk.queues.interval_records import counted
from frontdesk.queues.model import QueueRules, QueueSnapshot
from frontdesk.queues.queue_state import DEFAULT_RULES, queue_state
from frontdesk.queues.store.snapshots import find_snapshot, plan_ids_of, save_snapshot

READ_SECONDS = 1.0  # a reader waits this long for a renewal while there is an older snapshot to serve
FIRST_READ_SECONDS = 5.0  # and this long when there is none
# Then it waits this long for the new values to be stored: until they are, another process may answer differently.
SAVE_SECONDS = 1.0
LOCK_SECONDS = 1.0  # storing waits this long for its turn, and for locks of others
RETRY_SECONDS = 1.0  # after a renewal that failed or could not be stored none is tried for this long

THREADS = 2


@dataclass(slots=True)
class _Renewal:
    """A renewal in progress: the values that were read, with the time, and the snapshot that all processes then have."""

    db: Database
    account_id: int
    started: float = field(default_factory=time.monotonic)
    read: "Future[tuple[QueueSnapshot, float]]" = field(default_factory=Future)
    stored: "Future[QueueSnapshot]" = field(default_factory=Future)


class QueueSnapshots:
    """`read(db, account_id, plan_ids)` from any thread; a read of a snapshot in time touches no database."""

    def __init__(self, clock: Clock, ttl_seconds: int, rules: QueueRules = DEFAULT_RULES) -> None:
        self._clock = clock
        self._ttl_seconds = ttl_seconds
        self._rules = rules
        self._cached: dict[int, QueueSnapshot] = {}
        self._renewals: dict[int, _Renewal] = {}
        self._retry_at: dict[int, float] = {}
        self._lock = threading.Lock()
        self._reading = ThreadPoolExecutor(THREADS, thread_name_prefix="queues")
        # Threads of its own, so that an account that waits to be stored does not hold up the reads of others.
        self._storing = ThreadPoolExecutor(THREADS, thread_name_prefix="snapshots")

    def in_memory(self, account_id: int, plan_ids: Collection[int]) -> QueueSnapshot | None:
        """The snapshot that is in memory, if it is in time, holds the plans and need not be stored again. Never waits."""
        cached = self._cached.get(account_id)
        if cached is None or not cached.covers(plan_ids, self._clock()):
            return None
        retry_at = self._retry_at.get(account_id)
        return cached if retry_at is None or time.monotonic() < retry_at else None

    def read(self, db: Database, account_id: int, plan_ids: Collection[int]) -> QueueSnapshot | None:
        """The account's snapshot; None if none may be served. It may lack a plan that is newer than it."""
        cached = self.in_memory(account_id, plan_ids)
        if cached is not None:
            return cached
        snapshot = self._renewed(db, account_id, plan_ids)
        if snapshot is not None and not all(plan_id in snapshot.queues for plan_id in plan_ids):
            # The renewal in progress may have read before the newest plan was made.
            snapshot = self._renewed(db, account_id, plan_ids)
        return snapshot

    def close(self) -> None:
        self._reading.shutdown()
        self._storing.shutdown()

    def _renewed(self, db: Database, account_id: int, plan_ids: Collection[int]) -> QueueSnapshot | None:
        with self._lock:
            cached = self.in_memory(account_id, plan_ids)
            if cached is not None:
                return cached  # a renewal has just ended
            renewal = self._renewals.get(account_id)
            if renewal is None and time.monotonic() >= self._retry_at.get(account_id, 0.0):
                renewal = self._renewals[account_id] = _Renewal(db, account_id)
                self._reading.submit(self._run, renewal)
        cached = self._cached.get(account_id)
        if cached is not None and cached.covers(plan_ids, self._clock()):
            return cached  # it could not be stored for the others; the renewal tries that again
        last = cached if cached is not None and cached.is_usable(self._clock()) else None
        return last if renewal is None else _await(renewal, last)

    def _run(self, renewal: _Renewal) -> None:
        """Compute the values and have them stored, unless another process has done so."""
        with self._answering(renewal):
            shared, fresh = renewal.db.ask(lambda tx: self._compute(tx, renewal.account_id))
            renewal.read.set_result((fresh, time.monotonic()))
            if fresh is shared:
                self._serve(renewal, fresh, is_shared=True)
            else:
                self._storing.submit(self._store, renewal, shared)

    def _store(self, renewal: _Renewal, shared: QueueSnapshot | None) -> None:
        """Serve what could be stored for all processes; else the last shared snapshot, which all of them have, for a moment."""
        with self._answering(renewal):
            fresh, read_at = renewal.read.result()
            snapshot = shared if shared is not None and shared.is_usable(self._clock()) else fresh
            is_shared = False
            # A renewal that had to wait longer is not tried: others before it could not be stored.
            if time.monotonic() - read_at <= LOCK_SECONDS:
                with suppress(Unavailable):
                    snapshot = write_alone(
                        renewal.db,
                        lambda tx: self._publish(tx, renewal.account_id, fresh),
                        wait_seconds=LOCK_SECONDS,
                    )
                    is_shared = True
            self._serve(renewal, snapshot, is_shared=is_shared)

    @contextmanager
    def _answering(self, renewal: _Renewal) -> Iterator[None]:
        """Whatever happens in the block, no reader waits for ever."""
        try:
            yield
        except BaseException as error:  # noqa: BLE001  # it is the readers' answer
            self._finish(renewal, is_shared=False)
            (renewal.stored if renewal.read.done() else renewal.read).set_exception(error)

    def _serve(self, renewal: _Renewal, snapshot: QueueSnapshot, *, is_shared: bool) -> None:
        self._cached[renewal.account_id] = snapshot
        self._finish(renewal, is_shared=is_shared)
        renewal.stored.set_result(snapshot)

    def _finish(self, renewal: _Renewal, *, is_shared: bool) -> None:
        with self._lock:
            del self._renewals[renewal.account_id]
            if is_shared:
                self._retry_at.pop(renewal.account_id, None)
            else:
                self._retry_at[renewal.account_id] = time.monotonic() + RETRY_SECONDS

    def _compute(self, tx: Tx, account_id: int) -> tuple[QueueSnapshot | None, QueueSnapshot]:
        """The shared snapshot, and the one to serve: the shared one while it is in time, else the present state."""
        now = self._clock()
        shared = find_snapshot(tx, account_id)
        if shared is not None and shared.covers(plan_ids_of(tx, account_id), now):
            return shared, shared
        # Whole seconds, as in cache_info, so that the values expire exactly when it says.
        taken_at = now.replace(microsecond=0)
        expires_at = taken_at + timedelta(seconds=self._ttl_seconds)
        records = counted(tx, account_id, shared.records if shared else None, now)
        state = queue_state(tx, account_id, now, self._rules, records.plans)
        queues = {plan: queue.info for plan, queue in state.items()}
        return shared, QueueSnapshot(queues, self._ttl_seconds, taken_at, expires_at, records)

    def _publish(self, tx: Tx, account_id: int, fresh: QueueSnapshot) -> QueueSnapshot:
        """Store the snapshot for all processes, unless another process was first; returns the stored one.

        A plan made since is added to a shared snapshot in time; the values of the other plans stay until it expires.
        """
        shared, now = find_snapshot(tx, account_id, lock=True), self._clock()
        logged: Collection[int] = ()
        if shared is not None and shared.in_time(now):
            if shared.covers(fresh.queues, now):
                return shared
            logged, fresh = shared.queues, replace(shared, queues=fresh.queues | shared.queues)
        save_snapshot(tx, account_id, fresh, logged=logged)
        return fresh


def _await(renewal: _Renewal, last: QueueSnapshot | None) -> QueueSnapshot | None:
    """The renewed values; else the last usable ones, else those that were read and not stored, else none."""
    limit, fresh = renewal.started + (FIRST_READ_SECONDS if last is None else READ_SECONDS), None
    try:
        fresh, read_at = renewal.read.result(max(0.0, limit - time.monotonic()))
        return renewal.stored.result(max(0.0, read_at + SAVE_SECONDS - time.monotonic()))
    except (TimeoutError, Unavailable):
        return last or fresh
