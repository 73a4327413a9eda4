"""Reads provider groups as pools of doctors: bounded and by index, however many patients and visits
there ever were.

The statements are built once: to build them took longer than to run them. Their parameters:
`groups`, `since` (the earliest time that counts) and `most` rows.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    String,
    and_,
    bindparam,
    cast,
    func,
    literal,
    select,
)

from frontdesk.db import Tx
from frontdesk.db.sets import SameKey, find_set
from frontdesk.plans.tables import plans, provider_groups
from frontdesk.queues.estimate.late_feed import KNOWN_STARTS, usual_lateness
from frontdesk.queues.estimate.model import (
    KNOWN_VISITS,
    RECENT_SECONDS,
    Doctor,
    DoctorPool,
    DutySpan,
    OngoingVisit,
    PastVisit,
    PastWait,
)
from frontdesk.queues.model import (
    KNOWN_WAITS,
    LONGEST_VISIT,
    LONGEST_WAIT,
    EncounterState,
    EventType,
)
from frontdesk.queues.tables import duties, encounters, queue_events
from frontdesk.reach import Reach

RECENT = timedelta(seconds=RECENT_SECONDS)

Of = TypeVar("Of")
ByGroup = defaultdict[int, list[Of]]

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_OVER = (EncounterState.IN_VISIT.value, EncounterState.ENDED.value, EncounterState.LEFT.value)
_GROUPS: BindParameter[Any] = bindparam("groups", expanding=True)
_SINCE: BindParameter[Any] = bindparam("since")

_encounter = encounters.c
_event = queue_events.c
_duty = duties.c


def _is_now(state: EncounterState) -> ColumnElement[bool]:
    """The state in the text of the statement: with a parameter PostgreSQL 15 did not expect that
    few encounters are open, and read every encounter.
    """
    return _encounter.state == bindparam(None, state.value, literal_execute=True)


def _is_visit(columns: Any) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return columns.state == EncounterState.ENDED.value, columns.started_at.is_not(None)


_OF_GROUPS = _encounter.provider_group_id.in_(_GROUPS)

ON_DUTY = select(*_duty["provider_group_id", "doctor", "plan_ids", "capacity", "on_at"]).where(
    _duty.provider_group_id.in_(_GROUPS), _duty.on_duty
)

# When the start of the visit was reported; of one that was handed over, its first.
_reported_at = (
    select(func.min(_event.received_at))
    .where(
        SameKey(_event.visit, _encounter.visit),
        SameKey(_event.provider_group_id, _encounter.provider_group_id),
        _event.type == EventType.VISIT_STARTED.value,
        _event.at == _encounter.started_at,
    )
    .correlate(encounters)
    .scalar_subquery()
)
# The latest first.
ONGOING_VISITS = (
    select(*_encounter["provider_group_id", "doctor", "plan_id", "started_at", "joined_at"])
    .add_columns(_reported_at)
    .where(_OF_GROUPS, _is_now(EncounterState.IN_VISIT), _encounter.started_at > _SINCE)
    .order_by(_encounter.started_at.desc(), _encounter.visit)
)

# One text per group, in order of arrival: to fetch ten thousand rows takes longer than all the
# rest.
WAITING = (
    select(
        _encounter.provider_group_id,
        *(
            func.aggregate_strings(cast(column, String), ",").aggregate_order_by(
                _encounter.joined_at, _encounter.visit
            )
            for column in (_encounter.plan_id, _encounter.joined_at)
        ),
    )
    .where(_OF_GROUPS, _is_now(EncounterState.WAITING), _encounter.joined_at > _SINCE)
    .group_by(_encounter.provider_group_id)
)

_older = encounters.alias("older").c
_oldest = (
    select(_older.ended_at)
    .where(_older.plan_id == plans.c.id, *_is_visit(_older))
    .order_by(_older.ended_at.desc())
    .limit(1)
    .offset(KNOWN_VISITS - 1)
    .scalar_subquery()
)
# Materialized: else PostgreSQL may look for the oldest visit of a plan once for each row that is
# joined to it.
_since = (
    select(
        plans.c.id,
        func.coalesce(_oldest, literal(_BEGINNING, _encounter.ended_at.type)).label("at"),
    )
    .where(plans.c.provider_group_id.in_(_GROUPS))
    .cte("since")
    .prefix_with("MATERIALIZED")
)
# At most KNOWN_VISITS times the number of plans.
PAST_VISITS = (
    select(
        *_encounter["provider_group_id", "plan_id", "started_at", "ended_at", "doctor", "joined_at"]
    )
    .join(
        _since, and_(SameKey(_encounter.plan_id, _since.c.id), _encounter.ended_at >= _since.c.at)
    )
    .where(*_is_visit(_encounter))
)

PAST_WAITS = (
    select(*_encounter["provider_group_id", "state", "joined_at", "started_at", "ended_at"])
    .where(_OF_GROUPS, _encounter.state.in_(_OVER), _encounter.joined_at >= _SINCE)
    .order_by(_encounter.joined_at.desc())
    .limit(bindparam("most"))
)

# At one instant a shift ends before the next begins.
DUTY_EVENTS = (
    select(*_event["provider_group_id", "doctor", "type", "at"])
    .where(_event.visit.is_(None), _event.provider_group_id.in_(_GROUPS), _event.at >= _SINCE)
    .order_by(_event.at, _event.type)
)


def plans_by_group(tx: Tx, reach: Reach) -> dict[int, list[int]]:
    """The plans within reach by provider group."""
    query = select(*plans.c["provider_group_id", "id"]).order_by(plans.c.id)
    if reach.account_id is not None:
        query = query.where(plans.c.account_id == reach.account_id)
    found: ByGroup[int] = defaultdict(list)
    for group, id_ in tx.execute(query):
        found[group].append(id_)
    return found


def list_feeds(tx: Tx) -> dict[int, datetime]:
    """When queue events last came for an account's plans, by account."""
    own_group = SameKey(provider_groups.c.id, plans.c.provider_group_id)
    query = select(plans.c.account_id, func.max(provider_groups.c.fed_at)).join(
        provider_groups, own_group
    )
    return {
        account: at
        for account, at in tx.execute(query.group_by(plans.c.account_id))
        if at is not None
    }


