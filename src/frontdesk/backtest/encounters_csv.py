"""Reads a CSV of past encounters, one per row.

Columns by name, in any order (docs/wait-estimate.md): joined, started, ended, left, doctor, plan,
class, priority, not_before.
"""

import csv
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import chain
from typing import NamedTuple

from frontdesk import codes
from frontdesk.backtest.columns import EncounterColumns, EncounterRow, NumberedNames
from frontdesk.errors import Fault
from frontdesk.queues.events import MAX_PRIORITY
from frontdesk.queues.model import PATIENT_CLASS, PATIENT_CLASS_RULE
from frontdesk.text import Rejected, parse_text, trimmed

TIMES = ("joined", "started", "ended", "left", "not_before")
COLUMNS = (*TIMES, "doctor", "plan", "class", "priority")
NEEDED = ("joined", "started", "doctor")  # required columns
IN_ORDER = (("joined", "started"), ("joined", "left"), ("started", "ended"), ("joined", "ended"))
# In real files the systems of the line and of the visits have different clocks and roundings: a
# visit "starts" up to two seconds before its patient leaves the line.
CLOCKS_DIFFER_SECONDS = 5.0
HOUR = timedelta(hours=1)
OUT_OF_ORDER = timedelta(minutes=1)  # rows of one minute may be in any order
FUTURE_SECONDS = 86400.0  # a time that is later than now by more is a mistake
LONGEST_SECONDS = 86400.0  # a visit that seems to last longer has lost its end
FAULTS_KEPT = 100
PROGRESS_EVERY = 1000  # rows
HEADER_WITHIN = 5  # lines: exports begin with a title or a date
LONGEST_PLAN = 200  # characters; the names of plans are printed
# Each estimate looks through the last visits of all plans: a patient of a file with 100 plans takes
# 25 ms of processor time, of a file with one 0.7 ms.
MOST_PLANS = 100
MOST_CLASSES = 100

_PRIORITY = re.compile(r"-?[0-9]{1,3}")


class RowFault(NamedTuple):
    """`line` of the file, the first is 1; `fault.field` is the column."""

    line: int
    fault: Fault


class EncountersCsv:
    """The rows that can be used, and what was found at others.

    `faults`: the first FAULTS_KEPT of `fault_count`, in `faulty_rows` rows. `late_ends`: the lines
    of visits that seem to last longer than a day; they count as without an end. `set_back`: the
    lines at which times without an offset go back by up to an hour, in a file that is in order
    otherwise.
    """

    def __init__(self) -> None:
        self.rows = EncounterColumns()
        self.faults: list[RowFault] = []
        self.fault_count = 0
        self.faulty_rows = 0
        self.late_ends = array("i")
        self.set_back: Sequence[int] = ()

    def note_faults(self, line: int, faults: Sequence[Fault]) -> None:
        self.faulty_rows += 1
        self.fault_count += len(faults)
        room = FAULTS_KEPT - len(self.faults)
        self.faults += [RowFault(line, fault) for fault in faults[:room]]


class CellRules(NamedTuple):
    """How times are read. `zone`: of those without an offset, None: UTC; `now`: in seconds since
    1970.
    """

    zone: tzinfo | None
    now: float


def read_encounters(
    lines: Iterable[str], rules: CellRules, progress: Callable[[], None] = lambda: None
) -> EncountersCsv:
    """The rows that can be used, and the faults of the others. Columns that have other names are
    ignored. `progress` is called every PROGRESS_EVERY rows.
    """
    found = EncountersCsv()
    text = iter(lines)
    line = 0
    try:
        first = next(text, "")
        # Spreadsheets of some countries write semicolons, databases tabs.
        reader = csv.reader(chain([first], text), delimiter=max(",;\t", key=first.count))
        header = _names(next(reader, []))
        line = reader.line_num
        if missing := [name for name in NEEDED if name not in header]:
            found.faults = _missing_columns(missing, reader)
            found.fault_count = len(found.faults)
            return found
        watch = _ClockWatch()
        for number, cells in enumerate(reader):
            line = reader.line_num
            if cells:
                values = dict.fromkeys(COLUMNS, "")
                values |= {name: trimmed(cell) for name, cell in zip(header, cells, strict=False)}
                _read_row(found, line, values, rules)
                watch.note(line, values, rules)
            if number % PROGRESS_EVERY == 0:
                progress()
        found.set_back = watch.lines()
    except (csv.Error, UnicodeDecodeError):
        rule = "is not CSV in UTF-8, at this line or up to a hundred lines later"
        found.note_faults(line + 1, [Fault("file", codes.operators.UNREADABLE, rule)])
    return found


