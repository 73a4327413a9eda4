"""`frontdesk queue accuracy`: how right the estimates were that patients were shown, as a table and a small chart."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any

import typer

from frontdesk.cli.installation import ask
from frontdesk.cli.options import Json
from frontdesk.cli.output import print_heading, print_json, print_table, say
from frontdesk.cli.queue_watch import minutes_text
from frontdesk.clock import system_clock, wire_time
from frontdesk.queues import list_outcomes, measure_accuracy
from frontdesk.queues.model import EstimateAccuracy, WaitOutcome

COLUMNS = ("plan", "patients", "mean wait", "mean error", "bias", "error of 90 %")
BAR = 40


def accuracy(
    *,
    hours: Annotated[int, typer.Option(help="How far to look back.", min=1, max=24 * 90)] = 24,
    as_json: Json = False,
) -> None:
    """Compare the waits that were told with the waits that came: the first patient who joined under each estimate.

    A bias above zero means that patients waited less than they were told.

    Example: frontdesk queue accuracy --hours 24
    """
    outcomes = ask(lambda tx: list_outcomes(tx, system_clock() - timedelta(hours=hours)))
    plans = measure_accuracy(outcomes)
    by_hour = _by_hour(outcomes)
    if as_json:
        print_json({"hours": hours, "plans": [_item(plan) for plan in plans], "by_hour": by_hour})
        return
    if not plans:
        say(f"No patient who was told a wait in the last {hours} h has been seen yet.")
        return
    print_table(COLUMNS, [_row(plan) for plan in plans])
    print_heading("Mean error by hour (UTC)")
    for line in chart(by_hour):
        say(line)


def _item(plan: EstimateAccuracy) -> dict[str, Any]:
    return {
        "plan_id": plan.plan_id,
        "matched": plan.matched,
        "mean_wait_seconds": round(plan.mean_wait_seconds, 1),
        "mean_error_seconds": round(plan.mean_error_seconds, 1),
        "bias_seconds": round(plan.bias_seconds, 1),
        "p90_error_seconds": round(plan.p90_error_seconds, 1),
    }


def _row(plan: EstimateAccuracy) -> tuple[Any, ...]:
    seconds = (plan.mean_wait_seconds, plan.mean_error_seconds, plan.bias_seconds, plan.p90_error_seconds)
    return (plan.plan_id, plan.matched, *map(minutes_text, seconds))


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
    """A bar for each hour, the longest one BAR wide."""
    longest = max([hour["mean_error_seconds"] for hour in by_hour] + [1.0])
    return [
        f"{hour['hour'][5:13].replace('T', ' ')}h {'█' * round(hour['mean_error_seconds'] / longest * BAR):<{BAR}} "
        f"{minutes_text(hour['mean_error_seconds'])}"
        for hour in by_hour
    ]
