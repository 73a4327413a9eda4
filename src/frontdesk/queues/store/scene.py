"""The SQL of a picture of some provider groups: bounded and by index, however many patients and visits there are and were."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import String, and_, cast, func, literal, select

from frontdesk.db import Tx
from frontdesk.plans.tables import plans
from frontdesk.queues.tables import duties, encounters, queue_events

RECENT_VISITS = 50  # per plan, for what a visit usually takes
RECENT_WAITS = 200  # per provider group, for how long patients stay
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Since:
    """From when on things count: who joined, and what began, before that is taken to be forgotten; `lately` bounds what
    is looked at to see how things go."""

    joined: datetime
    started: datetime
    lately: datetime


@dataclass(frozen=True, slots=True)
class WaitingLine:
    """Who waits for a provider group, in order of arrival: the plan of each, and since when."""

    plan_ids: list[int]
    joined_at: list[datetime]


@dataclass(frozen=True, slots=True)
class QueueRows:
    """The queues of some provider groups in one consistent state, as rows."""

    plans: list[Any]  # id, provider_group_id
    doctors: list[Any]  # provider_group_id, doctor, plan_ids, capacity, on_at
    waiting: dict[int, WaitingLine]  # by provider_group_id
    in_progress: list[Any]  # provider_group_id, plan_id, doctor, started_at; the latest first
    recent: list[Any]  # provider_group_id, plan_id, started_at, ended_at
    waits: list[Any]  # provider_group_id, state, joined_at, started_at, ended_at: waits that are over
    changes: list[Any]  # provider_group_id, doctor, type, at: comings and goings of doctors, in order


def select_scene(tx: Tx, account_id: int | None, since: Since) -> QueueRows:
    """Everything about the groups that serve the account's plans, sibling plans of other accounts included.

    None stands for all accounts.
    """
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
        recent=_recent_visits(tx, groups),
        waits=_recent_waits(tx, groups, since.lately),
        changes=_recent_changes(tx, groups, since.lately),
    )


def _doctors(tx: Tx, groups: Collection[int]) -> list[Any]:
    columns = duties.c
    query = select(
        columns.provider_group_id, columns.doctor, columns.plan_ids, columns.capacity, columns.on_at
    )
    return list(tx.execute(query.where(columns.provider_group_id.in_(groups), columns.on_duty)))


def _waiting(tx: Tx, groups: Collection[int], joined_after: datetime) -> dict[int, WaitingLine]:
    """As one text per group: ten thousand rows would take longer to fetch than all the rest."""
    columns = encounters.c
    texts = [
        func.aggregate_strings(cast(column, String), ",").aggregate_order_by(columns.joined_at, columns.visit)
        for column in (columns.plan_id, columns.joined_at)
    ]
    query = select(columns.provider_group_id, *texts).where(
        columns.provider_group_id.in_(groups), columns.state == "waiting", columns.joined_at > joined_after
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
        .where(older.c.plan_id == plans.c.id, older.c.state == "ended", older.c.started_at.is_not(None))
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
        .where(columns.state == "ended", columns.started_at.is_not(None))
    )
    return list(tx.execute(query))


def _recent_waits(tx: Tx, groups: Collection[int], since: datetime) -> list[Any]:
    columns = encounters.c
    query = select(
        columns.provider_group_id, columns.state, columns.joined_at, columns.started_at, columns.ended_at
    ).where(
        columns.provider_group_id.in_(groups),
        columns.state.in_(("in_visit", "ended", "left")),
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
