"""`frontdesk provider-group` and `frontdesk duty`: the groups of doctors that serve the plans, and the doctors on duty.

Doctors are opaque references; no name is stored.
"""

from typing import Annotated

import typer

from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.options import ProviderGroupId, read_optional_text, read_text
from frontdesk.cli.output import Output, describe, listing
from frontdesk.db import Tx
from frontdesk.plans import list_provider_groups
from frontdesk.plans.changes import create_provider_group
from frontdesk.queues import list_on_duty
from frontdesk.queues.ingest import set_duty

DoctorReference = Annotated[
    str, typer.Option(metavar="REF", help="Reference of the doctor, such as a staff number.")
]

provider_group = CommandGroup()
duty = CommandGroup()


@provider_group.change("create")
def create_group(
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


@provider_group.query("list")
def list_groups(tx: Tx) -> Output:
    """List all provider groups.

    Example: frontdesk provider-group list
    """
    items = [group.serialize() for group in list_provider_groups(tx)]
    nothing = "There is no provider group yet. Make one: frontdesk provider-group create --name NAME"
    return listing(items, "id name external_id created_at", nothing=nothing)


@duty.change("on")
def on(context: CommandContext, provider_group: ProviderGroupId, doctor: DoctorReference) -> Output:
    """Put a doctor on duty; a doctor that is on duty already stays so.

    Example: frontdesk duty on --provider-group 1 --doctor dr-17
    """
    return _set(context, provider_group, doctor, on_duty=True)


@duty.change("off")
def off(context: CommandContext, provider_group: ProviderGroupId, doctor: DoctorReference) -> Output:
    """Take a doctor off duty.

    Example: frontdesk duty off --provider-group 1 --doctor dr-17
    """
    return _set(context, provider_group, doctor, on_duty=False)


@duty.query("list")
def list_duties(tx: Tx) -> Output:
    """List the doctors on duty.

    Example: frontdesk duty list
    """
    items = [each._asdict() for each in list_on_duty(tx)]
    return listing(items, "provider_group_id doctor since_at", nothing="No doctor is on duty.")


def _set(context: CommandContext, group: int, doctor: str, *, on_duty: bool) -> Output:
    reference = read_text("doctor", doctor)
    changed = set_duty(context.tx, group, reference, on_duty=on_duty, now=context.now)
    state = "on duty" if on_duty else "off duty"
    if changed:
        context.record("doctor.on_duty" if on_duty else "doctor.off_duty", subject_id=group, doctor=reference)
    outcome = {"provider_group_id": group, "doctor": reference, "on_duty": on_duty, "changed": changed}
    already = "" if changed else "already "
    return Output(outcome, [f"Doctor {reference} of provider group {group} is {already}{state}."])
