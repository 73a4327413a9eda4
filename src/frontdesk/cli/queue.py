"""`frontdesk queue`: who waits in the plans' encounter queues. Patients are opaque references; no name is stored."""

from typing import Annotated, Any

import typer

from frontdesk.cli.installation import CommandContext, ask, change
from frontdesk.cli.options import Json, PlanId, read_text
from frontdesk.cli.output import print_json, say, show_list
from frontdesk.cli.queue_accuracy import accuracy
from frontdesk.cli.queue_upkeep import prune, rebuild
from frontdesk.cli.queue_watch import watch
from frontdesk.clock import wire_time
from frontdesk.plans import get_plan
from frontdesk.queues import list_waiting, patient_joins, patient_leaves

Patient = Annotated[
    str,
    typer.Option(
        metavar="REF", help="Opaque reference of the patient; never a name, an e-mail or a phone number."
    ),
]

commands = typer.Typer(no_args_is_help=True, help="Patients waiting in the plans' encounter queues.")
for command in (watch, accuracy, rebuild, prune):
    commands.command()(command)


@commands.command("join")
def join(plan: PlanId, *, patient: Patient, as_json: Json = False) -> None:
    """Let a patient join a plan's queue; one who waits already keeps the place.

    Example: frontdesk queue join --plan 1 --patient visit-4711
    """

    def work(deed: CommandContext) -> dict[str, Any]:
        reference = read_text("patient", patient)
        account_id = get_plan(deed.tx, None, plan).account_id
        changed = patient_joins(deed.tx, plan, reference, now=deed.now)
        if changed:
            deed.record("queue.joined", account_id=account_id, subject_id=plan, patient=reference)
        return _outcome(plan, reference, waiting=True, changed=changed)

    _show(change(work), as_json=as_json)


@commands.command("leave")
def leave(plan: PlanId, *, patient: Patient, as_json: Json = False) -> None:
    """Let a patient leave a plan's queue.

    Example: frontdesk queue leave --plan 1 --patient visit-4711
    """

    def work(deed: CommandContext) -> dict[str, Any]:
        reference = read_text("patient", patient)
        account_id = get_plan(deed.tx, None, plan).account_id
        changed = patient_leaves(deed.tx, plan, reference, now=deed.now)
        if changed:
            deed.record("queue.left", account_id=account_id, subject_id=plan, patient=reference)
        return _outcome(plan, reference, waiting=False, changed=changed)

    _show(change(work), as_json=as_json)


@commands.command("list")
def list_(as_json: Json = False) -> None:
    """List the waiting patients, in order of arrival by plan.

    Example: frontdesk queue list --json
    """
    items = [
        {"plan_id": waiting.plan_id, "patient": waiting.patient, "joined_at": wire_time(waiting.joined_at)}
        for waiting in ask(list_waiting)
    ]
    show_list(
        items, columns=("plan_id", "patient", "joined_at"), as_json=as_json, nothing="Nobody is waiting."
    )


def _outcome(plan_id: int, patient: str, *, waiting: bool, changed: bool) -> dict[str, Any]:
    return {"plan_id": plan_id, "patient": patient, "waiting": waiting, "changed": changed}


def _show(outcome: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(outcome)
        return
    states = {(True, True): "now waits", (True, False): "waits already", (False, True): "waits no longer"}
    state = states.get((outcome["waiting"], outcome["changed"]), "was not waiting")
    say(f"Patient {outcome['patient']} {state} in the queue of plan {outcome['plan_id']}.")
