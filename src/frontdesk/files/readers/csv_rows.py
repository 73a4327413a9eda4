"""Rows of a CSV file: a header, perhaps below titles, then a member per row (docs/file-formats.md)."""

import csv
from collections.abc import Iterator
from functools import partial
from itertools import chain

from frontdesk.errors import Fault
from frontdesk.files.mapping import FileMapping
from frontdesk.files.model import FileHeader, Format, Row, Unreadable, UnreadRow, no_rows
from frontdesk.files.readers.csv_layout import find_layout, start_of
from frontdesk.files.readers.source import LONGEST_LINE, Source
from frontdesk.files.readers.table import TableColumns


def read_csv(source: Source, mapping: FileMapping) -> tuple[FileHeader, Iterator[Row | UnreadRow]]:
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
    """One pass over the file."""

    def __init__(self, source: Source, mapping: FileMapping) -> None:
        lines = source.lines()
        start = start_of(lines)
        layout = find_layout(start, mapping)
        self._place, self._delimiter = layout.header.place, layout.delimiter
        self._lines = chain(start[layout.lines_above :], lines)
        try:
            names, _ = self._quoted(next(self._lines, ""))
        except _BadQuoting:
            message = "The quotation marks of the header don't match."
            raise Unreadable("no_header", message, place=self._place) from None
        self._columns = TableColumns(names, mapping, place=self._place)
        self.header = FileHeader(Format.CSV, ignored=self._columns.ignored, columns=(self._delimiter, *names))

    def rows(self) -> Iterator[Row | UnreadRow]:
        found = skipped = False
        for line in self._lines:
            self._place += 1
            row = self._quoted_row(line) if '"' in line else self._plain_row(line)
            if row is not None:
                found, skipped = found or not row.skipped, skipped or row.skipped
                yield row
        if not found:
            raise no_rows("The file has a header and no row below it.", skipped=skipped)

    def _plain_row(self, line: str) -> Row | UnreadRow | None:
        """The row of a line without quotation marks; None for a blank one. csv.reader takes three times as long."""
        text, columns = line.rstrip("\r\n"), self._columns
        if columns.are_told_by_key and text.count(self._delimiter) == columns.width - 1:
            start = text.split(self._delimiter, columns.key_at + 1)
            if start[
                columns.key_at
            ].strip():  # so the row is not blank, and the rest of it need not be split here
                return UnreadRow(
                    self._place, columns.key(start), text, partial(self._read, self._place, text)
                )
        return self._row(text.split(self._delimiter), text)

    def _read(self, place: int, text: str) -> Row:
        return self._columns.row(place, text.split(self._delimiter))

    def _quoted_row(self, line: str) -> Row | UnreadRow | None:
        """The row that begins with the line."""
        try:
            cells, is_one_line = self._quoted(line)
        except _BadQuoting as error:
            if error.lines > 1:  # it may have taken in good rows
                message = "a quotation mark is not closed, so the end of the row is unknown"
                raise Unreadable("rows_run_together", message, place=self._place) from None
            [cells] = csv.reader([line], delimiter=self._delimiter)
            message = "the quotation marks don't match; double those inside a cell"
            fault = Fault("row", "bad_quoting", message)
            return Row(self._place, self._columns.key_of(cells), faults=(fault,))
        return self._row(cells, line.rstrip("\r\n") if is_one_line else None)

    def _row(self, cells: list[str], text: str | None) -> Row | UnreadRow | None:
        """The row of these cells, None if they are blank; `text` is its line, if it is one."""
        columns, place = self._columns, self._place
        if not any(map(str.strip, cells)):
            return None
        if columns.skips(cells):
            return Row(place, {}, skipped=True)
        if len(cells) != columns.width:
            message = f"has {len(cells)} cells where the header has {columns.width} columns"
            fault = Fault("row", "wrong_column_count", message)
            return Row(place, columns.key_of(cells), faults=(fault,))
        if text is None or columns.name_plans:
            return columns.row(place, cells)
        return UnreadRow(place, columns.key(cells), text, partial(columns.row, place, cells))

    def _quoted(self, line: str) -> tuple[list[str], bool]:
        """The cells of the row that begins with this line, and whether it ends there. Raises _BadQuoting, Unreadable."""
        reader = csv.reader(chain([line], self._following(len(line))), delimiter=self._delimiter, strict=True)
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
