"""The SQL of the encounter queue."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import String, and_, cast, delete, func, insert, literal, or_, select, update

from frontdesk.db import Tx
from frontdesk.db.sets import Found, find_set, insert_set, next_ids, one_round_trip, update_set
from frontdesk.errors import NotFound
from frontdesk.plans.tables import plans, provider_groups
from frontdesk.queues.tables import duties, encounters, estimate_log, queue_events, queue_snapshots

RECENT_VISITS = 50  # per plan, for what a visit usually takes
PAGE = 1000

EVENT_COLUMNS = (
    "event_id",
    "provider_group_id",
    "type",
    "at",
    "plan_id",
    "doctor",
    "visit",
    "plan_ids",
    "capacity",
)
_DUTY_COLUMNS = (
    "id",
    "provider_group_id",
    "doctor",
    "on_at",
    "on_event",
    "off_at",
    "plan_ids",
    "capacity",
)
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Known:
    """What the database knows of the references of some events."""

    ids: Found  # event_id, provider_group_id
    events: Found  # EVENT_COLUMNS
    encounters: Found  # id, visit, provider_group_id
    duties: Found  # _DUTY_COLUMNS


@dataclass(frozen=True, slots=True)
class Scene:
    """The queues of some provider groups in one consistent state, as rows."""

    plans: list[Any]  # id, provider_group_id
    doctors: list[Any]  # provider_group_id, doctor, plan_ids, capacity
    waiting: dict[int, list[int]]  # by provider_group_id the plan of each patient, in order of arrival
    in_progress: list[Any]  # provider_group_id, plan_id, doctor, started_at; the latest first
    recent: list[Any]  # provider_group_id, plan_id, started_at, ended_at


def provider_group_exists(tx: Tx, provider_group_id: int) -> bool:
    query = select(provider_groups.c.id).where(provider_groups.c.id == provider_group_id)
    return tx.execute(query).first() is not None


def group_of_plan(tx: Tx, plan_id: int) -> int:
    group_id = tx.execute(select(plans.c.provider_group_id).where(plans.c.id == plan_id)).scalar()
    if group_id is None:
        raise NotFound("There is no such plan.")
    return int(group_id)


def plan_ids_of(tx: Tx, account_id: int) -> list[int]:
    return list(tx.execute(select(plans.c.id).where(plans.c.account_id == account_id)).scalars())


def groups_of_plans(tx: Tx, plan_ids: Collection[int]) -> dict[int, int]:
    found = find_set(tx, plans, "id", plan_ids, columns=("id", "provider_group_id"))
    return {row["id"]: row["provider_group_id"] for row in found.rows}


def lock_groups(tx: Tx, group_ids: Collection[int] | None) -> set[int]:
    """Those of the groups that exist (None: all), locked until the transaction ends: one batch after the other per group.

    So each batch sees every event that was stored before it, which the state of an encounter is made of.
    """
    query = select(provider_groups.c.id).order_by(provider_groups.c.id).with_for_update(key_share=True)
    if group_ids is not None:
        query = query.where(provider_groups.c.id.in_(sorted(group_ids)))
    return set(tx.execute(query).scalars())


def find_known(
    tx: Tx, *, event_ids: Collection[str], visits: Collection[str], doctors: Collection[str]
) -> Known:
    with one_round_trip(tx):
        return Known(
            find_set(tx, queue_events, "event_id", event_ids, columns=("event_id", "provider_group_id")),
            find_set(tx, queue_events, "visit", visits, columns=EVENT_COLUMNS),
            find_set(tx, encounters, "visit", visits, columns=("id", "visit", "provider_group_id")),
            find_set(tx, duties, "doctor", doctors, columns=_DUTY_COLUMNS),
        )


def save(
    tx: Tx,
    *,
    events: Sequence[Mapping[str, Any]],
    encounter_rows: Sequence[dict[str, Any]],
    duty_rows: Sequence[dict[str, Any]],
) -> None:
    """Add the events; add what has no `id` yet of the encounters and duties and change what has one."""
    changes = [_divided(tx, encounters, encounter_rows), _divided(tx, duties, duty_rows)]
    with one_round_trip(tx):
        insert_set(tx, queue_events, events)
        for table, (new, known) in zip((encounters, duties), changes, strict=True):
            insert_set(tx, table, new)
            update_set(tx, table, known)


def _divided(
    tx: Tx, table: Any, rows: Sequence[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    new = [row for row in rows if row["id"] is None]
    for row, id_ in zip(new, next_ids(tx, table, len(new)) if new else (), strict=True):
        row["id"] = id_
    fresh = {id(row) for row in new}
    return new, [row for row in rows if id(row) not in fresh]


def find_encounter(tx: Tx, provider_group_id: int, visit: str) -> Any | None:
    own = (encounters.c.visit == visit) & (encounters.c.provider_group_id == provider_group_id)
    return tx.execute(select(encounters).where(own)).first()


def find_duty(tx: Tx, provider_group_id: int, doctor: str) -> Any | None:
    own = (duties.c.doctor == doctor) & (duties.c.provider_group_id == provider_group_id)
    return tx.execute(select(duties).where(own)).first()


def select_doctors(tx: Tx) -> list[Any]:
    columns = duties.c
    query = select(columns.provider_group_id, columns.doctor, columns.on_at).where(columns.on_duty)
    return list(tx.execute(query.order_by(columns.provider_group_id, columns.on_at, columns.doctor)))


def select_patients(tx: Tx) -> list[Any]:
    columns = encounters.c
    query = select(columns.plan_id, columns.visit, columns.joined_at).where(columns.state == "waiting")
    return list(tx.execute(query.order_by(columns.plan_id, columns.joined_at, columns.visit)))


def select_scene(tx: Tx, account_id: int | None, *, joined_after: datetime, started_after: datetime) -> Scene:
    """Everything about the groups that serve the account's plans, sibling plans of other accounts included.

    None stands for all accounts. Who joined, and what began, before the given times is taken to be forgotten.
    """
    own_plans = select(plans.c.id, plans.c.provider_group_id)
    if account_id is not None:
        own_plans = own_plans.where(plans.c.account_id == account_id)
    own = list(tx.execute(own_plans))
    groups = sorted({row.provider_group_id for row in own})
    return Scene(
        plans=own,
        doctors=_doctors(tx, groups),
        waiting=_waiting(tx, groups, joined_after),
        in_progress=_in_progress(tx, groups, started_after),
        recent=_recent_visits(tx, groups),
    )


def _doctors(tx: Tx, groups: Collection[int]) -> list[Any]:
    columns = duties.c
    query = select(columns.provider_group_id, columns.doctor, columns.plan_ids, columns.capacity)
    return list(tx.execute(query.where(columns.provider_group_id.in_(groups), columns.on_duty)))


def _waiting(tx: Tx, groups: Collection[int], joined_after: datetime) -> dict[int, list[int]]:
    """As one text per group: ten thousand rows would take longer to fetch than all the rest."""
    columns = encounters.c
    in_order = func.aggregate_strings(cast(columns.plan_id, String), ",").aggregate_order_by(
        columns.joined_at, columns.visit
    )
    query = select(columns.provider_group_id, in_order).where(
        columns.provider_group_id.in_(groups), columns.state == "waiting", columns.joined_at > joined_after
    )
    rows = tx.execute(query.group_by(columns.provider_group_id))
    return {group: [int(plan_id) for plan_id in text.split(",")] for group, text in rows}


def _in_progress(tx: Tx, groups: Collection[int], started_after: datetime) -> list[Any]:
    columns = encounters.c
    with_doctor = (columns.provider_group_id.in_(groups), columns.state == "in_visit")
    query = select(columns.provider_group_id, columns.plan_id, columns.doctor, columns.started_at).where(
        *with_doctor, columns.started_at > started_after
    )
    return list(tx.execute(query.order_by(columns.started_at.desc(), columns.visit)))


def _recent_visits(tx: Tx, groups: Collection[int]) -> list[Any]:
    """The latest visits of each plan: as many rows as plans times RECENT_VISITS at most, however many there ever were."""
    older = encounters.alias("older")
    oldest = (
        select(older.c.ended_at)
        .where(older.c.plan_id == plans.c.id, older.c.ended_at.is_not(None), older.c.started_at.is_not(None))
        .order_by(older.c.ended_at.desc())
        .limit(1)
        .offset(RECENT_VISITS - 1)
        .scalar_subquery()
    )
    since = (
        select(plans.c.id, func.coalesce(oldest, literal(_BEGINNING, encounters.c.ended_at.type)).label("at"))
        .where(plans.c.provider_group_id.in_(groups))
        .subquery("since")
    )
    columns = encounters.c
    query = (
        select(columns.provider_group_id, columns.plan_id, columns.started_at, columns.ended_at)
        .join(since, and_(columns.plan_id == since.c.id, columns.ended_at >= since.c.at))
        .where(columns.started_at.is_not(None))
    )
    return list(tx.execute(query))


def find_snapshot(tx: Tx, account_id: int, *, lock: bool = False) -> Any | None:
    query = select(queue_snapshots).where(queue_snapshots.c.account_id == account_id)
    return tx.execute(query.with_for_update() if lock else query).first()


def save_snapshot(
    tx: Tx, account_id: int, *, taken_at: datetime, expires_at: datetime, queues: dict[str, Any]
) -> None:
    values = {"taken_at": taken_at, "expires_at": expires_at, "queues": queues}
    own = queue_snapshots.c.account_id == account_id
    if tx.execute(update(queue_snapshots).where(own).values(**values)).rowcount == 0:
        tx.execute(insert(queue_snapshots).values(account_id=account_id, **values))


def log_estimates(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        tx.execute(insert(estimate_log), list(rows))


def select_outcomes(tx: Tx, since: datetime, *, limit: int) -> list[Any]:
    """Visits that began since then, with the estimate that was in force when their patient joined: the latest first."""
    columns, log = encounters.c, estimate_log.c
    given = (
        select(log.id)
        .where(
            log.plan_id == columns.plan_id,
            log.taken_at <= columns.joined_at,
            log.expires_at > columns.joined_at,
        )
        .order_by(log.taken_at.desc())
        .limit(1)
        .scalar_subquery()
    )
    query = (
        select(columns.plan_id, columns.joined_at, columns.started_at, log.id, log.estimate_seconds)
        .join(estimate_log, log.id == given)
        .join(plans, plans.c.id == columns.plan_id)
        .where(columns.joined_at >= since, columns.started_at.is_not(None))
        .order_by(columns.joined_at.desc(), columns.visit)
        .limit(limit)
    )
    return list(tx.execute(query))


def pages_of_visits(tx: Tx) -> Iterator[list[str]]:
    """Every visit that has events, a page of references at a time."""
    visit, last = queue_events.c.visit, ""
    while True:
        query = select(visit).where(visit > last).distinct().order_by(visit).limit(PAGE)
        page = list(tx.execute(query).scalars())
        if not page:
            return
        yield page
        last = page[-1]


def events_of_visits(tx: Tx, visits: Collection[str]) -> list[dict[str, Any]]:
    return find_set(tx, queue_events, "visit", visits, columns=EVENT_COLUMNS).rows


def events_of_doctors(tx: Tx) -> list[dict[str, Any]]:
    columns = [queue_events.c[name] for name in EVENT_COLUMNS]
    query = select(*columns).where(queue_events.c.visit.is_(None))
    return [dict(zip(EVENT_COLUMNS, row, strict=True)) for row in tx.execute(query)]


def select_duties(tx: Tx) -> list[dict[str, Any]]:
    return [dict(row) for row in tx.execute(select(duties)).mappings()]


def select_encounters(tx: Tx, visits: Collection[str]) -> list[dict[str, Any]]:
    query = select(encounters).where(encounters.c.visit.in_(visits))
    return [dict(row) for row in tx.execute(query).mappings()]


def delete_encounters_without_events(tx: Tx) -> int:
    known = (queue_events.c.visit == encounters.c.visit) & (
        queue_events.c.provider_group_id == encounters.c.provider_group_id
    )
    bare = ~select(queue_events.c.event_id).where(known).exists()
    return tx.execute(delete(encounters).where(bare)).rowcount


def delete_duties(tx: Tx, ids: Collection[int]) -> None:
    tx.execute(delete(duties).where(duties.c.id.in_(ids)))


def prune_encounters(tx: Tx, before: datetime) -> tuple[int, int]:
    """Up to a page of the encounters whose last event is older, with their events: how many of each."""
    columns = encounters.c
    old = select(columns.id, columns.visit, columns.provider_group_id).where(columns.last_event_at < before)
    rows = list(tx.execute(old.order_by(columns.last_event_at).limit(PAGE)))
    if not rows:
        return 0, 0
    theirs = {(row.visit, row.provider_group_id) for row in rows}
    by_group: dict[int, list[str]] = {}
    for visit, group in theirs:
        by_group.setdefault(group, []).append(visit)
    events = sum(
        tx.execute(
            delete(queue_events).where(
                queue_events.c.provider_group_id == group, queue_events.c.visit.in_(visits)
            )
        ).rowcount
        for group, visits in by_group.items()
    )
    tx.execute(delete(encounters).where(columns.id.in_([row.id for row in rows])))
    return len(rows), events


def prune_duties(tx: Tx, before: datetime) -> int:
    """Doctors' events that are older and no longer the latest of their kind: how many."""
    event, duty = queue_events.c, duties.c
    same_doctor = (duty.doctor == event.doctor) & (duty.provider_group_id == event.provider_group_id)
    still_counts = or_(
        and_(event.type == "doctor.on_duty", duty.on_event == event.event_id),
        and_(event.type == "doctor.off_duty", duty.off_at == event.at),
    )
    counts = select(duty.id).where(same_doctor, still_counts).exists()
    return tx.execute(delete(queue_events).where(event.at < before, event.visit.is_(None), ~counts)).rowcount


def prune_estimates(tx: Tx, before: datetime) -> int:
    return tx.execute(delete(estimate_log).where(estimate_log.c.taken_at < before)).rowcount


def event_row(event: Any, *, at: str, received_at: str) -> dict[str, Any]:
    """An event as `save` takes it, its times in their stored form."""
    return {
        "event_id": event.id,
        "provider_group_id": event.provider_group_id,
        "type": event.type.value,
        "at": at,
        "received_at": received_at,
        "plan_id": event.plan_id,
        "doctor": event.doctor,
        "visit": event.visit,
        "plan_ids": None if event.plan_ids is None else list(event.plan_ids),
        "capacity": event.capacity,
    }


def ids_of(value: Any) -> tuple[int, ...] | None:
    """A list of ids from a JSON column, which a set read gives as text on SQLite."""
    if isinstance(value, str):
        value = json.loads(value)
    return None if value is None else tuple(value)
