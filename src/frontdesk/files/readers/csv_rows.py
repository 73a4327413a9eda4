"""Rows of a CSV file: how it is laid out, a header, perhaps below titles, then a member per row (docs/file-formats.md)."""

import contextlib
import csv
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

from frontdesk.errors import Fault
from frontdesk.files.mapping import DELIMITERS, SEARCHED_ROWS, FileMapping
from frontdesk.files.model import FileHeader, Format, ReadItem, Row, Unreadable, UnreadRows
from frontdesk.files.readers.source import LONGEST_LINE, Source
from frontdesk.files.readers.table import HeaderRow, TableColumns, find_header

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


class LineQueue:
    """Gives out lines that come by the block. `taken` counts those that were, without those that were put back."""

    def __init__(self, blocks: Iterator[list[str]]) -> None:
        self._blocks = blocks
        self._block: list[str] = []
        self._at = 0
        self.taken = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while self._at == len(self._block):
            self._block, self._at = next(self._blocks), 0
        line = self._block[self._at]
        self._at += 1
        self.taken += 1
        return line

    def take_block(self) -> list[str]:
        """The lines at hand, if none are the next ones of the file; none at its end."""
        lines = self._block[self._at :] or next(self._blocks, [])
        self._block, self._at = [], 0
        self.taken += len(lines)
        return lines

    def put_back(self, lines: list[str]) -> None:
        """The last lines that were taken come again."""
        self._block, self._at = [*lines, *self._block[self._at :]], 0
        self.taken -= len(lines)


def _start_of(lines: Iterator[str]) -> list[str]:
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
        self._lines = LineQueue(source.line_blocks())
        start = _start_of(self._lines)
        self._delimiter, header, lines_above = _find_layout(start, mapping)
        self._place = header.place - 1
        self._csv = partial(csv.reader, delimiter=self._delimiter, strict=True)
        self._lines.put_back(start[lines_above:])
        names, _, fault = self._row_from(next(self._lines, ""))
        if fault is not None:
            message = "The quotation marks of the header don't match."
            raise Unreadable("no_header", message, place=header.place)
        self._place = header.place
        self._blank_rows = 0
        self._columns = TableColumns(names, mapping, place=self._place)
        self.header = FileHeader(Format.CSV, ignored=self._columns.ignored, columns=(self._delimiter, *names))

    def rows(self) -> Iterator[ReadItem]:
        while lines := self._lines.take_block():
            plain = self._plain_rows(lines)
            yield from self._rows_of(lines) if plain is None else [plain]

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
        cells = next(self._csv([text])) if '"' in text else text.split(self._delimiter)
        return self._columns.row(place, cells)

    def _rows_of(self, lines: list[str]) -> Iterator[ReadItem]:
        keys: list[str | None] = []
        texts: list[str] = []
        for cells, text, fault in self._split(lines):
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

    def _split(self, lines: list[str]) -> Iterator[_SplitRow]:
        """The rows of the lines, each alone if one of them takes several lines or is damaged."""
        try:
            rows = [*self._csv(lines)]
        except csv.Error:
            rows = []
        if len(rows) == len(lines):
            for cells, line in zip(rows, lines, strict=True):
                yield cells, line.rstrip("\r\n"), None
            return
        self._lines.put_back(lines)
        until = self._lines.taken + len(lines)
        while self._lines.taken < until:
            yield self._row_from(next(self._lines))

    def _row_from(self, line: str) -> _SplitRow:
        """The row that begins with this line. Raises Unreadable if its end is unknown."""
        text = line.rstrip("\r\n")
        if '"' not in line:
            return text.split(self._delimiter), text, None
        reader = self._csv(chain([line], self._following(len(line))))
        try:
            cells = next(reader)
        except csv.Error:
            if reader.line_num > 1:  # some of the lines may be good rows
                raise self._run_together(
                    "a quotation mark is not closed, so the end of the row is unknown"
                ) from None
            [cells] = csv.reader([line], delimiter=self._delimiter)
            return cells, None, _BAD_QUOTING
        return cells, text if reader.line_num == 1 else None, None

    def _following(self, letters: int) -> Iterator[str]:
        """The next lines. A row is bounded, since an open quotation mark could collect the whole file."""
        for line in self._lines:
            letters += len(line)
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
