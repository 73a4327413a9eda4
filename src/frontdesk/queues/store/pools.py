"""Reads provider groups as pools of doctors: bounded and by index, however many patients and visits
there ever were.

The statements are built once: to build them took longer than to run them. Their parameters:
`groups`, `now`, `since` and `latest` (the earliest and the latest time that count) and `most` rows.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, String, and_, bindparam, case, cast, func, literal, select

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
from frontdesk.queues.store.duties import DUTY_EVENTS, GROUPS, NOW, ON_DUTY, SINCE
from frontdesk.queues.store.events import MOST_AHEAD, is_in_line
from frontdesk.queues.tables import encounters, queue_events
from frontdesk.reach import Reach

RECENT = timedelta(seconds=RECENT_SECONDS)

Of = TypeVar("Of")
ByGroup = defaultdict[int, list[Of]]

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_OVER = (EncounterState.IN_VISIT.value, EncounterState.ENDED.value, EncounterState.LEFT.value)

_encounter = encounters.c
_event = queue_events.c


def _is_now(state: EncounterState) -> ColumnElement[bool]:
    """The state in the text of the statement: with a parameter PostgreSQL 15 did not expect that
    few encounters are open, and read every encounter.
    """
    return _encounter.state == bindparam(None, state.value, literal_execute=True)


def _is_visit(columns: Any) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return columns.state == EncounterState.ENDED.value, columns.started_at.is_not(None)


_OF_GROUPS = _encounter.provider_group_id.in_(GROUPS)


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
    select(*_encounter["provider_group_id", "doctor", "plan_id", "patient_class"])
    .add_columns(*_encounter["started_at", "joined_at"], _reported_at)
    .where(_OF_GROUPS, _is_now(EncounterState.IN_VISIT), _encounter.started_at > SINCE)
    .order_by(_encounter.started_at.desc(), _encounter.visit)
)

# The plan alone, or `plan/class/priority` of a patient that has a class or a priority.
_terms = case(
    (
        and_(_encounter.patient_class.is_(None), _encounter.priority == 0),
        cast(_encounter.plan_id, String),
    ),
    else_=cast(_encounter.plan_id, String)
    + "/"
    + func.coalesce(_encounter.patient_class, "")
    + "/"
    + cast(_encounter.priority, String),
)
# One text per group, in order of arrival: to fetch ten thousand rows takes longer than all the
# rest.
WAITING = (
    select(
        _encounter.provider_group_id,
        *(
            func.aggregate_strings(text, ",").aggregate_order_by(
                _encounter.joined_at, _encounter.visit
            )
            for text in (_terms, cast(_encounter.joined_at, String))
        ),
    )
    .where(
        _OF_GROUPS,
        _is_now(EncounterState.WAITING),
        _encounter.joined_at > SINCE,
        is_in_line(NOW, bindparam("latest")),
    )
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
    .where(plans.c.provider_group_id.in_(GROUPS))
    .cte("since")
    .prefix_with("MATERIALIZED")
)
# At most KNOWN_VISITS times the number of plans.
PAST_VISITS = (
    select(
        *_encounter["provider_group_id", "plan_id", "started_at", "ended_at", "doctor"],
        *_encounter["joined_at", "patient_class"],
    )
    .join(
        _since, and_(SameKey(_encounter.plan_id, _since.c.id), _encounter.ended_at >= _since.c.at)
    )
    .where(*_is_visit(_encounter))
)

PAST_WAITS = (
    select(
        *_encounter["provider_group_id", "state", "joined_at", "started_at", "ended_at"],
        *_encounter["plan_id", "patient_class", "priority"],
    )
    .where(_OF_GROUPS, _encounter.state.in_(_OVER), _encounter.joined_at >= SINCE)
    .order_by(_encounter.joined_at.desc())
    .limit(bindparam("most"))
)


class _GroupLine(NamedTuple):
    """The patients of a group in order of arrival: `classes`, `priorities` are empty if no patient
    has one.
    """

    plan_ids: Sequence[int] = ()
    waited: Sequence[float] = ()
    classes: Sequence[str | None] = ()
    priorities: Sequence[int] = ()


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
    values = {"groups": groups, "now": now}
    for group, doctor, plan_ids, capacity, on_at, paused_until in tx.execute(ON_DUTY, values):
        on_duty[group, doctor] = on_at
        # The latest visits count, as many as the doctor can have: earlier ones must have ended,
        # unreported.
        visits = tuple(ongoing[group, doctor][:capacity])
        served = None if plan_ids is None else frozenset(plan_ids)
        paused = 0.0 if paused_until is None else _ago(now, paused_until)
        doctors[group].append(Doctor(served, capacity, visits, doctor, _ago(on_at, now), paused))
    lines = _waiting(tx, groups, now)
    past = _past_visits(tx, groups, now)
    waits = _past_waits(tx, groups, now)
    events = tx.execute(DUTY_EVENTS, {"groups": groups, "since": now - RECENT}).all()
    spans = _duty_spans(events, now, on_duty)
    resumed = _resumed(events, now)
    return {
        group: DoctorPool(
            doctors=doctors[group],
            waiting=lines[group].plan_ids,
            past=past[group],
            waited=lines[group].waited,
            past_waits=waits[group],
            duty=spans[group],
            feed_late_seconds=usual_lateness(late[group]),
            classes=lines[group].classes,
            priorities=lines[group].priorities,
            resumed=resumed[group],
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
    for group, doctor, plan_id, patient_class, started_at, joined_at, reported_at in rows:
        elapsed = _ago(started_at, now)
        waited = _waited(joined_at, started_at)
        visits[group, doctor].append(OngoingVisit(plan_id, elapsed, waited, patient_class))
        if reported_at is not None and len(late[group]) < KNOWN_STARTS:
            late[group].append((reported_at.timestamp(), _ago(started_at, reported_at)))
    return visits, late


def _waiting(tx: Tx, groups: Collection[int], now: datetime) -> defaultdict[int, _GroupLine]:
    lines: defaultdict[int, _GroupLine] = defaultdict(_GroupLine)
    values = {"groups": groups, "since": now - LONGEST_WAIT, "now": now, "latest": now + MOST_AHEAD}
    for group, terms, times in tx.execute(WAITING, values):
        waited = [_ago(datetime.fromisoformat(joined_at), now) for joined_at in times.split(",")]
        if "/" not in terms:
            lines[group] = _GroupLine(list(map(int, terms.split(","))), waited)
            continue
        ids, classes, priorities = zip(*map(_read_terms, terms.split(",")), strict=True)
        lines[group] = _GroupLine(
            plan_ids=list(ids),
            waited=waited,
            classes=list(classes) if any(classes) else (),
            priorities=list(priorities) if any(priorities) else (),
        )
    return lines


def _read_terms(terms: str) -> tuple[int, str | None, int]:
    """The plan, class and priority of a patient.

    >>> _read_terms("7"), _read_terms("7/urgent/5"), _read_terms("7//-1")
    ((7, None, 0), (7, 'urgent', 5), (7, None, -1))
    """
    plan_id, *others = terms.split("/")
    if not others:
        return int(plan_id), None, 0
    patient_class, priority = others
    return int(plan_id), patient_class or None, int(priority)


def _past_visits(tx: Tx, groups: Collection[int], now: datetime) -> ByGroup[PastVisit]:
    visits: ByGroup[PastVisit] = defaultdict(list)
    rows = tx.execute(PAST_VISITS, {"groups": groups})
    for group, plan_id, started_at, ended_at, doctor, joined_at, patient_class in rows:
        visits[group].append(
            PastVisit(
                plan_id=plan_id,
                seconds=(ended_at - started_at).total_seconds(),
                ended_seconds_ago=_ago(ended_at, now),
                doctor=doctor,
                waited_seconds=_waited(joined_at, started_at),
                patient_class=patient_class,
            )
        )
    return visits


def _past_waits(tx: Tx, groups: Collection[int], now: datetime) -> ByGroup[PastWait]:
    """Waits that ended with a doctor or with leaving; a visit without a start has no wait."""
    waits: ByGroup[PastWait] = defaultdict(list)
    values = {"groups": groups, "since": now - RECENT, "most": KNOWN_WAITS * len(groups)}
    for group, state, joined_at, started_at, ended_at, *terms in tx.execute(PAST_WAITS, values):
        left = state == EncounterState.LEFT
        until = ended_at if left else started_at
        if until is not None:
            waits[group].append(PastWait(_ago(joined_at, until), left, *terms))
    return waits


def _duty_spans(
    events: Iterable[Sequence[Any]], now: datetime, on_duty: Mapping[tuple[int, str], datetime]
) -> ByGroup[DutySpan]:
    """When each doctor was on duty recently: from the events, and from the doctors on duty now."""
    since: dict[tuple[int, str], datetime | None] = {}
    spans: ByGroup[DutySpan] = defaultdict(list)
    for group, doctor, type_, at, _until, _start in events:
        if type_ == EventType.DOCTOR_ON_DUTY:
            since[group, doctor] = since.get((group, doctor)) or at
        elif type_ == EventType.DOCTOR_OFF_DUTY:
            # Off duty without a recent start: the doctor was on duty all the time. A second `off`
            # counts for nothing.
            start = since.get((group, doctor), now - RECENT)
            if start is not None:
                spans[group].append(DutySpan(doctor, _ago(start, now), _ago(at, now)))
            since[group, doctor] = None
    for (group, doctor), on_at in on_duty.items():
        spans[group].append(DutySpan(doctor, _ago(since.get((group, doctor)) or on_at, now), 0.0))
    return spans


def _resumed(events: Iterable[Sequence[Any]], now: datetime) -> ByGroup[tuple[str, float]]:
    """When the pauses ended: at their expected end, before it with a visit or the next on duty. A
    pause that goes on in another one, or in the end of the shift, has no end.
    """
    ends: dict[tuple[int, str], datetime] = {}
    resumed: ByGroup[tuple[str, float]] = defaultdict(list)
    for group, doctor, type_, at, until, start in events:
        if type_ == EventType.DOCTOR_PAUSED and at > now:
            continue  # by a sender's clock that is ahead of ours: not yet
        end = ends.pop((group, doctor), None)
        if end is not None and (end < at or type_ == EventType.DOCTOR_ON_DUTY):
            resumed[group].append((doctor, _ago(min(end, at), now)))
        if type_ == EventType.DOCTOR_PAUSED:
            ends[group, doctor] = until if start is None else min(until, start)
    for (group, doctor), end in ends.items():
        if end <= now:
            resumed[group].append((doctor, _ago(end, now)))
    return resumed


def _waited(joined_at: datetime | None, started_at: datetime) -> float | None:
    return None if joined_at is None else _ago(joined_at, started_at)


def _ago(at: datetime, now: datetime) -> float:
    return max(0.0, (now - at).total_seconds())
