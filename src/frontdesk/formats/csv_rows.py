"""Rows of a CSV file: how it is laid out, a header, perhaps below titles, then a member per row (docs/file-formats.md)."""

import contextlib
import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from frontdesk.errors import Fault
from frontdesk.formats.model import Format, Unreadable
from frontdesk.formats.source import LONGEST_LINE, Source
from frontdesk.mapping.model import FileHeader, ReadItem, Row, UnreadRows
from frontdesk.mapping.parser import DELIMITERS, SEARCHED_ROWS, FileMapping
from frontdesk.mapping.table import HeaderRow, TableColumns, find_header

MOST_BLANK_ROWS = 2**20  # those of a sheet: what stands far below a table makes blank rows of all above
# What Excel writes above the header, and hides when it opens the file.
_SEPARATOR = re.compile(r'"?sep=([,;|\t])"?[,;|\t]*\s*', re.IGNORECASE)
_BAD_QUOTING = Fault("row", "bad_quoting", "the quotation marks don't match; double those inside a cell")

# The cells of a row; its text, where that is one line; its fault.
_SplitRow = tuple[list[str], str | None, Fault | None]


def read_csv(source: Source, mapping: FileMapping) -> tuple[FileHeader, Iterator[ReadItem]]:
    """The header and the rows. The mapping names the delimiter and the header's row; else they are found: the first row
    that has the key, split where it has most fields.

    Raises Unreadable.
    """
    reader = _CsvReader(source, mapping)
    return reader.header, reader.rows()


def _find_layout(start: list[str], mapping: FileMapping) -> tuple[str, HeaderRow, int]:
    """Of a file that begins with these lines: the delimiter, of those that it may have the one of the best header; the header;
    how many lines stand above it."""
    separator = _SEPARATOR.fullmatch(start[0])
    above = int(separator is not None)
    known = mapping.delimiter or (separator[1] if separator else None)
    layouts = []
    for delimiter in [known] if known else DELIMITERS:
        reader = csv.reader(start[above:], delimiter=delimiter)
        rows, ends = [], [0]
        with contextlib.suppress(csv.Error):  # a row that can't be read is told when the rows are
            for cells in reader:
                rows.append(cells)
                ends.append(reader.line_num)
        header = find_header(rows, mapping)
        layouts.append((delimiter, header, above + ends[header.place - 1]))
    return max(layouts, key=lambda layout: layout[1].rank)


