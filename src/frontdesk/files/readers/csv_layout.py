"""How a CSV is laid out: its delimiter, and where its header is below titles and `sep=` (docs/file-formats.md)."""

import contextlib
import csv
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from frontdesk.files.mapping import DELIMITERS, SEARCHED_ROWS, FileMapping
from frontdesk.files.model import Unreadable
from frontdesk.files.readers.header import HeaderRow, find_header
from frontdesk.files.readers.source import LONGEST_LINE

# What Excel writes above the header, and hides when it opens the file.
_SEPARATOR = re.compile(r'"?sep=([,;|\t])"?[,;|\t]*\s*', re.IGNORECASE)


class CsvLayout(NamedTuple):
    """How the rows are delimited, where the header is, and how many lines stand above it."""

    delimiter: str
    header: HeaderRow
    lines_above: int


def start_of(lines: Iterator[str]) -> list[str]:
    """The first lines, among which the header is. Raises Unreadable."""
    start: list[str] = []
    letters = 0
    for line in lines:
        start.append(line)
        letters += len(line)
        if len(start) > SEARCHED_ROWS or letters > LONGEST_LINE:
            break
    if not start:
        raise Unreadable("empty", "The file is empty.")
    return start


def find_layout(start: list[str], mapping: FileMapping) -> CsvLayout:
    """The layout of a file that begins with these lines: of the delimiters that it may have, the one of the best header."""
    said = _SEPARATOR.fullmatch(start[0])
    known = mapping.delimiter or (said[1] if said else None)
    found = [_layout(start, bool(said), each, mapping) for each in ([known] if known else DELIMITERS)]
    return max(found, key=lambda layout: layout.header.rank)


def _layout(start: list[str], has_separator: bool, delimiter: str, mapping: FileMapping) -> CsvLayout:
    """The layout if this is the delimiter."""
    above = int(has_separator)
    reader = csv.reader(start[above:], delimiter=delimiter)
    rows, ends = [], [0]
    for cells in _readable(reader):
        rows.append(cells)
        ends.append(reader.line_num)
    header = find_header(rows, mapping)
    return CsvLayout(delimiter, header, above + ends[header.place - 1])


def _readable(reader: Iterable[list[str]]) -> Iterator[list[str]]:
    """The rows up to one that can't be read, which is told when the rows are."""
    with contextlib.suppress(csv.Error):
        yield from reader
