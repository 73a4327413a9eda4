"""`frontdesk queue`: the plans' encounter queues, as they are now and as the estimates had them.
Patients are opaque references; no name is stored.
"""

import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from frontdesk.cli.command_group import (
    CommandContext,
    CommandGroup,
    ask,
    change_in,
    migrated_database,
)
from frontdesk.cli.layout import Part, console, heading, minutes_text, table
from frontdesk.cli.options import OnlyAccount, PlanId, option, reach_of, read_text
from frontdesk.cli.output import Output, listing, settings
from frontdesk.cli.queue_backtest import accuracy_item, backtest
from frontdesk.clock import system_clock
from frontdesk.db import Tx
from frontdesk.errors import Unavailable
from frontdesk.interface import present
from frontdesk.plans import get_plan
from frontdesk.queues import list_outcomes, list_waiting
from frontdesk.queues.board import PlanBoard, read_board
from frontdesk.queues.ingest import set_waiting
from frontdesk.queues.model import WaitOutcome, accuracy_of, measure_accuracy
from frontdesk.queues.upkeep import DEFAULT_AGE, MIN_AGE
from frontdesk.queues.upkeep import prune as prune_page
from frontdesk.queues.upkeep import rebuild as rebuild_all
from frontdesk.reach import EVERY, Reach
from frontdesk.text import wire_time

Patient = Annotated[
    str,
    option(
        "Opaque reference of the patient; never a name, an e-mail or a phone number.", metavar="REF"
    ),
]

_AGE = re.compile(r"([1-9][0-9]{0,3})d")
BOARD_COLUMNS = (
    "plan_id name doctors doctors_with_patients doctors_paused queue_length wait interval "
    "last_hour.matched last_hour.mean_error_seconds"
)
ACCURACY_COLUMNS = (
    "plan_id matched mean_wait_seconds mean_error_seconds p90_error_seconds bias_seconds "
    "wrong_zero_share coverage_share"
)

commands = CommandGroup("queue")
commands.standalone("backtest", "--days 30")(backtest)


@commands.change("join", "--plan 1 --patient visit-4711")
def join(context: CommandContext, plan: PlanId, patient: Patient) -> Output:
    """Let a patient join a plan's queue; a patient that waits there already keeps the place."""
    return _move(context, plan, patient, waiting=True)


@commands.change("leave", "--plan 1 --patient visit-4711")
def leave(context: CommandContext, plan: PlanId, patient: Patient) -> Output:
    """Let a patient leave a plan's queue."""
    return _move(context, plan, patient, waiting=False)


def _move(context: CommandContext, plan: int, patient: str, *, waiting: bool) -> Output:
    reference = read_text("patient", patient)
    account_id = get_plan(context.tx, EVERY, plan).account_id
    changed = set_waiting(context.tx, plan, reference, waiting=waiting, now=context.now)
    if changed:
        action = "queue.joined" if waiting else "queue.left"
        context.record(action, account_id=account_id, subject_id=plan, patient=reference)
    outcome = {"plan_id": plan, "patient": reference, "waiting": waiting, "changed": changed}
    states = {
        (True, True): "now waits",
        (True, False): "waits already",
        (False, True): "waits no longer",
    }
    state = states.get((waiting, changed), "was not waiting")
    return Output(outcome, [f"Patient {reference} {state} in the queue of plan {plan}."])


@commands.query("list", "--json")
def list_(
    tx: Tx,
    *,
    booked: Annotated[
        bool, option("List the booked patients instead, by their time.", "--booked")
    ] = False,
) -> Output:
    """List the waiting patients by plan, in the order in which they are served.

    Booked patients are in the line from their time on.
    """
    time_name = "not_before" if booked else "joined_at"
    items = [
        {
            "plan_id": patient.plan_id,
            "patient": patient.patient,
            time_name: patient.joined_at,
            "class": patient.patient_class,
            "priority": patient.priority,
        }
        for patient in list_waiting(tx, system_clock(), booked=booked)
    ]
    nothing = "Nobody is booked for later." if booked else "Nobody is waiting."
    return listing(items, f"plan_id patient {time_name} class priority", nothing=nothing)


@commands.change("rebuild", "")
def rebuild(context: CommandContext) -> Output:
    """Rebuild the waiting patients and the doctors on duty from the stored events; new events wait
    meanwhile.
    """
    outcome = rebuild_all(context.tx)
    context.record("queue.rebuilt", **outcome)
    found = (
        "{mended} rows were wrong and are corrected."
        if outcome["mended"]
        else "All rows were correct."
    )
    sentence = "The events lead to {encounters} encounters and {doctors} doctors. " + found
    return Output(outcome, [sentence.format_map(outcome)])


