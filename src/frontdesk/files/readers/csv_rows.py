"""Rows of a CSV file: a header, then a member per row (docs/file-formats.md)."""

import csv
from collections.abc import Callable, Iterator
from itertools import chain, compress

from frontdesk.eligibility.fields import FIELDS
from frontdesk.errors import Fault
from frontdesk.files.mapping import DELIMITERS, METADATA_PREFIX, FileMapping, field_named, fold_name
from frontdesk.files.model import FileHeader, Format, Row, Unreadable
from frontdesk.files.readers.source import LONGEST_LINE, Source
from frontdesk.text import SHOWN_NAMES, shown_name


def read_csv(source: Source, mapping: FileMapping) -> tuple[FileHeader, Iterator[Row]]:
    """The header and the rows. Unless the mapping names the delimiter, the one that splits the header into most fields is taken.

    Raises Unreadable.
    """
    reader = _CsvReader(source, mapping)
    return reader.header, reader.rows()


class _CsvReader:
    """One pass over the file. `_columns` holds the field of each column, None for an ignored one."""

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
        self._columns = [_target(name, mapping) for name in names]
        self._check_columns()
        ignored = [
            shown_name(name) if name.strip() else f"(column {number})"
            for number, (name, target) in enumerate(zip(names, self._columns, strict=True), 1)
            if target is None
        ]
        self.header = FileHeader(Format.CSV, ignored=tuple(ignored[:SHOWN_NAMES]))
        self._clear = mapping.clear

    def rows(self) -> Iterator[Row]:
        reader, width, values_of = self._reader, len(self._columns), self._values_of()
        key_at = self._columns.index("external_id")
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
                if not any(map(str.strip, cells)):
                    continue
                if len(cells) == width:
                    found = True
                    yield Row(self._place, values_of(cells))
                    continue
                message = f"has {len(cells)} cells where the header has {width} columns"
                fault = Fault("row", "wrong_column_count", message)
            found = True
            # The key is kept for the report, and so that the member does not count as missing.
            key = cells[key_at] if key_at < len(cells) else ""
            yield Row(self._place, {"external_id": key} if key else {}, faults=(fault,))
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

    def _check_columns(self) -> None:
        known = [target for target in self._columns if target is not None]
        if not known:
            message = (
                "the first row names no field of a member; a header such as external_id,member_id,… is needed"
            )
            raise Unreadable("no_header", message, place=1)
        twice = sorted({target for target in known if known.count(target) > 1})
        if "metadata" in known and any(target.startswith(METADATA_PREFIX) for target in known):
            twice.append("metadata")
        if twice:
            raise Unreadable("repeated_column", f"two columns hold {shown_name(twice[0])}", place=1)
        if "external_id" not in known:
            raise Unreadable("no_key_column", "no column holds external_id, the match key", place=1)

    def _values_of(self) -> Callable[[list[str]], dict[str, object]]:
        """Turns cells into values: a blank cell is absent, the clearing word is null."""
        names = [name or "" for name in self._columns]
        has_ignored = "" in names
        kinds = {name: FIELDS[name].kind for name in names if name in FIELDS}
        converters = [(name, kind.from_text) for name, kind in kinds.items() if kind.from_text is not None]
        metadata = [name for name in names if name.startswith(METADATA_PREFIX)]
        clear = self._clear

        def values_of(cells: list[str]) -> dict[str, object]:
            values: dict[str, object] = dict(compress(zip(names, cells, strict=True), map(str.strip, cells)))
            if has_ignored:
                values.pop("", None)
            if clear in cells:
                values = {name: None if value == clear else value for name, value in values.items()}
            for name, convert in converters:
                if isinstance(text := values.get(name), str):
                    values[name] = convert(text.strip())
            if metadata:
                _gather(values, metadata)
            return values

        return values_of


def _gather(values: dict[str, object], names: list[str]) -> None:
    """Make one object of the `metadata.key` columns: absent without any value, empty if they are all cleared."""
    given = {name[len(METADATA_PREFIX) :]: values.pop(name) for name in names if name in values}
    if given:
        values["metadata"] = {key: value for key, value in given.items() if value is not None}


def _target(name: str, mapping: FileMapping) -> str | None:
    return mapping.columns.get(fold_name(name)) or field_named(name)


def _fields(header: str, delimiter: str, mapping: FileMapping) -> int:
    """The number of fields that the header names when it is split here."""
    return sum(_target(name.strip('"\r\n'), mapping) is not None for name in header.split(delimiter))
