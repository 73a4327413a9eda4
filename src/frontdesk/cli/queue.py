"""`frontdesk queue`: the plans' encounter queues. Patients are opaque references; no name is stored."""

import re
from datetime import timedelta
from typing import Annotated

import typer

from frontdesk.cli.command_group import CommandContext, CommandGroup, change_in, migrated_database
from frontdesk.cli.options import PlanId, read_text
from frontdesk.cli.output import Output, listing, settings
from frontdesk.cli.queue_backtest import backtest
from frontdesk.cli.queue_live import accuracy, watch
from frontdesk.db import Tx
from frontdesk.plans import get_plan
from frontdesk.queues import list_waiting
from frontdesk.queues.ingest import set_waiting
from frontdesk.queues.model import PruneReport
from frontdesk.queues.upkeep import DEFAULT_AGE, MIN_AGE
from frontdesk.queues.upkeep import prune as prune_page
from frontdesk.queues.upkeep import rebuild as rebuild_all

Patient = Annotated[
    str,
    typer.Option(
        metavar="REF", help="Opaque reference of the patient; never a name, an e-mail or a phone number."
    ),
]

_AGE = re.compile(r"([1-9][0-9]{0,3})d")


def _age(text: str) -> timedelta:
    found = _AGE.fullmatch(text)
    age = timedelta(days=int(found.group(1))) if found else timedelta(0)
    if age < MIN_AGE:
        raise typer.BadParameter(
            f"must be whole days such as 90d, {MIN_AGE.days}d at least", param_hint="--older-than"
        )
    return age


commands = CommandGroup()
commands.command("watch")(watch)
commands.query("accuracy")(accuracy)
commands.standalone("backtest")(backtest)


@commands.change("join")
def join(context: CommandContext, plan: PlanId, patient: Patient) -> Output:
    """Let a patient join a plan's queue; a patient that waits there already keeps the place.

    Example: frontdesk queue join --plan 1 --patient visit-4711
    """
    return _move(context, plan, patient, waiting=True)


@commands.change("leave")
def leave(context: CommandContext, plan: PlanId, patient: Patient) -> Output:
    """Let a patient leave a plan's queue.

    Example: frontdesk queue leave --plan 1 --patient visit-4711
    """
    return _move(context, plan, patient, waiting=False)


def _move(context: CommandContext, plan: int, patient: str, *, waiting: bool) -> Output:
    reference = read_text("patient", patient)
    account_id = get_plan(context.tx, None, plan).account_id
    changed = set_waiting(context.tx, plan, reference, waiting=waiting, now=context.now)
    if changed:
        action = "queue.joined" if waiting else "queue.left"
        context.record(action, account_id=account_id, subject_id=plan, patient=reference)
    outcome = {"plan_id": plan, "patient": reference, "waiting": waiting, "changed": changed}
    states = {(True, True): "now waits", (True, False): "waits already", (False, True): "waits no longer"}
    state = states.get((waiting, changed), "was not waiting")
    return Output(outcome, [f"Patient {reference} {state} in the queue of plan {plan}."])


@commands.query("list")
def list_(tx: Tx) -> Output:
    """List the waiting patients, in order of arrival by plan.

    Example: frontdesk queue list --json
    """
    items = [waiting._asdict() for waiting in list_waiting(tx)]
    return listing(items, "plan_id patient joined_at", nothing="Nobody is waiting.")


@commands.change("rebuild")
def rebuild(context: CommandContext) -> Output:
    """Rebuild the waiting patients and the doctors on duty from the stored events; new events wait meanwhile.

    Example: frontdesk queue rebuild
    """
    report = rebuild_all(context.tx)
    wrong = report.corrected
    outcome = {"encounters": report.encounters, "doctors": report.doctors, "mended": wrong}
    context.record("queue.rebuilt", **outcome)
    found = f"{wrong} rows were wrong and are corrected." if wrong else "All rows were correct."
    sentence = f"The events lead to {report.encounters} encounters and {report.doctors} doctors. {found}"
    return Output(outcome, [sentence])


@commands.standalone("prune")
def prune(
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Age in days, such as 90d; 8d is the least.")
    ] = f"{DEFAULT_AGE.days}d",
) -> Output:
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
    sentence = "Deleted: {events} events of {encounters} encounters, {estimates} estimates."
    return Output(outcome, [sentence.format(**outcome)])
