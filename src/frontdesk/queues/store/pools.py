"""Reads provider groups as pools of doctors: bounded and by index, however many patients and visits there ever were."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, String, and_, bindparam, cast, func, literal, select

from frontdesk.db import Tx
from frontdesk.db.set_sql import SameKey
from frontdesk.plans.tables import plans
from frontdesk.queues.estimate.late_feed import KNOWN_STARTS, median_lateness
from frontdesk.queues.estimate.model import (
    KNOWN_VISITS,
    Doctor,
    DoctorPool,
    DutySpan,
    OngoingVisit,
    PastVisit,
    PastWait,
)
from frontdesk.queues.model import EncounterState, EventType
from frontdesk.queues.tables import duties, encounters, queue_events

LONGEST_WAIT = timedelta(hours=24)  # an older wait is ignored: the event that ended it never came
RECENT = timedelta(hours=4)  # the time in which patients' patience and doctors' duties are looked at
RECENT_WAITS = 200  # per provider group, for the patience of patients
_OVER = (EncounterState.IN_VISIT.value, EncounterState.ENDED.value, EncounterState.LEFT.value)
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)

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
    query = select(*duties.c["provider_group_id", "doctor", "plan_ids", "capacity", "on_at"])
    query = query.where(duties.c.provider_group_id.in_(groups), duties.c.on_duty)
    ongoing = _ongoing_visits(tx, groups, now, longest_visit)
    doctors: ByGroup[Doctor] = defaultdict(list)
    on_duty: dict[tuple[int, str], datetime] = {}
    for group, doctor, plan_ids, capacity, on_at in tx.execute(query):
        on_duty[group, doctor] = on_at
        # The latest visits count, as many as the doctor can have: earlier ones must have ended, unreported.
        visits = tuple(ongoing[group, doctor][:capacity])
        served = None if plan_ids is None else frozenset(plan_ids)
        doctors[group].append(Doctor(served, capacity, visits, doctor, _ago(on_at, now)))
    lines, past = _waiting(tx, groups, now), _past_visits(tx, groups, now)
    waits, spans = _past_waits(tx, groups, now), _duty_spans(tx, groups, now, on_duty)
    late = _lateness(tx, groups, now, longest_visit) if ongoing else {}
    return {
        group: DoctorPool(
            doctors[group],
            lines[group][0],
            past[group],
            lines[group][1],
            waits[group],
            spans[group],
            median_lateness(late.get(group, ())),
        )
        for group in groups
    }


def _lateness(
    tx: Tx, groups: Collection[int], now: datetime, longest: timedelta
) -> Mapping[int, Sequence[float]]:
    """For how many seconds the starts of the visits in progress were not known, the latest KNOWN_STARTS of each group."""
    columns, event = encounters.c, queue_events.c
    place = func.row_number().over(partition_by=columns.provider_group_id, order_by=columns.started_at.desc())
    latest = (
        select(*columns["provider_group_id", "visit", "started_at"], place.label("place"))
        .where(
            columns.provider_group_id.in_(groups),
            _is_now(EncounterState.IN_VISIT),
            columns.started_at > now - longest,
        )
        .subquery("latest")
    )
    same = and_(
        SameKey(event.visit, latest.c.visit),
        SameKey(event.provider_group_id, latest.c.provider_group_id),
        event.type == EventType.VISIT_STARTED.value,
    )
    known = latest.c
    query = select(known.provider_group_id, known.started_at, event.at, event.received_at)
    late: ByGroup[float] = defaultdict(list)
    for group, started_at, at, received_at in tx.execute(
        query.join(queue_events, same).where(known.place <= KNOWN_STARTS)
    ):
        if at == started_at:  # else the visit was handed over
            late[group].append(_ago(at, received_at))
    return late


def _ongoing_visits(
    tx: Tx, groups: Collection[int], now: datetime, longest: timedelta
) -> defaultdict[tuple[int, str], list[OngoingVisit]]:
    """By provider group and doctor, the latest first."""
    columns = encounters.c
    query = select(*columns["provider_group_id", "doctor", "plan_id", "started_at", "joined_at"]).where(
        columns.provider_group_id.in_(groups),
        _is_now(EncounterState.IN_VISIT),
        columns.started_at > now - longest,
    )
    visits: defaultdict[tuple[int, str], list[OngoingVisit]] = defaultdict(list)
    for group, doctor, plan_id, started_at, joined_at in tx.execute(
        query.order_by(columns.started_at.desc(), columns.visit)
    ):
        visits[group, doctor].append(
            OngoingVisit(plan_id, _ago(started_at, now), _waited(joined_at, started_at))
        )
    return visits


def _waiting(
    tx: Tx, groups: Collection[int], now: datetime
) -> defaultdict[int, tuple[list[int], list[float]]]:
    """The plan of each waiting patient and the seconds waited, in order of arrival.

    One text per group is read: to fetch ten thousand rows takes longer than all the rest.
    """
    columns = encounters.c
    texts = [
        func.aggregate_strings(cast(column, String), ",").aggregate_order_by(columns.joined_at, columns.visit)
        for column in (columns.plan_id, columns.joined_at)
    ]
    query = select(columns.provider_group_id, *texts).where(
        columns.provider_group_id.in_(groups),
        _is_now(EncounterState.WAITING),
        columns.joined_at > now - LONGEST_WAIT,
    )
    lines: defaultdict[int, tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
    for group, ids, times in tx.execute(query.group_by(columns.provider_group_id)):
        waited = [_ago(datetime.fromisoformat(joined_at), now) for joined_at in times.split(",")]
        lines[group] = (list(map(int, ids.split(","))), waited)
    return lines


def _past_visits(tx: Tx, groups: Collection[int], now: datetime) -> ByGroup[PastVisit]:
    """The latest visits of each plan: at most KNOWN_VISITS times the number of plans, however many there ever were."""
    columns, older = encounters.c, encounters.alias("older").c
    oldest = (
        select(older.ended_at)
        .where(older.plan_id == plans.c.id, *_is_visit(older))
        .order_by(older.ended_at.desc())
        .limit(1)
        .offset(KNOWN_VISITS - 1)
        .scalar_subquery()
    )
    since = (
        select(plans.c.id, func.coalesce(oldest, literal(_BEGINNING, columns.ended_at.type)).label("at"))
        .where(plans.c.provider_group_id.in_(groups))
        .subquery("since")
    )
    query = (
        select(*columns["provider_group_id", "plan_id", "started_at", "ended_at", "doctor", "joined_at"])
        .join(since, and_(SameKey(columns.plan_id, since.c.id), columns.ended_at >= since.c.at))
        .where(*_is_visit(columns))
    )
    visits: ByGroup[PastVisit] = defaultdict(list)
    for group, plan_id, started_at, ended_at, doctor, joined_at in tx.execute(query):
        seconds, waited = (ended_at - started_at).total_seconds(), _waited(joined_at, started_at)
        visits[group].append(PastVisit(plan_id, seconds, _ago(ended_at, now), doctor, waited))
    return visits


def _is_now(state: EncounterState) -> ColumnElement[bool]:
    """In the text of the statement: a plan for any state takes the few that are not over for as many as all others, and
    PostgreSQL 15 read every encounter."""
    return encounters.c.state == bindparam(None, state.value, literal_execute=True)


def _is_visit(columns: Any) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return columns.state == EncounterState.ENDED.value, columns.started_at.is_not(None)


def _past_waits(tx: Tx, groups: Collection[int], now: datetime) -> ByGroup[PastWait]:
    """Waits that ended with a doctor or with leaving; the end of a visit without a start says nothing about the wait."""
    columns = encounters.c
    query = select(*columns["provider_group_id", "state", "joined_at", "started_at", "ended_at"]).where(
        columns.provider_group_id.in_(groups), columns.state.in_(_OVER), columns.joined_at >= now - RECENT
    )
    waits: ByGroup[PastWait] = defaultdict(list)
    for group, state, joined_at, started_at, ended_at in tx.execute(
        query.order_by(columns.joined_at.desc()).limit(RECENT_WAITS * len(groups))
    ):
        left = state == EncounterState.LEFT
        until = ended_at if left else started_at
        if until is not None:
            waits[group].append(PastWait(_ago(joined_at, until), left))
    return waits


def _duty_spans(
    tx: Tx, groups: Collection[int], now: datetime, on_duty: Mapping[tuple[int, str], datetime]
) -> ByGroup[DutySpan]:
    """When each doctor was on duty recently: from the events, and from the doctors on duty now."""
    columns = queue_events.c
    query = select(*columns["provider_group_id", "doctor", "type", "at"]).where(
        columns.visit.is_(None), columns.provider_group_id.in_(groups), columns.at >= now - RECENT
    )
    since: dict[tuple[int, str], datetime | None] = {}
    spans: ByGroup[DutySpan] = defaultdict(list)
    # At one instant a shift ends before the next begins.
    for group, doctor, type_, at in tx.execute(query.order_by(columns.at, columns.type)):
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
