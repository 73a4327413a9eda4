"""Warnings that the figures measure incomplete events and not the estimate, each with its remedy."""

from array import array
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from frontdesk.backtest.columns import ABSENT, EncounterColumns
from frontdesk.backtest.encounters_csv import EncountersCsv
from frontdesk.backtest.judge import BacktestResult
from frontdesk.backtest.window import RowsApart
from frontdesk.text import count_text

WITHOUT_END_SHARE = 0.1  # with more such visits the length of a visit and who is busy are in doubt
WITHOUT_WAIT_END_SHARE = 0.1  # doctors look idle who had these patients
REPEATED_SHARE = 0.01
IDLE_SHARE = 0.25  # of the joinings: patients wait beside idle doctors
MANY_BESIDE = 10
FEWEST_VISITS = 2  # of a doctor on average: fewer show no shifts
ENOUGH_VISITS = 50
LINES_SHOWN = 20


class BacktestWarning(NamedTuple):
    """`lines` of the file, the first is 1; none where the warning is about the whole past."""

    code: str
    message: str
    lines: tuple[int, ...] = ()


def warnings_of_file(found: EncountersCsv) -> Iterator[BacktestWarning]:
    repeated, visits = _repeated(found.rows)
    if repeated > REPEATED_SHARE * visits:
        yield BacktestWarning(
            "repeated_rows",
            f"{repeated:,} of {visits:,} rows with a visit repeat another row; each counts as "
            "a patient of its own. Remove the copies.",
        )
    patients = len(found.rows)
    left_out = sum(not found.rows.wait_ended(row) for row in range(patients))
    if left_out >= WITHOUT_WAIT_END_SHARE * patients > 0:
        yield BacktestWarning(
            "no_wait_ends",
            f"{left_out:,} of {patients:,} rows have no end of the wait, and are left out: the "
            "line looks shorter than it was, and doctors idle who saw these patients. Fill "
            "`started` or `left`.",
        )
    if found.late_ends:
        yield BacktestWarning(
            "late_ends",
            f"{count_text(len(found.late_ends), 'visit')} with an end more than 24 hours after the "
            f"start, at {_lines(found.late_ends)}. Such a visit counts as without an end. Correct "
            "the date in `ended`, or leave `ended` empty.",
            tuple(found.late_ends),
        )
    if found.set_back:
        yield BacktestWarning(
            "times_go_back",
            f"Times without an offset go back by up to an hour at {_lines(found.set_back)}, as "
            "local times do when clocks are set back. Name their zone with --time-zone, or write "
            "offsets.",
            tuple(found.set_back),
        )


def warning_of_rows_apart(apart: RowsApart, zone: tzinfo = UTC) -> BacktestWarning:
    rows = count_text(len(apart.lines), "row")
    return BacktestWarning(
        "rows_apart",
        f"Nobody joined between {_time(apart.since, zone)} and {_time(apart.until, zone)}, and "
        f"after that the file has only {rows}, at {_lines(apart.lines)}. The judged days are counted "
        "back from the latest one, so they hold hardly any patient of the file. Correct or remove "
        f"these rows, or reach back with --days to days before {_time(apart.since, zone)}.",
        tuple(apart.lines),
    )


def warnings_of(found: BacktestResult, zone: tzinfo = UTC) -> Iterator[BacktestWarning]:
    """Warnings about the events that were replayed, stored or of a file; with times of the zone."""
    without = found.visits - found.visits_with_end
    if without >= WITHOUT_END_SHARE * found.visits > 0:
        yield BacktestWarning(
            "no_ends",
            f"Of {found.visits:,} visits {without:,} ({without / found.visits:.0%}) have no end, "
            "so doctors look busy that are not, and the length of a visit is in doubt. Fill the "
            "column `ended`, or send visit.ended.",
        )
    doctors = len(found.doctors)
    if found.visits >= ENOUGH_VISITS and found.visits < FEWEST_VISITS * doctors:
        yield BacktestWarning(
            "doctor_per_visit",
            f"{found.visits:,} visits have {doctors:,} different doctors, so it is not known how "
            "many doctors were there, and when. The number of the visit may stand in the column "
            "`doctor`: put the person there who answered, such as an agent's name or number.",
        )
    beside = found.beside_idle
    if (
        beside.joinings > IDLE_SHARE * found.joined
        or min(beside.waiting, beside.idle) >= MANY_BESIDE
    ):
        yield BacktestWarning(
            "waiting_beside_idle",
            f"At {beside.joinings:,} of {found.joined:,} joinings patients wait beside idle "
            f"doctors: {beside.waiting} beside {beside.idle} at {_time(beside.at, zone)}. "
            "Check that each row tells how its wait ended (`started` or `left`), and that these "
            "doctors serve this plan at that time.",
        )


def _repeated(rows: EncounterColumns) -> tuple[int, int]:
    """How many rows with a visit are like another one before, and how many there are."""
    columns = (rows.joined, rows.started, rows.ended, rows.doctor, rows.plan)
    # The hash of a tuple of numbers: rows that differ share one in a million files at most.
    digests = array(
        "q",
        (
            hash(tuple(column[row] for column in columns))
            for row in range(len(rows))
            if rows.started[row] != ABSENT
        ),
    )
    before: int | None = None
    repeated = 0
    for digest in sorted(digests):
        repeated += digest == before
        before = digest
    return repeated, len(digests)


def _lines(lines: Sequence[int]) -> str:
    shown = ", ".join(map(str, lines[:LINES_SHOWN]))
    more = f" and {len(lines) - LINES_SHOWN:,} more" if len(lines) > LINES_SHOWN else ""
    return f"line {shown}{more}" if len(lines) == 1 else f"lines {shown}{more}"


def _time(seconds: float, zone: tzinfo) -> str:
    return datetime.fromtimestamp(seconds, zone).isoformat(sep=" ", timespec="minutes")
