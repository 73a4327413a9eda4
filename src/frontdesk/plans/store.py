"""The SQL of plans and provider groups."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import Select, Table, insert, select, update

from frontdesk.db import Tx
from frontdesk.db.set_transaction import SetTransaction
from frontdesk.db.sets import Found, find_set
from frontdesk.errors import NotFound
from frontdesk.plans.model import Plan, ProviderGroup
from frontdesk.plans.tables import plans, provider_groups

_PLAN_COLUMNS = tuple(field.name for field in fields(Plan) if field.name != "provider_group")
_PLANS = (
    select(*plans.c[_PLAN_COLUMNS], *provider_groups.c[ProviderGroup._fields])
    .join(provider_groups, plans.c.provider_group_id == provider_groups.c.id)
    .order_by(plans.c.id)
)


def list_plans(
    tx: Tx,
    account_id: int | None,
    *,
    external_id: str | None = None,
    after_id: int = 0,
    limit: int | None = None,
) -> list[Plan]:
    """The account's plans (None: of all accounts) by id; `external_id` filters exactly, `after_id` pages."""
    query = _of(account_id).limit(limit)
    if external_id is not None:
        query = query.where(plans.c.external_id == external_id)
    if after_id:
        query = query.where(plans.c.id > after_id)
    return [_plan(row) for row in tx.execute(query)]


def get_plan(tx: Tx, account_id: int | None, plan_id: int, *, lock: bool = False) -> Plan:
    """One plan of the account (None: of any). Raises NotFound, also for another account's plan.

    `lock` a plan that is to be changed: other changes wait for this transaction, readers do not.
    """
    query = _of(account_id).where(plans.c.id == plan_id)
    if lock:
        query = query.with_for_update(of=plans, key_share=True)
    row = tx.execute(query).first()
    if row is None:
        raise NotFound("plan")
    return _plan(row)


def _of(account_id: int | None) -> Select[Any]:
    return _PLANS if account_id is None else _PLANS.where(plans.c.account_id == account_id)


def _plan(row: Any) -> Plan:
    own = len(_PLAN_COLUMNS)
    return Plan(*(*row[:own], ProviderGroup(*row[own:])))


def find_owners(tx: SetTransaction, plan_ids: Collection[int]) -> Found:
    """A set read of `id` and `account_id`; plans that do not exist are missing."""
    return find_set(tx, plans, "id", plan_ids, columns=("id", "account_id"))


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


def insert_row(tx: Tx, table: Table, row: Mapping[str, object]) -> int:
    """The id of the new row."""
    key: Any = tx.execute(insert(table).values(**row)).inserted_primary_key
    return int(key[0])
