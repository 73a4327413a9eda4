"""Rows of a CSV file: a header, perhaps below titles, then rows of one line or more
(docs/file-formats.md).
"""

import contextlib
import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, repeat

from frontdesk import codes
from frontdesk.errors import Fault
from frontdesk.formats.model import (
    DELIMITERS,
    SEARCHED_ROWS,
    HeaderRank,
    SplitRow,
    Table,
    Unreadable,
)
from frontdesk.formats.source import LONGEST_LINE, Source

# Excel writes this line above the header, and hides it when it opens the file. White space after
# the empty cells begins with another character than a tab: if both parts took tabs, a line of a
# million tabs would be tried at each place between them.
_SEPARATOR = re.compile(r'"?sep=([,;|\t])"?[,;|\t]*(?:[^\S\t]\s*)?', re.IGNORECASE)
_BAD_QUOTING = Fault(
    "row", codes.rows.BAD_QUOTING, "the quotation marks don't match; double those inside a cell"
)


@dataclass(frozen=True, slots=True)
class PlainRows:
    """Rows from `place` on that have no quotation mark, so that each is a line: their texts, split
    where that is asked for.
    """

    place: int
    texts: Sequence[str]
    delimiter: str

    def column(self, at: int, width: int) -> list[str]:
        """The cells at this position, none unless each row has so many cells."""
        delimiter = self.delimiter
        if {text.count(delimiter) for text in self.texts} != {width - 1}:
            return []
        return [text.split(delimiter, at + 1)[at] for text in self.texts]

    def __iter__(self) -> Iterator[SplitRow]:
        rows = csv.reader(self.texts, delimiter=self.delimiter)
        return zip(count(self.place), rows, self.texts, repeat(None))


def split_quoted(text: str, delimiter: str) -> list[str]:
    """The cells of a row that is one line with quotation marks."""
    return next(csv.reader([text], delimiter=delimiter, strict=True))


def read_csv(source: Source, rank: HeaderRank, delimiter: str | None = None) -> Table:
    """The header of the highest rank, and the rows. Without a delimiter, that of a first line
    `sep=` or of the best header is used. Raises Unreadable, here or from the rows.
    """
    blocks = source.line_blocks()
    start: list[str] = []  # the lines among which the header is
    for block in blocks:
        start += block
        if len(start) > SEARCHED_ROWS or sum(map(len, start)) > LONGEST_LINE:
            break
    if not start:
        raise Unreadable(codes.files.EMPTY, "The file is empty.")
    if separator := _SEPARATOR.fullmatch(start[0]):
        del start[0]
        delimiter = delimiter or separator[1]
    layouts = _layouts(start[:SEARCHED_ROWS], [delimiter] if delimiter else DELIMITERS)
    best = max(layouts, key=lambda layout: rank(*layout[:2]), default=(1, [], delimiter or ",", 0))
    place, _, delimiter, above = best
    rows = _CsvRows(blocks, start[above:], delimiter, place - 1)
    names = next(rows.split(), (place, (), None, None))[1]
    return Table(names, place, rows.blocks(), delimiter)


class _CsvRows:
    """The rows of `lines` and of the blocks behind them; `place` is that of the row before. Lines
    are read by the block where each is a row, as nearly everywhere: a line alone takes five times
    as long.
    """

    def __init__(
        self, blocks: Iterator[list[str]], lines: list[str], delimiter: str, place: int
    ) -> None:
        self._blocks = blocks
        self._delimiter = delimiter
        self._place = place
        self._csv = partial(csv.reader, delimiter=delimiter)
        # The next lines, and those of the row that is read.
        self._lines = deque(lines)
        self._taken = list[str]()

    def blocks(self) -> Iterator[Iterable[SplitRow]]:
        while lines := [*self._lines] or next(self._blocks, []):
            self._lines.clear()
            first = self._place + 1
            texts = [line.rstrip("\r\n") for line in lines]
            if '"' not in "".join(lines):
                self._place += len(lines)
                yield PlainRows(first, texts, self._delimiter)
                continue
            with contextlib.suppress(csv.Error):
                rows = [*self._csv(lines, strict=True)]
                if len(rows) == len(lines):
                    self._place += len(lines)
                    yield zip(count(first), rows, texts, repeat(None))
                    continue
            self._lines.extend(lines)
            yield self.split()

    def split(self) -> Iterator[SplitRow]:
        """The rows of the next lines, up to one that ends with them."""
        reader = self._csv(self._next_lines(), strict=True)
        while self._lines:
            self._taken.clear()
            try:
                cells = next(reader)
                fault = None
            except csv.Error:
                if len(self._taken) > 1:  # some of the lines may be good rows
                    message = "a quotation mark is not closed, so the end of the row is unknown"
                    raise self._run_together(message) from None
                cells = next(self._csv(self._taken))
                fault = _BAD_QUOTING
            self._place += 1
            is_plain = fault is None and len(self._taken) == 1
            yield self._place, cells, self._taken[0].rstrip("\r\n") if is_plain else None, fault

    def _next_lines(self) -> Iterator[str]:
        """The lines, one after the other. A row is bounded, since an open quotation mark could
        collect the whole file.
        """
        letters = 0
        while self._lines or (block := next(self._blocks, [])):
            if not self._lines:
                self._lines.extend(block)
            line = self._lines.popleft()
            letters = len(line) + (letters if self._taken else 0)
            self._taken.append(line)
            if letters > LONGEST_LINE:
                message = (
                    f"longer than {LONGEST_LINE:,} characters: is a quotation mark not closed?"
                )
                raise self._run_together(message)
            yield line

    def _run_together(self, message: str) -> Unreadable:
        return Unreadable(codes.files.ROWS_RUN_TOGETHER, message, place=self._place + 1)


def _layouts(
    lines: list[str], delimiters: Iterable[str]
) -> Iterator[tuple[int, list[str], str, int]]:
    """Each row that may be the header: its place, its cells, the delimiter, and how many lines
    stand above it.
    """
    for delimiter in delimiters:
        reader = csv.reader(lines, delimiter=delimiter)
        above = 0
        with contextlib.suppress(csv.Error):  # an unreadable row is reported when the rows are read
            for place, cells in enumerate(reader, 1):
                yield place, cells, delimiter, above
                above = reader.line_num
