"""`frontdesk queue`: the plans' encounter queues, as they are now and as the estimates had them. Patients are opaque references;
no name is stored."""

import re
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from frontdesk.access.accounts import get_account
from frontdesk.cli.command_group import CommandContext, CommandGroup, change_in, migrated_database
from frontdesk.cli.options import Json, OnlyAccount, PlanId, read_text
from frontdesk.cli.output import (
    Output,
    bars,
    console,
    heading,
    listing,
    minutes_text,
    settings,
    share_text,
    table,
)
from frontdesk.cli.queue_backtest import backtest
from frontdesk.clock import system_clock, wire_time
from frontdesk.db import Tx
from frontdesk.errors import Unavailable
from frontdesk.plans import get_plan, list_plans
from frontdesk.queues import list_outcomes, list_waiting
from frontdesk.queues.ingest import set_waiting
from frontdesk.queues.model import PruneReport, WaitOutcome
from frontdesk.queues.queue_state import measure_accuracy, queue_state
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
RECENT = timedelta(hours=1)
BOARD_COLUMNS = (
    "plan",
    "name",
    "doctors",
    "with patients",
    "waiting",
    "wait",
    "8 of 10",
    "error in the last hour",
)
ACCURACY_COLUMNS = (
    "plan",
    "patients",
    "mean wait",
    "mean error",
    "bias",
    "error of 90 %",
    "told 0, waited",
    "in interval",
)
BAR_WIDTH = 40

commands = CommandGroup()
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


def _age(text: str) -> timedelta:
    found = _AGE.fullmatch(text)
    age = timedelta(days=int(found.group(1))) if found else timedelta(0)
    if age < MIN_AGE:
        raise typer.BadParameter(
            f"must be whole days such as 90d, {MIN_AGE.days}d at least", param_hint="--older-than"
        )
    return age


@commands.command("watch")
def watch(
    account: OnlyAccount = None,
    every: Annotated[float, typer.Option(help="Seconds between looks.", min=0.2, max=3600)] = 2.0,
    *,
    once: Annotated[bool, typer.Option("--once", help="Print the board once and stop.")] = False,
    as_json: Json = False,
) -> None:
    """Show the plans' queues, and the error of the last hour's estimates, until Ctrl-C.

    Example: frontdesk queue watch --every 1
    """
    with migrated_database(settings()) as db:
        if account is not None:
            db.ask(lambda tx: get_account(tx, account))
        items = db.ask(lambda tx: board(tx, account))
        if as_json or once or not sys.stdout.isatty():
            Output(items, _board_parts(items)).print(as_json=as_json)
            return
        with Live(Group(*_board_parts(items)), console=console(), auto_refresh=False, screen=False) as live:
            while True:
                time.sleep(every)
                try:
                    items = db.ask(lambda tx: board(tx, account))
                except Unavailable:
                    continue  # the last board stays until the database answers again
                live.update(Group(*_board_parts(items)), refresh=True)


def board(tx: Tx, account_id: int | None) -> list[dict[str, Any]]:
    """Each plan with its queue, and the accuracy of the last hour's estimates."""
    now = system_clock()
    queues = queue_state(tx, account_id, now)
    measured = {of_plan.plan_id: of_plan for of_plan in measure_accuracy(list_outcomes(tx, now - RECENT))}
    items = []
    for plan in list_plans(tx, account_id):
        queue, of_plan = queues[plan.id], measured.get(plan.id)
        item = {
            "plan_id": plan.id,
            "external_id": plan.external_id,
            "name": plan.name,
            "provider_group_id": plan.provider_group.id,
            "doctors": queue.doctors,
            "doctors_with_patients": queue.in_visit,
            **queue.info.serialize(),
            "interval": queue.info.serialize_interval(),
            "last_hour": {
                "matched": of_plan.matched if of_plan else 0,
                "mean_error_seconds": round(of_plan.mean_error_seconds) if of_plan else None,
            },
        }
        items.append(item)
    return items


def _board_parts(items: list[dict[str, Any]]) -> tuple[Text, Table]:
    columns = ("plan_id", "name", "doctors", "doctors_with_patients", "queue_length")
    rows = [
        (
            *(item[column] for column in columns),
            _wait_text(item["estimated_wait_time"]),
            _interval_text(item["interval"]),
            _error_text(item["last_hour"]),
        )
        for item in items
    ]
    return heading(f"Queues at {system_clock():%H:%M:%S} UTC"), table(BOARD_COLUMNS, rows)


def _wait_text(seconds: int) -> str:
    if seconds < 0:
        return "nobody on duty"
    return "none" if seconds == 0 else minutes_text(seconds)


def _interval_text(interval: dict[str, Any]) -> str | None:
    if not interval["high"]:
        return None
    return f"{minutes_text(interval['low']).removesuffix(' min')} to {minutes_text(interval['high'])}"


def _error_text(last_hour: dict[str, Any]) -> str | None:
    if not last_hour["matched"]:
        return None
    return f"{minutes_text(last_hour['mean_error_seconds'])} ({last_hour['matched']} patients)"


@commands.query("accuracy")
def accuracy(
    tx: Tx, hours: Annotated[int, typer.Option(help="How far to look back.", min=1, max=24 * 90)] = 24
) -> Output:
    """Compare the estimates with the waits that followed: the first patient that joined under each estimate.

    A bias above zero means that patients waited less than the estimate said.

    Example: frontdesk queue accuracy --hours 24
    """
    outcomes = list_outcomes(tx, system_clock() - timedelta(hours=hours))
    plans, by_hour = measure_accuracy(outcomes), _by_hour(outcomes)
    items = [
        {
            name: value if value is None else round(value, 3 if "share" in name else 1)
            for name, value in row.items()
        }
        for row in (plan._asdict() for plan in plans)
    ]
    result = {"hours": hours, "plans": items, "by_hour": by_hour}
    if not plans:
        return Output(result, [f"No patient with an estimate of the last {hours} h has been seen yet."])
    rows = [
        (plan.plan_id, plan.matched, *map(minutes_text, plan[2:6]), *map(share_text, plan[6:]))
        for plan in plans
    ]
    return Output(
        result, [table(ACCURACY_COLUMNS, rows), heading("Mean error by hour (UTC)"), *chart(by_hour)]
    )


def _by_hour(outcomes: Sequence[WaitOutcome]) -> list[dict[str, Any]]:
    errors: defaultdict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        hour = wire_time(outcome.joined_at.replace(minute=0, second=0))
        errors[hour].append(abs(outcome.estimate_seconds - outcome.wait_seconds))
    return [
        {"hour": hour, "matched": len(own), "mean_error_seconds": round(sum(own) / len(own), 1)}
        for hour, own in sorted(errors.items())
    ]


def chart(by_hour: Sequence[dict[str, Any]]) -> list[str]:
    """A bar for each hour, the longest one BAR_WIDTH wide."""
    heads = [f"{hour['hour'][5:13].replace('T', ' ')}h" for hour in by_hour]
    return bars(heads, [hour["mean_error_seconds"] for hour in by_hour], width=BAR_WIDTH)
