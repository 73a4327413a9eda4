"""What every reader hands out, whatever the format: rows, the head of a file, and what makes a file unreadable.

It knows no format and no rule of a member: values go on as a JSON body would carry them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from frontdesk.errors import Fault, Malformed


class Format(StrEnum):
    """How a file is written; each may be compressed by gzip."""

    CSV = "csv"
    JSON_LINES = "jsonl"
    X12 = "834"


class Intent(StrEnum):
    """What a row asks for. A COMPARE row reports how it differs and writes nothing."""

    ENROL = "enrol"
    END = "end"
    COMPARE = "compare"


class FileMode(StrEnum):
    """What an 834 says of itself (BGN08). The other formats say nothing: the caller decides."""

    CHANGE = "change"
    COMPARE = "compare"
    FULL = "full"


@dataclass(slots=True)
class Row:
    """One member of a file. `place` is its number in the file: the header of a CSV is row 1, the first line of JSON lines
    is 1, an 834 counts segments from the ISA.

    `values` are the interface's fields. `faults` are those that the reader found itself; a row that has any is refused,
    and its values may be no more than the external_id (or nothing), for the report.
    `plan` is the external_id of the plan that the file names for this row, None for the plan of the whole file.
    An END row carries `external_id` and `expiry_date` only.
    """

    place: int
    values: dict[str, object]
    intent: Intent = Intent.ENROL
    plan: str | None = None
    faults: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Head:
    """What is known before the first row. `file_date` is `YYYY-MM-DD`; `ignored` are columns that no field has (of JSON
    lines keys, and they are known after the last row)."""

    format: Format
    purpose: FileMode | None = None
    file_date: str | None = None
    ignored: Sequence[str] = field(default=())


class Unreadable(Malformed):
    """The file as a whole can't be used, so nothing of it is applied. `place` as in Row; None is the file itself.

    `detail` names the place and never repeats what stands there: it may be health information.
    """

    def __init__(self, code: str, message: str, *, place: int | None = None, unit: str = "Row") -> None:
        super().__init__(message if place is None else f"{unit} {place}: {message}")
        self.code = code
        self.place = place


# Faults of one row that only a file can have; the row is refused and its neighbours are not.
ROW_FAULTS = {
    "wrong_column_count": "The row has more or fewer cells than the header has columns.",
    "bad_quoting": "The quotation marks of the row don't match.",
    "not_json": "The line is not one JSON object as a request body would carry it.",
    "no_match_key": "The 834 carries none of what the mapping makes the identifier from.",
    "unknown_code": "The 834 carries a code that has no meaning here.",
    "unknown_plan": "The plan that the row names is not in the mapping.",
}

# What makes a whole file unreadable; nothing of it is applied.
FILE_FAULTS = {
    "empty": "There is nothing in the file.",
    "no_rows": "There is no member in the file.",
    "no_header": "The first line of a CSV names no field of a member.",
    "no_key_column": "No column of a CSV holds the external_id.",
    "repeated_column": "Two columns hold the same field.",
    "unknown_encoding": "The declared encoding is not one that is read.",
    "wrong_encoding": "The bytes are not in the declared encoding.",
    "not_text": "The file is a ZIP archive or a workbook (.xlsx), not a text.",
    "json_array": "The file is one JSON array; JSON lines have an object per line.",
    "line_too_long": "A line, row or segment is longer than any member can be.",
    "rows_run_together": "A quotation mark is not closed, so it can't be told where rows end.",
    "cut_off": "The file ends in the middle.",
    "not_gzip": "The compressed data is damaged.",
    "too_large": "The content is larger than what is read.",
    "zip_bomb": "The compressed data unpacks to far more than any list of members would.",
    "not_x12": "The file does not begin with an ISA segment, or the segment is damaged.",
    "wrong_version": "The file is not an 834 of version 005010X220A1.",
    "wrong_order": "A segment stands where it has no place.",
    "wrong_count": "A count or control number of SE, GE or IEA does not agree with the file.",
    "unknown_purpose": "BGN08 is none of 2, 4 and RX.",
    "wrong_date": "BGN03, the date of the file, is not a real date.",
    "mixed_purposes": "The transactions of the file say different things of themselves.",
}
