"""The SQL of plans and provider groups."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

from sqlalchemy import Select, Table, bindparam, insert, select, update

from frontdesk.db import Tx
from frontdesk.db.lookups import Lookup
from frontdesk.db.sets import (
    Found,
    SameKey,
    SetTransaction,
    as_json,
    by_key,
    find_set,
    find_sql,
    one_round_trip,
    read_set,
)
from frontdesk.errors import NotFound
from frontdesk.plans.model import Plan, ProviderGroup
from frontdesk.plans.tables import plans, provider_groups
from frontdesk.reach import Reach

_PLAN_COLUMNS = tuple(field.name for field in fields(Plan) if field.name != "provider_group")
_PLANS = (
    select(*plans.c[_PLAN_COLUMNS], *provider_groups.c[ProviderGroup._fields])
    .join(provider_groups, SameKey(provider_groups.c.id, plans.c.provider_group_id))
    .order_by(plans.c.id)
)
_OF_ACCOUNT = _PLANS.where(plans.c.account_id == bindparam("account_id"))
_BY_ID = _OF_ACCOUNT.where(plans.c.id == bindparam("plan_id"))
_PAGE = _OF_ACCOUNT.where(plans.c.id > bindparam("after_id")).limit(bindparam("limit"))
_PAGE_BY_EXTERNAL_ID = _PAGE.where(plans.c.external_id == bindparam("external_id"))
_NO_LIMIT = 2**62
_OWNER_COLUMNS = ("id", "account_id", "accepting_patients", "time_zone", "reopens_absent")


def find_plan(account_id: int, plan_id: int) -> Lookup[Plan]:
    """One plan of the account. Its answer raises NotFound, also for another account's plan."""
    return Lookup(_BY_ID, {"account_id": account_id, "plan_id": plan_id}, _one_plan)


def find_plans(
    account_id: int, *, external_id: str | None, after_id: int, limit: int | None
) -> Lookup[list[Plan]]:
    """The account's plans by id; `external_id` filters exactly, `after_id` and `limit` page."""
    values = {
        "account_id": account_id,
        "after_id": after_id,
        "limit": _NO_LIMIT if limit is None else limit,
    }
    if external_id is None:
        return Lookup(_PAGE, values, _plans)
    return Lookup(_PAGE_BY_EXTERNAL_ID, values | {"external_id": external_id}, _plans)


def list_plans(tx: Tx, reach: Reach) -> list[Plan]:
    """The plans within reach, by id."""
    return _plans(tx.execute(_of(reach)).all())


def get_plan(tx: Tx, reach: Reach, plan_id: int, *, lock: bool = False) -> Plan:
    """One plan. Raises NotFound, also for one out of reach.

    `lock` a plan that is to be changed: other changes wait for this transaction, readers do not.
    """
    query = _of(reach).where(plans.c.id == plan_id)
    if lock:
        query = query.with_for_update(of=plans, key_share=True)
    return _one_plan(tx.execute(query).all())


def _of(reach: Reach) -> Select[Any]:
    if reach.account_id is None:
        return _PLANS
    return _PLANS.where(plans.c.account_id == reach.account_id)


def _plans(rows: Sequence[Sequence[Any]]) -> list[Plan]:
    own = len(_PLAN_COLUMNS)
    return [Plan(*(*row[:own], ProviderGroup(*row[own:]))) for row in rows]


def _one_plan(rows: Sequence[Sequence[Any]]) -> Plan:
    if not rows:
        raise NotFound("plan")
    return _plans(rows)[0]


def external_ids_of(tx: SetTransaction, plan_ids: Collection[int]) -> dict[int, str]:
    with one_round_trip(tx):
        found = find_set(tx, plans, "id", plan_ids, columns=("id", "external_id"))
    return {row["id"]: row["external_id"] for row in found.rows}


def find_owners(tx: SetTransaction, plan_ids: Collection[int]) -> Found:
    """A set read of `id`, `account_id` and `accepting_patients`, with the account's `time_zone` and
    `reopens_absent`; plans that do not exist are missing.
    """
    sql = _owners_sql(tx.dialect.name)
    return read_set(tx, sql, parameters=(as_json(list(plan_ids)),), columns=_OWNER_COLUMNS)


@cache
def _owners_sql(dialect: str) -> str:
    own = find_sql(dialect, plans, column="id", columns=_OWNER_COLUMNS[:3])
    same = "a.id = +p.account_id" if dialect == "sqlite" else by_key("a.id", "p.account_id")
    columns = ", ".join(_OWNER_COLUMNS)
    return f"SELECT p.{columns} FROM ({own}) p JOIN accounts a ON {same}"  # noqa: S608


def update_plan(tx: Tx, plan: Plan, changes: Mapping[str, object]) -> bool:
    """False if the plan no longer has its version; it is not changed then."""
    unchanged = (plans.c.id == plan.id) & (plans.c.version == plan.version)
    statement = update(plans).where(unchanged).values(**changes, version=plan.version + 1)
    return tx.execute(statement).rowcount == 1


def list_provider_groups(tx: Tx, group_id: int | None = None) -> list[ProviderGroup]:
    """All provider groups by id, or the one with `group_id` if it exists."""
    query = select(*provider_groups.c[ProviderGroup._fields]).order_by(provider_groups.c.id)
    if group_id is not None:
        query = query.where(provider_groups.c.id == group_id)
    return [ProviderGroup(*row) for row in tx.execute(query)]


def update_provider_group(tx: Tx, group_id: int, *, duty_hours: int) -> None:
    own = provider_groups.c.id == group_id
    tx.execute(update(provider_groups).where(own).values(duty_hours=duty_hours))


def insert_row(tx: Tx, table: Table, row: Mapping[str, object]) -> int:
    """The id of the new row."""
    return int(tx.execute(insert(table).values(**row).returning(table.c.id)).scalar_one())
