"""`frontdesk queue backtest`: replays past events, and shows the error of the wait estimate. Stores
nothing.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

from rich.progress import MofNCompleteColumn

from frontdesk.backtest import judge
from frontdesk.backtest.encounters_csv import EncounterEvents, encounter_events, read_encounters
from frontdesk.cli.command_group import migrated_database
from frontdesk.cli.layout import Item, Part, heading, picked, progress, table
from frontdesk.cli.options import option
from frontdesk.cli.output import MISUSED, Output, fail, opened_file, settings
from frontdesk.clock import find_time_zone, system_clock
from frontdesk.config import Config
from frontdesk.db import Tx
from frontdesk.plans import list_plans
from frontdesk.queues.model import INTERVAL_SHARE, EstimateAccuracy
from frontdesk.queues.store.events import list_history
from frontdesk.reach import EVERY

# The events of a day before the judged ones tell the past that an estimate starts from.
PAST = timedelta(days=1)
FAULTS_SHOWN = 20
ERRORS = "mean_error_seconds bias_seconds wrong_zero_share"
COLUMNS = f"matched mean_wait_seconds {ERRORS} coverage_share best_rival below_best_rival_share"


class _Past(NamedTuple):
    """The replayed past: the events, the names of their plans, and the time from which patients
    count, in seconds since 1970.
    """

    encounters: EncounterEvents
    since: float
    left_out: int = 0
    warnings: Sequence[judge.BacktestWarning] = ()


def backtest(
    days: Annotated[int, option("How many days to judge, the latest.", min=1, max=366)] = 30,
    csv_file: Annotated[
        str | None,
        option(
            (
                "Encounters to replay instead of the stored events; - is stdin. Columns: joined, "
                "started, ended, left, doctor, plan."
            ),
            "--csv",
            metavar="FILE",
        ),
    ] = None,
    *,
    time_zone: Annotated[
        str | None,
        option(
            "Of the CSV's times without an offset, such as America/New_York. Default: UTC.",
            metavar="ZONE",
        ),
    ] = None,
    skip_bad_rows: Annotated[
        bool, option("Leave out rows of the CSV that have faults.", "--skip-bad-rows")
    ] = False,
) -> Output:
    """Replay past queues and compare the estimate that each patient would have got with the wait
    that followed.

    Rules of other products are compared too. Nothing is stored. With --csv no database is needed.
    """
    config = settings()
    zone = None if time_zone is None else _zone(time_zone)
    if csv_file is None:
        past = _stored(config, days)
    else:
        past = _from_csv(csv_file, days, zone, skip_bad_rows)
    found = _judged(past)
    warnings = [*past.warnings, *judge.warnings_of(past.encounters.events, found)]
    counts = {
        "days": days,
        "judged": len(found.judged),
        "left_unseen": found.left,
        "nobody_on_duty": found.unattended,
        "bad_rows": past.left_out,
        "rows_without_end": past.encounters.without_end,
    }
    value: dict[str, Any] = counts | {"warnings": [warning._asdict() for warning in warnings]}
    sentences = _sentences(warnings)
    if not found.judged:
        none = f"No patient that joined in the last {days} days and was seen can be judged."
        return Output(value, [*sentences, none])
    figures = _figures(found.judged, past.encounters.plans, with_ids=csv_file is None)
    sentences.append(
        "{judged:,} patients judged; {left_unseen:,} left unseen, for {nobody_on_duty:,} nobody was on duty, "
        "{rows_without_end:,} rows without an end of the wait left out.".format_map(counts)
    )
    return Output(value | figures, [*sentences, *_tables(figures)])


def _judged(past: _Past) -> judge.BacktestResult:
    with progress(MofNCompleteColumn()) as bar:
        task = bar.add_task("judging", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return judge.run_backtest(past.encounters.events, since=past.since, progress=show)


def _stored(config: Config, days: int) -> _Past:
    since = system_clock() - timedelta(days=days)

    def read(tx: Tx) -> EncounterEvents:
        names = {plan.id: plan.name for plan in list_plans(tx, EVERY)}
        return EncounterEvents(list(list_history(tx, since - PAST)), names)

    with migrated_database(config) as db:
        return _Past(db.ask(read), since.timestamp())


def _zone(name: str) -> ZoneInfo:
    found = find_time_zone(name)
    if found is None:
        fail(
            (
                "This machine does not know the time zone. Give a name of the system's time zone "
                "database, such as America/New_York."
            ),
            status=MISUSED,
        )
    return found


def _from_csv(path: str, days: int, zone: ZoneInfo | None, skip_bad_rows: bool) -> _Past:
    with opened_file(path, "rb", "The file can't be read: {}.") as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        found = read_encounters(text, zone)
        text.detach()  # `opened_file` closes the stream
    warnings = list(judge.warnings_of_file(found))
    if found.faults and not (skip_bad_rows and found.rows):
        lines = [
            f"line {line}: {fault.field} {fault.message}"
            for line, fault in found.faults[:FAULTS_SHOWN]
        ]
        if len(found.faults) > FAULTS_SHOWN:
            lines.append(f"and {len(found.faults) - FAULTS_SHOWN} more")
        remedy = "Correct the rows, or leave them out with --skip-bad-rows."
        fail("\n".join(["The file has faults.", *lines, *_sentences(warnings), remedy]))
    encounters = encounter_events(found.rows)
    until = max((event.at for event in encounters.events), default=0.0)
    since = until - timedelta(days=days).total_seconds()
    return _Past(encounters, since, found.faulty_rows, warnings)


def _sentences(warnings: Iterable[judge.BacktestWarning]) -> list[str]:
    return [f"Warning: {warning.message}" for warning in warnings]


def _figures(
    judged: Sequence[judge.JudgedWait], plans: Mapping[int, str], *, with_ids: bool
) -> dict[str, Any]:
    """The figures of all the waits and of groups of them. `with_ids` false: the plans' ids are not
    the service's.
    """
    return {
        "all": _item(judge.figures_of(judged)),
        "by_plan": [
            {"plan_id": id_ if with_ids else None, "plan": plans.get(id_)} | _item(one)
            for id_, one in judge.by_plan(judged).items()
        ],
        "by_position": [
            {"position": _positions(first)} | _item(one)
            for first, one in judge.by_position(judged).items()
        ],
        "by_hour": [{"hour": hour} | _item(one) for hour, one in judge.by_hour(judged).items()],
    }


def _item(figures: judge.BacktestFigures) -> dict[str, Any]:
    own = figures.accuracy
    best, rival = figures.best_rival
    least = rival.mean_error_seconds
    beside = picked(figures, "below_share above_share") | {"best_rival": best}
    beside["below_best_rival_share"] = 1 - own.mean_error_seconds / least if least else None
    rivals = [
        {"name": name} | _rounded(picked(one, ERRORS)) for name, one in figures.rivals.items()
    ]
    return accuracy_item(own) | _rounded(beside) | {"rivals": rivals}


def accuracy_item(accuracy: EstimateAccuracy) -> dict[str, Any]:
    """The accuracy of some estimates, of whichever plan: shares with three decimals, seconds with
    one.
    """
    item = _rounded(accuracy._asdict())
    del item["plan_id"]
    return item


def _rounded(item: Item) -> dict[str, Any]:
    return {
        name: round(value, 3 if name.endswith("_share") else 1)
        if isinstance(value, float)
        else value
        for name, value in item.items()
    }


def _positions(first: int) -> str:
    if first == 0:
        return "ready"
    last = next((after - 1 for after in judge.POSITIONS if after > first), None)
    return (
        f"{first} and more"
        if last is None
        else str(first)
        if last == first
        else f"{first} to {last}"
    )


def _tables(figures: dict[str, Any]) -> list[Part]:
    everyone = figures["all"]
    return [
        heading("The estimate and the rules of other products"),
        table([{"name": "frontdesk"} | everyone, *everyone["rivals"]], f"name {ERRORS}"),
        heading(f"The waits and their intervals: {INTERVAL_SHARE:.0%} inside are meant"),
        table([everyone], "coverage_share below_share above_share"),
        heading("By plan"),
        table(figures["by_plan"], f"plan_id plan {COLUMNS}"),
        heading("By position in the line"),
        table(figures["by_position"], f"position {COLUMNS}"),
        heading("By hour of the day (UTC)"),
        table(figures["by_hour"], f"hour {COLUMNS}"),
    ]
