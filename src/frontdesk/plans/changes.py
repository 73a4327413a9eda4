"""Creating and changing plans and provider groups."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import datetime

from frontdesk.db import Tx
from frontdesk.db.failures import violation_as
from frontdesk.errors import Conflict, Fault, Invalid, NotFound
from frontdesk.plans import store
from frontdesk.plans.model import NewPlan, Plan, ProviderGroup
from frontdesk.plans.tables import plans, provider_groups

NOT_UNIQUE = Fault("external_id", "not_unique", "is already in use")


def uniqueness_faults(tx: Tx, plan: Plan, changes: Mapping[str, object]) -> list[Fault]:
    """A fault if another plan of the account has the `external_id` of the changes."""
    external_id = changes.get("external_id")
    if not isinstance(external_id, str):
        return []
    holders = store.list_plans(tx, plan.account_id, external_id=external_id)
    return [NOT_UNIQUE] if any(holder.id != plan.id for holder in holders) else []


def change_plan(
    tx: Tx, account_id: int, plan_id: int, *, changes: Mapping[str, object], if_version: int | None = None
) -> Plan:
    """Set `name`, `description`, `external_id` or `accepting_patients`; a field that is missing in `changes` stays.

    Raises NotFound; Conflict when the plan's version is not `if_version`; Invalid(`not_unique`).
    """
    plan = store.get_plan(tx, account_id, plan_id, lock=True)
    if if_version is not None and if_version != plan.version:
        raise Conflict("The plan has changed since it was read.")
    changes = {name: value for name, value in changes.items() if getattr(plan, name) != value}
    if not changes:
        return plan
    with violation_as(Invalid([NOT_UNIQUE]), plans, "account_id", "external_id"):
        changed = store.update_plan(tx, plan_id, version=plan.version, changes=changes)
    if not changed:
        raise Conflict("The plan is being changed by somebody else.")
    return store.get_plan(tx, account_id, plan_id)


def changed_fields(before: Plan, after: Plan) -> list[str]:
    """The names of the fields that differ, in order; without the version, which counts the changes."""
    names = (field.name for field in fields(Plan) if field.name != "version")
    return sorted(name for name in names if getattr(before, name) != getattr(after, name))


def create_plan(tx: Tx, plan: NewPlan, *, now: datetime) -> Plan:
    """The account must exist. Raises NotFound for an unknown provider group, Invalid(`not_unique`)."""
    if not store.list_provider_groups(tx, plan.provider_group_id):
        raise NotFound("provider group")
    with violation_as(Invalid([NOT_UNIQUE]), plans, "account_id", "external_id"):
        plan_id = store.insert_row(tx, plans, asdict(plan) | {"version": 1, "created_at": now})
    return store.get_plan(tx, plan.account_id, plan_id)


def create_provider_group(tx: Tx, *, name: str, external_id: str | None, now: datetime) -> ProviderGroup:
    """Raises Invalid(`not_unique`) when another group has the `external_id`."""
    row = {"name": name, "external_id": external_id, "created_at": now}
    with violation_as(Invalid([NOT_UNIQUE]), provider_groups, "external_id"):
        return ProviderGroup(store.insert_row(tx, provider_groups, row), name, external_id, now)
