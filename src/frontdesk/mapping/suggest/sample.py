"""The first rows of a file without a mapping: its columns as texts, and masked values for people."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import chain, islice

from frontdesk import codes
from frontdesk.formats.csv_rows import read_csv
from frontdesk.formats.model import Format, Unreadable
from frontdesk.formats.source import Source
from frontdesk.formats.workbook import OTHER_SHEETS, read_sheet
from frontdesk.mapping.column_names import names_apart
from frontdesk.mapping.suggest.names import LONGEST_NAME, meanings
from frontdesk.mapping.values import fold_name

SAMPLE_ROWS = 1000
MOST_COLUMNS = 200
SAMPLE_LETTERS = 8 * 1024 * 1024  # 1,000 lines of the longest kind would have 64 MiB
OF_JSON = (
    "A mapping is suggested for tables and 834s. Of JSON, name the keys in `columns` of a mapping of "
    "your own."
)
_SHOWN = 5
_LONGEST_SHOWN = 24
# Cells of a first row that can't be names of columns: the file has no header, and they are a
# member's. The name of a domain is read up to its first point, so that an address matches in one
# way only.
_VALUE = re.compile(r"[^@\s]+@[^@\s][^@\s.]*[.][^@\s]+|[-+(). 0-9/:]{4,}")

_PlacedRow = tuple[int, list[str]]


@dataclass(frozen=True, slots=True)
class Sample:
    """The names of the columns, and the rows below them: those with as many cells each, and the odd
    ones, with their places in the file. `apart` are the names by which a mapping tells the columns
    apart. `delimiter` is None for workbooks; `is_1904`, `sheet` and `other_sheets` are the table's.
    """

    format: Format
    names: list[str]
    apart: list[str]
    rows: list[list[str]]
    places: list[int]
    odd_rows: list[list[str]] = field(default_factory=list)
    odd_places: list[int] = field(default_factory=list)
    delimiter: str | None = None
    is_1904: bool = False
    sheet: str = ""
    other_sheets: Sequence[str] = ()

    def column(self, position: int) -> list[str]:
        """The cells of a column that are not blank, trimmed."""
        cells = (row[position].strip() for row in self.rows)
        return [cell for cell in cells if cell]

    def can_be_mapped(self, position: int) -> bool:
        """Whether a mapping can name the column: its name is neither blank nor a text, and no other
        column's.
        """
        folded = [*map(fold_name, self.apart)]
        return (
            bool(folded[position])
            and len(self.names[position]) <= LONGEST_NAME
            and folded.count(folded[position]) == 1
        )

    def is_repeated(self, position: int) -> bool:
        """Whether another column has the same name."""
        return self.apart[position] != self.names[position]


def read_sample(
    content: BufferedReader,
    source: Source | None,
    found: Format,
    *,
    is_cut: bool,
    sheet: str | None = None,
) -> Sample:
    """The first rows of the table that `open_source` gives, of a workbook those of the sheet;
    `is_cut` says that a text may end within one. Raises Unreadable for what has no names of
    columns.
    """
    if source is not None and found is not Format.CSV:
        raise Unreadable(codes.files.NO_HEADER, OF_JSON)
    table = read_sheet(content, _rank, sheet) if source is None else read_csv(source, _rank)
    names = [*table.names]
    if len(names) > MOST_COLUMNS:
        message = (
            f"The file has more than {MOST_COLUMNS} columns. Send a copy with those of members."
        )
        raise Unreadable(codes.files.TOO_LARGE, message)
    if any(_VALUE.fullmatch(name.strip()) for name in names) or not any(map(meanings, names)):
        message = "No row has names of columns that mean something for a member."
        more = f" {OTHER_SHEETS}" if table.other_sheets else ""
        raise Unreadable(codes.files.NO_HEADER, message + more)
    split = chain.from_iterable(table.blocks)
    # No wider than what tells that there are too many cells: a short line of a hostile file has
    # 65,000.
    header = [*map(str.strip, names)]
    rows = (
        (place, [*cells[: MOST_COLUMNS + 1]])
        for place, cells, _, _ in split
        if any(map(str.strip, cells)) and [*map(str.strip, cells[: MOST_COLUMNS + 1])] != header
    )
    taken = _first(rows, is_cut=is_cut)
    even = [(place, row) for place, row in taken if len(row) == len(names)]
    if not even:
        raise Unreadable(codes.files.NO_ROWS, "The file has no row below its header.")
    odd = [(place, row) for place, row in taken if len(row) != len(names)]
    return Sample(
        found,
        names,
        apart=names_apart(names),
        rows=[row for _, row in even],
        places=[place for place, _ in even],
        odd_rows=[row for _, row in odd],
        odd_places=[place for place, _ in odd],
        delimiter=table.delimiter or None,
        is_1904=table.is_1904,
        sheet=table.sheet,
        other_sheets=table.other_sheets,
    )


def _rank(place: int, names: Sequence[str]) -> tuple[int, ...]:
    """The header is the row with the most recognised names, the uppermost of equals."""
    return sum(bool(meanings(name)) for name in names[:MOST_COLUMNS]), len(names), -place


def _first(rows: Iterable[_PlacedRow], *, is_cut: bool) -> list[_PlacedRow]:
    """The first rows, of a text that may end anywhere without the last one."""
    taken = list[_PlacedRow]()
    left = SAMPLE_LETTERS
    try:
        for place, row in islice(rows, SAMPLE_ROWS + is_cut):
            if (left := left - sum(map(len, row))) < 0:
                break
            taken.append((place, row))
    except Unreadable as error:
        if error.code == "too_large" or not is_cut:
            raise
    return taken[:-1] if is_cut else taken


def masked(values: Sequence[str], real: frozenset[str]) -> list[str]:
    """Up to five shapes of the values, the most frequent first: letters are X and x, digits 9. None
    of them is in `real`.
    """
    shapes = Counter(_shape(value) for value in values)
    shown = (
        shape if shape not in real else re.sub("[Xx9]", "?", shape)
        for shape, _ in shapes.most_common()
    )
    return list(dict.fromkeys(shape for shape in shown if shape not in real))[:_SHOWN]


def _shape(value: str) -> str:
    """The value with other letters and digits; what is neither a letter, a digit nor plain
    punctuation is ?.
    """
    return "".join(map(_shape_of_letter, value[:_LONGEST_SHOWN]))


def _shape_of_letter(letter: str) -> str:
    if letter.isdigit():
        return "9"
    if letter.isupper():
        return "X"
    if letter.isalpha():
        return "x"
    return letter if letter in " -/.,:@()+#_" else "?"
