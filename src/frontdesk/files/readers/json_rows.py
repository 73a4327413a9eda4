"""Rows of JSON lines: a request body a line, as strictly read as one; it knows no field."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from frontdesk.errors import Fault
from frontdesk.files.readers.source import Source
from frontdesk.files.rows import Format, Head, Row, Unreadable

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


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


class NotStrict(Exception):
    """Not JSON, or JSON that two readers could take in two ways. The message holds nothing of the text."""


def parse_strictly(text: str) -> Any:
    """Any JSON value; refuses what the body of a request is refused for. Raises NotStrict."""
    try:
        value = _DECODER.decode(text)
        # Only an escape can bring half of a surrogate pair: the bytes themselves have been checked.
        if "\\u" in text and _LONE_SURROGATE.search(json.dumps(value, ensure_ascii=False)):
            raise NotStrict("has half of a surrogate pair")
    except RecursionError:
        raise NotStrict("is nested too deeply") from None
    except ValueError:
        raise NotStrict("is not valid JSON") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) != len(pairs):
        raise NotStrict("has a key twice")
    return built


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise NotStrict("has a number that is too large")
    return number


def _constant(_name: str) -> float:
    raise NotStrict("has NaN or Infinity, which are not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number, parse_constant=_constant)
