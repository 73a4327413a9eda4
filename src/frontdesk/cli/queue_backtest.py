"""`frontdesk queue backtest`: replays a known past, and shows how wrong the wait estimate would have been. Stores nothing."""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Annotated, Any, NamedTuple, NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from rich.progress import MofNCompleteColumn
from rich.table import Table

from frontdesk.cli.command_group import migrated_database
from frontdesk.cli.output import (
    FAILED,
    MISUSED,
    Output,
    Part,
    bars,
    fail,
    heading,
    minutes_text,
    opened_file,
    progress,
    settings,
    share_text,
    table,
)
from frontdesk.clock import system_clock
from frontdesk.config import Config
from frontdesk.db import Tx
from frontdesk.plans import list_plans
from frontdesk.queues.backtest.encounters_csv import (
    EncounterEvents,
    RowFault,
    encounter_events,
    read_encounters,
)
from frontdesk.queues.backtest.judge import (
    POSITIONS,
    BacktestFigures,
    BacktestResult,
    BacktestWarning,
    by_hour,
    by_plan,
    by_position,
    figures_of,
    run_backtest,
    warnings_of,
    warnings_of_file,
)
from frontdesk.queues.model import INTERVAL_SHARE, EstimateAccuracy
from frontdesk.queues.store.events import list_history

# The events of a day before the judged ones tell the past that an estimate starts from.
PAST = timedelta(days=1)
FAULTS_SHOWN = 20
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


class _Past(NamedTuple):
    """What is replayed: the events, the names of their plans, and from when on patients are judged, in seconds since 1970."""

    told: EncounterEvents
    since: float
    left_out: int = 0
    warnings: Sequence[BacktestWarning] = ()


def backtest(
    days: Annotated[int, typer.Option(help="How many days to judge, the latest.", min=1, max=366)] = 30,
    csv_file: Annotated[
        str | None,
        typer.Option(
            "--csv",
            metavar="FILE",
            help="Encounters to replay instead of the stored events; - is stdin. "
            "Columns: joined, started, ended, left, doctor, plan.",
        ),
    ] = None,
    *,
    time_zone: Annotated[
        str | None,
        typer.Option(
            "--time-zone",
            metavar="ZONE",
            help="Of times without an offset in the CSV, such as America/New_York. Without it they are UTC.",
        ),
    ] = None,
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Leave out rows of the CSV that have faults.")
    ] = False,
) -> Output:
    """Replay past queues and compare the estimate that each patient would have got with the wait that came.

    Beside it stand the rules that others use. Nothing is stored. With --csv no database is needed.

    Example: frontdesk queue backtest --days 30
    """
    config = settings()
    zone = None if time_zone is None else _zone(time_zone)
    past = _stored(config, days) if csv_file is None else _from_csv(csv_file, days, zone, skip_bad_rows)
    with _progress(past.warnings) as show:
        found = run_backtest(past.told.events, since=past.since, progress=show)
    warnings = [*past.warnings, *warnings_of(past.told.events, found)]
    counts = {
        "days": days,
        "judged": len(found.judged),
        "left_unseen": found.left,
        "nobody_on_duty": found.unattended,
        "bad_rows": past.left_out,
        "rows_without_end": past.told.without_end,
    }
    return _report(counts, found, past.told.plans, warnings=warnings, with_ids=csv_file is None)


def _stored(config: Config, days: int) -> _Past:
    since = system_clock() - timedelta(days=days)

    def read(tx: Tx) -> EncounterEvents:
        names = {plan.id: plan.name for plan in list_plans(tx, None)}
        return EncounterEvents(list(list_history(tx, since - PAST)), names)

    with migrated_database(config) as db:
        return _Past(db.ask(read), since.timestamp())


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        fail(
            "The time zone is not known here. Give a name of the system's time zone database, such as America/New_York.",
            status=MISUSED,
        )


def _from_csv(path: str, days: int, zone: ZoneInfo | None, skip_bad_rows: bool) -> _Past:
    with opened_file(path, "rb", "The file can't be read: {}.") as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        found = read_encounters(text, zone)
        text.detach()  # `opened_file` closes the stream
    warnings = list(warnings_of_file(found))
    if found.faults and not (skip_bad_rows and found.rows):
        _refuse(found.faults, warnings)
    told = encounter_events(found.rows)
    until = max((event.at for event in told.events), default=0.0)
    since = until - timedelta(days=days).total_seconds()
    return _Past(told, since, found.faulty_rows, warnings)


