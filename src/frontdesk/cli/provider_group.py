"""`frontdesk provider-group`: the groups of doctors that serve the plans."""

from typing import Annotated

import typer

from frontdesk.cli.installation import CommandContext, ask, change
from frontdesk.cli.options import Json, read_optional_text, read_text
from frontdesk.cli.output import show_list, show_one
from frontdesk.plans import create_provider_group, list_provider_groups
from frontdesk.plans.model import ProviderGroup

commands = typer.Typer(no_args_is_help=True, help="Provider groups: the doctors that serve the plans.")


@commands.command("create")
def create(
    name: Annotated[str, typer.Option(help="Name of the group.")],
    *,
    external_id: Annotated[
        str | None, typer.Option(help="Its identifier outside the service; unique.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a provider group and print it with its id.

    Example: frontdesk provider-group create --name "Example Doctors" --external-id doctors-1
    """

    def work(context: CommandContext) -> ProviderGroup:
        group = create_provider_group(
            context.tx,
            name=read_text("name", name),
            external_id=read_optional_text("external_id", external_id),
            now=context.now,
        )
        context.record("provider_group.created", subject_id=group.id)
        return group

    show_one(change(work).serialize(), as_json=as_json)


@commands.command("list")
def list_(as_json: Json = False) -> None:
    """List all provider groups.

    Example: frontdesk provider-group list
    """
    items = [group.serialize() for group in ask(list_provider_groups)]
    nothing = "There is no provider group yet. Make one: frontdesk provider-group create --name NAME"
    columns = ("id", "name", "external_id", "created_at")
    show_list(items, columns=columns, as_json=as_json, nothing=nothing)
