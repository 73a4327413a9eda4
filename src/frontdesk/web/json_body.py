"""Strict JSON: what two readers could take in two ways is refused; it knows no field."""

import json
import math
from typing import Any

from frontdesk.errors import Malformed


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
        raise Malformed("The JSON is nested too deeply.") from None
    except ValueError:
        raise Malformed("The body is not valid JSON in UTF-8.") from None
    if "\\u" in text and _has_lone_surrogate(value):
        raise Malformed("The body contains half of a surrogate pair.")
    return value


def _has_lone_surrogate(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


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


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number, parse_constant=_constant)