def _refuse(faults: Sequence[RowFault], warnings: Iterable[BacktestWarning]) -> NoReturn:
    lines = [f"line {line}: {fault.field} {fault.message}" for line, fault in faults[:FAULTS_SHOWN]]
    if len(faults) > FAULTS_SHOWN:
        lines.append(f"and {len(faults) - FAULTS_SHOWN} more")
    remedy = "Correct the rows, or leave them out with --skip-bad-rows."
    fail("\n".join(["The file has faults.", *lines, *map(_warning_text, warnings), remedy]), status=FAILED)


@contextmanager
def _progress(warnings: Iterable[BacktestWarning]) -> Iterator[Callable[[int, int], None]]:
    """On a terminal: the warnings about the file, since judging may take minutes, and how far it is."""
    with progress(MofNCompleteColumn()) as bar:
        if bar.console.is_terminal:
            for warning in warnings:
                bar.console.print(_warning_text(warning))
        task = bar.add_task("judging", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _report(
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
        return Output(counts | {"warnings": warned}, [*map(_warning_text, warnings), nothing])
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
        *map(_warning_text, warnings),
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


def _warning_text(warning: BacktestWarning) -> str:
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
    own = figures.accuracy
    return {
        "patients": own.matched,
        "mean_wait_seconds": round(own.mean_wait_seconds, 1),
        "p90_error_seconds": round(own.p90_error_seconds, 1),
        **_errors(own),
        "interval": {
            "share": INTERVAL_SHARE,
            "inside": _rounded(own.coverage_share),
            "below": _rounded(figures.below_share),
            "above": _rounded(figures.above_share),
        },
        "best_rival": figures.best_rival[0],
        "below_best_rival": _rounded(_below(figures)),
        "rivals": [{"name": name} | _errors(rival) for name, rival in figures.rivals.items()],
    }


def _errors(one: EstimateAccuracy) -> dict[str, float | None]:
    return {
        "mean_error_seconds": round(one.mean_error_seconds, 1),
        "bias_seconds": round(one.bias_seconds, 1),
        "wrong_zero_share": _rounded(one.wrong_zero_share),
    }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 3)


def _below(figures: BacktestFigures) -> float | None:
    best = figures.best_rival[1].mean_error_seconds
    return 1 - figures.accuracy.mean_error_seconds / best if best else None


def _positions(first: int) -> str:
    if first == 0:
        return "ready"
    last = next((after - 1 for after in POSITIONS if after > first), None)
    return f"{first} and more" if last is None else str(first) if last == first else f"{first} to {last}"


def _estimators(figures: BacktestFigures) -> Table:
    everyone = {"frontdesk": figures.accuracy} | figures.rivals
    rows = [
        (
            name,
            minutes_text(one.mean_error_seconds),
            minutes_text(one.bias_seconds),
            share_text(one.wrong_zero_share),
        )
        for name, one in everyone.items()
    ]
    return table(("estimator", "mean error", "bias", "told 0, waited"), rows)


def _outside(figures: BacktestFigures) -> str:
    shares = figures.accuracy.coverage_share, figures.below_share, figures.above_share
    inside, shorter, longer = map(share_text, shares)
    if inside is None:
        return "In the interval: no patient had a wait to expect."
    meant = f"{INTERVAL_SHARE:.0%} is meant"
    return f"In the interval: {inside} of the waits that were expected ({meant}); shorter {shorter}, longer {longer}."


def _table(noun: str, groups: Mapping[str, BacktestFigures]) -> Table:
    rows = []
    for name, figures in groups.items():
        own, (best, accuracy) = figures.accuracy, figures.best_rival
        seconds = own.mean_wait_seconds, own.mean_error_seconds, own.bias_seconds
        shares = own.coverage_share, own.wrong_zero_share
        rival = best, minutes_text(accuracy.mean_error_seconds), share_text(_below(figures))
        rows.append((name, own.matched, *map(minutes_text, seconds), *map(share_text, shares), *rival))
    return table((noun, *COLUMNS), rows)


def _chart(hours: Mapping[int, BacktestFigures]) -> list[str]:
    heads = [head for hour in hours for head in (f"{hour:02d}h", "   ")]
    errors = [each.mean_error_seconds for one in hours.values() for each in (one.accuracy, one.best_rival[1])]
    return bars(heads, errors, width=BAR_WIDTH, marks="█░")
