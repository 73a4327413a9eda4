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
from frontdesk.queues.encounters import EncounterState
from frontdesk.queues.estimate import DEFAULT_HANDLE_SECONDS, NOBODY_ON_DUTY, estimate_waits
from frontdesk.queues.events import EventType
from frontdesk.queues.pool import Doctor, DutySpan, PastVisit, PastWait, Pool, Visit
from frontdesk.queues.store.scene import QueueRows, Since, WaitingLine, select_scene

# A patient whose end of waiting was never told does not wait for ever.
LONGEST_WAIT = timedelta(hours=24)
LATELY = timedelta(hours=4)  # what is looked at to see how long patients stay, and how doctors come and go


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
class PlanQueue:
    """A plan's queue with what people look at besides: how many doctors serve it, and how many of them are with a patient."""

    info: QueueInfo
    doctors: int
    in_visit: int


def take_queues(tx: Tx, account_id: int, now: datetime, rules: QueueRules = USUAL) -> dict[int, QueueInfo]:
    """The queues of all the account's plans as they are now, from one consistent read, in seven statements."""
    return {plan: line.info for plan, line in take_lines(tx, account_id, now, rules).items()}


def take_lines(
    tx: Tx, account_id: int | None, now: datetime, rules: QueueRules = USUAL
) -> dict[int, PlanQueue]:
    """The same with what a board shows; of every account's plans when `account_id` is None."""
    since = Since(
        joined=now - LONGEST_WAIT,
        started=now - timedelta(seconds=rules.longest_visit_seconds),
        lately=now - LATELY,
    )
    scene = select_scene(tx, account_id, since)
    plans: defaultdict[int, list[int]] = defaultdict(list)
    for row in scene.plans:
        plans[row.provider_group_id].append(row.id)
    lengths = Counter(plan for line in scene.waiting.values() for plan in line.plan_ids)
    lines = {}
    for group, pool in _pools(scene, now).items():
        waits = estimate_waits(pool, plans[group], rules.default_visit_seconds)
        for plan in plans[group]:
            info = QueueInfo(waits[plan], lengths[plan], waits[plan] != NOBODY_ON_DUTY)
            lines[plan] = _line(pool, plan, info)
    return {row.id: lines[row.id] for row in scene.plans}


def _line(pool: Pool, plan: int, info: QueueInfo) -> PlanQueue:
    serving = [doctor for doctor in pool.doctors if doctor.plan_ids is None or plan in doctor.plan_ids]
    return PlanQueue(info, len(serving), sum(bool(doctor.visits) for doctor in serving))


def _pools(scene: QueueRows, now: datetime) -> dict[int, Pool]:
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
    groups = {row.provider_group_id for row in scene.plans}
    past, waits, duty = _past(scene.recent, now), _waits(scene.waits), _duty(scene, now)
    pools = {}
    for group in groups:
        line = scene.waiting.get(group, WaitingLine([], []))
        pools[group] = Pool(
            doctors[group],
            line.plan_ids,
            past[group],
            waited=[max(0.0, (now - joined_at).total_seconds()) for joined_at in line.joined_at],
            past_waits=waits[group],
            duty=duty[group],
        )
    return pools


def _past(recent: Collection[Any], now: datetime) -> defaultdict[int, list[PastVisit]]:
    past: defaultdict[int, list[PastVisit]] = defaultdict(list)
    for row in recent:
        seconds = (row.ended_at - row.started_at).total_seconds()
        ago = max(0.0, (now - row.ended_at).total_seconds())
        past[row.provider_group_id].append(PastVisit(row.plan_id, seconds, ago))
    return past


def _waits(over: Collection[Any]) -> defaultdict[int, list[PastWait]]:
    """Waits that ended with a doctor or without; an end of the visit alone says nothing of the wait."""
    waits: defaultdict[int, list[PastWait]] = defaultdict(list)
    for row in over:
        left = row.state == EncounterState.LEFT
        until = row.ended_at if left else row.started_at
        if until is not None:
            seconds = max(0.0, (until - row.joined_at).total_seconds())
            waits[row.provider_group_id].append(PastWait(seconds, left))
    return waits


def _duty(scene: QueueRows, now: datetime) -> defaultdict[int, list[DutySpan]]:
    """Who was on duty when, lately: from the comings and goings, and from who is on duty now."""
    since: dict[tuple[int, str], datetime | None] = {}
    spans: defaultdict[int, list[DutySpan]] = defaultdict(list)
    for row in scene.changes:
        who = (row.provider_group_id, row.doctor)
        if row.type == EventType.DOCTOR_ON_DUTY:
            since[who] = since.get(who) or row.at
        else:
            # Who goes without having come lately was there all the time; who goes twice has gone already.
            came = since[who] if who in since else now - LATELY
            if came is not None:
                spans[row.provider_group_id].append(DutySpan(row.doctor, _ago(came, now), _ago(row.at, now)))
            since[who] = None
    for row in scene.doctors:
        came = since.get((row.provider_group_id, row.doctor)) or row.on_at
        spans[row.provider_group_id].append(DutySpan(row.doctor, _ago(came, now), 0.0))
    return spans


def _ago(at: datetime, now: datetime) -> float:
    return max(0.0, (now - at).total_seconds())
