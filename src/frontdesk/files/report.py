"""The report of a file, for every format alike: a line per row and outcome, as CSV or JSON lines; it reads no database rule.

A row is one line with its outcome; a refused one is a line per fault, and each warning is a line of its own (`warned`).
"""

import csv
import io
import json
from collections.abc import Iterator

from frontdesk.db import Database
from frontdesk.eligibility.model import WARNINGS
from frontdesk.files.codes import REPORT_CODES
from frontdesk.files.model import REFUSED, WARNED, RowOutcome
from frontdesk.files.outcomes import read_outcomes

COLUMNS = ("row", "external_id", "outcome", "code", "field", "hint")

HINTS = WARNINGS | REPORT_CODES

# A spreadsheet takes a cell that begins so for a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", *"\uff1d\uff0b\uff0d\uff20")

Line = tuple[int | None, str | None, str, str, str, str]


def report_json_lines(db: Database, file_id: int) -> Iterator[bytes]:
    """The report as JSON lines, in pieces of a chunk."""
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode
    for entries in read_outcomes(db, file_id):
        lines = [
            encode(dict(zip(COLUMNS, line, strict=True))) for entry in entries for line in lines_of(entry)
        ]
        if lines:
            yield ("\n".join(lines) + "\n").encode()


def report_csv(db: Database, file_id: int) -> Iterator[bytes]:
    """The report as CSV with a header, in pieces of a chunk; safe to open in a spreadsheet."""
    yield (",".join(COLUMNS) + "\r\n").encode()
    for entries in read_outcomes(db, file_id):
        page = io.StringIO()
        writer = csv.writer(page)
        for entry in entries:
            for place, external_id, *rest in lines_of(entry):
                writer.writerow((place, _harmless(external_id or ""), *map(_harmless, rest)))
        yield page.getvalue().encode()


def lines_of(entry: RowOutcome) -> Iterator[Line]:
    """The report's lines about one row."""
    place, external_id, outcome = entry.place, entry.external_id, entry.outcome
    if outcome == REFUSED:
        for field, code, message in entry.faults:
            yield place, external_id, outcome, code, field, message
    else:
        absent = "ended_by_absence" if place is None and outcome == "ended" else ""
        yield place, external_id, outcome, absent, "", HINTS.get(absent, "")
    for field, code in entry.warnings:
        yield place, external_id, WARNED, code, field, HINTS.get(code, "")


def _harmless(text: str) -> str:
    if ";" in text:
        # Where the comma is the decimal sign, spreadsheets part cells at semicolons, within quotation marks too.
        return ";".join(map(_begun_harmlessly, text.split(";")))
    return _begun_harmlessly(text)


def _begun_harmlessly(text: str) -> str:
    return "'" + text if text.lstrip(" ").startswith(_FORMULA_STARTS) else text
