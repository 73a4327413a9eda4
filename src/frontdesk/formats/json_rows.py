"""JSON lines and the items of a JSON array, read as strictly as a request body, in constant memory (docs/file-formats.md)."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

from frontdesk.errors import Fault
from frontdesk.formats.model import Format, Unreadable
from frontdesk.formats.source import LONGEST_LINE, Source
from frontdesk.text import NotStrict, parse_strictly

# Finds the end of a value; `parse_strictly` checks its content.
_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)
_SPACE = re.compile(r"[ \t\r\n]*")

# The place of an object, from 1; the object, or the fault of the line or item.
ObjectRow = tuple[int, dict[str, Any] | Fault]


def read_json(source: Source, format_: Format) -> Iterator[ObjectRow]:
    """The objects, one per line or item. Raises Unreadable from the iterator, also for what is no array, or ends too early."""
    is_array, lines = format_ is Format.JSON, chain.from_iterable(source.line_blocks())
    texts = _ArrayText(source).items() if is_array else enumerate(lines, 1)
    for place, text in texts:
        if text.isspace():
            continue
        values, message = None, "must be a JSON object"
        try:
            values = parse_strictly(text)
        except NotStrict as error:
            message = str(error)
        yield place, values if type(values) is dict else Fault("row", "not_json", message)


class _ArrayText:
    """One pass over the array. `_text` has been read and not yet returned."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._text, self._at, self._place = "", 0, 0

    def items(self) -> Iterator[tuple[int, str]]:
        self._take("[")
        found = self._take("]") if self._next() == "]" else ","
        while found == ",":
            self._place += 1
            yield self._place, self._item()
            found = self._take(",]")
        if self._next():
            raise self._unreadable("bad_json_array", "something stands behind the end of the array")

    def _next(self) -> str:
        """The next character that is no space, which is not consumed; "" at the end."""
        while True:
            if space := _SPACE.match(self._text, self._at):
                self._at = space.end()
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def _take(self, wanted: str) -> str:
        found = self._next()
        if not found:
            raise Unreadable("cut_off", "The JSON array has no end.")
        if found not in wanted:
            raise self._unreadable("bad_json_array", f"expected {' or '.join(wanted)} here")
        self._at += 1
        return found

    def _item(self) -> str:
        if self._next() in (",", "]"):
            raise self._unreadable("bad_json_array", "a value is missing")
        while not (end := self._end()):
            if len(self._text) - self._at > LONGEST_LINE:
                message = f"longer than {LONGEST_LINE:,} characters, or not valid JSON"
                raise self._unreadable("line_too_long", message)
            if not self._more():
                if self._text.rstrip().endswith("]"):
                    raise self._unreadable("bad_json_array", "not valid JSON")
                raise self._unreadable("cut_off", "the array ends within it")
        text, self._at = self._text[self._at : end], end
        if not text.isascii():
            self._source.check(text, place=self._place, unit="Item")
        return text

    def _end(self) -> int:
        """Where the item that begins here ends; 0 if that is not read yet, or if it is no JSON."""
        with suppress(json.JSONDecodeError, RecursionError):
            _, end = _SCANNER.raw_decode(self._text, self._at)
            if end < len(self._text) or self._text[-1] in '}]"':  # a number may go on
                return end
        return 0

    def _more(self) -> bool:
        """Read on; False at the end of the file."""
        block = self._source.block()
        self._text, self._at = self._text[self._at :] + block, 0
        return bool(block)

    def _unreadable(self, code: str, message: str) -> Unreadable:
        return Unreadable(code, message, place=max(self._place, 1), unit="Item")
