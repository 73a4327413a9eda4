"""The first rows of a file with names that are not known yet: its columns as texts, and values masked for people to look at."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import islice
from typing import TypeVar

from frontdesk.formats.json_rows import cell_of, json_texts
from frontdesk.formats.model import Format, Unreadable
from frontdesk.formats.source import Source
from frontdesk.formats.workbook import sheet_rows, without_blank_end
from frontdesk.mapping.parser import DELIMITERS
from frontdesk.mapping.suggest.names import meanings
from frontdesk.strict_json import NotStrict, parse_strictly

Item = TypeVar("Item")

SAMPLE_ROWS, MOST_COLUMNS, HEADER_ROWS = 1000, 200, 20
_LINES = SAMPLE_ROWS + HEADER_ROWS
SAMPLE_LETTERS = 8 * 1024 * 1024  # 1,000 lines of the longest kind would have 64 MiB
_SHOWN, _LONGEST_SHOWN = 5, 24
# Cells of a first row that can't be names of columns: the file has no header, and they are a member's.
_VALUE = re.compile(r"[^@\s]+@[^@\s]+[.][^@\s]+|[-+(). 0-9/:]{4,}")


@dataclass(frozen=True, slots=True)
class Sample:
    """The names of the columns, and the rows below them: those with as many cells each, and the odd ones. `delimiter` is None
    for workbooks."""

    format: Format
    names: list[str]
    rows: list[list[str]]
    odd_rows: list[list[str]] = field(default_factory=list)
    delimiter: str | None = None

    def column(self, position: int) -> list[str]:
        """The cells of a column that are not blank, trimmed."""
        cells = (row[position].strip() for row in self.rows)
        return [cell for cell in cells if cell]


def read_sample(
    content: BufferedReader, source: Source | None, found: Format, *, is_cut: bool, sheet: str | None = None
) -> Sample:
    """The first rows of what `open_source` gives, of a workbook those of the sheet; `is_cut` says that the file may end within
    one, which a workbook must not. Raises Unreadable for what has no names of columns."""
    sample = (
        _of_sheet(sheet_rows(content, sheet)) if source is None else _of_text(source, found, is_cut=is_cut)
    )
    if not sample.rows:
        raise Unreadable("no_rows", "The file has no row below its header.")
    return sample


def _of_text(source: Source, found: Format, *, is_cut: bool) -> Sample:
    if found is not Format.CSV:
        texts = _whole((text for _, text in json_texts(source, found)), is_cut=is_cut)
        return _of_objects(islice(_up_to_letters(texts, len), SAMPLE_ROWS), found)
    return _of_table([*_up_to_letters(islice(_whole(source.lines(), is_cut=is_cut), _LINES), len)])


def _of_sheet(numbered: Generator[tuple[int, Sequence[str]]]) -> Sample:
    """The rows of a sheet; what stands beside the table has no name."""
    with closing(numbered):
        rows_of_sheet = islice(numbered, _LINES)
        first = _up_to_letters(rows_of_sheet, lambda row: sum(map(len, row[1])))
        table = [_narrow([*without_blank_end(cells)]) for _, cells in first if any(map(str.strip, cells))]
    at, names = _header_of(table)
    _check_header(names)
    width = len(names)
    rows = [[*cells[:width], *[""] * (width - len(cells))] for cells in table[at + 1 :]]
    return Sample(Format.XLSX, names, [cells for cells in rows if any(map(str.strip, cells))][:SAMPLE_ROWS])


def _whole(texts: Iterator[str], *, is_cut: bool) -> Iterator[str]:
    """The lines that are whole."""
    last = ""
    try:
        for line in texts:
            if last:
                yield last
            last = line
    except Unreadable:
        if not is_cut:
            raise
    if last and not is_cut:
        yield last


def _up_to_letters(items: Iterable[Item], letters: Callable[[Item], int]) -> Iterator[Item]:
    left = SAMPLE_LETTERS
    for item in items:
        if (left := left - letters(item)) < 0:
            return
        yield item


def _of_table(lines: Sequence[str]) -> Sample:
    first_rows = {each: [*islice(_readable(lines, each), HEADER_ROWS)] for each in DELIMITERS}
    headers = {delimiter: _header_of(rows) for delimiter, rows in first_rows.items()}
    delimiter = max(headers, key=lambda each: _score(headers[each][1]))
    at, names = headers[delimiter]
    _check_header(names)
    width, rows = len(names), [*islice(_readable(lines, delimiter), at + 1, at + 1 + SAMPLE_ROWS)]
    even = [row for row in rows if len(row) == width]
    return Sample(Format.CSV, names, even, [row for row in rows if len(row) != width], delimiter)


def _header_of(rows: Sequence[list[str]]) -> tuple[int, list[str]]:
    """The row among the first that means most, the uppermost of several, and its place."""
    places = range(min(HEADER_ROWS, len(rows)))
    at = max(places, key=lambda number: (_score(rows[number]), -number), default=0)
    return at, rows[at] if rows else []


def _check_header(names: Sequence[str]) -> None:
    _check_width(names)
    if any(_VALUE.fullmatch(name.strip()) for name in names) or _score(names)[0] < 1:
        raise Unreadable("no_header", "No row has names of columns that mean something for a member.")


def _check_width(names: Sequence[str]) -> None:
    if len(names) > MOST_COLUMNS:
        message = (
            f"The file has more than {MOST_COLUMNS} columns. Send a copy with those that describe members."
        )
        raise Unreadable("too_large", message)


def _narrow(cells: list[str]) -> list[str]:
    """No wider than what tells that there are too many: a short line of a hostile file has 65,000 cells."""
    return cells if len(cells) <= MOST_COLUMNS else [*cells[:MOST_COLUMNS], cells[-1]]


def _readable(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    """The rows that are not blank."""
    reader = csv.reader(lines, delimiter=delimiter)
    while True:
        try:
            row = next(reader)
        except csv.Error:
            continue
        except StopIteration:
            return
        if any(map(str.strip, row)):
            yield _narrow(row)


def _score(names: Sequence[str]) -> tuple[int, int]:
    return sum(bool(meanings(name)) for name in names[:MOST_COLUMNS]), len(names)


def _of_objects(lines: Iterable[str], found: Format) -> Sample:
    """Each object is a row. Objects of a hostile file have keys of their own, which all rows would have cells for."""
    objects, names = [], dict[str, None]()
    for line in lines:
        try:
            value = parse_strictly(line)
        except NotStrict:
            continue
        if type(value) is dict:
            objects.append(value)
            names |= dict.fromkeys(value)
            _check_width(list(names))
    rows = [["" if each.get(name) is None else cell_of(each[name]) for name in names] for each in objects]
    return Sample(found, [*names], rows)


def masked(values: Sequence[str], real: frozenset[str]) -> list[str]:
    """Up to five shapes of the values, the most frequent first: letters are X and x, digits 9. None of them is in `real`."""
    shapes = Counter(_shape(value) for value in values)
    shown = (shape if shape not in real else re.sub("[Xx9]", "?", shape) for shape, _ in shapes.most_common())
    return list(dict.fromkeys(shape for shape in shown if shape not in real))[:_SHOWN]


def _shape(value: str) -> str:
    """The value with other letters and digits; what is neither a letter, a digit nor plain punctuation is ?."""
    letters = (
        "9" if letter.isdigit() else "X" if letter.isupper() else "x" if letter.isalpha() else letter
        for letter in value[:_LONGEST_SHOWN]
    )
    return re.sub(r"[^Xx9 \-/.,:@()+#_]", "?", "".join(letters))
