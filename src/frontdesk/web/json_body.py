"""Strict JSON: what two readers could take in two ways is refused; it knows no field."""

import json
import math
from typing import Any

from frontdesk.errors import Malformed

# Python's own bound depends on how deep the reader is called; this one answers the same body alike everywhere.
LARGEST_DEPTH = 100


def parse_json_object(raw: bytes) -> dict[str, object]:
    """The JSON object in `raw`. Raises Malformed as `parse_json` does, and for an array or a single value."""
    value = parse_json(raw)
    if type(value) is not dict:
        raise Malformed("The body must be a JSON object.")
    return value


def parse_json(raw: bytes) -> object:
    """The JSON in `raw` (UTF-8). Raises Malformed for anything else: a BOM, another encoding, NaN, a number that overflows,
    duplicate keys at any depth, half a surrogate pair, nesting without end."""
    try:
        text = raw.decode("utf-8")
        value: object = _DECODER.decode(text)
    except Malformed:
        raise
    except RecursionError:
        raise Malformed(_TOO_DEEP) from None
    except ValueError:
        raise Malformed("The body is not valid JSON in UTF-8.") from None
    # Only these bodies can be too deep or hold half a pair, so nearly every other one is spared the walk.
    if "\\u" in text or text.count("{") + text.count("[") > LARGEST_DEPTH:
        _refuse_hostile_parts(value)
    return value


def _refuse_hostile_parts(value: object) -> None:
    """Level by level, not by recursion, which a hostile body could exhaust. Raises Malformed."""
    level, depth = [value], 0
    while level:
        below: list[Any] = []
        for item in level:
            if type(item) is dict:
                below += item
                below += item.values()
            elif type(item) is list:
                below += item
            elif type(item) is str and not _is_whole(item):
                raise Malformed("The body contains half of a surrogate pair.")
        depth += any(type(item) in (dict, list) for item in level)
        if depth > LARGEST_DEPTH:
            raise Malformed(_TOO_DEEP)
        level = below


def _is_whole(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) != len(pairs):
        raise Malformed("The body has duplicate keys.")
    return built


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise Malformed("The body has a number that is too large.")
    return number


def _constant(_name: str) -> float:
    raise Malformed("NaN and Infinity are not JSON.")


_TOO_DEEP = "The JSON is nested too deeply."
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number, parse_constant=_constant)
