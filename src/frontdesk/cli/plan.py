"""`frontdesk plan`: the plans of the accounts."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from frontdesk.access import get_account
from frontdesk.cli.installation import CommandContext, ask, change
from frontdesk.cli.options import AccountId, Json, OnlyAccount, ProviderGroupId, checked_id
from frontdesk.cli.output import MISUSED, fail, settings, show_list, show_one
from frontdesk.clock import system_clock
from frontdesk.db import Tx
from frontdesk.errors import Invalid
from frontdesk.plans import change_plan, create_plan, get_plan, list_plans, parse_plan_patch
from frontdesk.plans.model import NewPlan, Plan
from frontdesk.queues import queue_rules, queue_state

PlanArgument = Annotated[int, typer.Argument(metavar="PLAN_ID", callback=checked_id, help="Id of the plan.")]

commands = typer.Typer(no_args_is_help=True, help="Plans of the accounts.")


@commands.command("create")
def create(  # noqa: PLR0913 - one parameter per option
    account: AccountId,
    *,
    provider_group: ProviderGroupId,
    external_id: Annotated[
        str, typer.Option(help="Its identifier outside the service; unique in the account.")
    ],
    name: Annotated[str, typer.Option(help="Name of the plan.")],
    description: Annotated[str | None, typer.Option(help="Description of the plan.")] = None,
    not_accepting: Annotated[
        bool, typer.Option("--not-accepting", help="It does not accept patients yet.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Create a plan and print it with its id.

    Example: frontdesk plan create --account 1 --provider-group 1 --external-id gold-2026 --name "Gold"
    """

    def work(context: CommandContext) -> Plan:
        texts = _texts({"name": name, "description": description, "external_id": external_id})
        get_account(context.tx, account)
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
        return plan

    show_one(_item(change(work)), as_json=as_json)


@commands.command("list")
def list_(account: OnlyAccount = None, as_json: Json = False) -> None:
    """List the plans of one account or of all.

    Example: frontdesk plan list --account 1
    """
    items = [_item(plan) for plan in ask(lambda tx: list_plans(tx, account), account=account)]
    columns = ("id", "account_id", "external_id", "name", "active", "provider_group.name")
    nothing = "There is no plan. Make one: frontdesk plan create --help"
    show_list(items, columns=columns, as_json=as_json, nothing=nothing)


@commands.command("show")
def show(plan_id: PlanArgument, as_json: Json = False) -> None:
    """Show one plan, with its queue as it is now.

    Example: frontdesk plan show 1
    """

    def question(tx: Tx) -> dict[str, Any]:
        plan = get_plan(tx, None, plan_id)
        queue = queue_state(tx, plan.account_id, system_clock(), queue_rules(settings()))[plan.id]
        return _item(plan) | {"queue_info": queue.info.serialize()}

    show_one(ask(question), as_json=as_json)


@commands.command("set")
def set_(
    plan_id: PlanArgument,
    *,
    name: Annotated[str | None, typer.Option(help="New name.")] = None,
    description: Annotated[str | None, typer.Option(help="New description; empty text clears it.")] = None,
    external_id: Annotated[str | None, typer.Option(help="New identifier outside the service.")] = None,
    accepting: Annotated[
        bool | None, typer.Option("--accepting/--not-accepting", help="Whether it accepts patients.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Change a plan; what is not given stays.

    Example: frontdesk plan set 1 --name "Gold 2026" --not-accepting
    """
    texts = {"name": name, "description": description, "external_id": external_id}
    given = {field: text for field, text in texts.items() if text is not None}
    if not given and accepting is None:
        fail("Nothing to set: give at least one option (see frontdesk plan set --help).", status=MISUSED)

    def work(context: CommandContext) -> Plan:
        changes: dict[str, object] = dict(_texts(given))
        if accepting is not None:
            changes["accepting_patients"] = accepting
        before = get_plan(context.tx, None, plan_id, lock=True)
        plan, changed = change_plan(context.tx, before, changes)
        if changed:
            context.record("plan.changed", account_id=plan.account_id, subject_id=plan.id, fields=changed)
        return plan

    show_one(_item(change(work)), as_json=as_json)


def _texts(given: Mapping[str, object]) -> dict[str, str | None]:
    """The text fields in their stored form. Raises Invalid with every fault."""
    patch = parse_plan_patch(given)
    if patch.faults:
        raise Invalid(patch.faults)
    return patch.changes


def _item(plan: Plan) -> dict[str, Any]:
    return {"id": plan.id, "type": "plans", "account_id": plan.account_id} | plan.serialize()
