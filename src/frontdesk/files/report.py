"""What became of the rows of a file: their stored outcomes, and the report made from them, whole or by the page.

The report of every format has a line per row with its outcome. A refused row has a line per fault, and each warning is a
line of its own (`warned`).
"""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson

from frontdesk.db import Database
from frontdesk.eligibility.model import WARNINGS
from frontdesk.files import store
from frontdesk.files.model import ENDED_BY_ABSENCE, REPORT_CODES, WARNED, RowOutcome

_HINTS = WARNINGS | REPORT_CODES

# A spreadsheet takes a cell that begins so for a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", *"\uff1d\uff0b\uff0d\uff20")


class ReportLine(NamedTuple):
    """One line of a report, column by column."""

    row: int | None
    external_id: str | None
    outcome: str
    code: str
    field: str
    hint: str


COLUMNS = ReportLine._fields


class ReportFilter(NamedTuple):
    """Which lines of a report are wanted: of this outcome, with this code. None is any."""

    outcome: str | None = None
    code: str | None = None

    def wants(self, line: ReportLine) -> bool:
        return self.outcome in (None, line.outcome) and self.code in (None, line.code)


class ReportPlace(NamedTuple):
    """A place between two lines of a report: so many lines into the chunk of this number. Filters don't move it."""

    chunk: int = 0
    line: int = 0


ALL = ReportFilter()
Lines = Sequence[ReportLine]


def read_outcomes(
    db: Database, file_id: int, *, first: int = 0, backwards: bool = False
) -> Iterator[list[RowOutcome]]:
    """The outcomes by the chunk, from chunk `first` on to the last, or back to chunk 0. One chunk is in memory."""
    number = first
    while number >= 0:
        at = number
        outcomes = db.ask(lambda tx, at=at: store.find_outcomes(tx, file_id, at))  # type: ignore[misc]
        if outcomes is None:
            return
        yield outcomes
        number += -1 if backwards else 1


def report_json_lines(db: Database, file_id: int, wanted: ReportFilter = ALL) -> Iterator[bytes]:
    """The report as JSON lines, by the chunk."""
    return filter(None, map(json_lines, _wanted_lines(db, file_id, wanted)))


def report_csv(db: Database, file_id: int, wanted: ReportFilter = ALL) -> Iterator[bytes]:
    """The report as CSV with a header, by the chunk. No cell is a formula to a spreadsheet."""
    yield CSV_HEADER
    yield from filter(None, map(csv_lines, _wanted_lines(db, file_id, wanted)))


def report_page(
    db: Database, file_id: int, wanted: ReportFilter, *, after: ReportPlace, size: int
) -> tuple[list[ReportLine], ReportPlace | None]:
    """Up to `size` lines from the place on, and the place where the next page begins, if there is one."""
    page: list[ReportLine] = []
    skipped = after.line
    for number, outcomes in enumerate(read_outcomes(db, file_id, first=after.chunk), after.chunk):
        lines = [line for outcome in outcomes for line in report_lines(outcome)]
        for position in range(skipped, len(lines)):
            if wanted.wants(lines[position]):
                if len(page) == size:
                    return page, ReportPlace(number, position)
                page.append(lines[position])
        skipped = 0
    return page, None


def _wanted_lines(db: Database, file_id: int, wanted: ReportFilter) -> Iterator[Lines]:
    for outcomes in read_outcomes(db, file_id):
        lines = [line for outcome in outcomes for line in report_lines(outcome)]
        yield lines if wanted == ALL else [line for line in lines if wanted.wants(line)]


def report_lines(outcome: RowOutcome) -> Iterator[ReportLine]:
    """The report's lines about one row."""
    place, external_id, result = outcome.place, outcome.external_id, outcome.outcome
    if outcome.faults:
        for field, code, message in outcome.faults:
            yield ReportLine(place, external_id, result, code, field, message)
    else:
        code = ENDED_BY_ABSENCE if outcome.is_by_absence else ""
        yield ReportLine(place, external_id, result, code, "", _HINTS.get(code, ""))
    for field, code, *rule in outcome.warnings:
        hint = _HINTS.get(code, "") + "".join(f" It {message}." for message in rule)
        yield ReportLine(place, external_id, WARNED, code, field, hint)


def json_lines(lines: Lines) -> bytes:
    """One JSON object per line."""
    return b"".join(orjson.dumps(line._asdict(), option=orjson.OPT_APPEND_NEWLINE) for line in lines)


CSV_HEADER = (",".join(COLUMNS) + "\r\n").encode()


def csv_lines(lines: Lines) -> bytes:
    """The lines as CSV, without the header."""
    page = io.StringIO()
    csv.writer(page).writerows(
        (row, _harmless(external_id or ""), *map(_harmless, rest)) for row, external_id, *rest in lines
    )
    return page.getvalue().encode()


def _harmless(text: str) -> str:
    """Where the comma is the decimal sign, spreadsheets part cells at semicolons, within quotation marks too."""
    parts = text.split(";")
    return ";".join("'" + part if part.lstrip(" ").startswith(_FORMULA_STARTS) else part for part in parts)
