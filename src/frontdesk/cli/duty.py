"""`frontdesk duty`: which doctors are on duty. Doctors are opaque references; no name is stored."""

from typing import Annotated, Any

import typer

from frontdesk.cli.installation import CommandContext, ask, change
from frontdesk.cli.options import Json, ProviderGroupId, read_text
from frontdesk.cli.output import print_json, say, show_list
from frontdesk.clock import wire_time
from frontdesk.queues import doctor_off_duty, doctor_on_duty, list_on_duty

Doctor = Annotated[str, typer.Option(metavar="REF", help="Reference of the doctor, such as a staff number.")]

commands = typer.Typer(no_args_is_help=True, help="Doctors on duty, by provider group.")


@commands.command("on")
def on(provider_group: ProviderGroupId, *, doctor: Doctor, as_json: Json = False) -> None:
    """Put a doctor on duty; one who is on duty already stays so.

    Example: frontdesk duty on --provider-group 1 --doctor dr-17
    """

    def work(deed: CommandContext) -> dict[str, Any]:
        reference = read_text("doctor", doctor)
        changed = doctor_on_duty(deed.tx, provider_group, reference, now=deed.now)
        if changed:
            deed.record("doctor.on_duty", subject_id=provider_group, doctor=reference)
        return _outcome(provider_group, reference, on_duty=True, changed=changed)

    _show(change(work), as_json=as_json)


@commands.command("off")
def off(provider_group: ProviderGroupId, *, doctor: Doctor, as_json: Json = False) -> None:
    """Take a doctor off duty.

    Example: frontdesk duty off --provider-group 1 --doctor dr-17
    """

    def work(deed: CommandContext) -> dict[str, Any]:
        reference = read_text("doctor", doctor)
        changed = doctor_off_duty(deed.tx, provider_group, reference, now=deed.now)
        if changed:
            deed.record("doctor.off_duty", subject_id=provider_group, doctor=reference)
        return _outcome(provider_group, reference, on_duty=False, changed=changed)

    _show(change(work), as_json=as_json)


@commands.command("list")
def list_(as_json: Json = False) -> None:
    """List the doctors on duty.

    Example: frontdesk duty list
    """
    items = [
        {
            "provider_group_id": duty.provider_group_id,
            "doctor": duty.doctor,
            "since_at": wire_time(duty.since_at),
        }
        for duty in ask(list_on_duty)
    ]
    columns = ("provider_group_id", "doctor", "since_at")
    show_list(items, columns=columns, as_json=as_json, nothing="No doctor is on duty.")


def _outcome(provider_group_id: int, doctor: str, *, on_duty: bool, changed: bool) -> dict[str, Any]:
    return {"provider_group_id": provider_group_id, "doctor": doctor, "on_duty": on_duty, "changed": changed}


def _show(outcome: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(outcome)
        return
    state = "on duty" if outcome["on_duty"] else "off duty"
    already = "" if outcome["changed"] else "already "
    say(f"Doctor {outcome['doctor']} of provider group {outcome['provider_group_id']} is {already}{state}.")
