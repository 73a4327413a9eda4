"""Rows of a CSV file: a header, then a member per row (docs/file-formats.md)."""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, compress
from typing import TYPE_CHECKING

from frontdesk.eligibility.fields import FIELDS
from frontdesk.errors import Fault
from frontdesk.files.mapping import DELIMITERS, METADATA_PREFIX, FileMapping, field_named, fold_name
from frontdesk.files.model import FileHeader, Format, Row, Unreadable
from frontdesk.files.readers.source import LONGEST_LINE, Source
from frontdesk.text import SHOWN_NAMES, shown_name

if TYPE_CHECKING:
    from _csv import Reader


def read_csv(source: Source, mapping: FileMapping) -> tuple[FileHeader, Iterator[Row]]:
    """The header and the rows. Unless the mapping names the delimiter, the one that splits the header into most fields is taken.

    Raises Unreadable.
    """
    lines = _Lines(source.lines())
    first = next(lines.bounded(), None)
    if first is None:
        raise Unreadable("empty", "The file is empty.")
    delimiter = mapping.delimiter or max(
        DELIMITERS, key=lambda each: len(_known(_split(first, each), mapping))
    )
    reader = csv.reader(chain([first], lines.bounded()), delimiter=delimiter, strict=True)
    try:
        header = next(reader)
    except csv.Error:
        raise Unreadable("no_header", "The quotation marks of the header don't match.", place=1) from None
    columns = _columns(header, mapping)
    ignored = [
        shown_name(name) if name.strip() else f"(column {number})"
        for number, (name, target) in enumerate(zip(header, columns, strict=True), 1)
        if target is None
    ]
    head = FileHeader(Format.CSV, ignored=tuple(ignored[:SHOWN_NAMES]))
    return head, _Rows(lines, columns, mapping.clear).read(reader)


class _Lines:
    """The lines of the file. A row is bounded, since an open quotation mark could collect the whole file.

    At each row the reader sets `place` to its number and `letters` to 0.
    """

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.place = 1
        self.letters = 0
        self.last = ""

    def bounded(self) -> Iterator[str]:
        for line in self._lines:
            self.letters += len(line)
            if self.letters > LONGEST_LINE:
                message = f"longer than {LONGEST_LINE:,} characters: is a quotation mark not closed?"
                raise Unreadable("rows_run_together", message, place=self.place)
            self.last = line
            yield line


@dataclass(slots=True)
class _Rows:
    """The rows below the header. `columns` holds the field of each column, None for an ignored one."""

    lines: _Lines
    columns: list[str | None]
    clear: str

    def read(self, reader: "Reader") -> Iterator[Row]:
        lines, width, values_of = self.lines, len(self.columns), self._values_of()
        place, found = 1, False
        while True:
            place += 1
            lines.place, lines.letters = place, 0
            began_at = reader.line_num
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error:
                found = True
                if reader.line_num - began_at > 1:
                    # The lines may hold good rows that the open quotation mark took in.
                    message = "a quotation mark is not closed, so the end of the row is unknown"
                    raise Unreadable("rows_run_together", message, place=place) from None
                yield self._unquotable(place, reader.dialect.delimiter)
                continue
            if len(cells) == width:
                values = values_of(cells)
                if values or not _is_blank(cells):
                    found = True
                    yield Row(place, values)
            elif not _is_blank(cells):
                found = True
                yield self._miscounted(place, cells)
        if not found:
            raise Unreadable("no_rows", "The file has a header and no row below it.")

    def _unquotable(self, place: int, delimiter: str) -> Row:
        message = "the quotation marks don't match; double those inside a cell"
        [cells] = csv.reader([self.lines.last], delimiter=delimiter)
        return self._refused(place, cells, Fault("row", "bad_quoting", message))

    def _miscounted(self, place: int, cells: list[str]) -> Row:
        message = f"has {len(cells)} cells where the header has {len(self.columns)} columns"
        return self._refused(place, cells, Fault("row", "wrong_column_count", message))

    def _refused(self, place: int, cells: list[str], fault: Fault) -> Row:
        """Keep the cell of the key: for the report, and so that the member does not count as missing."""
        at = self.columns.index("external_id")
        key = cells[at] if at < len(cells) else ""
        return Row(place, {"external_id": key} if key else {}, faults=(fault,))

    def _values_of(self) -> Callable[[list[str]], dict[str, object]]:
        """Turns cells into values: a blank cell is absent, the clearing word is null."""
        names = [name or "" for name in self.columns]
        has_ignored = "" in names
        kinds = {name: FIELDS[name].kind for name in names if name in FIELDS}
        converters = [(name, kind.from_text) for name, kind in kinds.items() if kind.from_text is not None]
        metadata = [name for name in names if name.startswith(METADATA_PREFIX)]
        clear = self.clear

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


def _is_blank(cells: list[str]) -> bool:
    return not "".join(cells).strip()


def _gather(values: dict[str, object], names: list[str]) -> None:
    """Make one object of the `metadata.key` columns: absent without any value, empty if they are all cleared."""
    if not any(name in values for name in names):
        return
    given = {name[len(METADATA_PREFIX) :]: values.pop(name) for name in names if name in values}
    values["metadata"] = {key: value for key, value in given.items() if value is not None}


def _columns(header: list[str], mapping: FileMapping) -> list[str | None]:
    columns = [_target(name, mapping) for name in header]
    known = [target for target in columns if target is not None]
    if not known:
        message = (
            "the first row names no field of a member; a header such as external_id,member_id,… is needed"
        )
        raise Unreadable("no_header", message, place=1)
    twice = sorted({target for target in known if known.count(target) > 1})
    if twice or ("metadata" in known and any(target.startswith(METADATA_PREFIX) for target in known)):
        raise Unreadable(
            "repeated_column", f"two columns hold {shown_name((*twice, 'metadata')[0])}", place=1
        )
    if "external_id" not in known:
        raise Unreadable("no_key_column", "no column holds external_id, the match key", place=1)
    return columns


def _target(name: str, mapping: FileMapping) -> str | None:
    return mapping.columns.get(fold_name(name)) or field_named(name)


def _split(line: str, delimiter: str) -> list[str]:
    return [name.strip('"\r\n') for name in line.split(delimiter)]


def _known(names: list[str], mapping: FileMapping) -> list[str]:
    return [name for name in names if _target(name, mapping)]
