"""From the rows of a provider group's encounters and duties to each plan's queue: what is forgotten, who counts, who is free.

It estimates nothing itself and keeps nothing; a read is one consistent state.
"""

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from frontdesk.config import Config
from frontdesk.db import Tx
from frontdesk.queues import store
from frontdesk.queues.estimate import (
    DEFAULT_HANDLE_SECONDS,
    NOBODY_ON_DUTY,
    Doctor,
    PastVisit,
    Pool,
    Visit,
    estimate_waits,
)

# A patient whose end of waiting was never told does not wait for ever.
LONGEST_WAIT = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class QueueRules:
    """What is taken for usual where the events tell nothing: a plan's first visits, a visit whose end never came."""

    default_visit_seconds: float = DEFAULT_HANDLE_SECONDS
    longest_visit_seconds: int = 4 * 3600


USUAL = QueueRules()


def queue_rules(config: Config) -> QueueRules:
    return QueueRules(config.queue_default_visit_seconds, config.queue_longest_visit_seconds)


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """One plan's queue. `estimated_wait_seconds` is -1 exactly when no doctor is on duty."""

    estimated_wait_seconds: int
    queue_length: int
    doctors_on_duty: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A plan's queue with what people look at besides: how many doctors serve it, and how many of them are with a patient."""

    info: QueueInfo
    doctors: int
    in_visit: int


def take_queues(tx: Tx, account_id: int, now: datetime, rules: QueueRules = USUAL) -> dict[int, QueueInfo]:
    """The queues of all the account's plans as they are now, from one consistent read, in five statements."""
    return {plan: line.info for plan, line in take_lines(tx, account_id, now, rules).items()}


def take_lines(tx: Tx, account_id: int | None, now: datetime, rules: QueueRules = USUAL) -> dict[int, Line]:
    """The same with what a board shows; of every account's plans when `account_id` is None."""
    scene = store.select_scene(
        tx,
        account_id,
        joined_after=now - LONGEST_WAIT,
        started_after=now - timedelta(seconds=rules.longest_visit_seconds),
    )
    plans: defaultdict[int, list[int]] = defaultdict(list)
    for row in scene.plans:
        plans[row.provider_group_id].append(row.id)
    lengths = Counter(plan for waiting in scene.waiting.values() for plan in waiting)
    lines = {}
    for group, pool in _pools(scene, now).items():
        waits = estimate_waits(pool, plans[group], rules.default_visit_seconds)
        for plan in plans[group]:
            info = QueueInfo(waits[plan], lengths[plan], waits[plan] != NOBODY_ON_DUTY)
            lines[plan] = _line(pool, plan, info)
    return {row.id: lines[row.id] for row in scene.plans}


def _line(pool: Pool, plan: int, info: QueueInfo) -> Line:
    serving = [doctor for doctor in pool.doctors if doctor.plan_ids is None or plan in doctor.plan_ids]
    return Line(info, len(serving), sum(bool(doctor.visits) for doctor in serving))


def _pools(scene: store.Scene, now: datetime) -> dict[int, Pool]:
    """By provider group. Visits of doctors who are off duty don't count: those doctors take nobody after them."""
    in_progress: defaultdict[tuple[int, str], list[Visit]] = defaultdict(list)
    for row in scene.in_progress:
        elapsed = max(0.0, (now - row.started_at).total_seconds())
        in_progress[row.provider_group_id, row.doctor].append(Visit(row.plan_id, elapsed))
    doctors: defaultdict[int, list[Doctor]] = defaultdict(list)
    for row in scene.doctors:
        # The latest visits count, as many as the doctor can have: what began before them must have ended, untold.
        visits = tuple(in_progress[row.provider_group_id, row.doctor][: row.capacity])
        plans = None if row.plan_ids is None else frozenset(row.plan_ids)
        doctors[row.provider_group_id].append(Doctor(plans, row.capacity, visits))
    past = _past(scene.recent, now)
    groups = {row.provider_group_id for row in scene.plans}
    return {group: Pool(doctors[group], scene.waiting.get(group, ()), past[group]) for group in groups}


def _past(recent: Collection[Any], now: datetime) -> defaultdict[int, list[PastVisit]]:
    past: defaultdict[int, list[PastVisit]] = defaultdict(list)
    for row in recent:
        seconds = (row.ended_at - row.started_at).total_seconds()
        ago = max(0.0, (now - row.ended_at).total_seconds())
        past[row.provider_group_id].append(PastVisit(row.plan_id, seconds, ago))
    return past
