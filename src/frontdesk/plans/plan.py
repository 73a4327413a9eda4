"""Plans and provider groups: what they are, which account a plan belongs to, and how a plan is changed.

The wire's `active` is `accepting_patients` here; whether doctors are on duty is the queue's business.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime

from frontdesk.db import Tx
from frontdesk.db.failures import violation_as
from frontdesk.db.sets import Found
from frontdesk.errors import Conflict, Fault, Invalid, NotFound
from frontdesk.plans import store
from frontdesk.plans.tables import plans, provider_groups

NOT_UNIQUE = Fault("external_id", "not_unique", "is already in use")


@dataclass(frozen=True, slots=True)
class ProviderGroup:
    id: int
    name: str
    external_id: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Plan:
    """`version` counts the changes, for optimistic concurrency."""

    id: int
    account_id: int
    external_id: str
    name: str
    description: str | None
    accepting_patients: bool
    version: int
    created_at: datetime
    provider_group: ProviderGroup


@dataclass(frozen=True, slots=True)
class NewPlan:
    """A plan to be made; `external_id` is unique among the account's plans."""

    account_id: int
    provider_group_id: int
    external_id: str
    name: str
    description: str | None = None
    accepting_patients: bool = True


def list_plans(
    tx: Tx,
    account_id: int | None,
    *,
    external_id: str | None = None,
    after_id: int = 0,
    limit: int | None = None,
) -> list[Plan]:
    """The account's plans (every account's when None) by id; `external_id` filters exactly."""
    rows = store.select_plans(tx, account_id, external_id=external_id, after_id=after_id, limit=limit)
    return [_plan(row) for row in rows]


def get_plan(tx: Tx, account_id: int | None, plan_id: int, *, lock: bool = False) -> Plan:
    """`lock` it when it is to be changed: others who would change it wait for this transaction, and readers do not.

    Raises NotFound when there is no such plan, or it is another account's.
    """
    read = store.lock_plan if lock else store.select_plan
    rows = read(tx, account_id, plan_id)
    if not rows:
        raise NotFound("plan")
    return _plan(rows[0])


def find_owners(tx: Tx, plan_ids: Collection[int]) -> Found:
    """Rows (plan id, id of the account that owns it); plans that do not exist are left out. A set read."""
    return store.find_owners(tx, plan_ids)


def find_taken(tx: Tx, plan: Plan, changes: Mapping[str, object]) -> list[Fault]:
    """Whether another plan of the same account has the external_id of the changes already."""
    external_id = changes.get("external_id")
    if not isinstance(external_id, str):
        return []
    holders = store.select_plans(tx, plan.account_id, external_id=external_id)
    return [NOT_UNIQUE] if any(row.id != plan.id for row in holders) else []


def change_plan(
    tx: Tx, account_id: int, plan_id: int, *, changes: Mapping[str, object], if_version: int | None = None
) -> Plan:
    """Set `name`, `description`, `external_id` or `accepting_patients`; what is absent from `changes` stays.

    Raises NotFound; Conflict when `if_version` is no longer the plan's; Invalid(`not_unique`).
    """
    plan = get_plan(tx, account_id, plan_id, lock=True)
    if if_version is not None and if_version != plan.version:
        raise Conflict("The plan has changed since it was read.")
    changes = {name: value for name, value in changes.items() if getattr(plan, name) != value}
    if not changes:
        return plan
    with violation_as(Invalid([NOT_UNIQUE]), plans, "account_id", "external_id"):
        changed = store.update_plan(tx, plan_id, version=plan.version, changes=changes)
    if not changed:
        raise Conflict("The plan is being changed by somebody else.")
    return get_plan(tx, account_id, plan_id)


def changed_fields(before: Plan, after: Plan) -> list[str]:
    """The names of what is no longer as it was, in order; the version aside, which counts changes."""
    names = (field.name for field in fields(Plan) if field.name != "version")
    return sorted(name for name in names if getattr(before, name) != getattr(after, name))


def create_plan(tx: Tx, plan: NewPlan, *, now: datetime) -> Plan:
    """Its account must exist. Raises NotFound for an unknown provider group, Invalid(`not_unique`)."""
    if not store.select_provider_groups(tx, plan.provider_group_id):
        raise NotFound("provider group")
    with violation_as(Invalid([NOT_UNIQUE]), plans, "account_id", "external_id"):
        plan_id = store.insert_plan(tx, asdict(plan) | {"version": 1, "created_at": now})
    return get_plan(tx, plan.account_id, plan_id)


def create_provider_group(tx: Tx, *, name: str, external_id: str | None, now: datetime) -> ProviderGroup:
    """Raises Invalid(`not_unique`) when another group has the external_id."""
    with violation_as(Invalid([NOT_UNIQUE]), provider_groups, "external_id"):
        group_id = store.insert_provider_group(
            tx, {"name": name, "external_id": external_id, "created_at": now}
        )
    return ProviderGroup(group_id, name, external_id, now)


def list_provider_groups(tx: Tx) -> list[ProviderGroup]:
    return [ProviderGroup(*row) for row in store.select_provider_groups(tx)]


def _plan(row: store.PlanRow) -> Plan:
    own, group = tuple(row)[:8], tuple(row)[8:]
    return Plan(*(*own, ProviderGroup(*group)))
