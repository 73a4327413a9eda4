"""Rows of a CSV file: a header, then a member per row (docs/file-formats.md)."""

import csv
from collections.abc import Iterator
from itertools import chain

from frontdesk.errors import Fault
from frontdesk.files.mapping import DELIMITERS, FileMapping
from frontdesk.files.model import FileHeader, Format, Row, Unreadable
from frontdesk.files.readers.source import LONGEST_LINE, Source
from frontdesk.files.readers.table import TableColumns, names_something


def read_csv(source: Source, mapping: FileMapping) -> tuple[FileHeader, Iterator[Row]]:
    """The header and the rows. Unless the mapping names the delimiter, the one that splits the header into most fields is taken.

    Raises Unreadable.
    """
    reader = _CsvReader(source, mapping)
    return reader.header, reader.rows()


class _CsvReader:
    """One pass over the file."""

    def __init__(self, source: Source, mapping: FileMapping) -> None:
        self._place, self._letters, self._last_line = 1, 0, ""
        lines = self._bounded(source.lines())
        first = next(lines, None)
        if first is None:
            raise Unreadable("empty", "The file is empty.")
        self._delimiter = mapping.delimiter or max(DELIMITERS, key=lambda each: _fields(first, each, mapping))
        self._reader = csv.reader(chain([first], lines), delimiter=self._delimiter, strict=True)
        try:
            names = next(self._reader)
        except csv.Error:
            message = "The quotation marks of the header don't match."
            raise Unreadable("no_header", message, place=1) from None
        self._columns = TableColumns(names, mapping, place=1)
        self.header = FileHeader(Format.CSV, ignored=self._columns.ignored)

    def rows(self) -> Iterator[Row]:
        reader, columns, width = self._reader, self._columns, self._columns.width
        found = False
        while True:
            self._place, self._letters = self._place + 1, 0
            began_at = reader.line_num
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error:
                cells, fault = self._unquotable(reader.line_num - began_at)
            else:
                if not any(map(str.strip, cells)) or columns.skips(cells):
                    continue
                if len(cells) == width:
                    found = True
                    yield columns.row(self._place, cells)
                    continue
                message = f"has {len(cells)} cells where the header has {width} columns"
                fault = Fault("row", "wrong_column_count", message)
            found = True
            yield Row(self._place, columns.key_of(cells), faults=(fault,))
        if not found:
            raise Unreadable("no_rows", "The file has a header and no row below it.")

    def _bounded(self, lines: Iterator[str]) -> Iterator[str]:
        """The lines. A row is bounded, since an open quotation mark could collect the whole file."""
        for line in lines:
            self._letters += len(line)
            if self._letters > LONGEST_LINE:
                message = f"longer than {LONGEST_LINE:,} characters: is a quotation mark not closed?"
                raise Unreadable("rows_run_together", message, place=self._place)
            self._last_line = line
            yield line

    def _unquotable(self, lines: int) -> tuple[list[str], Fault]:
        """The cells of a row whose quotation marks don't match. Over several lines it may have taken in good rows."""
        if lines > 1:
            message = "a quotation mark is not closed, so the end of the row is unknown"
            raise Unreadable("rows_run_together", message, place=self._place) from None
        message = "the quotation marks don't match; double those inside a cell"
        [cells] = csv.reader([self._last_line], delimiter=self._delimiter)
        return cells, Fault("row", "bad_quoting", message)


def _fields(header: str, delimiter: str, mapping: FileMapping) -> int:
    """The number of fields that the header names when it is split here."""
    return sum(names_something(name.strip('"\r\n'), mapping) for name in header.split(delimiter))
