"""The picture of an account's queues that is served for `ttl` seconds, one and the same in every process.

Values of all plans are taken in ONE consistent read. The first process to find the shared row stale computes and stores
it; others take what was stored, so two processes never answer differently inside one ttl.
"""

import threading
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from frontdesk.clock import Clock
from frontdesk.db import Database, Tx
from frontdesk.db.races import write_together
from frontdesk.errors import Unavailable
from frontdesk.queues import store
from frontdesk.queues.estimate import NOBODY_ON_DUTY, Doctor, PastVisit, Pool, Visit, estimate_waits


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """One plan's queue. `estimated_wait_seconds` is -1 exactly when no doctor is on duty."""

    estimated_wait_seconds: int
    queue_length: int
    doctors_on_duty: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All queues of one account at `taken_at`; from `expires_at` on they are taken anew."""

    queues: dict[int, QueueInfo]
    ttl_seconds: int
    taken_at: datetime
    expires_at: datetime

    def covers(self, plan_ids: Collection[int], now: datetime) -> bool:
        """Whether it may be served: not expired, not from a future that a set-back clock left behind, no plan missing."""
        in_time = self.taken_at - timedelta(seconds=self.ttl_seconds) <= now < self.expires_at
        return in_time and all(plan_id in self.queues for plan_id in plan_ids)


class QueueSnapshots:
    """`read(db, account_id, plan_ids)` from any thread; a warm read touches no database."""

    def __init__(self, clock: Clock, ttl_seconds: int) -> None:
        self._clock = clock
        self._ttl_seconds = ttl_seconds
        self._kept: dict[int, Snapshot] = {}
        self._locks: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)

    def read(self, db: Database, account_id: int, plan_ids: Collection[int]) -> Snapshot:
        """The account's snapshot, covering at least these plans of it. Raises Unavailable."""
        kept = self._kept.get(account_id)
        if kept is not None and kept.covers(plan_ids, self._clock()):
            return kept
        with self._locks[account_id]:
            kept = self._kept.get(account_id)
            if kept is None or not kept.covers(plan_ids, self._clock()):
                kept = self._kept[account_id] = self._renew(db, account_id, plan_ids)
            return kept

    def _renew(self, db: Database, account_id: int, plan_ids: Collection[int]) -> Snapshot:
        shared, fresh = db.ask(lambda tx: self._look(tx, account_id, plan_ids))
        if shared is not None:
            return shared
        try:
            [shown] = write_together(
                db, [fresh], lambda tx, snapshots: [self._share(tx, account_id, snapshots[0])]
            )
        except Unavailable:
            return fresh  # a database that can't be written is no reason not to tell what was read
        return fresh if isinstance(shown, Exception) else shown

    def _share(self, tx: Tx, account_id: int, fresh: Snapshot) -> Snapshot:
        """Store the snapshot for all, unless another process was first: the one stored is everybody's."""
        shared = self._stored(tx, account_id, fresh.queues)
        if shared is not None:
            return shared
        queues = {str(id_): _packed(queue) for id_, queue in fresh.queues.items()}
        times = {"taken_at": fresh.taken_at, "expires_at": fresh.expires_at}
        store.save_snapshot(tx, account_id, **times, queues=queues)
        return fresh

    def _look(self, tx: Tx, account_id: int, plan_ids: Collection[int]) -> tuple[Snapshot | None, Snapshot]:
        now = self._clock()
        shared = self._stored(tx, account_id, plan_ids)
        queues = {} if shared else take_queues(tx, account_id, now)
        return shared, Snapshot(queues, self._ttl_seconds, now, now + timedelta(seconds=self._ttl_seconds))

    def _stored(self, tx: Tx, account_id: int, plan_ids: Collection[int]) -> Snapshot | None:
        row = store.find_snapshot(tx, account_id)
        if row is None:
            return None
        queues = {
            int(id_): QueueInfo(wait, length, on_duty) for id_, (wait, length, on_duty) in row.queues.items()
        }
        ttl_seconds = round((row.expires_at - row.taken_at).total_seconds())
        stored = Snapshot(queues, ttl_seconds, row.taken_at, row.expires_at)
        return stored if stored.covers(plan_ids, self._clock()) else None


def take_queues(tx: Tx, account_id: int, now: datetime) -> dict[int, QueueInfo]:
    """The queues of all the account's plans as they are now, from one consistent read, in five statements."""
    scene = store.select_scene(tx, account_id)
    waits: dict[int, int] = {}
    for group in {row.provider_group_id for row in scene.plans}:
        plan_ids = [row.id for row in scene.plans if row.provider_group_id == group]
        waits |= estimate_waits(_pool(scene, group, now), plan_ids)
    lengths: defaultdict[int, int] = defaultdict(int)
    for row in scene.waiting:
        lengths[row.plan_id] += 1
    return {
        row.id: QueueInfo(waits[row.id], lengths[row.id], waits[row.id] != NOBODY_ON_DUTY)
        for row in scene.plans
    }


def _pool(scene: store.Scene, group: int, now: datetime) -> Pool:
    visits: defaultdict[str, list[Visit]] = defaultdict(list)
    for row in scene.in_progress:
        if row.provider_group_id == group:
            visits[row.doctor].append(Visit(row.plan_id, (now - row.started_at).total_seconds()))
    return Pool(
        doctors=[
            Doctor(None, 1, tuple(visits[row.doctor]))
            for row in scene.doctors
            if row.provider_group_id == group
        ],
        waiting=[row.plan_id for row in scene.waiting if row.provider_group_id == group],
        past=[
            PastVisit(
                row.plan_id,
                (row.ended_at - row.started_at).total_seconds(),
                (now - row.ended_at).total_seconds(),
            )
            for row in scene.recent
            if row.provider_group_id == group
        ],
    )


def _packed(queue: QueueInfo) -> list[int | bool]:
    return [queue.estimated_wait_seconds, queue.queue_length, queue.doctors_on_duty]
