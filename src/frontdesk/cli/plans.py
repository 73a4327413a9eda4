"""`frontdesk plan`, `provider-group` and `duty`: plans, the groups of doctors that serve them, and
the doctors on duty.

Doctors are opaque references; no name is stored.
"""

from typing import Annotated, Any

from frontdesk import plans
from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.options import (
    AccountId,
    OnlyAccount,
    given,
    id_argument,
    id_option,
    option,
    reach_of,
    read_text,
)
from frontdesk.cli.output import Output, describe, listing
from frontdesk.clock import system_clock
from frontdesk.db import Tx
from frontdesk.errors import Invalid
from frontdesk.interface import present
from frontdesk.plans.changes import (
    change_plan,
    change_provider_group,
    create_plan,
    create_provider_group,
)
from frontdesk.plans.model import DUTY_HOURS, MOST_DUTY_HOURS, NewPlan, Plan, ProviderGroup
from frontdesk.queues import list_on_duty
from frontdesk.queues.ingest import set_duty
from frontdesk.queues.snapshot import queue_state
from frontdesk.reach import EVERY, Reach

ProviderGroupId = Annotated[
    int, id_option("--provider-group", "Id of the provider group (see `provider-group list`).")
]
PlanArgument = Annotated[int, id_argument("PLAN_ID", "Id of the plan.")]
DutyHours = Annotated[
    int,
    option(
        "A duty without an event of its doctor ends by itself after so many hours.",
        min=1,
        max=MOST_DUTY_HOURS,
    ),
]
DoctorReference = Annotated[
    str, option("Reference of the doctor, such as a staff number.", metavar="REF")
]

plan = CommandGroup("plan")
provider_group = CommandGroup("provider-group")
duty = CommandGroup("duty")


@plan.change("create", '--account 1 --provider-group 1 --external-id gold-2026 --name "Gold"')
def create(  # noqa: PLR0913 - one parameter per option
    context: CommandContext,
    account: AccountId,
    provider_group: ProviderGroupId,
    external_id: Annotated[
        str, option("Its identifier outside the service; unique in the account.")
    ],
    name: Annotated[str, option("Name of the plan.")],
    description: Annotated[str | None, option("Description of the plan.")] = None,
    *,
    not_accepting: Annotated[
        bool, option("It does not accept patients yet.", "--not-accepting")
    ] = False,
) -> Output:
    """Create a plan and print it with its id."""
    texts: Any = _texts(name=name, description=description, external_id=external_id)
    new = NewPlan(account, provider_group, **texts, accepting_patients=not not_accepting)
    made = create_plan(context.tx, new, now=context.now)
    context.record("plan.created", account_id=account, subject_id=made.id)
    return describe(_item(made))


@plan.query("list", "--account 1")
def list_(tx: Tx, account: OnlyAccount = None) -> Output:
    """List the plans of one account or of all."""
    items = [_item(each) for each in plans.list_plans(tx, reach_of(account))]
    nothing = "There is no plan. Make one: frontdesk plan create --help"
    return listing(
        items, "id account_id external_id name active provider_group.name", nothing=nothing
    )


@plan.query("show", "1")
def show(tx: Tx, plan_id: PlanArgument) -> Output:
    """Show one plan, with its queue as it is now."""
    found = plans.get_plan(tx, EVERY, plan_id)
    queue = queue_state(tx, Reach.of(found.account_id), system_clock())[plan_id]
    return describe(_item(found) | {"queue_info": present.queue(queue.info)})


@plan.change("set", '1 --name "Gold 2026" --not-accepting', wants_option=True)
def set_(
    context: CommandContext,
    plan_id: PlanArgument,
    name: Annotated[str | None, option("New name.")] = None,
    description: Annotated[str | None, option("New description; empty text clears it.")] = None,
    external_id: Annotated[str | None, option("New identifier outside the service.")] = None,
    *,
    accepting: Annotated[
        bool | None, option("Whether it accepts patients.", "--accepting/--not-accepting")
    ] = None,
) -> Output:
    """Change a plan; options that are not given change nothing."""
    changes = _texts(**given(name=name, description=description, external_id=external_id))
    changes |= given(accepting_patients=accepting)
    before = plans.get_plan(context.tx, EVERY, plan_id, lock=True)
    after, changed = change_plan(context.tx, before, changes)
    if changed:
        context.record(
            "plan.changed", account_id=after.account_id, subject_id=plan_id, fields=changed
        )
    return describe(_item(after))


