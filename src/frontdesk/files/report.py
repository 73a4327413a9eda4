"""What is told of a file: the file as JSON, and the report of its rows, whole or by the page.

The report of every format has a line per row with its outcome. A refused row has a line per fault, and each warning is a
line of its own (`warned`).
"""

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from frontdesk.db import Database
from frontdesk.eligibility.model import WARNINGS
from frontdesk.files import model, store
from frontdesk.plans import external_ids_of
from frontdesk.text import wire_time

_HINTS = WARNINGS | model.REPORT_CODES

# A spreadsheet takes a cell that begins so for a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", *"\uff1d\uff0b\uff0d\uff20")


class ReportLine(NamedTuple):
    """One line of a report, column by column. `changed` has the names of the fields that the row changed, `left_plan` the
    external_id of the plan that a member left or would leave; both are empty on lines of warnings."""

    row: int | None
    external_id: str | None
    outcome: str
    code: str
    field: str
    hint: str
    changed: Sequence[str] = ()
    left_plan: str | None = None


COLUMNS = ReportLine._fields


class ReportFilter(NamedTuple):
    """Which lines of a report are wanted: of this outcome, with this code, of rows with this identifier. None is any."""

    outcome: str | None = None
    code: str | None = None
    external_id: str | None = None

    def wants(self, line: ReportLine) -> bool:
        said = (line.outcome, line.code, line.external_id)
        return all(wanted in (None, value) for wanted, value in zip(self, said, strict=True))


class ReportPlace(NamedTuple):
    """A place between two lines of a report: so many of the wanted lines into the chunk of this number."""

    chunk: int = 0
    line: int = 0


ALL = ReportFilter()


def read_report(
    db: Database, file_id: int, wanted: ReportFilter = ALL, *, as_csv: bool = False
) -> Iterator[bytes]:
    """The report as JSON lines, or as CSV with a header, by the chunk. No cell is a formula to a spreadsheet."""
    if as_csv:
        yield CSV_HEADER
    for _, lines in _read_lines(db, file_id, wanted):
        if lines:
            yield csv_lines(lines) if as_csv else json_lines(lines)


def report_page(
    db: Database, file_id: int, wanted: ReportFilter, *, after: ReportPlace, size: int
) -> tuple[list[ReportLine], ReportPlace | None]:
    """Up to `size` lines from the place on, and the place where the next page begins, if there is one."""
    page: list[ReportLine] = []
    for chunk, lines in _read_lines(db, file_id, wanted, first=after.chunk):
        start = after.line if chunk == after.chunk else 0
        end = start + size - len(page)
        page += lines[start:end]
        if end < len(lines):
            return page, ReportPlace(chunk, end)
    return page, None


def _read_lines(
    db: Database, file_id: int, wanted: ReportFilter, *, first: int = 0
) -> Iterator[tuple[int, list[ReportLine]]]:
    """The wanted lines by the chunk, from chunk `first` on, with its number. One chunk is in memory."""
    chunk, plans = first, dict[int, str]()
    read = partial(store.find_outcomes, file_id=file_id, external_id=wanted.external_id)
    while (found := db.ask(partial(read, from_chunk=chunk))) is not None:
        number, outcomes = found
        left = {outcome.left_plan_id for outcome in outcomes if outcome.left_plan_id} - plans.keys()
        if left:
            plans |= db.ask(partial(external_ids_of, plan_ids=left))
        lines = [line for outcome in outcomes for line in report_lines(outcome, plans)]
        yield number, lines if wanted == ALL else [line for line in lines if wanted.wants(line)]
        chunk = number + 1


def report_lines(outcome: model.RowOutcome, plans: Mapping[int, str]) -> Iterator[ReportLine]:
    """The report's lines about one row. `plans` are the external_ids of plans by id."""
    place, external_id, result = outcome.place, outcome.external_id, outcome.outcome
    left_plan = plans.get(outcome.left_plan_id or 0)
    if outcome.faults:
        for field, code, message in outcome.faults:
            yield ReportLine(place, external_id, result, code, field, message, (), left_plan)
    else:
        code = model.ENDED_BY_ABSENCE if place is None and result in model.BY_ABSENCE else ""
        hint = _HINTS.get(code, "")
        yield ReportLine(place, external_id, result, code, "", hint, outcome.changed, left_plan)
    for field, code, *rule in outcome.warnings:
        hint = _HINTS.get(code, "") + "".join(f" It {message}." for message in rule)
        yield ReportLine(place, external_id, model.WARNED, code, field, hint)


def json_lines(lines: Sequence[ReportLine]) -> bytes:
    return b"".join(orjson.dumps(line._asdict(), option=orjson.OPT_APPEND_NEWLINE) for line in lines)


CSV_HEADER = (",".join(COLUMNS) + "\r\n").encode()


def csv_lines(lines: Sequence[ReportLine]) -> bytes:
    """The lines as CSV, without the header."""
    page = io.StringIO()
    csv.writer(page).writerows(map(_cells, lines))
    return page.getvalue().encode()


def _cells(line: ReportLine) -> tuple[object, ...]:
    texts = (line.external_id or "", *line[2:6], " ".join(line.changed), line.left_plan or "")
    return (line.row, *map(_harmless, texts))


def _harmless(text: str) -> str:
    """Where the comma is the decimal sign, spreadsheets part cells at semicolons, within quotation marks too."""
    parts = text.split(";")
    return ";".join("'" + part if part.lstrip(" ").startswith(_FORMULA_STARTS) else part for part in parts)


_SHOWN_AS_STORED = (
    "id", "plan_id", "undoes_id", "state", "step", "mode", "dry_run", "client", "file_name", "format", "encoding",
    "delimiter", "file_date", "size_bytes", "sha256", "rows_total", "rows_done", "members_before", "members_missing", "problem",
)  # fmt: skip


def serialize_file(file: model.EligibilityFile) -> dict[str, Any]:
    """The file as JSON, the same for HTTP and the command line. It holds no value of a member."""
    shown = {"type": "eligibility_files"} | {name: getattr(file, name) for name in _SHOWN_AS_STORED}
    return shown | {
        "sheet": (file.mapping or {}).get("sheet"),
        "mapping": _mapping_used(file),
        "counts": {name: file.counts[name] for name in model.COUNTS if name in file.counts},
        "codes": dict(sorted(file.codes.items())),
        "ignored_columns": [*map(unquote, file.ignored)],  # stored as a log may show them
        "created_at": wire_time(file.created_at),
        "started_at": file.started_at and wire_time(file.started_at),
        "finished_at": file.finished_at and wire_time(file.finished_at),
    }


def _mapping_used(file: model.EligibilityFile) -> dict[str, Any] | None:
    """The name of the account's mapping that read the file (null: it came with the file), and the digest of its content."""
    if file.mapping is None:
        return None
    content = orjson.dumps(file.mapping, option=orjson.OPT_SORT_KEYS)
    return {"name": file.mapping_name, "version": hashlib.sha256(content).hexdigest()[:12]}
