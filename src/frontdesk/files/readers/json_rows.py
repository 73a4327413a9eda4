"""Rows of JSON lines: a request body a line, as strictly read as one; it knows no field."""

from collections.abc import Iterator

from frontdesk.errors import Fault
from frontdesk.files.readers.source import Source
from frontdesk.files.rows import Format, Head, Row, Unreadable
from frontdesk.strict_json import NotStrict, parse_strictly


def read_json_lines(source: Source) -> tuple[Head, Iterator[Row]]:
    return Head(Format.JSON_LINES), _rows(source)


def _rows(source: Source) -> Iterator[Row]:
    found = False
    for place, line in enumerate(source.lines(), 1):
        if not line.isspace():
            found = True
            yield _row(place, line)
    if not found:
        raise Unreadable("no_rows", "The file has blank lines only.")


def _row(place: int, line: str) -> Row:
    try:
        value = parse_strictly(line)
    except NotStrict as error:
        return _refused(place, str(error))
    if type(value) is not dict:
        return _refused(place, "must be a JSON object")
    return Row(place, value)


def _refused(place: int, message: str) -> Row:
    return Row(place, {}, faults=(Fault("row", "not_json", message),))
