"""`frontdesk duty`: the doctors on duty. Doctors are opaque references; no name is stored."""

from typing import Annotated

import typer

from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.options import ProviderGroupId, read_text
from frontdesk.cli.output import Output, listing
from frontdesk.db import Tx
from frontdesk.queues import doctor_off_duty, doctor_on_duty, list_on_duty

DoctorReference = Annotated[
    str, typer.Option(metavar="REF", help="Reference of the doctor, such as a staff number.")
]

commands = CommandGroup()


@commands.change("on")
def on(context: CommandContext, provider_group: ProviderGroupId, doctor: DoctorReference) -> Output:
    """Put a doctor on duty; a doctor that is on duty already stays so.

    Example: frontdesk duty on --provider-group 1 --doctor dr-17
    """
    return _set(context, provider_group, doctor, on_duty=True)


@commands.change("off")
def off(context: CommandContext, provider_group: ProviderGroupId, doctor: DoctorReference) -> Output:
    """Take a doctor off duty.

    Example: frontdesk duty off --provider-group 1 --doctor dr-17
    """
    return _set(context, provider_group, doctor, on_duty=False)


@commands.query("list")
def list_(tx: Tx) -> Output:
    """List the doctors on duty.

    Example: frontdesk duty list
    """
    items = [duty._asdict() for duty in list_on_duty(tx)]
    return listing(items, "provider_group_id doctor since_at", nothing="No doctor is on duty.")


def _set(context: CommandContext, group: int, doctor: str, *, on_duty: bool) -> Output:
    reference = read_text("doctor", doctor)
    set_duty = doctor_on_duty if on_duty else doctor_off_duty
    changed = set_duty(context.tx, group, reference, now=context.now)
    state = "on duty" if on_duty else "off duty"
    if changed:
        context.record("doctor.on_duty" if on_duty else "doctor.off_duty", subject_id=group, doctor=reference)
    outcome = {"provider_group_id": group, "doctor": reference, "on_duty": on_duty, "changed": changed}
    already = "" if changed else "already "
    return Output(outcome, [f"Doctor {reference} of provider group {group} is {already}{state}."])
