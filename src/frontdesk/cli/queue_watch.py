"""`frontdesk queue watch`: the queues on a live board in the terminal, as they are now; it changes nothing."""

import sys
import time
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from frontdesk.access import get_account
from frontdesk.cli.installation import migrated_database
from frontdesk.cli.options import Json, OnlyAccount
from frontdesk.cli.output import build_table, console, print_json, settings
from frontdesk.clock import system_clock
from frontdesk.db import Tx
from frontdesk.errors import Unavailable
from frontdesk.plans import list_plans
from frontdesk.queues import list_outcomes, measure_accuracy, queue_rules, queue_state
from frontdesk.queues.model import QueueRules

LATELY = timedelta(hours=1)
COLUMNS = ("plan", "name", "doctors", "with patients", "waiting", "wait", "told in the last hour")


def watch(
    account: OnlyAccount = None,
    *,
    every: Annotated[float, typer.Option(help="Seconds between looks.", min=0.2, max=3600)] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print the board once and stop.")] = False,
    as_json: Json = False,
) -> None:
    """Show the plans' queues and how right the last hour's estimates were, until Ctrl-C.

    Example: frontdesk queue watch --every 1
    """
    config = settings()
    rules = queue_rules(config)
    with migrated_database(config) as db:
        if account is not None:
            db.ask(lambda tx: get_account(tx, account))
        items = db.ask(lambda tx: board(tx, account, system_clock(), rules))
        if as_json:
            print_json(items)
        elif once or not sys.stdout.isatty():
            console().print(_picture(items))
        else:
            with Live(_picture(items), console=console(), auto_refresh=False, screen=False) as live:
                while True:
                    time.sleep(every)
                    try:
                        items = db.ask(lambda tx: board(tx, account, system_clock(), rules))
                    except Unavailable:
                        continue  # the last board stays until the database answers again
                    live.update(_picture(items), refresh=True)


def board(tx: Tx, account_id: int | None, now: datetime, rules: QueueRules) -> list[dict[str, Any]]:
    """Each plan with its queue, and how right its estimates were."""
    lines = queue_state(tx, account_id, now, rules)
    told = {accuracy.plan_id: accuracy for accuracy in measure_accuracy(list_outcomes(tx, now - LATELY))}
    items = []
    for plan in list_plans(tx, account_id):
        line, accuracy = lines[plan.id], told.get(plan.id)
        items.append(
            {
                "plan_id": plan.id,
                "external_id": plan.external_id,
                "name": plan.name,
                "provider_group_id": plan.provider_group.id,
                "doctors": line.doctors,
                "doctors_with_patients": line.in_visit,
                "queue_length": line.info.queue_length,
                "estimated_wait_time": line.info.estimated_wait_seconds,
                "is_active": line.info.doctors_on_duty,
                "last_hour": {
                    "matched": accuracy.matched if accuracy else 0,
                    "mean_error_seconds": round(accuracy.mean_error_seconds) if accuracy else None,
                },
            }
        )
    return items


def _picture(items: list[dict[str, Any]]) -> Group:
    rows = [
        (
            item["plan_id"],
            item["name"],
            item["doctors"],
            item["doctors_with_patients"],
            item["queue_length"],
            wait_text(item["estimated_wait_time"]),
            _told(item["last_hour"]),
        )
        for item in items
    ]
    return Group(Text(f"Queues at {system_clock():%H:%M:%S} UTC", style="bold"), build_table(COLUMNS, rows))


def wait_text(seconds: int) -> str:
    """A wait as people read it."""
    if seconds < 0:
        return "nobody on duty"
    return "none" if seconds == 0 else minutes_text(seconds)


def minutes_text(seconds: float) -> str:
    minutes, rest = divmod(round(abs(seconds)), 60)
    return f"{'-' if seconds < 0 else ''}{minutes}:{rest:02d} min"


def _told(last_hour: dict[str, Any]) -> str | None:
    if not last_hour["matched"]:
        return None
    return f"off by {minutes_text(last_hour['mean_error_seconds'])} ({last_hour['matched']} patients)"