@commands.standalone("prune", "--older-than 90d")
def prune(
    older_than: Annotated[
        str, option("Age in days, such as 90d; 8d is the least.", metavar="AGE")
    ] = f"{DEFAULT_AGE.days}d",
) -> Output:
    """Delete events of ended encounters, and estimates, of that age; data of present queues stays.

    Workers delete data that is older than 90 days; use this command for a shorter time.
    """
    age = _age(older_than)
    outcome = Counter(events=0, encounters=0, estimates=0)
    with migrated_database(settings()) as db:
        # A page at a time, so that new events wait for a moment only.
        while page := change_in(
            db, lambda context: prune_page(context.tx, now=context.now, age=age)
        ):
            outcome.update(page)
        change_in(db, lambda context: context.record("queue.pruned", **outcome, days=age.days))
    sentence = "Deleted: {events} events of {encounters} encounters, {estimates} estimates."
    return Output(outcome, [sentence.format(**outcome)])


def _age(text: str) -> timedelta:
    found = _AGE.fullmatch(text)
    age = timedelta(days=int(found.group(1))) if found else timedelta(0)
    if age < MIN_AGE:
        raise typer.BadParameter(
            f"must be whole days such as 90d, {MIN_AGE.days}d at least", param_hint="--older-than"
        )
    return age


@commands.standalone("watch", "--every 1")
def watch(
    account: OnlyAccount = None,
    every: Annotated[float, option("Seconds between looks.", min=0.2, max=3600)] = 2.0,
    *,
    once: Annotated[bool, option("Print the board once and stop.", "--once")] = False,
) -> Output:
    """Show the plans' queues, and the error of the last hour's estimates, until Ctrl-C."""
    reach = reach_of(account)
    items = ask(lambda tx: _board_items(tx, reach))
    is_live = sys.stdout.isatty() and not once
    return Output(items, _watched(reach, every) if is_live else _board_parts(items))


def _watched(reach: Reach, every: float) -> Iterator[Part]:
    """The board is drawn anew below the only part."""
    yield "Until Ctrl-C:"
    with migrated_database(settings()) as db, Live(console=console(), auto_refresh=False) as live:
        while True:
            with suppress(Unavailable):  # the last board stays until the database answers again
                items = db.ask(lambda tx: _board_items(tx, reach))
                live.update(Group(*_board_parts(items)), refresh=True)
            time.sleep(every)


def _board_items(tx: Tx, reach: Reach) -> list[dict[str, Any]]:
    """The plans of the board by id."""
    board = read_board(tx, reach, system_clock())
    of_plans = [of_plan for group in board.groups for of_plan in group.plans]
    return [_board_item(each) for each in sorted(of_plans, key=lambda each: each.plan.id)]


def _board_item(of_plan: PlanBoard) -> dict[str, Any]:
    plan = of_plan.plan
    last_hour = of_plan.last_hour
    return {
        "plan_id": plan.id,
        "external_id": plan.external_id,
        "name": plan.name,
        "provider_group_id": plan.provider_group.id,
        "doctors": of_plan.doctors,
        "doctors_with_patients": of_plan.busy_doctors,
        "doctors_paused": of_plan.paused_doctors,
        **present.queue(of_plan.info),
        "interval": present.queue_interval(of_plan.info),
        "last_hour": {
            "matched": last_hour.matched if last_hour else 0,
            "mean_error_seconds": round(last_hour.mean_error_seconds) if last_hour else None,
        },
    }


def _board_parts(items: list[dict[str, Any]]) -> tuple[Text, Table]:
    texts = {"wait": _wait_text, "interval": _interval_text}
    rows = [item | {name: text(item) for name, text in texts.items()} for item in items]
    return heading(f"Queues at {system_clock():%H:%M:%S} UTC"), table(rows, BOARD_COLUMNS)


def _wait_text(item: dict[str, Any]) -> str:
    seconds = item["estimated_wait_time"]
    if seconds < 0:
        return "nobody on duty"
    return "none" if seconds == 0 else minutes_text(seconds)


def _interval_text(item: dict[str, Any]) -> str | None:
    low = item["interval"]["low"]
    high = item["interval"]["high"]
    return f"{minutes_text(low).removesuffix(' min')} to {minutes_text(high)}" if high else None


@commands.query("accuracy", "--hours 24")
def accuracy(
    tx: Tx,
    hours: Annotated[int, option("How far to look back, in hours.", min=1, max=24 * 90)] = 24,
) -> Output:
    """Compare the estimates with the waits that followed: the first patient that joined under each
    estimate.

    A bias above zero means that patients waited less than estimated.
    """
    outcomes = list_outcomes(tx, EVERY, system_clock() - timedelta(hours=hours))
    items = [{"plan_id": plan.plan_id} | accuracy_item(plan) for plan in measure_accuracy(outcomes)]
    by_hour = _by_hour(outcomes)
    result = {"hours": hours, "plans": items, "by_hour": by_hour}
    if not items:
        return Output(
            result, [f"No patient with an estimate of the last {hours} h has been seen yet."]
        )
    return Output(
        result, [table(items, ACCURACY_COLUMNS), table(by_hour, "hour matched mean_error_seconds")]
    )


def _by_hour(outcomes: Sequence[WaitOutcome]) -> list[dict[str, Any]]:
    hours: defaultdict[str, list[WaitOutcome]] = defaultdict(list)
    for outcome in outcomes:
        hours[wire_time(outcome.joined_at.replace(minute=0, second=0))].append(outcome)
    return [{"hour": hour} | accuracy_item(accuracy_of(own)) for hour, own in sorted(hours.items())]
