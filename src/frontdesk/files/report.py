"""What became of a file: the stored outcomes of its rows, the report made from them, and the file as JSON or in words.

The report of every format has a line per row with its outcome. A refused row has a line per fault, and each warning is a
line of its own (`warned`).
"""

import csv
import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from frontdesk.clock import wire_time
from frontdesk.db import Database
from frontdesk.eligibility.model import WARNINGS, Outcome
from frontdesk.files import store
from frontdesk.files.model import (
    COUNTS,
    REFUSED,
    REPORT_CODES,
    WARNED,
    EligibilityFile,
    FileState,
    RowOutcome,
)

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


def read_outcomes(
    db: Database, file_id: int, *, backwards_from: int | None = None
) -> Iterator[list[RowOutcome]]:
    """The outcomes by the chunk, in order, or from chunk `backwards_from` back to the first. One chunk is in memory."""
    number = 0 if backwards_from is None else backwards_from
    while number >= 0:
        at = number
        outcomes = db.ask(lambda tx, at=at: store.find_outcomes(tx, file_id, at))  # type: ignore[misc]
        if outcomes is None:
            return
        yield outcomes
        number += 1 if backwards_from is None else -1


def report_json_lines(db: Database, file_id: int) -> Iterator[bytes]:
    """The report as JSON lines, by the chunk."""
    for outcomes in read_outcomes(db, file_id):
        lines = (line._asdict() for outcome in outcomes for line in report_lines(outcome))
        if page := b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines):
            yield page


def report_csv(db: Database, file_id: int) -> Iterator[bytes]:
    """The report as CSV with a header, by the chunk. No cell is a formula to a spreadsheet."""
    yield (",".join(COLUMNS) + "\r\n").encode()
    for outcomes in read_outcomes(db, file_id):
        page = io.StringIO()
        writer = csv.writer(page)
        for outcome in outcomes:
            for row, external_id, *rest in report_lines(outcome):
                writer.writerow((row, _harmless(external_id or ""), *map(_harmless, rest)))
        yield page.getvalue().encode()


def report_lines(outcome: RowOutcome) -> Iterator[ReportLine]:
    """The report's lines about one row."""
    place, external_id, result = outcome.place, outcome.external_id, outcome.outcome
    if result == REFUSED:
        for field, code, message in outcome.faults:
            yield ReportLine(place, external_id, result, code, field, message)
    else:
        code = "ended_by_absence" if place is None and result == Outcome.ENDED else ""
        yield ReportLine(place, external_id, result, code, "", _HINTS.get(code, ""))
    for field, code in outcome.warnings:
        yield ReportLine(place, external_id, WARNED, code, field, _HINTS.get(code, ""))


def _harmless(text: str) -> str:
    """Where the comma is the decimal sign, spreadsheets part cells at semicolons, within quotation marks too."""
    parts = text.split(";")
    return ";".join("'" + part if part.lstrip(" ").startswith(_FORMULA_STARTS) else part for part in parts)


def serialize_file(file: EligibilityFile) -> dict[str, Any]:
    """The file as JSON, the same for HTTP and the command line. It holds no value of a member."""
    return {
        "id": file.id,
        "type": "eligibility_files",
        "plan_id": file.plan_id,
        "undoes_id": file.undoes_id,
        "state": file.state,
        "step": file.step,
        "mode": file.mode,
        "dry_run": file.dry_run,
        "format": file.format,
        "file_date": file.file_date,
        "size_bytes": file.size_bytes,
        "sha256": file.sha256,
        "rows_total": file.rows_total,
        "rows_done": file.rows_done,
        "counts": {name: file.counts[name] for name in COUNTS if name in file.counts},
        "members_before": file.members_before,
        "members_missing": file.members_missing,
        "ignored_columns": file.ignored,
        "problem": file.problem,
        "created_at": wire_time(file.created_at),
        "started_at": None if file.started_at is None else wire_time(file.started_at),
        "finished_at": None if file.finished_at is None else wire_time(file.finished_at),
    }


def summary(file: EligibilityFile) -> list[str]:
    """The result of the file in sentences, with the commands that come next."""
    kind = "Undo" if file.undoes_id else "Dry run: nothing was written. File" if file.dry_run else "File"
    counted = ", ".join(f"{file.counts[name]:,} {name}" for name in COUNTS if file.counts.get(name))
    became = f"is {file.state}: {counted or 'no rows'}"
    if file.state is FileState.FAILED:
        became = f"has failed: {counted or 'nothing was applied'}"
    lines = [f"{kind} {file.id} {became}."]
    if file.state is FileState.WAITING:
        lines.append(f"A worker goes on where it stopped. To go on here: frontdesk file resume {file.id}")
    if file.problem is not None:
        lines.append(str(file.problem["message"]))
    if file.needs_approval and file.dry_run:
        lines.append("The real run would be held before it ends any member, until it is approved.")
    elif file.needs_approval:
        lines.append(
            f"No member was ended. To end them: frontdesk file approve {file.id}; "
            f"to give the file up: frontdesk file cancel {file.id}"
        )
    if file.ignored:
        lines.append("Columns or keys that are no field were left out: " + ", ".join(file.ignored) + ".")
    if file.counts.get(REFUSED) or file.counts.get(WARNED):
        lines.append(f"Row by row: frontdesk file report {file.id}")
    return lines
