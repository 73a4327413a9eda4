"""The state of each plan's queue: the rows of its provider group become a pool of doctors, and that gives the estimate."""

from collections import Counter, defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from frontdesk.config import Config
from frontdesk.db import Tx
from frontdesk.queues.estimate.model import (
    NOBODY_ON_DUTY,
    Doctor,
    DoctorPool,
    DutySpan,
    OngoingVisit,
    PastVisit,
    PastWait,
)
from frontdesk.queues.estimate.waits import estimate_waits
from frontdesk.queues.model import EncounterState, EventType, PlanQueue, QueueInfo, QueueRules
from frontdesk.queues.store.queue_rows import QueueRows, WaitingLine, select_queue_rows

LONGEST_WAIT = timedelta(hours=24)  # an older wait is ignored: the event that ended it never came
RECENT = timedelta(hours=4)  # the time in which patients' patience and doctors' duties are looked at

DEFAULT_RULES = QueueRules()


def queue_rules(config: Config) -> QueueRules:
    return QueueRules(config.queue_default_visit_seconds, config.queue_longest_visit_seconds)


def queue_state(
    tx: Tx, account_id: int | None, now: datetime, rules: QueueRules = DEFAULT_RULES
) -> dict[int, PlanQueue]:
    """By plan id: the queues of the account's plans (None: of all accounts), from one consistent read, in seven statements."""
    rows = select_queue_rows(
        tx,
        account_id,
        joined_after=now - LONGEST_WAIT,
        started_after=now - timedelta(seconds=rules.longest_visit_seconds),
        recent_after=now - RECENT,
    )
    plans: defaultdict[int, list[int]] = defaultdict(list)
    for row in rows.plans:
        plans[row.provider_group_id].append(row.id)
    lengths = Counter(plan for line in rows.waiting.values() for plan in line.plan_ids)
    queues = {}
    for group, pool in _pools(rows, plans, now).items():
        waits = estimate_waits(pool, plans[group], rules.default_visit_seconds)
        for plan in plans[group]:
            info = QueueInfo(waits[plan], lengths[plan], waits[plan] != NOBODY_ON_DUTY)
            serving = [doctor for doctor in pool.doctors if doctor.serves(plan)]
            queues[plan] = PlanQueue(info, len(serving), sum(bool(doctor.visits) for doctor in serving))
    return {row.id: queues[row.id] for row in rows.plans}


def _pools(rows: QueueRows, groups: Collection[int], now: datetime) -> dict[int, DoctorPool]:
    """By provider group. Visits of doctors off duty don't count: those doctors take no further patient."""
    ongoing: defaultdict[tuple[int, str], list[OngoingVisit]] = defaultdict(list)
    for row in rows.in_progress:
        visit = OngoingVisit(row.plan_id, _ago(row.started_at, now))
        ongoing[row.provider_group_id, row.doctor].append(visit)
    doctors: defaultdict[int, list[Doctor]] = defaultdict(list)
    for row in rows.doctors:
        # The latest visits count, as many as the doctor can have: earlier ones must have ended, unreported.
        visits = tuple(ongoing[row.provider_group_id, row.doctor][: row.capacity])
        plans = None if row.plan_ids is None else frozenset(row.plan_ids)
        doctors[row.provider_group_id].append(Doctor(plans, row.capacity, visits))
    past, waits, duty = _past_visits(rows.visits, now), _past_waits(rows.waits), _duty_spans(rows, now)
    pools = {}
    for group in groups:
        line = rows.waiting.get(group, WaitingLine([], []))
        waited = [_ago(joined_at, now) for joined_at in line.joined_at]
        pools[group] = DoctorPool(
            doctors[group], line.plan_ids, past[group], waited, waits[group], duty[group]
        )
    return pools


def _past_visits(ended: Collection[Any], now: datetime) -> defaultdict[int, list[PastVisit]]:
    past: defaultdict[int, list[PastVisit]] = defaultdict(list)
    for row in ended:
        seconds = (row.ended_at - row.started_at).total_seconds()
        past[row.provider_group_id].append(PastVisit(row.plan_id, seconds, _ago(row.ended_at, now)))
    return past


def _past_waits(over: Collection[Any]) -> defaultdict[int, list[PastWait]]:
    """Waits that ended with a doctor or with leaving; the end of a visit without a start says nothing about the wait."""
    waits: defaultdict[int, list[PastWait]] = defaultdict(list)
    for row in over:
        left = row.state == EncounterState.LEFT
        until = row.ended_at if left else row.started_at
        if until is not None:
            waits[row.provider_group_id].append(PastWait(_ago(row.joined_at, until), left))
    return waits


def _duty_spans(rows: QueueRows, now: datetime) -> defaultdict[int, list[DutySpan]]:
    """When each doctor was on duty recently: from the events, and from the doctors on duty now."""
    since: dict[tuple[int, str], datetime | None] = {}
    spans: defaultdict[int, list[DutySpan]] = defaultdict(list)
    for row in rows.changes:
        doctor = (row.provider_group_id, row.doctor)
        if row.type == EventType.DOCTOR_ON_DUTY:
            since[doctor] = since.get(doctor) or row.at
        else:
            # Off duty without a recent start: the doctor was on duty all the time. A second `off` counts for nothing.
            start = since[doctor] if doctor in since else now - RECENT
            if start is not None:
                span = DutySpan(row.doctor, _ago(start, now), _ago(row.at, now))
                spans[row.provider_group_id].append(span)
            since[doctor] = None
    for row in rows.doctors:
        start = since.get((row.provider_group_id, row.doctor)) or row.on_at
        spans[row.provider_group_id].append(DutySpan(row.doctor, _ago(start, now), 0.0))
    return spans


def _ago(at: datetime, now: datetime) -> float:
    return max(0.0, (now - at).total_seconds())
