"""`frontdesk plan`: the plans of the accounts."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.options import AccountId, OnlyAccount, ProviderGroupId, id_argument
from frontdesk.cli.output import Output, describe, listing
from frontdesk.clock import system_clock
from frontdesk.db import Tx
from frontdesk.errors import Invalid
from frontdesk.plans import get_plan, list_plans, parse_plan_patch
from frontdesk.plans.changes import change_plan, create_plan
from frontdesk.plans.model import NewPlan, Plan
from frontdesk.queues.queue_state import queue_state

PlanArgument = Annotated[int, id_argument("PLAN_ID", "Id of the plan.")]

commands = CommandGroup()


@commands.change("create")
def create(  # noqa: PLR0913 - one parameter per option
    context: CommandContext,
    account: AccountId,
    provider_group: ProviderGroupId,
    external_id: Annotated[
        str, typer.Option(help="Its identifier outside the service; unique in the account.")
    ],
    name: Annotated[str, typer.Option(help="Name of the plan.")],
    description: Annotated[str | None, typer.Option(help="Description of the plan.")] = None,
    *,
    not_accepting: Annotated[
        bool, typer.Option("--not-accepting", help="It does not accept patients yet.")
    ] = False,
) -> Output:
    """Create a plan and print it with its id.

    Example: frontdesk plan create --account 1 --provider-group 1 --external-id gold-2026 --name "Gold"
    """
    texts = _texts({"name": name, "description": description, "external_id": external_id})
    new = NewPlan(
        account_id=account,
        provider_group_id=provider_group,
        external_id=str(texts["external_id"]),
        name=str(texts["name"]),
        description=texts["description"],
        accepting_patients=not not_accepting,
    )
    plan = create_plan(context.tx, new, now=context.now)
    context.record("plan.created", account_id=account, subject_id=plan.id)
    return describe(_item(plan))


@commands.query("list")
def list_(tx: Tx, account: OnlyAccount = None) -> Output:
    """List the plans of one account or of all.

    Example: frontdesk plan list --account 1
    """
    items = [_item(plan) for plan in list_plans(tx, account)]
    nothing = "There is no plan. Make one: frontdesk plan create --help"
    return listing(items, "id account_id external_id name active provider_group.name", nothing=nothing)


@commands.query("show")
def show(tx: Tx, plan_id: PlanArgument) -> Output:
    """Show one plan, with its queue as it is now.

    Example: frontdesk plan show 1
    """
    plan = get_plan(tx, None, plan_id)
    queue = queue_state(tx, plan.account_id, system_clock())[plan.id]
    return describe(_item(plan) | {"queue_info": queue.info.serialize()})


@commands.change("set", wants_option=True)
def set_(
    context: CommandContext,
    plan_id: PlanArgument,
    name: Annotated[str | None, typer.Option(help="New name.")] = None,
    description: Annotated[str | None, typer.Option(help="New description; empty text clears it.")] = None,
    external_id: Annotated[str | None, typer.Option(help="New identifier outside the service.")] = None,
    *,
    accepting: Annotated[
        bool | None, typer.Option("--accepting/--not-accepting", help="Whether it accepts patients.")
    ] = None,
) -> Output:
    """Change a plan; what is not given stays.

    Example: frontdesk plan set 1 --name "Gold 2026" --not-accepting
    """
    texts = {"name": name, "description": description, "external_id": external_id}
    changes: dict[str, object] = dict(
        _texts({field: text for field, text in texts.items() if text is not None})
    )
    if accepting is not None:
        changes["accepting_patients"] = accepting
    plan, changed = change_plan(context.tx, get_plan(context.tx, None, plan_id, lock=True), changes)
    if changed:
        context.record("plan.changed", account_id=plan.account_id, subject_id=plan.id, fields=changed)
    return describe(_item(plan))


def _texts(given: Mapping[str, object]) -> dict[str, str | None]:
    """The text fields in their stored form. Raises Invalid with every fault."""
    patch = parse_plan_patch(given)
    if patch.faults:
        raise Invalid(patch.faults)
    return patch.changes


def _item(plan: Plan) -> dict[str, Any]:
    return {"id": plan.id, "type": "plans", "account_id": plan.account_id} | plan.serialize()
