"""`frontdesk queue watch` and `queue accuracy`: the queues as they are now, and how accurate the estimates were."""

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
from frontdesk.cli.command_group import migrated_database
from frontdesk.cli.options import Json, OnlyAccount
from frontdesk.cli.output import Output, console, heading, settings, table
from frontdesk.clock import system_clock, wire_time
from frontdesk.db import Tx
from frontdesk.errors import Unavailable
from frontdesk.plans import list_plans
from frontdesk.queues import list_outcomes
from frontdesk.queues.model import WaitOutcome
from frontdesk.queues.queue_state import measure_accuracy, queue_rules, queue_state

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
    queues = queue_state(tx, account_id, now, queue_rules(settings()))
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


def minutes_text(seconds: float) -> str:
    minutes, rest = divmod(round(abs(seconds)), 60)
    return f"{'-' if seconds < 0 else ''}{minutes}:{rest:02d} min"


def share_text(share: float | None) -> str | None:
    return None if share is None else f"{share:.0%}"


def _interval_text(interval: dict[str, Any]) -> str | None:
    if not interval["high"]:
        return None
    return f"{minutes_text(interval['low']).removesuffix(' min')} to {minutes_text(interval['high'])}"


def _error_text(last_hour: dict[str, Any]) -> str | None:
    if not last_hour["matched"]:
        return None
    return f"{minutes_text(last_hour['mean_error_seconds'])} ({last_hour['matched']} patients)"


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
    longest = max([hour["mean_error_seconds"] for hour in by_hour] + [1.0])
    lines = []
    for hour in by_hour:
        error = hour["mean_error_seconds"]
        bar = "█" * round(error / longest * BAR_WIDTH)
        lines.append(f"{hour['hour'][5:13].replace('T', ' ')}h {bar:<{BAR_WIDTH}} {minutes_text(error)}")
    return lines
