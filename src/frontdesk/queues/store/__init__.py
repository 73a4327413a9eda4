"""The SQL of the encounter queue: events, what follows from them, snapshots. Pictures: `scene`; old events: `upkeep`."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update

from frontdesk.db import Tx
from frontdesk.db.sets import Found, find_set, insert_set, next_ids, one_round_trip, update_set
from frontdesk.errors import NotFound
from frontdesk.plans.tables import plans, provider_groups
from frontdesk.queues.tables import duties, encounters, queue_events, queue_snapshots

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


@dataclass(frozen=True, slots=True)
class KnownReferences:
    """What the database knows of the references of some events."""

    ids: Found  # event_id, provider_group_id
    events: Found  # EVENT_COLUMNS
    encounters: Found  # id, visit, provider_group_id
    duties: Found  # _DUTY_COLUMNS


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
) -> KnownReferences:
    with one_round_trip(tx):
        return KnownReferences(
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


def select_visits(tx: Tx) -> list[Any]:
    columns = encounters.c
    query = select(columns.plan_id, columns.visit, columns.doctor, columns.started_at)
    return list(
        tx.execute(query.where(columns.state == "in_visit").order_by(columns.started_at, columns.visit))
    )


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
