"""Opens a file: finds its format, unpacks it, and gives it to the reader of the format."""

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from frontdesk.formats.content_type import detect_content
from frontdesk.formats.csv_rows import read_csv
from frontdesk.formats.json_rows import read_json
from frontdesk.formats.model import Format, Unreadable, no_rows
from frontdesk.formats.source import Source, known_encoding, open_content
from frontdesk.formats.workbook import read_workbook
from frontdesk.mapping.addresses import FamilyAddresses
from frontdesk.mapping.model import FileHeader, ReadItem, Row, read_rows
from frontdesk.mapping.parser import NO_MAPPING, FileMapping
from frontdesk.mapping.values import FAMILY
from frontdesk.mapping.x12 import DEFAULT_OPTIONS, X12Options, read_x12

if TYPE_CHECKING:
    from _typeshed import SupportsRead


def open_unread(
    stream: "SupportsRead[bytes]",
    format: Format | None = None,  # noqa: A002 - the word of the command line and of the interface
    encoding: str = "utf-8",
    mapping: FileMapping = NO_MAPPING,
    *,
    x12: X12Options = DEFAULT_OPTIONS,
    go_on: Callable[[], None] = lambda: None,
) -> tuple[FileHeader, Iterator[ReadItem]]:
    """The header and the rows, in the order of the file; the stream is read as the rows are taken, and never sought. Rows of a
    table come unread where they can, many at a time: of a file that was loaded before, few are read.

    Without `format` the first letters decide. Gzip is recognised. Calls `go_on` each second while a workbook gives no row, and
    raises what it raises.
    Raises Unreadable, here or from the iterator: read all rows once before anything of the file is applied.
    """
    content, source, chosen = open_source(stream, format, encoding)
    rows: Iterator[ReadItem]
    if source is None:
        header, rows = read_workbook(content, mapping, go_on)
    elif chosen is Format.X12:
        header, rows = read_x12(source, mapping, x12)
    elif chosen is Format.CSV:
        header, rows = read_csv(source, mapping)
    else:
        header, rows = read_json(source, chosen, mapping)
    if source is not None:
        header = replace(header, encoding=source.encoding)
    if chosen is Format.X12:
        return header, rows
    is_json = chosen in (Format.JSON, Format.JSON_LINES)
    nothing = "There is no member in the file." if is_json else "The file has a header and no row below it."
    rows = _some_of(rows, nothing)
    return header, with_addresses(rows) if FAMILY in mapping.fields else rows


def open_source(
    stream: "SupportsRead[bytes]",
    format: Format | None,  # noqa: A002
    encoding: str,
) -> tuple[io.BufferedReader, Source | None, Format]:
    """The content; the same as text, None of a workbook; its format: the one that is given, else the one that its content has.
    Raises Unreadable."""
    content = open_content(stream)
    found = detect_content(content.peek(1), known_encoding(encoding))
    if format is Format.XLSX or found.is_workbook:
        return content, None, Format.XLSX
    chosen = format or found.format
    if chosen is None and found.is_other_table:
        raise Unreadable("not_workbook", f"The file is {found.name}. Save it as .xlsx or as CSV.")
    if chosen is None:
        raise Unreadable("not_text", f"The file is {found.name}, and no text.")
    return content, Source(content, encoding), chosen


def _some_of(items: Iterable[ReadItem], nothing: str) -> Iterator[ReadItem]:
    """The rows of a table. Raises Unreadable at the end if there are none but skipped ones; `nothing` says so."""
    found = skipped = False
    for item in items:
        is_skipped = isinstance(item, Row) and item.skipped
        found, skipped = found or not is_skipped, skipped or is_skipped
        yield item
    if not found:
        raise no_rows(nothing, skipped=skipped)


def with_addresses(items: Iterable[ReadItem]) -> Iterator[Row]:
    """The rows of a table with families: one without a zip code has the address of its family."""
    addresses = FamilyAddresses(needs_role=False)
    for row in read_rows(items):
        if row.skipped or row.faults or not row.family:
            yield row
        else:
            yield from addresses.take(row, row.family, {})
    yield from addresses.rest()
