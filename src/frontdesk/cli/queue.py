"""`frontdesk queue`: the plans' encounter queues. Patients are opaque references; no name is stored."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any

import typer

from frontdesk.cli.installation import CommandContext, ask, change, change_in, migrated_database
from frontdesk.cli.options import Json, PlanId, read_text
from frontdesk.cli.output import print_json, say, settings, show_list
from frontdesk.cli.queue_live import accuracy, watch
from frontdesk.clock import wire_time
from frontdesk.plans import get_plan
from frontdesk.queues import list_waiting, patient_joins, patient_leaves
from frontdesk.queues import prune as prune_page
from frontdesk.queues import rebuild as rebuild_all
from frontdesk.queues.model import PruneReport
from frontdesk.queues.upkeep import DEFAULT_AGE, MIN_AGE

Patient = Annotated[
    str,
    typer.Option(
        metavar="REF", help="Opaque reference of the patient; never a name, an e-mail or a phone number."
    ),
]

_AGE = re.compile(r"([1-9][0-9]{0,3})d")

commands = typer.Typer(no_args_is_help=True, help="Patients waiting in the plans' encounter queues.")
for command in (watch, accuracy):
    commands.command()(command)


@commands.command("join")
def join(plan: PlanId, *, patient: Patient, as_json: Json = False) -> None:
    """Let a patient join a plan's queue; a patient that waits there already keeps the place.

    Example: frontdesk queue join --plan 1 --patient visit-4711
    """
    _move(patient_joins, plan, patient, waiting=True, as_json=as_json)


@commands.command("leave")
def leave(plan: PlanId, *, patient: Patient, as_json: Json = False) -> None:
    """Let a patient leave a plan's queue.

    Example: frontdesk queue leave --plan 1 --patient visit-4711
    """
    _move(patient_leaves, plan, patient, waiting=False, as_json=as_json)


def _move(move: Callable[..., bool], plan: int, patient: str, *, waiting: bool, as_json: bool) -> None:
    def work(context: CommandContext) -> dict[str, Any]:
        reference = read_text("patient", patient)
        account_id = get_plan(context.tx, None, plan).account_id
        changed = move(context.tx, plan, reference, now=context.now)
        if changed:
            action = "queue.joined" if waiting else "queue.left"
            context.record(action, account_id=account_id, subject_id=plan, patient=reference)
        return {"plan_id": plan, "patient": reference, "waiting": waiting, "changed": changed}

    outcome = change(work)
    if as_json:
        print_json(outcome)
        return
    states = {(True, True): "now waits", (True, False): "waits already", (False, True): "waits no longer"}
    state = states.get((waiting, outcome["changed"]), "was not waiting")
    say(f"Patient {outcome['patient']} {state} in the queue of plan {plan}.")


@commands.command("list")
def list_(as_json: Json = False) -> None:
    """List the waiting patients, in order of arrival by plan.

    Example: frontdesk queue list --json
    """
    items = [waiting._asdict() | {"joined_at": wire_time(waiting.joined_at)} for waiting in ask(list_waiting)]
    columns = ("plan_id", "patient", "joined_at")
    show_list(items, columns=columns, as_json=as_json, nothing="Nobody is waiting.")


@commands.command("rebuild")
def rebuild(as_json: Json = False) -> None:
    """Rebuild the waiting patients and the doctors on duty from the stored events; new events wait meanwhile.

    Example: frontdesk queue rebuild
    """

    def work(context: CommandContext) -> dict[str, Any]:
        report = rebuild_all(context.tx)
        outcome = {"encounters": report.encounters, "doctors": report.doctors, "mended": report.corrected}
        context.record("queue.rebuilt", **outcome)
        return outcome

    outcome = change(work)
    if as_json:
        print_json(outcome)
        return
    wrong = outcome["mended"]
    found = f"{wrong} rows were wrong and are corrected." if wrong else "All rows were correct."
    say(f"The events lead to {outcome['encounters']} encounters and {outcome['doctors']} doctors. {found}")


@commands.command("prune")
def prune(
    *,
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Age in days, such as 90d; 8d is the least.")
    ] = f"{DEFAULT_AGE.days}d",
    as_json: Json = False,
) -> None:
    """Delete events of encounters that are over, and estimates, of that age; what still counts stays.

    Workers delete what is older than 90 days by themselves; this is for a shorter time.

    Example: frontdesk queue prune --older-than 90d
    """
    age = _age(older_than)
    total = PruneReport()
    with migrated_database(settings()) as db:
        # A page at a time, so that new events wait for a moment only.
        while page := change_in(db, lambda context: prune_page(context.tx, now=context.now, age=age)):
            total += page
        outcome = {"events": total.events, "encounters": total.encounters, "estimates": total.estimates}
        change_in(db, lambda context: context.record("queue.pruned", **outcome, days=age.days))
    if as_json:
        print_json(outcome)
    else:
        say("Deleted: {events} events of {encounters} encounters, {estimates} estimates.".format(**outcome))


def _age(text: str) -> timedelta:
    found = _AGE.fullmatch(text)
    age = timedelta(days=int(found.group(1))) if found else timedelta(0)
    if age < MIN_AGE:
        raise typer.BadParameter(
            f"must be whole days such as 90d, {MIN_AGE.days}d at least", param_hint="--older-than"
        )
    return age
