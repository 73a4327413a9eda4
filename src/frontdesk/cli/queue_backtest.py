"""`frontdesk queue backtest`: replays a known past, and shows how wrong the wait estimate would have been. Stores nothing."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Annotated, NamedTuple, NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from frontdesk.cli.backtest_report import backtest_report, warning_text
from frontdesk.cli.command_group import migrated_database
from frontdesk.cli.output import FAILED, MISUSED, Output, fail, opened_file, settings
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
from frontdesk.queues.backtest.judge import run_backtest
from frontdesk.queues.backtest.plausibility import BacktestWarning, warnings_of, warnings_of_file
from frontdesk.queues.queue_state import queue_rules
from frontdesk.queues.store.history import list_history

# The events of a day before the judged ones tell the past that an estimate starts from.
PAST = timedelta(days=1)
FAULTS_SHOWN = 20


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
    rules, zone = queue_rules(config), None if time_zone is None else _zone(time_zone)
    past = _stored(config, days) if csv_file is None else _from_csv(csv_file, days, zone, skip_bad_rows)
    warnings = [*past.warnings, *warnings_of(past.told.events, since=past.since, rules=rules)]
    with _progress(warnings) as show:
        found = run_backtest(past.told.events, since=past.since, rules=rules, progress=show)
    counts = {
        "days": days,
        "judged": len(found.judged),
        "left_unseen": found.left,
        "nobody_on_duty": found.unattended,
        "bad_rows": past.left_out,
        "rows_without_end": past.told.without_end,
    }
    return backtest_report(counts, found, past.told.plans, warnings=warnings, with_ids=csv_file is None)


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
    fail("\n".join(["The file has faults.", *lines, *map(warning_text, warnings), remedy]), status=FAILED)


@contextmanager
def _progress(warnings: Iterable[BacktestWarning]) -> Iterator[Callable[[int, int], None]]:
    """On a terminal: the warnings, since judging may take minutes, and how far it is."""
    console = Console(stderr=True)
    columns = TextColumn("judging"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        if console.is_terminal:
            for warning in warnings:
                console.print(warning_text(warning))
        task = bar.add_task("judging", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
