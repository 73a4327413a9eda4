"""The way into every reader: finds the format, unpacks, and hands over; it reads no row itself."""

from collections.abc import Iterator
from typing import BinaryIO

from frontdesk.files.model import NO_MAPPING, FileHeader, FileMapping, Format, Row, Unreadable
from frontdesk.files.readers.csv_rows import read_csv
from frontdesk.files.readers.json_rows import read_json_lines
from frontdesk.files.readers.source import Source, open_source
from frontdesk.files.readers.x12_rows import read_x12

DEFAULT_ENCODING = "utf-8"


def open_file(
    stream: BinaryIO,
    *,
    format: Format | None = None,  # noqa: A002 - the word of the command line and of the interface
    encoding: str = DEFAULT_ENCODING,
    mapping: FileMapping = NO_MAPPING,
) -> tuple[FileHeader, Iterator[Row]]:
    """The head and the rows, in the order of the file; the stream is read as the rows are asked for and never sought.

    Without `format` the first letters decide. Gzip is recognised. Raises Unreadable, here or from the iterator: run
    through all rows once before anything of the file is applied.
    """
    source = open_source(stream, encoding)
    chosen = format or _format_of(source)
    if chosen is Format.CSV:
        return read_csv(source, mapping)
    if chosen is Format.X12:
        return read_x12(source, mapping)
    return read_json_lines(source)


def _format_of(source: Source) -> Format:
    start = source.peek().lstrip()
    if start.startswith("ISA"):
        return Format.X12
    if start.startswith("["):
        raise Unreadable(
            "json_array", "a JSON array; write each member on a line of its own", place=1, unit="Line"
        )
    return Format.JSON_LINES if start.startswith("{") else Format.CSV
