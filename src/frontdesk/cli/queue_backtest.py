"""`frontdesk queue backtest`: replays past events, and shows the error of the wait estimate. Stores
nothing.
"""

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Any, BinaryIO, NamedTuple
from zoneinfo import ZoneInfo

from rich.progress import MofNCompleteColumn

from frontdesk import codes
from frontdesk.backtest.encounters_csv import (
    CellRules,
    EncountersCsv,
    crowded_columns,
    read_encounters,
)
from frontdesk.backtest.figures import (
    BacktestFigures,
    by_class,
    by_hour,
    by_plan,
    by_position,
    figures_of,
)
from frontdesk.backtest.file_events import FileEvents
from frontdesk.backtest.judge import BacktestResult, judge_past, run_backtest
from frontdesk.backtest.verdict import Verdict, verdict_of
from frontdesk.backtest.warnings import (
    BacktestWarning,
    warning_of_rows_apart,
    warnings_of,
    warnings_of_file,
)
from frontdesk.backtest.window import DEFAULT_DAYS, judged_days, rows_apart
from frontdesk.cli.command_group import migrated_database
from frontdesk.cli.layout import Item, Part, heading, picked, progress, table
from frontdesk.cli.options import option
from frontdesk.cli.output import MISUSED, Output, fail, opened_file, settings
from frontdesk.clock import find_time_zone, system_clock
from frontdesk.config import Config
from frontdesk.db import Tx
from frontdesk.plans import list_plans
from frontdesk.queues.estimate.record import band_of, band_text
from frontdesk.queues.model import INTERVAL_SHARE, EstimateAccuracy
from frontdesk.queues.store.events import list_history
from frontdesk.reach import EVERY
from frontdesk.text import count_text

# The events of a week before the judged days tell the past that an estimate starts from: on a Monday
# that of the last working day.
PAST = timedelta(days=7)
FAULTS_SHOWN = 20
ERRORS = "mean_error_seconds bias_seconds wrong_zero_share"
COLUMNS = f"matched mean_wait_seconds {ERRORS} coverage_share best_rival below_best_rival_share"
# The words of the tables, in the order of the columns; docs/wait-estimate.md repeats them.
LEGEND = {
    "mean error": "how far the estimate was from the wait, on average",
    "bias": "above 0: patients waited less than they were told; below 0: longer",
    "wrong zero": "of those told 0, the share that waited over 30 s",
    "matched": "patients with an estimate and a wait to compare",
    "coverage": "the share of waits inside the interval that was told",
    "below, above": "the share of waits shorter, longer than the interval",
    "best rival": "the rule of another product with the least error",
    "below best rival": "by how much our error is less than that rule's; below 0: it is more",
    "ready": "a doctor was ready: the estimate was 0, without an interval",
    "position": "the place in the line on joining; 1: nobody was ahead",
    "AHT x position": "average visit x position / doctors; `idle seen`: 0 if a doctor is free",
    "last wait": "the wait of the patient that was seen last",
}


class _Past(NamedTuple):
    """What is asked for, and what was found in it.

    `first`, `last`: begin and end of what is judged, in seconds since 1970. `counts`: of the file,
    by the names that --json has.
    """

    days: int
    first: float
    last: float
    result: BacktestResult
    plans: Mapping[int, str]
    is_stored: bool
    counts: Mapping[str, int | None]
    warnings: tuple[BacktestWarning, ...] = ()