def crowded_columns(rows: EncounterColumns) -> Iterator[str]:
    """A sentence and its remedy for each column that has more names than a back-test takes."""
    plans = _count_named(rows.plans)
    if plans > MOST_PLANS:
        yield (
            f"The file has {plans:,} plans, and at most {MOST_PLANS:,} can be replayed. If the "
            "number of the call stands in `plan`, put the name of the queue there, or leave out the "
            "column. Else split the file; plans that share doctors belong in the same one."
        )
    classes = _count_named(rows.classes)
    if classes > MOST_CLASSES:
        yield (
            f"The file has {classes:,} classes, and at most {MOST_CLASSES:,} can be replayed. If "
            "the number of the call stands in `class`, put a word for the kind of patient there, or "
            "leave out the column."
        )


def _count_named(names: NumberedNames) -> int:
    return sum(name != "" for name in names.in_order())


def _names(header: Iterable[str]) -> list[str]:
    return [name.strip().lower() for name in header]


def _missing_columns(missing: Sequence[str], following: Iterator[list[str]]) -> list[RowFault]:
    rule = "is not among the columns of the first line"
    for line, cells in zip(range(2, HEADER_WITHIN + 1), following, strict=False):
        if set(NEEDED) <= set(_names(cells)):
            rule += f"; line {line} names it: remove the lines above"
            break
    return [RowFault(1, Fault(name, codes.faults.REQUIRED, rule)) for name in missing]


def _read_row(found: EncountersCsv, line: int, values: Mapping[str, str], rules: CellRules) -> None:
    row, faults = _row(values, rules)
    if faults:
        found.note_faults(line, faults)
        return
    if (
        row.started is not None
        and row.ended is not None
        and row.ended - row.started > LONGEST_SECONDS
    ):
        found.late_ends.append(line)
        row = row._replace(ended=None)
    found.rows.append(row, line)


class _ClockWatch:
    """Looks for a clock that was set back, among times without an offset and without a zone."""

    def __init__(self) -> None:
        self._last: datetime | None = None
        self._lines: list[int] = []
        self._in_order = True

    def note(self, line: int, values: Mapping[str, str], rules: CellRules) -> None:
        if rules.zone is not None or not self._in_order:
            return
        try:
            at = datetime.fromisoformat(values["joined"] or values["started"])
        except ValueError:
            return
        if at.tzinfo is not None:
            return
        step = timedelta() if self._last is None else self._last - at
        if HOUR / 2 < step <= HOUR:
            self._lines.append(line)
        elif step > OUT_OF_ORDER:
            self._in_order = False
        self._last = at

    def lines(self) -> Sequence[int]:
        """Empty where the file is in no order of time."""
        return self._lines if self._in_order else ()


def _row(values: Mapping[str, str], rules: CellRules) -> tuple[EncounterRow, list[Fault]]:
    times: dict[str, float | None] = {}
    faults = []
    for name in TIMES:
        try:
            times[name] = _seconds(values[name], rules) if values[name] else None
        except Rejected as rejected:
            times[name] = None
            faults.append(Fault(name, rejected.code, rejected.message))
    faults += _faults_of_words(values)
    if faults:
        return EncounterRow(None, None, None, None), faults
    row = EncounterRow(
        joined=times["joined"],
        started=times["started"],
        ended=times["ended"],
        left=times["left"],
        doctor=values["doctor"],
        plan=values["plan"],
        patient_class=values["class"] or None,
        priority=int(values["priority"]) if values["priority"] else None,
    )
    row = _with_one_clock(row)
    return _in_line(row, times["not_before"]), list(_contradictions(row))


