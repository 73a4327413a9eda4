"""`frontdesk duty`: the doctors on duty. Doctors are opaque references; no name is stored."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

from frontdesk.cli.installation import CommandContext, ask, change
from frontdesk.cli.options import Json, ProviderGroupId, read_text
from frontdesk.cli.output import print_json, say, show_list
from frontdesk.clock import wire_time
from frontdesk.queues import doctor_off_duty, doctor_on_duty, list_on_duty

DoctorReference = Annotated[
    str, typer.Option(metavar="REF", help="Reference of the doctor, such as a staff number.")
]

commands = typer.Typer(no_args_is_help=True, help="Doctors on duty, by provider group.")


@commands.command("on")
def on(provider_group: ProviderGroupId, *, doctor: DoctorReference, as_json: Json = False) -> None:
    """Put a doctor on duty; a doctor that is on duty already stays so.

    Example: frontdesk duty on --provider-group 1 --doctor dr-17
    """
    _set(doctor_on_duty, provider_group, doctor, on_duty=True, as_json=as_json)


@commands.command("off")
def off(provider_group: ProviderGroupId, *, doctor: DoctorReference, as_json: Json = False) -> None:
    """Take a doctor off duty.

    Example: frontdesk duty off --provider-group 1 --doctor dr-17
    """
    _set(doctor_off_duty, provider_group, doctor, on_duty=False, as_json=as_json)


@commands.command("list")
def list_(as_json: Json = False) -> None:
    """List the doctors on duty.

    Example: frontdesk duty list
    """
    items = [duty._asdict() | {"since_at": wire_time(duty.since_at)} for duty in ask(list_on_duty)]
    columns = ("provider_group_id", "doctor", "since_at")
    show_list(items, columns=columns, as_json=as_json, nothing="No doctor is on duty.")


def _set(set_duty: Callable[..., bool], group: int, doctor: str, *, on_duty: bool, as_json: bool) -> None:
    def work(context: CommandContext) -> dict[str, Any]:
        reference = read_text("doctor", doctor)
        changed = set_duty(context.tx, group, reference, now=context.now)
        if changed:
            action = "doctor.on_duty" if on_duty else "doctor.off_duty"
            context.record(action, subject_id=group, doctor=reference)
        return {"provider_group_id": group, "doctor": reference, "on_duty": on_duty, "changed": changed}

    outcome = change(work)
    if as_json:
        print_json(outcome)
        return
    state = "on duty" if on_duty else "off duty"
    already = "" if outcome["changed"] else "already "
    say(f"Doctor {outcome['doctor']} of provider group {group} is {already}{state}.")