def find_fed(tx: Tx, groups: Collection[int]) -> dict[int, datetime]:
    """When queue events last came for the provider groups, by group; without those that never had
    any.
    """
    found = find_set(tx, provider_groups, "id", groups, columns=("id", "fed_at")).rows
    # SQLite keeps times as text.
    return {
        row["id"]: datetime.fromisoformat(str(row["fed_at"]))
        for row in found
        if row["fed_at"] is not None
    }


def select_pools(tx: Tx, groups: Collection[int], now: datetime) -> dict[int, DoctorPool]:
    """The groups as they are now, in six statements. The plans of all accounts count.

    Visits of doctors off duty don't count: those doctors take no further patient.
    """
    groups = list(groups)
    ongoing, late = _ongoing_visits(tx, groups, now)
    doctors: ByGroup[Doctor] = defaultdict(list)
    on_duty: dict[tuple[int, str], datetime] = {}
    for group, doctor, plan_ids, capacity, on_at in tx.execute(ON_DUTY, {"groups": groups}):
        on_duty[group, doctor] = on_at
        # The latest visits count, as many as the doctor can have: earlier ones must have ended,
        # unreported.
        visits = tuple(ongoing[group, doctor][:capacity])
        served = None if plan_ids is None else frozenset(plan_ids)
        doctors[group].append(Doctor(served, capacity, visits, doctor, _ago(on_at, now)))
    lines = _waiting(tx, groups, now)
    past = _past_visits(tx, groups, now)
    waits = _past_waits(tx, groups, now)
    spans = _duty_spans(tx, groups, now, on_duty)
    return {
        group: DoctorPool(
            doctors[group],
            lines[group][0],
            past[group],
            lines[group][1],
            waits[group],
            spans[group],
            usual_lateness(late[group]),
        )
        for group in groups
    }


def _ongoing_visits(
    tx: Tx, groups: Collection[int], now: datetime
) -> tuple[defaultdict[tuple[int, str], list[OngoingVisit]], ByGroup[tuple[float, float]]]:
    """By provider group and doctor, the latest first; and by group, when the latest starts arrived,
    and how many seconds late.
    """
    visits: defaultdict[tuple[int, str], list[OngoingVisit]] = defaultdict(list)
    late: ByGroup[tuple[float, float]] = defaultdict(list)
    rows = tx.execute(ONGOING_VISITS, {"groups": groups, "since": now - LONGEST_VISIT})
    for group, doctor, plan_id, started_at, joined_at, reported_at in rows:
        waited = _waited(joined_at, started_at)
        visits[group, doctor].append(OngoingVisit(plan_id, _ago(started_at, now), waited))
        if reported_at is not None and len(late[group]) < KNOWN_STARTS:
            late[group].append((reported_at.timestamp(), _ago(started_at, reported_at)))
    return visits, late


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
    visits: ByGroup[PastVisit] = defaultdict(list)
    rows = tx.execute(PAST_VISITS, {"groups": groups})
    for group, plan_id, started_at, ended_at, doctor, joined_at in rows:
        seconds = (ended_at - started_at).total_seconds()
        waited = _waited(joined_at, started_at)
        visits[group].append(PastVisit(plan_id, seconds, _ago(ended_at, now), doctor, waited))
    return visits


def _past_waits(tx: Tx, groups: Collection[int], now: datetime) -> ByGroup[PastWait]:
    """Waits that ended with a doctor or with leaving; a visit without a start has no wait."""
    waits: ByGroup[PastWait] = defaultdict(list)
    values = {"groups": groups, "since": now - RECENT, "most": KNOWN_WAITS * len(groups)}
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
    for group, doctor, type_, at in tx.execute(
        DUTY_EVENTS, {"groups": groups, "since": now - RECENT}
    ):
        if type_ == EventType.DOCTOR_ON_DUTY:
            since[group, doctor] = since.get((group, doctor)) or at
        else:
            # Off duty without a recent start: the doctor was on duty all the time. A second `off`
            # counts for nothing.
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
