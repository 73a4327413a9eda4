"""Opens a file: finds its format and header, and makes its rows by the mapping."""

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from frontdesk import codes
from frontdesk.formats.csv_rows import read_csv
from frontdesk.formats.json_rows import read_json
from frontdesk.formats.model import Format, Unreadable
from frontdesk.formats.source import Source, open_source
from frontdesk.formats.workbook import read_sheet
from frontdesk.mapping.addresses import FamilyAddresses
from frontdesk.mapping.model import FileHeader, ReadItem, Row, read_rows
from frontdesk.mapping.parser import NO_MAPPING, FileMapping
from frontdesk.mapping.table import ObjectKeys, TableColumns, header_rank
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
    """The header and the rows, in the order of the file; the stream is read as the rows are taken,
    and never sought. Rows of a table come unread where they can, many at a time: of a file that was
    loaded before, few are read.

    Without `format` the first letters decide. Gzip is recognised. Calls `go_on` each second while a
    workbook gives no row, and raises what it raises. Raises Unreadable, here or from the iterator:
    read all rows once before anything of the file is applied.
    """
    content, source, chosen = open_source(stream, format, encoding)
    rows: Iterator[ReadItem]
    if source is None or chosen is Format.CSV:
        header, rows = _open_table(content, source, mapping, secret=x12.secret, go_on=go_on)
        rows = _some_of(rows, "The file has a header and no row below it.")
    elif chosen is Format.X12:
        header, rows = read_x12(source, mapping, x12)
        return replace(header, encoding=source.encoding), rows
    else:
        keys = ObjectKeys(mapping, x12.secret)
        header = FileHeader(chosen, ignored=keys.ignored, encoding=source.encoding)
        rows = _some_of(keys.rows(read_json(source, chosen)), "There is no member in the file.")
    return header, with_addresses(rows) if FAMILY in mapping.fields else rows


def _open_table(
    content: io.BufferedReader,
    source: Source | None,
    mapping: FileMapping,
    *,
    secret: bytes,
    go_on: Callable[[], None],
) -> tuple[FileHeader, Iterator[ReadItem]]:
    rank = header_rank(mapping)
    if source is None:
        format_ = Format.XLSX
        table = read_sheet(content, rank, mapping.sheet, go_on)
    else:
        format_ = Format.CSV
        table = read_csv(source, rank, mapping.delimiter)
    if mapping.header_row not in (None, table.place):
        message = f"the file has no row {mapping.header_row}, which is said to be the header"
        raise Unreadable(codes.files.NO_HEADER, message, place=mapping.header_row)
    columns = TableColumns(
        table.names, mapping, place=table.place, secret=secret, is_1904=table.is_1904
    )
    columns.check_key()
    read_by = (table.delimiter, *table.names) if source else ()
    encoding = source.encoding if source else None
    header = FileHeader(format_, ignored=columns.ignored, columns=read_by, encoding=encoding)
    return header, columns.items(table)


def _some_of(items: Iterable[ReadItem], nothing: str) -> Iterator[ReadItem]:
    """The rows of a table. Raises Unreadable at the end if there are none but skipped ones;
    `nothing` says so.
    """
    are_skipped = set()
    for item in items:
        are_skipped.add(isinstance(item, Row) and item.skipped)
        yield item
    if False not in are_skipped:
        message = "The mapping leaves out every row of the file." if are_skipped else nothing
        raise Unreadable(codes.files.NO_ROWS, message)


def with_addresses(items: Iterable[ReadItem]) -> Iterator[Row]:
    """The rows of a table with families: one without a zip code has the address of its family."""
    addresses = FamilyAddresses(is_table=True)
    for row in read_rows(items):
        if row.skipped or row.faults or not row.family:
            yield row
        else:
            yield from addresses.take(row, row.family, {})
    yield from addresses.rest()