def _faults_of_words(values: Mapping[str, str]) -> Iterator[Fault]:
    try:
        parse_text(values["plan"], limit=LONGEST_PLAN)
    except Rejected as rejected:
        yield Fault("plan", rejected.code, rejected.message)
    patient_class = values["class"]
    if patient_class and not PATIENT_CLASS.fullmatch(patient_class):
        yield Fault("class", codes.faults.NOT_ALLOWED, PATIENT_CLASS_RULE)
    priority = values["priority"]
    if priority and not (_PRIORITY.fullmatch(priority) and abs(int(priority)) <= MAX_PRIORITY):
        rule = f"must be a whole number from -{MAX_PRIORITY} to {MAX_PRIORITY}"
        yield Fault("priority", codes.faults.NOT_ALLOWED, rule)


def _seconds(text: str, rules: CellRules) -> float:
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            at = _local(at, rules.zone or UTC)
        seconds = at.astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        raise Rejected(
            codes.operators.NOT_A_TIME, "is not a time such as 2026-11-20T09:15:00Z"
        ) from None
    if seconds > rules.now + FUTURE_SECONDS:
        raise Rejected(codes.queue_events.IN_THE_FUTURE, "is more than a day in the future")
    return seconds


def _local(at: datetime, zone: tzinfo) -> datetime:
    first = at.replace(tzinfo=zone)
    if zone is UTC:
        return first
    second = at.replace(tzinfo=zone, fold=1)
    before = first.utcoffset()
    after = second.utcoffset()
    if before is not None and after is not None and before != after:
        if before < after:
            raise Rejected(
                codes.operators.NO_SUCH_TIME,
                "does not exist in the time zone: the clocks are set forward",
            )
        raise Rejected(
            codes.operators.TIME_EXISTS_TWICE,
            "exists twice in the time zone: write it with its offset",
        )
    return first


def _with_one_clock(row: EncounterRow) -> EncounterRow:
    """The start of the visit counts where another time is on the wrong side of it by a few seconds."""
    if row.started is None:
        return row
    joined = row.joined
    ended = row.ended
    if joined is not None and 0 < joined - row.started <= CLOCKS_DIFFER_SECONDS:
        joined = row.started
    if ended is not None and 0 < row.started - ended <= CLOCKS_DIFFER_SECONDS:
        ended = row.started
    if joined == row.joined and ended == row.ended:
        return row
    return row._replace(joined=joined, ended=ended)


def _in_line(row: EncounterRow, not_before: float | None) -> EncounterRow:
    """A booked patient enters the line at the booked time; one that is seen or leaves earlier has
    not waited.
    """
    if row.joined is None or not_before is None or not_before <= row.joined:
        return row
    until = [at for at in (row.started, row.left) if at is not None]
    return row._replace(joined=min(not_before, *until))


def _contradictions(row: EncounterRow) -> Iterator[Fault]:
    if row.joined is None and row.started is None:
        yield Fault("joined", codes.faults.REQUIRED, "is missing, and so is started")
    if row.started is not None and not row.doctor:
        yield Fault("doctor", codes.faults.REQUIRED, "is missing although the visit started")
    if row.ended is not None and row.started is None and row.left is None:
        yield Fault("started", codes.faults.REQUIRED, "is missing although the visit ended")
    if row.started is not None and row.left is not None:
        yield Fault(
            "left", codes.faults.NOT_ALLOWED, "a patient that was seen did not leave unseen"
        )
    for earlier, later in IN_ORDER:
        first = getattr(row, earlier)
        second = getattr(row, later)
        if first is not None and second is not None and second < first:
            yield Fault(later, codes.operators.TOO_EARLY, f"is before {earlier}")
