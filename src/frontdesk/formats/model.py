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
    "not_json": "The line is not one JSON object as a request body would carry it.",
    "cell_error": "A cell of a workbook that is read holds an error of Excel, such as #N/A.",
}

# Faults of the whole file; nothing of it is applied.
FILE_FAULTS = {
    "empty": "There is nothing in the file.",
    "no_rows": "There is no member in the file.",
    "no_header": "No row of the first ones names a field of a member: name the columns in a mapping, or their row by header_row.",
    "no_key_column": "No column of a CSV holds the external_id: name the column in a mapping.",
    "repeated_column": "Two columns hold the same field: give one of them null in the mapping.",
    "missing_column": "The mapping names a column that the file does not have: correct its name in the one or the other.",
    "unknown_encoding": "The declared encoding is not one that is read: declare another.",
    "wrong_encoding": "The bytes are not in the declared encoding: declare the one that the file has.",
    "not_text": "The file is an image or other binary data, not a text: send it as CSV or .xlsx.",
    "not_workbook": "The file is a ZIP archive, or another kind of file, and no workbook (.xlsx): save it as one, or as CSV.",
    "bad_workbook": "The workbook is damaged or cut off, or declares entities: save it again.",
    "old_workbook": "The file is a workbook of an older kind (.xls), or has a password: save it as .xlsx, without one.",
    "encrypted_workbook": "The workbook has a password: save it without one.",
    "no_sheet": "The workbook has no sheet, or none of the name that the mapping or the upload gives: name one of its sheets.",
    "sheet_too_large": "The sheet reaches too far, or its texts are too many, to be read in bounded memory: delete what stands "
    "far below or beside the table, or save it as CSV.",
    "bad_json_array": "Something other than JSON values with commas between them stands in the JSON array, or behind it.",
    "line_too_long": "A line, row or segment is longer than any member can be.",
    "rows_run_together": "A quotation mark is not closed, so it can't be told where rows end.",
    "cut_off": "The file ends in the middle: send the whole file again.",
    "not_gzip": "The compressed data is damaged: pack the file again.",
    "too_large": "The content is larger than what is read.",
    "zip_bomb": "The compressed data unpacks to far more than any list of members would.",
    "looks_like_ssn": "Most values of an identifier look like social security numbers: take another column, or say "
    '"ssn": "plain" in a mapping.',
    "not_x12": "The file does not begin with an ISA segment, or the segment is damaged: send the file as it was written.",
    "wrong_version": "The file is not an 834 of version 005010X220A1, or of 004010X095A1.",
    "wrong_order": "A segment stands where it has no place.",
    "wrong_count": "A count or control number of SE, GE or IEA does not agree with the file. Wrong counts pass with "
    '"counts": "lenient" in the mapping.',
    "unknown_purpose": "BGN08 is neither blank nor one of 2, 4 and RX: say the mode with the upload.",
    "wrong_date": "BGN03, the date of the file, is not a real date.",
    "mixed_purposes": "The transactions of the file have different BGN08: send them as files of their own, or say the mode "
    "with the upload.",
}
