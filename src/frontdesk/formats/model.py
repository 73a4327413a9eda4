"""Formats of files, their modes, unparsed rows, and the faults of rows and files
(docs/file-formats.md).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from frontdesk.codes import Code
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
    """The file as a whole can't be used, so nothing of it is applied. `message` is that of the
    code, if none is given; `place` is as in Row, None for the whole file.

    `detail` names the place, never the content, which may be health information.
    """

    code: Code

    def __init__(
        self, code: Code, message: str = "", *, place: int | None = None, unit: str = "Row"
    ) -> None:
        message = message or code.sentence
        super().__init__(message if place is None else f"{unit} {place}: {message}", code=code)
        self.place = place


# How well a row would do as the header, by its place and its cells: the row of the highest rank is
# the header.
HeaderRank = Callable[[int, Sequence[str]], tuple[int, ...]]

# A row of a table: its place, its cells, its text if that is one line, and its fault.
SplitRow = tuple[int, Sequence[str], str | None, Fault | None]


@dataclass(frozen=True, slots=True)
class Table:
    """The cells of a CSV or of a sheet: those of the header, which stands at `place`, and the rows
    below it, blank ones too, by the block. A cell that is one of `errors` could not be calculated.
    `is_1904` says that the serial numbers of days count from 1904. `sheet` is the name of the sheet
    of a workbook, `other_sheets` are the names of those that have a value too, of at most 50.
    """

    names: Sequence[str]
    place: int
    blocks: Iterator[Iterable[SplitRow]]
    delimiter: str = ""
    errors: frozenset[str] = frozenset()
    is_1904: bool = False
    sheet: str = ""
    other_sheets: Sequence[str] = ()
