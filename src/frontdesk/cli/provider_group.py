"""`frontdesk provider-group`: the groups of doctors that serve the plans."""

from typing import Annotated

import typer

from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.options import read_optional_text, read_text
from frontdesk.cli.output import Output, describe, listing
from frontdesk.db import Tx
from frontdesk.plans import create_provider_group, list_provider_groups

commands = CommandGroup()


@commands.change("create")
def create(
    context: CommandContext,
    name: Annotated[str, typer.Option(help="Name of the group.")],
    external_id: Annotated[
        str | None, typer.Option(help="Its identifier outside the service; unique.")
    ] = None,
) -> Output:
    """Create a provider group and print it with its id.

    Example: frontdesk provider-group create --name "Example Doctors" --external-id doctors-1
    """
    group = create_provider_group(
        context.tx,
        name=read_text("name", name),
        external_id=read_optional_text("external_id", external_id),
        now=context.now,
    )
    context.record("provider_group.created", subject_id=group.id)
    return describe(group.serialize())


@commands.query("list")
def list_(tx: Tx) -> Output:
    """List all provider groups.

    Example: frontdesk provider-group list
    """
    items = [group.serialize() for group in list_provider_groups(tx)]
    nothing = "There is no provider group yet. Make one: frontdesk provider-group create --name NAME"
    return listing(items, "id name external_id created_at", nothing=nothing)
