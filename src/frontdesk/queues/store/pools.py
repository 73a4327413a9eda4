"""Reads provider groups as pools of doctors: bounded and by index, however many patients and visits there ever were."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import select

from frontdesk.db import Tx
from frontdesk.plans.tables import plans
from frontdesk.queues.estimate.late_feed import usual_lateness
from frontdesk.queues.estimate.model import (
    Doctor,
    DoctorPool,
    DutySpan,
    OngoingVisit,
    PastVisit,
    PastWait,
)
from frontdesk.queues.model import EncounterState, EventType
from frontdesk.queues.store.pool_queries import (
    DUTY_EVENTS,
    ON_DUTY,
    ONGOING_VISITS,
    PAST_VISITS,
    PAST_WAITS,
    STARTS,
    WAITING,
)

LONGEST_WAIT = timedelta(hours=24)  # an older wait is ignored: the event that ended it never came
RECENT = timedelta(hours=4)  # the time in which patients' patience and doctors' duties are looked at
RECENT_WAITS = 200  # per provider group, for the patience of patients

Of = TypeVar("Of")
ByGroup = defaultdict[int, list[Of]]


def plans_by_group(tx: Tx, account_id: int | None) -> dict[int, list[int]]:
    """The account's plans (None: those of all accounts) by provider group."""
    query = select(*plans.c["provider_group_id", "id"]).order_by(plans.c.id)
    found: ByGroup[int] = defaultdict(list)
    for group, id_ in tx.execute(
        query if account_id is None else query.where(plans.c.account_id == account_id)
    ):
        found[group].append(id_)
    return found


def select_pools(
    tx: Tx, groups: Collection[int], now: datetime, longest_visit: timedelta
) -> dict[int, DoctorPool]:
    """The groups as they are now, in seven statements. The plans of all accounts count.

    Visits of doctors off duty don't count: those doctors take no further patient.
    """
    groups = list(groups)
    ongoing = _ongoing_visits(tx, groups, now - longest_visit, now)
    doctors: ByGroup[Doctor] = defaultdict(list)
    on_duty: dict[tuple[int, str], datetime] = {}
    for group, doctor, plan_ids, capacity, on_at in tx.execute(ON_DUTY, {"groups": groups}):
        on_duty[group, doctor] = on_at
        # The latest visits count, as many as the doctor can have: earlier ones must have ended, unreported.
        visits = tuple(ongoing[group, doctor][:capacity])
        served = None if plan_ids is None else frozenset(plan_ids)
        doctors[group].append(Doctor(served, capacity, visits, doctor, _ago(on_at, now)))
    lines, past = _waiting(tx, groups, now), _past_visits(tx, groups, now)
    waits, spans = _past_waits(tx, groups, now), _duty_spans(tx, groups, now, on_duty)
    late = _lateness(tx, groups, now - longest_visit) if ongoing else {}
    return {
        group: DoctorPool(
            doctors[group],
            lines[group][0],
            past[group],
            lines[group][1],
            waits[group],
            spans[group],
            usual_lateness(late.get(group, ())),
        )
        for group in groups
    }


def _lateness(
    tx: Tx, groups: Collection[int], since: datetime
) -> Mapping[int, Sequence[tuple[float, float]]]:
    """When the starts of the visits in progress arrived, and how many seconds late."""
    late: ByGroup[tuple[float, float]] = defaultdict(list)
    rows = tx.execute(STARTS, {"groups": groups, "since": since})
    for group, started_at, at, received_at in rows:
        if at == started_at:  # else the visit was handed over
            late[group].append((received_at.timestamp(), _ago(at, received_at)))
    return late


def _ongoing_visits(
    tx: Tx, groups: Collection[int], since: datetime, now: datetime
) -> defaultdict[tuple[int, str], list[OngoingVisit]]:
    """By provider group and doctor, the latest first."""
    visits: defaultdict[tuple[int, str], list[OngoingVisit]] = defaultdict(list)
    rows = tx.execute(ONGOING_VISITS, {"groups": groups, "since": since})
    for group, doctor, plan_id, started_at, joined_at in rows:
        waited = _waited(joined_at, started_at)
        visits[group, doctor].append(OngoingVisit(plan_id, _ago(started_at, now), waited))
    return visits


def _waiting(
    tx: Tx, groups: Collection[int], now: datetime
) -> defaultdict[int, tuple[list[int], list[float]]]:
    """The plan of each waiting patient and the seconds waited, in order of arrival."""
    lines: defaultdict[int, tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
    for group, ids, times in tx.execute(WAITING, {"groups": groups, "since": now - LONGEST_WAIT}):
        waited = [_ago(datetime.fromisoformat(joined_at), now) for joined_at in times.split(",")]
        lines[group] = (list(map(int, ids.split(","))), waited)
    return lines


def _past_visits(tx: Tx, groups: Collection[int], now: datetime) -> ByGroup[PastVisit]:
    """The latest visits of each plan."""
    visits: ByGroup[PastVisit] = defaultdict(list)
    rows = tx.execute(PAST_VISITS, {"groups": groups})
    for group, plan_id, started_at, ended_at, doctor, joined_at in rows:
        seconds, waited = (ended_at - started_at).total_seconds(), _waited(joined_at, started_at)
        visits[group].append(PastVisit(plan_id, seconds, _ago(ended_at, now), doctor, waited))
    return visits


def _past_waits(tx: Tx, groups: Collection[int], now: datetime) -> ByGroup[PastWait]:
    """Waits that ended with a doctor or with leaving; the end of a visit without a start says nothing about the wait."""
    waits: ByGroup[PastWait] = defaultdict(list)
    values = {"groups": groups, "since": now - RECENT, "most": RECENT_WAITS * len(groups)}
    for group, state, joined_at, started_at, ended_at in tx.execute(PAST_WAITS, values):
        left = state == EncounterState.LEFT
        until = ended_at if left else started_at
        if until is not None:
            waits[group].append(PastWait(_ago(joined_at, until), left))
    return waits


def _duty_spans(
    tx: Tx, groups: Collection[int], now: datetime, on_duty: Mapping[tuple[int, str], datetime]
) -> ByGroup[DutySpan]:
    """When each doctor was on duty recently: from the events, and from the doctors on duty now."""
    since: dict[tuple[int, str], datetime | None] = {}
    spans: ByGroup[DutySpan] = defaultdict(list)
    for group, doctor, type_, at in tx.execute(DUTY_EVENTS, {"groups": groups, "since": now - RECENT}):
        if type_ == EventType.DOCTOR_ON_DUTY:
            since[group, doctor] = since.get((group, doctor)) or at
        else:
            # Off duty without a recent start: the doctor was on duty all the time. A second `off` counts for nothing.
            start = since.get((group, doctor), now - RECENT)
            if start is not None:
                spans[group].append(DutySpan(doctor, _ago(start, now), _ago(at, now)))
            since[group, doctor] = None
    for (group, doctor), on_at in on_duty.items():
        spans[group].append(DutySpan(doctor, _ago(since.get((group, doctor)) or on_at, now), 0.0))
    return spans


def _waited(joined_at: datetime | None, started_at: datetime) -> float | None:
    return None if joined_at is None else _ago(joined_at, started_at)


def _ago(at: datetime, now: datetime) -> float:
    return max(0.0, (now - at).total_seconds())