def _texts(**sent: str | None) -> dict[str, Any]:
    """The text fields in their stored form. Raises Invalid with every fault."""
    patch = plans.parse_plan_patch(sent)
    if patch.faults:
        raise Invalid(patch.faults)
    return dict(patch.changes)


def _item(plan: Plan) -> dict[str, Any]:
    return {"id": plan.id, "type": "plans", "account_id": plan.account_id, **present.plan(plan)}


@provider_group.change("create", '--name "Example Doctors" --external-id doctors-1')
def create_group(
    context: CommandContext,
    name: Annotated[str, option("Name of the group.")],
    external_id: Annotated[
        str | None, option("Its identifier outside the service; unique.")
    ] = None,
    duty_hours: DutyHours = DUTY_HOURS,
) -> Output:
    """Create a provider group and print it with its id."""
    identifier = read_text("external_id", external_id) if external_id else None
    called = read_text("name", name)
    group = create_provider_group(
        context.tx, name=called, external_id=identifier, now=context.now, duty_hours=duty_hours
    )
    context.record("provider_group.created", subject_id=group.id)
    return describe(_group_item(group))


@provider_group.change("set", "1 --duty-hours 24")
def set_group(
    context: CommandContext,
    group_id: Annotated[int, id_argument("GROUP_ID", "Id of the provider group.")],
    duty_hours: DutyHours,
) -> Output:
    """Change a provider group."""
    group, changed = change_provider_group(context.tx, group_id, duty_hours=duty_hours)
    if changed:
        context.record("provider_group.changed", subject_id=group_id, fields=changed)
    return describe(_group_item(group))


def _group_item(group: ProviderGroup) -> dict[str, Any]:
    return {**present.provider_group(group), "duty_hours": group.duty_hours}


@provider_group.query("list", "")
def list_groups(tx: Tx) -> Output:
    """List all provider groups."""
    items = [_group_item(group) for group in plans.list_provider_groups(tx)]
    nothing = (
        "There is no provider group yet. Make one: frontdesk provider-group create --name NAME"
    )
    return listing(items, "id name external_id duty_hours created_at", nothing=nothing)


@duty.change("on", "--provider-group 1 --doctor dr-17")
def on(context: CommandContext, provider_group: ProviderGroupId, doctor: DoctorReference) -> Output:
    """Put a doctor on duty; a doctor that is on duty already stays so."""
    return _set_duty(context, provider_group, doctor, on_duty=True)


@duty.change("off", "--provider-group 1 --doctor dr-17")
def off(
    context: CommandContext, provider_group: ProviderGroupId, doctor: DoctorReference
) -> Output:
    """Take a doctor off duty."""
    return _set_duty(context, provider_group, doctor, on_duty=False)


@duty.query("list", "")
def list_duties(tx: Tx) -> Output:
    """List the doctors on duty, and until when they pause."""
    items = [each._asdict() for each in list_on_duty(tx, system_clock())]
    columns = "provider_group_id doctor since_at paused_until"
    return listing(items, columns, nothing="No doctor is on duty.")


def _set_duty(context: CommandContext, group: int, doctor: str, *, on_duty: bool) -> Output:
    reference = read_text("doctor", doctor)
    state = "on duty" if on_duty else "off duty"
    changed = set_duty(context.tx, group, reference, on_duty=on_duty, now=context.now)
    if changed:
        context.record(f"doctor.{state.replace(' ', '_')}", subject_id=group, doctor=reference)
    outcome = {
        "provider_group_id": group,
        "doctor": reference,
        "on_duty": on_duty,
        "changed": changed,
    }
    already = "" if changed else "already "
    return Output(outcome, [f"Doctor {reference} of provider group {group} is {already}{state}."])
