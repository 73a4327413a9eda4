"""The SQL of plans and provider groups."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import insert, select, update

from frontdesk.db import Tx
from frontdesk.db.sets import Found, find_set
from frontdesk.plans.tables import plans, provider_groups

PlanRow = Any  # a row of _PLANS

_PLANS = (
    select(
        plans.c.id,
        plans.c.account_id,
        plans.c.external_id,
        plans.c.name,
        plans.c.description,
        plans.c.accepting_patients,
        plans.c.version,
        plans.c.created_at,
        provider_groups.c.id.label("group_id"),
        provider_groups.c.name.label("group_name"),
        provider_groups.c.external_id.label("group_external_id"),
        provider_groups.c.created_at.label("group_created_at"),
    )
    .join(provider_groups, plans.c.provider_group_id == provider_groups.c.id)
    .order_by(plans.c.id)
)


def select_plans(
    tx: Tx,
    account_id: int | None,
    *,
    plan_id: int | None = None,
    external_id: str | None = None,
    after_id: int = 0,
    limit: int | None = None,
) -> list[PlanRow]:
    query = _PLANS
    if account_id is not None:
        query = query.where(plans.c.account_id == account_id)
    if plan_id is not None:
        query = query.where(plans.c.id == plan_id)
    if external_id is not None:
        query = query.where(plans.c.external_id == external_id)
    if after_id:
        query = query.where(plans.c.id > after_id)
    if limit is not None:
        query = query.limit(limit)
    return list(tx.execute(query))


def select_plan(tx: Tx, account_id: int | None, plan_id: int) -> list[PlanRow]:
    return select_plans(tx, account_id, plan_id=plan_id)


def lock_plan(tx: Tx, account_id: int | None, plan_id: int) -> list[PlanRow]:
    """The plan as `select_plans` gives it, locked until the transaction ends."""
    query = _PLANS.where(plans.c.id == plan_id).with_for_update(of=plans, key_share=True)
    if account_id is not None:
        query = query.where(plans.c.account_id == account_id)
    return list(tx.execute(query))


def find_owners(tx: Tx, plan_ids: Collection[int]) -> Found:
    return find_set(tx, plans, "id", plan_ids, columns=("id", "account_id"))


def update_plan(tx: Tx, plan_id: int, *, version: int, changes: Mapping[str, object]) -> bool:
    """Whether the plan still had that version, and so was changed."""
    unchanged = (plans.c.id == plan_id) & (plans.c.version == version)
    return tx.execute(update(plans).where(unchanged).values(**changes, version=version + 1)).rowcount == 1


def insert_plan(tx: Tx, row: Mapping[str, object]) -> int:
    return _new_id(tx.execute(insert(plans).values(**row)))


def insert_provider_group(tx: Tx, row: Mapping[str, object]) -> int:
    return _new_id(tx.execute(insert(provider_groups).values(**row)))


def select_provider_groups(tx: Tx, group_id: int | None = None) -> list[Any]:
    columns = provider_groups.c
    query = select(columns.id, columns.name, columns.external_id, columns.created_at).order_by(columns.id)
    if group_id is not None:
        query = query.where(columns.id == group_id)
    return list(tx.execute(query))


def _new_id(result: Any) -> int:
    key = result.inserted_primary_key
    return int(key[0])
