"""Strict JSON: refuses text that two parsers could read differently."""

import json
import math
import re
from itertools import chain
from typing import Any

from frontdesk.text import shown_name

# Python's own bound depends on the depth of the caller's stack; this one is the same everywhere.
LARGEST_DEPTH = 100

_TOO_DEEP = "is nested too deeply"
# Only such an escape can be half of a surrogate pair: UTF-8 has none.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class NotStrict(Exception):
    """The text is not JSON, or two parsers could read it differently. The message continues "the body" or "the line" and
    quotes nothing of the text but a key. `place` is where the parser gave up, in words, if that is one place."""

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.place = place


def parse_strictly(text: str) -> Any:
    """The JSON value in `text`. Raises NotStrict for text that is not JSON, a BOM, NaN, a number that overflows, duplicate keys
    at any depth, half of a surrogate pair, and more than 100 levels."""
    try:
        value = _DECODER.decode(text)
        # Only texts with so many brackets can be too deep; all others skip the walk.
        if text.count("{") + text.count("[") > LARGEST_DEPTH and _is_too_deep(value):
            raise NotStrict(_TOO_DEEP)
        if "\\u" in text and _SURROGATE_ESCAPE.search(text) is not None:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise NotStrict(_TOO_DEEP) from None
    except UnicodeEncodeError:
        raise NotStrict("has half of a surrogate pair") from None
    except json.JSONDecodeError as error:
        raise NotStrict("is not valid JSON", f"line {error.lineno}, column {error.colno}") from None
    except ValueError:
        raise NotStrict("is not valid JSON") from None
    return value


def _is_too_deep(value: object) -> bool:
    """Opens level by level: a hostile text could exhaust a recursion."""
    level: list[Any] = [value]
    for _ in range(LARGEST_DEPTH):
        opened = [
            item.values() if type(item) is dict else item for item in level if type(item) in (dict, list)
        ]
        level = list(chain.from_iterable(opened))
    return any(type(item) in (dict, list) for item in level)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise NotStrict(f"has the key {shown_name(twice)} twice")
    return built


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise NotStrict("has a number that is too large")
    return number


def _constant(_name: str) -> float:
    raise NotStrict("has NaN or Infinity, which are not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number, parse_constant=_constant)
