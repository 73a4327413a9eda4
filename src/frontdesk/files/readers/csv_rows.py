"""Rows of a CSV file: a header, perhaps below titles, then a member per row (docs/file-formats.md)."""

import csv
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

from frontdesk.errors import Fault
from frontdesk.files.mapping import FileMapping
from frontdesk.files.model import FileHeader, Format, ReadItem, Row, Unreadable, UnreadRows, no_rows
from frontdesk.files.readers.csv_layout import find_layout, start_of
from frontdesk.files.readers.line_queue import LineQueue
from frontdesk.files.readers.source import LONGEST_LINE, Source
from frontdesk.files.readers.table import TableColumns

MOST_BLANK_ROWS = 2**20  # those of a sheet: what stands far below a table makes blank rows of all above


def read_csv(source: Source, mapping: FileMapping) -> tuple[FileHeader, Iterator[ReadItem]]:
    """The header and the rows. The mapping names the delimiter and the header's row; else they are found: the first row
    that has the key, split where it has most fields.

    Raises Unreadable.
    """
    reader = _CsvReader(source, mapping)
    return reader.header, reader.rows()


class _BadQuoting(Exception):
    """The quotation marks of a row don't match; it took in so many `lines`."""

    def __init__(self, lines: int) -> None:
        super().__init__(lines)
        self.lines = lines


class _CsvReader:
    """One pass over the file. Lines are read by the block where each is a row, as nearly everywhere: a line alone takes
    five times as long."""

    def __init__(self, source: Source, mapping: FileMapping) -> None:
        self._lines = LineQueue(source.line_blocks())
        start = start_of(self._lines)
        layout = find_layout(start, mapping)
        self._place, self._delimiter = layout.header.place, layout.delimiter
        self._csv = partial(csv.reader, delimiter=self._delimiter, strict=True)
        self._lines.put_back(start[layout.lines_above :])
        try:
            names, _ = self._quoted(next(self._lines, ""))
        except _BadQuoting:
            message = "The quotation marks of the header don't match."
            raise Unreadable("no_header", message, place=self._place) from None
        self._blank_rows = 0
        self._columns = TableColumns(names, mapping, place=self._place)
        self.header = FileHeader(Format.CSV, ignored=self._columns.ignored, columns=(self._delimiter, *names))

    def rows(self) -> Iterator[ReadItem]:
        found = skipped = False
        while lines := self._lines.take_block():
            plain = self._plain_rows(lines)
            for item in self._rows_of(lines) if plain is None else [plain]:
                is_skipped = isinstance(item, Row) and item.skipped
                found, skipped = found or not is_skipped, skipped or is_skipped
                yield item
        if not found:
            raise no_rows("The file has a header and no row below it.", skipped=skipped)

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
        return self._unread(columns.plain_keys(cells), texts) if all(map(str.strip, cells)) else None

    def _unread(self, keys: Sequence[str | None], texts: Sequence[str]) -> UnreadRows:
        """The next rows."""
        first = self._place + 1
        self._place += len(texts)
        return UnreadRows(first, keys, texts, self._read)

    def _read(self, place: int, text: str) -> Row:
        cells = next(self._csv([text])) if '"' in text else self._split(text)
        return self._columns.row(place, cells)

    def _rows_of(self, lines: list[str]) -> Iterator[ReadItem]:
        """The rows of the lines, each alone if one of them takes several lines or is damaged."""
        try:
            rows = [*self._csv(lines)]
        except csv.Error:
            rows = []
        if len(rows) != len(lines):
            self._lines.put_back(lines)
            yield from self._single_rows(until=self._lines.taken + len(lines))
            return
        keys: list[str | None] = []
        texts: list[str] = []
        for cells, line in zip(rows, lines, strict=True):
            if self._is_known_by_text(cells):
                keys.append(self._columns.key(cells))
                texts.append(line.rstrip("\r\n"))
                continue
            if texts:
                yield self._unread(keys, texts)
                keys, texts = [], []
            self._place += 1
            if (row := self._row(cells)) is not None:
                yield row
        if texts:
            yield self._unread(keys, texts)

    def _single_rows(self, *, until: int) -> Iterator[ReadItem]:
        """The rows that begin before so many lines are taken."""
        while self._lines.taken < until:
            line = next(self._lines)
            self._place += 1
            try:
                cells, is_one_line = self._quoted(line) if '"' in line else (self._split(line), True)
            except _BadQuoting as error:
                yield self._damaged_row(line, error.lines)
                continue
            if is_one_line and self._is_known_by_text(cells):
                yield UnreadRows(self._place, [self._columns.key(cells)], [line.rstrip("\r\n")], self._read)
            elif (row := self._row(cells)) is not None:
                yield row

    def _damaged_row(self, line: str, lines: int) -> Row:
        """The row of a line with quotation marks that don't match, which took in so many lines."""
        if lines > 1:  # some of them may be good rows
            message = "a quotation mark is not closed, so the end of the row is unknown"
            raise Unreadable("rows_run_together", message, place=self._place) from None
        [cells] = csv.reader([line], delimiter=self._delimiter)
        fault = Fault("row", "bad_quoting", "the quotation marks don't match; double those inside a cell")
        return Row(self._place, self._columns.key_of(cells), faults=(fault,))

    def _is_known_by_text(self, cells: list[str]) -> bool:
        """Whether the row need not be read to be recognised."""
        columns = self._columns
        return (
            len(cells) == columns.width
            and not columns.are_read_whole
            and not columns.skips(cells)
            and not columns.ends(cells)
            and any(map(str.strip, cells))
        )

    def _row(self, cells: list[str]) -> Row | None:
        """The row of these cells, None if they are blank."""
        columns, place = self._columns, self._place
        if not any(map(str.strip, cells)):
            self._blank_rows += 1
            if self._blank_rows > MOST_BLANK_ROWS:
                message = f"More than {MOST_BLANK_ROWS:,} rows of the file are blank. Delete them."
                raise Unreadable("too_sparse", message)
            return None
        if columns.skips(cells):
            return Row(place, {}, skipped=True)
        if len(cells) != columns.width:
            message = f"has {len(cells)} cells where the header has {columns.width} columns"
            fault = Fault("row", "wrong_column_count", message)
            return Row(place, columns.key_of(cells), faults=(fault,))
        return columns.row(place, cells)

    def _split(self, line: str) -> list[str]:
        return line.rstrip("\r\n").split(self._delimiter)

    def _quoted(self, line: str) -> tuple[list[str], bool]:
        """The cells of the row that begins with this line, and whether it ends there. Raises _BadQuoting, Unreadable."""
        reader = self._csv(chain([line], self._following(len(line))))
        try:
            return next(reader), reader.line_num == 1
        except csv.Error:
            raise _BadQuoting(reader.line_num) from None

    def _following(self, letters: int) -> Iterator[str]:
        """The next lines. A row is bounded, since an open quotation mark could collect the whole file."""
        for line in self._lines:
            letters += len(line)
            if letters > LONGEST_LINE:
                message = f"longer than {LONGEST_LINE:,} characters: is a quotation mark not closed?"
                raise Unreadable("rows_run_together", message, place=self._place)
            yield line
