"""Strict JSON: what two readers could take in two ways is refused; it knows neither requests nor files."""

import json
import math
import re
from typing import Any

# Python's own bound depends on how deep the reader is called; this one answers the same text alike everywhere.
LARGEST_DEPTH = 100

_TOO_DEEP = "is nested too deeply"
# Only such an escape can bring half of a surrogate pair: text that came as UTF-8 has none of its own.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class NotStrict(Exception):
    """Not JSON, or JSON that two readers could take in two ways. The message goes on after "the body" or "the line", and
    holds nothing of the text."""


def parse_strictly(text: str) -> Any:
    """Any JSON value. Raises NotStrict for anything else: a BOM, NaN, a number that overflows, duplicate keys at any depth,
    half of a surrogate pair, nesting without end."""
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise NotStrict(_TOO_DEEP) from None
    except ValueError:
        raise NotStrict("is not valid JSON") from None
    # Only such texts can be too deep or hold half a pair, so nearly every other one is spared the walk.
    if text.count("{") + text.count("[") > LARGEST_DEPTH or (
        "\\u" in text and _SURROGATE_ESCAPE.search(text) is not None
    ):
        _refuse_hostile_parts(value)
    return value


def _refuse_hostile_parts(value: object) -> None:
    """Level by level, not by recursion, which a hostile text could exhaust. Raises NotStrict."""
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
                raise NotStrict("has half of a surrogate pair")
        depth += any(type(item) in (dict, list) for item in level)
        if depth > LARGEST_DEPTH:
            raise NotStrict(_TOO_DEEP)
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
        raise NotStrict("has duplicate keys")
    return built


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise NotStrict("has a number that is too large")
    return number


def _constant(_name: str) -> float:
    raise NotStrict("has NaN or Infinity, which are not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number, parse_constant=_constant)