def backtest(
    days: Annotated[
        int,
        option(
            f"How many days to judge, the latest. Default: {DEFAULT_DAYS}.",
            min=1,
            max=366,
            show_default=False,
        ),
    ] = DEFAULT_DAYS,
    csv_file: Annotated[
        str | None,
        option(
            (
                "Encounters to replay instead of the stored events; - is stdin. Columns: joined, "
                "started, ended, left, doctor, plan, class, priority, not_before."
            ),
            "--csv",
            metavar="FILE",
        ),
    ] = None,
    *,
    time_zone: Annotated[
        str | None,
        option(
            (
                "Of the hours that are shown, and of the CSV's times without an offset, such as "
                "America/New_York. Default: UTC."
            ),
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
    of_file = None if time_zone is None else _zone(time_zone)
    zone = of_file or ZoneInfo("UTC")
    if csv_file is None:
        past = _stored(config, days)
    else:
        past = _of_file(_read(csv_file, of_file, skip_bad_rows), days, zone)
    return _report(past, zone)


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


def _stored(config: Config, days: int) -> _Past:
    until = system_clock()
    since = until - timedelta(days=days)

    def read(tx: Tx) -> tuple[list[Any], dict[int, str]]:
        names = {plan.id: plan.name for plan in list_plans(tx, EVERY)}
        return list(list_history(tx, since - PAST)), names

    with migrated_database(config) as db:
        events, names = db.ask(read)
    with _bar("judging") as show:
        result = run_backtest(events, since=since.timestamp(), progress=show)
    counts = {"file_patients": None, "bad_rows": 0, "rows_without_end": 0}
    return _Past(
        days,
        since.timestamp(),
        until.timestamp(),
        result,
        names,
        is_stored=True,
        counts={"patients": result.joined} | counts,
    )


def _read(path: str, zone: ZoneInfo | None, skip_bad_rows: bool) -> EncountersCsv:
    rules = CellRules(zone, system_clock().timestamp())
    with opened_file(path, "rb", "The file can't be read: {}.") as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        with _bar("reading") as show:
            found = read_encounters(text, rules, progress=_of_bytes(stream, show))
        text.detach()  # `opened_file` closes the stream
    if found.faults and not (skip_bad_rows and len(found.rows)):
        fail("\n".join(_refusal(found)))
    crowded = list(crowded_columns(found.rows))
    if crowded:
        fail("\n".join(crowded))
    return found


def _refusal(found: EncountersCsv) -> Iterator[str]:
    yield "The file has faults."
    for line, fault in found.faults[:FAULTS_SHOWN]:
        yield f"line {line}: {fault.field} {fault.message}"
    if found.fault_count > FAULTS_SHOWN:
        yield f"and {found.fault_count - FAULTS_SHOWN:,} more"
    yield from _sentences(warnings_of_file(found))
    yield _remedy(found)


def _remedy(found: EncountersCsv) -> str:
    first = found.faults[0].fault
    if not found.faulty_rows:
        return "The first line of the file has to name these columns."
    if first.code == codes.operators.UNREADABLE:
        return "Save the file as CSV in UTF-8; spreadsheets call it CSV UTF-8."
    if first.code == codes.operators.NOT_A_TIME and len(found.rows) < found.faulty_rows:
        return (
            "Most rows have times of another form. In a spreadsheet, give these columns the format "
            "yyyy-mm-dd hh:mm:ss and save the file again."
        )
    return "Correct the rows, or leave them out with --skip-bad-rows."


def _of_bytes(stream: BinaryIO, show: Callable[[int, int], None]) -> Callable[[], None]:
    """Shows how much of a file is read; of a pipe the size is unknown."""
    if not stream.seekable():
        return lambda: None
    begin = stream.tell()
    size = stream.seek(0, os.SEEK_END)
    stream.seek(begin)
    return lambda: show(stream.tell(), size)


def _of_file(found: EncountersCsv, days: int, zone: tzinfo) -> _Past:
    rows = found.rows
    window = judged_days(rows, days)
    warnings = list(warnings_of_file(found))
    apart = rows_apart(rows, window)
    if apart is not None:
        warnings.insert(0, warning_of_rows_apart(apart, zone))
    events = FileEvents(rows, window.since - PAST.total_seconds())
    with _bar("judging") as show:
        result = judge_past(events, since=window.since, progress=show)
    return _Past(
        days,
        window.first,
        window.last,
        result,
        dict(enumerate(rows.plans.in_order(), start=1)),
        is_stored=False,
        counts={
            "patients": window.patients,
            "file_patients": window.all_patients,
            "bad_rows": found.faulty_rows,
            "rows_without_end": len(rows) - window.all_patients,
        },
        warnings=tuple(warnings),
    )


@contextmanager
def _bar(doing: str) -> Iterator[Callable[[int, int], None]]:
    """A bar of what is being done; to be called with what is done, and the total."""
    with progress(MofNCompleteColumn()) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _report(past: _Past, zone: ZoneInfo) -> Output:
    result = past.result
    warnings = [*past.warnings, *warnings_of(result, zone)]
    value: dict[str, Any] = {
        "days": past.days,
        "from": _local_time(past.first, zone),
        "until": _local_time(past.last, zone),
        "time_zone": zone.key,
        **past.counts,
        "judged": len(result.judged),
        "left_unseen": result.left,
        "nobody_on_duty": result.unattended,
        "warnings": [warning._asdict() for warning in warnings],
    }
    parts: list[Part] = [*_sentences(warnings)]
    if not result.judged:
        none = f"No patient that joined in the last {_days(past.days)} and was seen can be judged."
        value["verdict"] = Verdict("too_early", none)._asdict()
        return Output(value, [*parts, *_days_sentences(value), none])
    verdict, figures = _judgement(past, zone)
    value["verdict"] = verdict._asdict()
    doubt = ["Before you rely on this, settle the warnings above."] if warnings else []
    parts += [verdict.message, *doubt, *_days_sentences(value)]
    return Output(value | figures, [*parts, *_tables(figures, zone.key)])


def _days_sentences(value: Mapping[str, Any]) -> Iterator[str]:
    """Which days are judged, how many patients came on them, and what became of these."""
    all_of_file = value["file_patients"]
    judged = count_text(value["judged"], "patient")
    left_out = (
        f"{count_text(value[name], 'row')} {words} left out"
        for name, words in (
            ("rows_without_end", "without an end of the wait"),
            ("bad_rows", "with faults"),
        )
        if value[name]
    )
    if all_of_file == 0:
        yield "; ".join(["No row of the file says how a wait ended", *left_out]) + "."
        return
    begin, end = (value[name][:16].replace("T", " ") for name in ("from", "until"))
    whose = (
        count_text(value["patients"], "patient")
        if all_of_file is None
        else f"{value['patients']:,} of the file's {count_text(all_of_file, 'patient')}"
    )
    yield (
        f"Judged: the last {_days(value['days'])}. {whose} came from {begin} to {end} "
        f"({value['time_zone']})."
    )
    is_part = all_of_file and value["patients"] < all_of_file / 10
    if is_part and value["days"] == DEFAULT_DAYS and not value["warnings"]:
        yield "Judge more of the file with --days."
    counts = (("left_unseen", "left unseen"), ("nobody_on_duty", "came while nobody was on duty"))
    more = [f"{value[name]:,} {words}" for name, words in counts if value[name]]
    yield "; ".join([f"{judged} judged", *more, *left_out]) + "."


def _days(days: int) -> str:
    return "day" if days == 1 else f"{days} days"


def _local_time(seconds: float, zone: tzinfo) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone(zone).isoformat(timespec="seconds")


def _sentences(warnings: Iterable[BacktestWarning]) -> list[str]:
    return [f"Warning: {warning.message}" for warning in warnings]


def _judgement(past: _Past, zone: tzinfo) -> tuple[Verdict, dict[str, Any]]:
    """The verdict, and the figures of all the waits and of groups of them."""
    judged = past.result.judged
    everyone = figures_of(judged)
    plans = by_plan(judged)
    classes = by_class(judged)
    positions = by_position(judged)
    words = {f'plan "{past.plans.get(id_) or id_}"': one for id_, one in plans.items()}
    places = words if len(words) > 1 else {}
    places |= {f'class "{name}"': one for name, one in classes.items() if name}
    places |= {f"position {_positions(first)}": one for first, one in positions.items()}
    figures = {
        "all": _item(everyone),
        "by_plan": [
            {"plan_id": id_ if past.is_stored else None, "plan": past.plans.get(id_)} | _item(one)
            for id_, one in plans.items()
        ],
        "by_class": _of_classes(classes),
        "by_position": [
            {"position": _positions(first)} | _item(one) for first, one in positions.items()
        ],
        "by_hour": [{"hour": hour} | _item(one) for hour, one in by_hour(judged, zone).items()],
    }
    return verdict_of(everyone, places), figures


def _of_classes(classes: Mapping[str | None, BacktestFigures]) -> list[dict[str, Any]]:
    """Empty where all patients are of one class, or have none."""
    if len(classes) < 2:
        return []
    return [{"class": name} | _item(one) for name, one in classes.items()]


def _item(figures: BacktestFigures) -> dict[str, Any]:
    own = figures.accuracy
    best = figures.best_rival
    least = best.accuracy.mean_error_seconds
    beside = picked(figures, "below_share above_share") | {"best_rival": best.name}
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
    return "ready" if first == 0 else band_text(band_of(first - 1), counted_from=1)


def _table_of_plans(plans: list[dict[str, Any]]) -> list[Part]:
    """None of a file without the column `plan`; ids where the plans are the service's."""
    first = plans[0]
    if len(plans) == 1 and not first["plan"]:
        return []
    names = "plan" if first["plan_id"] is None else "plan_id plan"
    return [heading("By plan"), table(plans, f"{names} {COLUMNS}")]


def _tables(figures: dict[str, Any], zone: str) -> list[Part]:
    everyone = figures["all"]
    of_classes = [heading("By class"), table(figures["by_class"], f"class {COLUMNS}")]
    return [
        heading("The estimate and the rules of other products"),
        table([{"name": "frontdesk"} | everyone, *everyone["rivals"]], f"name {ERRORS}"),
        heading(f"The waits and their intervals: {INTERVAL_SHARE:.0%} inside are meant"),
        table([everyone], "coverage_share below_share above_share"),
        *_table_of_plans(figures["by_plan"]),
        *(of_classes if figures["by_class"] else ()),
        heading("By position in the line"),
        table(figures["by_position"], f"position {COLUMNS}"),
        heading(f"By hour of the day ({zone})"),
        table(figures["by_hour"], f"hour {COLUMNS}"),
        heading("The words"),
        *(f"  {word}: {meaning}" for word, meaning in LEGEND.items()),
    ]
