"""The SQL of the queues as they are now: bounded and by index, however many patients and visits there ever were."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, String, and_, cast, func, literal, select

from frontdesk.db import Tx
from frontdesk.plans.tables import plans
from frontdesk.queues.model import EncounterState
from frontdesk.queues.tables import duties, encounters, queue_events

RECENT_VISITS = 50  # per plan, for the usual length of a visit
RECENT_WAITS = 200  # per provider group, for the patience of patients
_OVER = (EncounterState.IN_VISIT.value, EncounterState.ENDED.value, EncounterState.LEFT.value)
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class WaitingLine(NamedTuple):
    """The waiting patients of a provider group, in order of arrival: the plan of each, and the time of joining."""

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


def select_queue_rows(
    tx: Tx,
    account_id: int | None,
    *,
    joined_after: datetime,
    started_after: datetime,
    recent_after: datetime,
) -> QueueRows:
    """Everything about the groups that serve the account's plans (None: all accounts), sibling plans of others included.

    Patients that joined and visits that started before these times are ignored; `recent_after` bounds waits and changes.
    """
    query = select(*plans.c["id", "provider_group_id"]).order_by(plans.c.id)
    own = list(tx.execute(query if account_id is None else query.where(plans.c.account_id == account_id)))
    groups = sorted({row.provider_group_id for row in own})
    return QueueRows(
        plans=own,
        doctors=list(tx.execute(_doctors(groups))),
        waiting=_waiting(tx, groups, joined_after),
        in_progress=list(tx.execute(_in_progress(groups, started_after))),
        visits=list(tx.execute(_recent_visits(groups))),
        waits=list(tx.execute(_recent_waits(groups, recent_after))),
        changes=list(tx.execute(_recent_changes(groups, recent_after))),
    )


def _doctors(groups: Collection[int]) -> Select[Any]:
    query = select(*duties.c["provider_group_id", "doctor", "plan_ids", "capacity", "on_at"])
    return query.where(duties.c.provider_group_id.in_(groups), duties.c.on_duty)


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


def _in_progress(groups: Collection[int], started_after: datetime) -> Select[Any]:
    columns = encounters.c
    query = select(*columns["provider_group_id", "plan_id", "doctor", "started_at"]).where(
        columns.provider_group_id.in_(groups),
        columns.state == EncounterState.IN_VISIT.value,
        columns.started_at > started_after,
    )
    return query.order_by(columns.started_at.desc(), columns.visit)


def _recent_visits(groups: Collection[int]) -> Select[Any]:
    """The latest visits of each plan: at most RECENT_VISITS times the number of plans, however many there ever were."""
    columns, older = encounters.c, encounters.alias("older").c
    oldest = (
        select(older.ended_at)
        .where(older.plan_id == plans.c.id, *_is_visit(older))
        .order_by(older.ended_at.desc())
        .limit(1)
        .offset(RECENT_VISITS - 1)
        .scalar_subquery()
    )
    since = (
        select(plans.c.id, func.coalesce(oldest, literal(_BEGINNING, columns.ended_at.type)).label("at"))
        .where(plans.c.provider_group_id.in_(groups))
        .subquery("since")
    )
    return (
        select(*columns["provider_group_id", "plan_id", "started_at", "ended_at"])
        .join(since, and_(columns.plan_id == since.c.id, columns.ended_at >= since.c.at))
        .where(*_is_visit(columns))
    )


def _is_visit(columns: Any) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return columns.state == EncounterState.ENDED.value, columns.started_at.is_not(None)


def _recent_waits(groups: Collection[int], since: datetime) -> Select[Any]:
    columns = encounters.c
    query = select(*columns["provider_group_id", "state", "joined_at", "started_at", "ended_at"]).where(
        columns.provider_group_id.in_(groups), columns.state.in_(_OVER), columns.joined_at >= since
    )
    return query.order_by(columns.joined_at.desc()).limit(RECENT_WAITS * len(groups))


def _recent_changes(groups: Collection[int], since: datetime) -> Select[Any]:
    columns = queue_events.c
    query = select(*columns["provider_group_id", "doctor", "type", "at"]).where(
        columns.visit.is_(None), columns.provider_group_id.in_(groups), columns.at >= since
    )
    return query.order_by(columns.at, columns.type)  # at one instant a shift ends before the next begins
