"""The SQL of the queues as they are now: bounded and by index, however many patients and visits there ever were."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import String, and_, cast, func, literal, select

from frontdesk.db import Tx
from frontdesk.plans.tables import plans
from frontdesk.queues.model import EncounterState
from frontdesk.queues.tables import duties, encounters, queue_events

RECENT_VISITS = 50  # per plan, for the usual length of a visit
RECENT_WAITS = 200  # per provider group, for the patience of patients
_OVER = (EncounterState.IN_VISIT.value, EncounterState.ENDED.value, EncounterState.LEFT.value)
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class Since(NamedTuple):
    """Rows before these times are ignored: patients by joining, visits by start, the recent past."""

    joined: datetime
    started: datetime
    recent: datetime


class WaitingLine(NamedTuple):
    """The patients who wait for a provider group, in order of arrival: the plan of each, and the time of joining."""

    plan_ids: list[int]
    joined_at: list[datetime]


class QueueRows(NamedTuple):
    """The queues of some provider groups in one consistent state, as database rows with the columns named here."""

    plans: list[Any]  # id, provider_group_id
    doctors: list[Any]  # on duty: provider_group_id, doctor, plan_ids, capacity, on_at
    waiting: dict[int, WaitingLine]  # by provider_group_id
    in_progress: list[Any]  # visits: provider_group_id, plan_id, doctor, started_at; the latest first
    visits: list[Any]  # that ended: provider_group_id, plan_id, started_at, ended_at
    waits: list[Any]  # that ended: provider_group_id, state, joined_at, started_at, ended_at
    changes: list[Any]  # of duty: provider_group_id, doctor, type, at; in order of time


def select_queue_rows(tx: Tx, account_id: int | None, since: Since) -> QueueRows:
    """Everything about the groups that serve the account's plans (None: all accounts), sibling plans of others included."""
    own_plans = select(plans.c.id, plans.c.provider_group_id)
    if account_id is not None:
        own_plans = own_plans.where(plans.c.account_id == account_id)
    own = list(tx.execute(own_plans.order_by(plans.c.id)))
    groups = sorted({row.provider_group_id for row in own})
    return QueueRows(
        plans=own,
        doctors=_doctors(tx, groups),
        waiting=_waiting(tx, groups, since.joined),
        in_progress=_in_progress(tx, groups, since.started),
        visits=_recent_visits(tx, groups),
        waits=_recent_waits(tx, groups, since.recent),
        changes=_recent_changes(tx, groups, since.recent),
    )


def _doctors(tx: Tx, groups: Collection[int]) -> list[Any]:
    columns = duties.c
    query = select(
        columns.provider_group_id, columns.doctor, columns.plan_ids, columns.capacity, columns.on_at
    )
    return list(tx.execute(query.where(columns.provider_group_id.in_(groups), columns.on_duty)))


def _waiting(tx: Tx, groups: Collection[int], joined_after: datetime) -> dict[int, WaitingLine]:
    """As one text per group: to fetch ten thousand rows takes longer than all the rest."""
    columns = encounters.c
    texts = [
        func.aggregate_strings(cast(column, String), ",").aggregate_order_by(columns.joined_at, columns.visit)
        for column in (columns.plan_id, columns.joined_at)
    ]
    query = select(columns.provider_group_id, *texts).where(
        columns.provider_group_id.in_(groups),
        columns.state == EncounterState.WAITING.value,
        columns.joined_at > joined_after,
    )
    rows = tx.execute(query.group_by(columns.provider_group_id))
    return {
        group: WaitingLine(
            list(map(int, ids.split(","))), list(map(datetime.fromisoformat, times.split(",")))
        )
        for group, ids, times in rows
    }


def _in_progress(tx: Tx, groups: Collection[int], started_after: datetime) -> list[Any]:
    columns = encounters.c
    with_doctor = (columns.provider_group_id.in_(groups), columns.state == EncounterState.IN_VISIT.value)
    query = select(columns.provider_group_id, columns.plan_id, columns.doctor, columns.started_at).where(
        *with_doctor, columns.started_at > started_after
    )
    return list(tx.execute(query.order_by(columns.started_at.desc(), columns.visit)))


def _recent_visits(tx: Tx, groups: Collection[int]) -> list[Any]:
    """The latest visits of each plan: as many rows as plans times RECENT_VISITS at most, however many there ever were."""
    older = encounters.alias("older")
    oldest = (
        select(older.c.ended_at)
        .where(
            older.c.plan_id == plans.c.id,
            older.c.state == EncounterState.ENDED.value,
            older.c.started_at.is_not(None),
        )
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
        .where(columns.state == EncounterState.ENDED.value, columns.started_at.is_not(None))
    )
    return list(tx.execute(query))


def _recent_waits(tx: Tx, groups: Collection[int], since: datetime) -> list[Any]:
    columns = encounters.c
    query = select(
        columns.provider_group_id, columns.state, columns.joined_at, columns.started_at, columns.ended_at
    ).where(
        columns.provider_group_id.in_(groups),
        columns.state.in_(_OVER),
        columns.joined_at >= since,
    )
    return list(tx.execute(query.order_by(columns.joined_at.desc()).limit(RECENT_WAITS * len(groups))))


def _recent_changes(tx: Tx, groups: Collection[int], since: datetime) -> list[Any]:
    columns = queue_events.c
    query = select(columns.provider_group_id, columns.doctor, columns.type, columns.at).where(
        columns.visit.is_(None), columns.provider_group_id.in_(groups), columns.at >= since
    )
    # At one instant a shift ends before the next begins.
    return list(tx.execute(query.order_by(columns.at, columns.type)))
