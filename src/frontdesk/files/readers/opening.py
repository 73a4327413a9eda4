"""Opens a file: finds its format, unpacks it, and gives it to the reader of the format. Reads JSON lines itself."""

import io
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING

from frontdesk.errors import Fault
from frontdesk.files.field_rules import FAMILY
from frontdesk.files.mapping import NO_MAPPING, FileMapping
from frontdesk.files.model import (
    FileHeader,
    Format,
    ReadItem,
    Row,
    Unreadable,
    no_rows,
    read_rows,
)
from frontdesk.files.readers.content_type import detect_content
from frontdesk.files.readers.csv_rows import read_csv
from frontdesk.files.readers.family_addresses import FamilyAddresses
from frontdesk.files.readers.json_array import array_items
from frontdesk.files.readers.object_keys import ObjectKeys, object_keys
from frontdesk.files.readers.source import Source, known_encoding
from frontdesk.files.readers.unpacking import open_content
from frontdesk.files.readers.workbook import NumberedCells, read_workbook, sheet_rows
from frontdesk.files.readers.x12 import DEFAULT_OPTIONS, X12Options, read_x12
from frontdesk.strict_json import NotStrict, parse_strictly

if TYPE_CHECKING:
    from _typeshed import SupportsRead


def open_file(
    stream: "SupportsRead[bytes]",
    *,
    format: Format | None = None,  # noqa: A002 - the word of the command line and of the interface
    encoding: str = "utf-8",
    mapping: FileMapping = NO_MAPPING,
) -> tuple[FileHeader, Iterator[Row]]:
    """The header and the rows, in the order of the file; the stream is read as the rows are taken, and never sought.

    Without `format` the first letters decide. Gzip is recognised.
    Raises Unreadable, here or from the iterator: read all rows once before anything of the file is applied.
    """
    header, rows = open_unread(stream, format, encoding, mapping)
    return header, read_rows(rows)


def open_unread(
    stream: "SupportsRead[bytes]",
    format: Format | None,  # noqa: A002
    encoding: str,
    mapping: FileMapping,
    *,
    x12: X12Options = DEFAULT_OPTIONS,
    go_on: Callable[[], None] = lambda: None,
) -> tuple[FileHeader, Iterator[ReadItem]]:
    """As `open_file`, but the rows of a table come unread where they can, many at a time: of a file that was loaded before,
    few are read. Calls `go_on` each second while a workbook gives no row, and raises what it raises."""
    content = open_content(stream)
    if _is_workbook(content, format, encoding):
        header, rows = read_workbook(content, mapping, go_on)
    else:
        header, rows = _opened(content, format, encoding, mapping, x12)
    is_of_families = FAMILY in mapping.fields and header.format is not Format.X12
    return header, with_addresses(rows) if is_of_families else rows


def _opened(
    content: io.BufferedReader,
    format: Format | None,  # noqa: A002
    encoding: str,
    mapping: FileMapping,
    x12: X12Options,
) -> tuple[FileHeader, Iterator[ReadItem]]:
    source, chosen = _as_text(content, format, encoding)
    if chosen is Format.CSV:
        return read_csv(source, mapping)
    if chosen is Format.X12:
        return read_x12(source, mapping, x12)
    keys = object_keys(mapping)
    return FileHeader(chosen, ignored=keys.ignored), _json_rows(json_texts(source, chosen), keys)


def with_addresses(items: Iterable[ReadItem]) -> Iterator[Row]:
    """The rows of a table with families: one without a zip code has the address of its family."""
    addresses = FamilyAddresses(needs_role=False)
    for row in read_rows(items):
        if row.skipped or row.faults or not row.family:
            yield row
        else:
            yield from addresses.take(row, row.family, None)
    yield from addresses.rest()


def opened_workbook(
    stream: "SupportsRead[bytes]",
    format: Format | None,  # noqa: A002
    encoding: str,
    sheet: str | None,
) -> tuple[io.BufferedReader, Generator[NumberedCells] | None]:
    """The content, and the rows of the sheet if it is a workbook; close them. Raises Unreadable, here or from the iterator."""
    content = open_content(stream)
    return content, sheet_rows(content, sheet) if _is_workbook(content, format, encoding) else None


def opened_source(
    content: io.BufferedReader,
    format: Format | None,  # noqa: A002
    encoding: str,
) -> tuple[Source, Format]:
    """The file as text, and its format: the one that is given, else the one that its content has. Raises Unreadable."""
    return _as_text(content, format, encoding)


def _is_workbook(content: io.BufferedReader, format: Format | None, encoding: str) -> bool:  # noqa: A002
    return format is Format.XLSX or detect_content(content.peek(1), known_encoding(encoding)).is_workbook


def _as_text(
    content: io.BufferedReader,
    format: Format | None,  # noqa: A002
    encoding: str,
) -> tuple[Source, Format]:
    found = detect_content(content.peek(1), known_encoding(encoding))
    chosen = format or found.format
    if chosen is None and found.is_other_table:
        raise Unreadable("not_workbook", f"The file is {found.name}. Save it as .xlsx or as CSV.")
    if found.is_workbook or chosen is None:
        raise Unreadable("not_text", f"The file is {found.name}, and no text.")
    return Source(content, encoding), chosen


def json_texts(source: Source, chosen: Format) -> Iterator[tuple[int, str]]:
    """The lines of JSON lines, or the items of an array, numbered from 1."""
    return array_items(source) if chosen is Format.JSON else enumerate(source.lines(), 1)


def _json_rows(texts: Iterable[tuple[int, str]], keys: ObjectKeys) -> Iterator[Row]:
    """A row per line or item, read as strictly as a request body."""
    found = skipped = False
    for place, line in texts:
        if line.isspace():
            continue
        message = "must be a JSON object"
        try:
            values = parse_strictly(line)
        except NotStrict as error:
            values, message = None, str(error)
        is_object = type(values) is dict
        row = (
            keys.row(place, values)
            if is_object
            else Row(place, {}, faults=(Fault("row", "not_json", message),))
        )
        found, skipped = found or not row.skipped, skipped or row.skipped
        yield row
    if not found:
        raise no_rows("There is no member in the file.", skipped=skipped)
    keys.check_all_seen()