class _CsvReader:
    """One pass over the file. Lines are read by the block where each is a row, as nearly everywhere: a line alone takes
    five times as long."""

    def __init__(self, source: Source, mapping: FileMapping) -> None:
        self._blocks = source.line_blocks()
        start: list[str] = []  # the lines among which the header is
        while len(start) <= SEARCHED_ROWS and sum(map(len, start)) <= LONGEST_LINE:
            if not (block := next(self._blocks, [])):
                break
            start += block
        if not start:
            raise Unreadable("empty", "The file is empty.")
        self._delimiter, header, lines_above = _find_layout(start[: SEARCHED_ROWS + 1], mapping)
        self._place = header.place - 1
        self._csv = partial(csv.reader, delimiter=self._delimiter)
        # The next lines, and those of the row that is read.
        self._lines, self._taken = deque(start[lines_above:]), list[str]()
        names, _, fault = next(self._split(), ([], None, None))
        if fault is not None:
            message = "The quotation marks of the header don't match."
            raise Unreadable("no_header", message, place=header.place)
        self._place = header.place
        self._blank_rows = 0
        self._columns = TableColumns(names, mapping, place=self._place)
        self.header = FileHeader(Format.CSV, ignored=self._columns.ignored, columns=(self._delimiter, *names))

    def rows(self) -> Iterator[ReadItem]:
        while lines := [*self._lines] or next(self._blocks, []):
            self._lines = deque()
            if plain := self._plain_rows(lines):
                yield plain
            elif rows := self._one_per_line(lines):
                yield from self._rows(rows)
            else:
                self._lines.extend(lines)
                yield from self._rows(self._split())

    def _plain_rows(self, lines: list[str]) -> UnreadRows | None:
        """The rows of lines without quotation marks, if they are recognised by their text. None is blank, since each has its key;
        what follows the key need not be split here."""
        columns, delimiter, at = self._columns, self._delimiter, self._columns.key_at
        if not columns.are_told_by_key or {line.count(delimiter) for line in lines} != {columns.width - 1}:
            return None
        if '"' in "".join(lines):
            return None
        texts = [line.rstrip("\r\n") for line in lines]
        cells = [text.split(delimiter, at + 1)[at] for text in texts]
        if not all(map(str.strip, cells)):
            return None
        self._place += len(texts)
        return self._unread(columns.plain_keys(cells), texts)

    def _unread(self, keys: Sequence[str | None], texts: Sequence[str]) -> UnreadRows:
        """The last rows."""
        return UnreadRows(self._place - len(texts) + 1, keys, texts, self._read)

    def _read(self, place: int, text: str) -> Row:
        cells = next(self._csv([text], strict=True)) if '"' in text else text.split(self._delimiter)
        return self._columns.row(place, cells)

    def _one_per_line(self, lines: list[str]) -> Sequence[_SplitRow]:
        """The rows if each of them is a line, else none."""
        try:
            rows = [*self._csv(lines, strict=True)]
        except csv.Error:
            return []
        if len(rows) != len(lines):
            return []
        return [(cells, line.rstrip("\r\n"), None) for cells, line in zip(rows, lines, strict=True)]

    def _rows(self, rows: Iterable[_SplitRow]) -> Iterator[ReadItem]:
        keys: list[str | None] = []
        texts: list[str] = []
        for cells, text, fault in rows:
            if text is not None and self._columns.is_known_by_text(cells):
                keys.append(self._columns.key(cells))
                texts.append(text)
                self._place += 1
                continue
            if texts:
                yield self._unread(keys, texts)
                keys, texts = [], []
            self._place += 1
            if fault is not None or any(map(str.strip, cells)):
                yield self._columns.row(self._place, cells, fault)
            else:
                self._count_blank_row()
        if texts:
            yield self._unread(keys, texts)

    def _split(self) -> Iterator[_SplitRow]:
        """The rows of the next lines, up to one that ends with them."""
        reader = self._csv(self._next_lines(), strict=True)
        while self._lines:
            self._taken.clear()
            try:
                cells, fault = next(reader), None
            except csv.Error:
                if len(self._taken) > 1:  # some of the lines may be good rows
                    message = "a quotation mark is not closed, so the end of the row is unknown"
                    raise self._run_together(message) from None
                cells, fault = next(self._csv(self._taken)), _BAD_QUOTING
            is_plain = fault is None and len(self._taken) == 1
            yield cells, self._taken[0].rstrip("\r\n") if is_plain else None, fault

    def _next_lines(self) -> Iterator[str]:
        """The lines, one after the other. A row is bounded, since an open quotation mark could collect the whole file."""
        letters = 0
        while self._lines or (block := next(self._blocks, [])):
            if not self._lines:
                self._lines.extend(block)
            line = self._lines.popleft()
            letters = len(line) + (letters if self._taken else 0)
            self._taken.append(line)
            if letters > LONGEST_LINE:
                raise self._run_together(
                    f"longer than {LONGEST_LINE:,} characters: is a quotation mark not closed?"
                )
            yield line

    def _run_together(self, message: str) -> Unreadable:
        return Unreadable("rows_run_together", message, place=self._place + 1)

    def _count_blank_row(self) -> None:
        self._blank_rows += 1
        if self._blank_rows > MOST_BLANK_ROWS:
            message = f"More than {MOST_BLANK_ROWS:,} rows of the file are blank. Delete them."
            raise Unreadable("too_sparse", message)
