"""Creates and changes plans and provider groups. A PATCH is an untrusted JSON object: it becomes
changes, with ALL faults.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from frontdesk import codes
from frontdesk.db import Tx
from frontdesk.db.failures import violation_as
from frontdesk.errors import Conflict, Fault, Invalid, NotFound, unknown_faults
from frontdesk.plans import store
from frontdesk.plans.model import DUTY_HOURS, NewPlan, Plan, PlanPatch, ProviderGroup
from frontdesk.plans.tables import plans, provider_groups
from frontdesk.reach import Reach
from frontdesk.text import Rejected, parse_text, wire_time

NAME_LENGTH = 255
DESCRIPTION_LENGTH = 2000

# The fields that may change: the maximum length, and whether null or blank clears the field.
CHANGEABLE = {
    "name": (NAME_LENGTH, False),
    "description": (DESCRIPTION_LENGTH, True),
    "external_id": (NAME_LENGTH, False),
}
# A PATCH may send the first with the value that they have, the others with any value.
ECHOED = ("id", "type", "active", "created_at")
WITHOUT_EFFECT = ("provider_group", "queue_info")
NOT_UNIQUE = Fault("external_id", codes.faults.NOT_UNIQUE, "is already in use")


def parse_plan_patch(body: Mapping[str, object], *, strict: bool = False) -> PlanPatch:
    """The changes of a PATCH (docs/interface.md, Change a plan). `strict`: unknown fields are
    faults. Never raises.

    A missing field stays as it is; null clears `description` and is a fault elsewhere.
    """
    changes: dict[str, str | None] = {}
    faults: list[Fault] = []
    for name, (limit, clearable) in CHANGEABLE.items():
        if name in body:
            try:
                text = None if body[name] is None else parse_text(body[name], limit=limit) or None
            except Rejected as rejected:
                faults.append(Fault(name, rejected.code, rejected.message))
                continue
            if text is None and not clearable:
                faults.append(Fault(name, codes.faults.REQUIRED, "must not be null or blank"))
            else:
                changes[name] = text
    unknown = tuple(name for name in body if name not in (*CHANGEABLE, *ECHOED, *WITHOUT_EFFECT))
    if strict:
        faults += unknown_faults(unknown)
    echoed = {name: body[name] for name in ECHOED if name in body}
    return PlanPatch(changes, echoed, tuple(faults), ignored=unknown)


def patch_plan(tx: Tx, plan: Plan, patch: PlanPatch) -> tuple[Plan, list[str]]:
    """`change_plan` by a PATCH. Raises Invalid with the patch's faults, `not_unique` and
    `read_only`; Conflict.
    """
    faults = list(patch.faults)
    external_id = patch.changes.get("external_id")
    if external_id is not None:
        holders = store.find_plans(
            plan.account_id, external_id=external_id, after_id=0, limit=None
        ).read(tx)
        faults += [NOT_UNIQUE for holder in holders if holder.id != plan.id]
    stored = {
        "id": plan.id,
        "type": "plans",
        "active": plan.accepting_patients,
        "created_at": wire_time(plan.created_at),
    }
    faults += [
        Fault(name, codes.faults.READ_ONLY, "can't be changed here; leave it out or echo it")
        for name, value in patch.echoed.items()
        if not _says_the_same(name, value, stored[name])
    ]
    if faults:
        raise Invalid(faults)
    return change_plan(tx, plan, patch.changes)


def _says_the_same(name: str, value: object, stored: object) -> bool:
    """Whether an echoed value is the stored one; a time may be written otherwise (RFC 3339)."""
    if name == "created_at" and type(value) is str and type(stored) is str:
        with suppress(ValueError):
            sent = datetime.fromisoformat(value)
            return sent.tzinfo is not None and sent == datetime.fromisoformat(stored)
    return (type(value), value) == (type(stored), stored)


def change_plan(tx: Tx, plan: Plan, changes: Mapping[str, Any]) -> tuple[Plan, list[str]]:
    """Set `name`, `description`, `external_id` or `accepting_patients` of a plan that was read with
    `lock`.

    Returns the plan as it is now, and the names of the fields that changed. Raises Conflict,
    Invalid(`not_unique`).
    """
    changes = {name: value for name, value in changes.items() if getattr(plan, name) != value}
    if not changes:
        return plan, []
    with violation_as(Invalid([NOT_UNIQUE]), plans, "account_id", "external_id"):
        if not store.update_plan(tx, plan, changes):
            raise Conflict("The plan is being changed by somebody else.")
    return replace(plan, **changes, version=plan.version + 1), sorted(changes)


def create_plan(tx: Tx, plan: NewPlan, *, now: datetime) -> Plan:
    """The account must exist. Raises NotFound for an unknown provider group, Invalid(`not_unique`)."""
    if not store.list_provider_groups(tx, plan.provider_group_id):
        raise NotFound("provider group")
    with violation_as(Invalid([NOT_UNIQUE]), plans, "account_id", "external_id"):
        plan_id = store.insert_row(tx, plans, asdict(plan) | {"version": 1, "created_at": now})
    return store.get_plan(tx, Reach.of(plan.account_id), plan_id)


def create_provider_group(
    tx: Tx, *, name: str, external_id: str | None, now: datetime, duty_hours: int = DUTY_HOURS
) -> ProviderGroup:
    """Raises Invalid(`not_unique`) when another group has the `external_id`."""
    row = {"name": name, "external_id": external_id, "created_at": now, "duty_hours": duty_hours}
    with violation_as(Invalid([NOT_UNIQUE]), provider_groups, "external_id"):
        group_id = store.insert_row(tx, provider_groups, row)
    return ProviderGroup(group_id, name, external_id, now, duty_hours)


def change_provider_group(
    tx: Tx, group_id: int, *, duty_hours: int
) -> tuple[ProviderGroup, list[str]]:
    """The group as it is now, and the names of the fields that changed. Raises NotFound."""
    found = store.list_provider_groups(tx, group_id)
    if not found:
        raise NotFound("provider group")
    [group] = found
    if group.duty_hours == duty_hours:
        return group, []
    store.update_provider_group(tx, group_id, duty_hours=duty_hours)
    return group._replace(duty_hours=duty_hours), ["duty_hours"]
