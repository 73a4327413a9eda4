"""The report of a back-test: figures for programs, tables and a chart for people."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from frontdesk.cli.output import Output, Part, heading, table
from frontdesk.cli.queue_live import minutes_text, share_text
from frontdesk.queues.backtest.figures import (
    POSITIONS,
    BacktestFigures,
    by_hour,
    by_plan,
    by_position,
    figures_of,
)
from frontdesk.queues.backtest.judge import BacktestResult
from frontdesk.queues.backtest.plausibility import BacktestWarning
from frontdesk.queues.model import INTERVAL_SHARE

BAR_WIDTH = 30
COLUMNS = (
    "patients",
    "mean wait",
    "mean error",
    "bias",
    "in interval",
    "told 0, waited",
    "best rival",
    "its error",
    "ours below by",
)


def backtest_report(
    counts: dict[str, int],
    found: BacktestResult,
    plans: Mapping[int, str],
    *,
    warnings: Sequence[BacktestWarning],
    with_ids: bool,
) -> Output:
    """`warnings` and `counts` go before the figures. `plans`: their names by id.

    `with_ids` false: the ids are not the service's.
    """
    judged, warned = found.judged, [warning._asdict() for warning in warnings]
    if not judged:
        nothing = "No patient that joined in the last {days} days and was seen can be judged.".format(
            **counts
        )
        return Output(counts | {"warnings": warned}, [*map(warning_text, warnings), nothing])
    everyone = figures_of(judged)
    of_plans, of_hours, of_positions = by_plan(judged), by_hour(judged), by_position(judged)
    value = counts | {
        "warnings": warned,
        "all": _item(everyone),
        "by_plan": [
            {"plan_id": id_ if with_ids else None, "plan": plans.get(id_)} | _item(one)
            for id_, one in of_plans.items()
        ],
        "by_hour": [{"hour": hour} | _item(one) for hour, one in of_hours.items()],
        "by_position": [{"position": _positions(first)} | _item(one) for first, one in of_positions.items()],
    }
    parts: list[Part] = [
        *map(warning_text, warnings),
        "{judged:,} patients judged; {left_unseen:,} left unseen, for {nobody_on_duty:,} nobody was on duty.".format(
            **counts
        ),
        *_left_out(counts),
        heading("The estimate beside the rules that others use"),
        _estimators(everyone),
        _outside(everyone),
        heading("By plan"),
        _table("plan", {_plan(id_, plans, with_ids): one for id_, one in of_plans.items()}),
        heading("By position in the line"),
        _table("position", {_positions(first): one for first, one in of_positions.items()}),
        heading("Mean error by hour of the day (UTC): the estimate, below it the best rival"),
        *_chart(of_hours),
    ]
    return Output(value, parts)


def warning_text(warning: BacktestWarning) -> str:
    return f"Warning: {warning.message}"


def _plan(id_: int, plans: Mapping[int, str], with_ids: bool) -> str:
    return f"{id_} {plans.get(id_, '')}".strip() if with_ids else plans[id_]


def _left_out(counts: Mapping[str, int]) -> list[Part]:
    rows = counts["rows_without_end"]
    if not rows:
        return []
    told = (
        "1 row tells no end of the wait and is"
        if rows == 1
        else f"{rows:,} rows tell no end of the wait and are"
    )
    return [f"{told} left out."]


def _item(figures: BacktestFigures) -> dict[str, Any]:
    own, best = figures.accuracy, figures.best_rival
    return {
        "patients": own.matched,
        "mean_wait_seconds": round(own.mean_wait_seconds, 1),
        "mean_error_seconds": round(own.mean_error_seconds, 1),
        "bias_seconds": round(own.bias_seconds, 1),
        "p90_error_seconds": round(own.p90_error_seconds, 1),
        "wrong_zero_share": _rounded(own.wrong_zero_share),
        "interval": {
            "share": INTERVAL_SHARE,
            "inside": _rounded(own.coverage_share),
            "below": _rounded(figures.below_share),
            "above": _rounded(figures.above_share),
        },
        "best_rival": best.name,
        "below_best_rival": _rounded(_below(figures)),
        "rivals": [
            {
                "name": rival.name,
                "mean_error_seconds": round(rival.mean_error_seconds, 1),
                "bias_seconds": round(rival.bias_seconds, 1),
                "wrong_zero_share": _rounded(rival.wrong_zero_share),
            }
            for rival in figures.rivals
        ],
    }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 3)


def _below(figures: BacktestFigures) -> float | None:
    best = figures.best_rival.mean_error_seconds
    return 1 - figures.accuracy.mean_error_seconds / best if best else None


def _positions(first: int) -> str:
    last = next((after - 1 for after in POSITIONS if after > first), None)
    return f"{first} and more" if last is None else str(first) if last == first else f"{first} to {last}"


def _estimators(figures: BacktestFigures) -> Table:
    ours = figures.accuracy
    rows = [
        ("frontdesk", ours.mean_error_seconds, ours.bias_seconds, ours.wrong_zero_share),
        *(
            (one.name, one.mean_error_seconds, one.bias_seconds, one.wrong_zero_share)
            for one in figures.rivals
        ),
    ]
    return table(
        ("estimator", "mean error", "bias", "told 0, waited"),
        [
            (name, minutes_text(error), minutes_text(bias), share_text(wrong))
            for name, error, bias, wrong in rows
        ],
    )


def _outside(figures: BacktestFigures) -> str:
    inside = share_text(figures.accuracy.coverage_share)
    return (
        f"In the interval: {inside} of the waits ({INTERVAL_SHARE:.0%} is promised); shorter "
        f"{figures.below_share:.0%}, longer {figures.above_share:.0%}."
    )


def _table(noun: str, groups: Mapping[str, BacktestFigures]) -> Table:
    rows = []
    for name, figures in groups.items():
        own, best = figures.accuracy, figures.best_rival
        seconds = own.mean_wait_seconds, own.mean_error_seconds, own.bias_seconds
        shares = own.coverage_share, own.wrong_zero_share
        rival = best.name, minutes_text(best.mean_error_seconds), share_text(_below(figures))
        rows.append((name, own.matched, *map(minutes_text, seconds), *map(share_text, shares), *rival))
    return table((noun, *COLUMNS), rows)


def _chart(hours: Mapping[int, BacktestFigures]) -> list[str]:
    errors = {
        hour: (one.accuracy.mean_error_seconds, one.best_rival.mean_error_seconds)
        for hour, one in hours.items()
    }
    longest = max([error for pair in errors.values() for error in pair] + [1.0])
    lines = []
    for hour, pair in errors.items():
        for head, mark, error in zip((f"{hour:02d}h", "   "), "█░", pair, strict=True):
            bar = mark * round(error / longest * BAR_WIDTH)
            lines.append(f"{head} {bar:<{BAR_WIDTH}} {minutes_text(error)}")
    return lines
