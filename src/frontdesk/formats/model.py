"""Formats of files, their modes, unparsed rows, and the faults of rows and files (docs/file-formats.md)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from frontdesk.errors import Fault, Malformed

DELIMITERS = (",", "\t", "|", ";")
SEARCHED_ROWS = 50  # the header is one of so many first rows


class Format(StrEnum):
    """The format of a file; each may be compressed by gzip (docs/file-formats.md)."""

    CSV = "csv"
    JSON_LINES = "jsonl"
    JSON = "json"
    X12 = "834"
    XLSX = "xlsx"


class FileMode(StrEnum):
    """The mode of a file: the caller's, else BGN08 of an 834, else a change."""

    CHANGE = "change"
    COMPARE = "compare"
    FULL = "full"


class Unreadable(Malformed):
    """The file as a whole can't be used, so nothing of it is applied. `code` is one of FILE_FAULTS, which has the default
    message; `place` is as in Row, None for the whole file.

    `detail` names the place, never the content, which may be health information.
    """

    def __init__(self, code: str, message: str = "", *, place: int | None = None, unit: str = "Row") -> None:
        message = message or FILE_FAULTS[code]
        super().__init__(message if place is None else f"{unit} {place}: {message}", code=code)
        self.place = place


# How well a row would do as the header, by its place and its cells: the row of the highest rank is the header.
HeaderRank = Callable[[int, Sequence[str]], tuple[int, ...]]

# A row of a table: its place, its cells, its text if that is one line, and its fault.
SplitRow = tuple[int, Sequence[str], str | None, Fault | None]


@dataclass(frozen=True, slots=True)
class Table:
    """The cells of a CSV or of a sheet: those of the header, which stands at `place`, and the rows below it, blank ones too, by
    the block. A cell that is one of `errors` could not be calculated."""

    names: Sequence[str]
    place: int
    blocks: Iterator[Iterable[SplitRow]]
    delimiter: str = ""
    errors: frozenset[str] = frozenset()


# Faults of one row in its format. Other rows are not affected.
FORMAT_ROW_FAULTS = {
    "bad_quoting": "The quotation marks of the row don't match: double those inside a cell.",
    "not_json": "The line is not one JSON object like a request body.",
    "cell_error": "A cell of the workbook holds an error of Excel, such as #N/A.",
}

# Faults of the whole file; nothing of it is applied.
FILE_FAULTS = {
    "empty": "There is nothing in the file.",
    "no_rows": "There is no member in the file.",
    "no_header": "None of the first rows names a field of a member: name the columns in a mapping, or give the row by "
    "header_row.",
    "no_key_column": "No column of a CSV holds the external_id: name the column in a mapping.",
    "repeated_column": "Two columns hold the same field: give one of them null in the mapping.",
    "missing_column": "The mapping names a column that the file does not have: correct the name in the mapping or in the file.",
    "unknown_encoding": "The declared encoding is not supported: declare another.",
    "wrong_encoding": "The bytes are not in the declared encoding: declare the encoding of the file.",
    "not_text": "The file is an image or other binary data, not a text: send it as CSV or .xlsx.",
    "not_workbook": "The file is a ZIP archive, or another kind of file, and no workbook (.xlsx): save it as one, or as CSV.",
    "bad_workbook": "The workbook is damaged or cut off, or declares entities: save it again.",
    "old_workbook": "The file is a workbook of an older kind (.xls), or has a password: save it as .xlsx, without one.",
    "encrypted_workbook": "The workbook has a password: save it without one.",
    "no_sheet": "The workbook has no sheet, or none of the name that the mapping or the upload gives: name one of its sheets.",
    "sheet_too_large": "The sheet is too large to be read in bounded memory: delete cells far below or beside the table, or save "
    "it as CSV.",
    "bad_json_array": "The JSON array has, or is followed by, something other than JSON values with commas between them.",
    "line_too_long": "A line, row or segment is longer than any member can be.",
    "rows_run_together": "A quotation mark is not closed, so the ends of the rows are unknown.",
    "cut_off": "The file ends in the middle: send the whole file again.",
    "not_gzip": "The compressed data is damaged: pack the file again.",
    "too_large": "The content exceeds the largest size.",
    "zip_bomb": "The compressed data unpacks to far more than a list of members needs.",
    "looks_like_ssn": "Most values of an identifier look like social security numbers: use another column, or set "
    '"ssn": "plain" in a mapping.',
    "not_x12": "The file does not begin with an ISA segment, or the segment is damaged: send the file as it was written.",
    "wrong_version": "The file is not an 834 of version 005010X220A1, or of 004010X095A1.",
    "wrong_order": "A segment is out of order.",
    "wrong_count": "A count or control number of SE, GE or IEA does not agree with the file. Wrong counts pass with "
    '"counts": "lenient" in the mapping.',
    "unknown_purpose": "BGN08 is neither blank nor 2, 4 or RX: give the mode with the upload.",
    "wrong_date": "BGN03, the date of the file, is not a real date.",
    "mixed_purposes": "The transactions of the file have different BGN08: send them as separate files, or give the mode with "
    "the upload.",
}
