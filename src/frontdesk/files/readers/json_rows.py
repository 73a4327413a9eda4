"""Rows of JSON lines: a request body a line, as strictly read as one; what a value may be is not known here."""

from collections.abc import Iterator

from frontdesk.eligibility.fields import FIELDS
from frontdesk.errors import Fault
from frontdesk.files.model import FileHeader, Format, Row, Unreadable
from frontdesk.files.readers.source import Source
from frontdesk.strict_json import NotStrict, parse_strictly
from frontdesk.text import SHOWN_NAMES, shown_name


def read_json_lines(source: Source) -> tuple[FileHeader, Iterator[Row]]:
    """The head and the rows. What is ignored is known, and stands in the head, when the rows have been read."""
    ignored: list[str] = []
    return FileHeader(Format.JSON_LINES, ignored=ignored), _rows(source, ignored)


def _rows(source: Source, ignored: list[str]) -> Iterator[Row]:
    found = False
    unknown: set[str] = set()
    for place, line in enumerate(source.lines(), 1):
        if not line.isspace():
            found = True
            row = _row(place, line)
            if not row.values.keys() <= FIELDS.keys() and len(ignored) < SHOWN_NAMES:
                new = [name for name in row.values if name not in FIELDS and name not in unknown]
                unknown.update(new)
                ignored += map(shown_name, new[: SHOWN_NAMES - len(ignored)])
            yield row
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
