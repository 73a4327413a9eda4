"""JSON lines and the items of a JSON array, read as strictly as a request body, in constant memory
(docs/file-formats.md).
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

from frontdesk import codes
from frontdesk.codes import Code
from frontdesk.errors import Fault
from frontdesk.formats.model import Format, Unreadable
from frontdesk.formats.source import LONGEST_LINE, Source
from frontdesk.text import NotStrict, parse_strictly

# Finds the end of a value; `parse_strictly` checks its content.
_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)
_SPACE = re.compile(r"[ \t\r\n]*")
# spaces between two items: no writer makes more, and reading them takes time
LONGEST_GAP = 64 * 1024

# The place of an object, from 1; the object, or the fault of the line or item.
ObjectRow = tuple[int, dict[str, Any] | Fault]


class TooManyBlankLines(Exception):
    """More blank lines than the reader wants to pass over."""


def read_json(source: Source, format_: Format) -> Iterator[ObjectRow]:
    """The objects, one per line or item. Raises Unreadable from the iterator, also for what is no
    array, or ends too early.
    """
    for place, text in read_texts(source, format_):
        yield place, parse_row(text)


def read_texts(
    source: Source, format_: Format, *, most_blank_lines: int | None = None
) -> Iterator[tuple[int, str]]:
    """The places and texts of the objects, one per line or item, not parsed yet. `most_blank_lines`
    bounds the work between two of them: a caller that pauses by the time can do so only where it
    gets one.

    Raises from the iterator: Unreadable, also for what is no array, or ends too early;
    TooManyBlankLines.
    """
    is_array = format_ is Format.JSON
    lines = chain.from_iterable(source.line_blocks())
    texts = _ArrayText(source).items() if is_array else enumerate(lines, 1)
    blank_lines = 0
    for place, text in texts:
        if text.isspace():
            blank_lines += 1
            if most_blank_lines is not None and blank_lines > most_blank_lines:
                raise TooManyBlankLines
        else:
            yield place, text


def parse_row(text: str) -> dict[str, Any] | Fault:
    """The object of a line or item, or its fault."""
    try:
        values = parse_strictly(text)
    except NotStrict as error:
        return Fault("row", codes.rows.NOT_JSON, str(error))
    return (
        values
        if type(values) is dict
        else Fault("row", codes.rows.NOT_JSON, "must be a JSON object")
    )


class _ArrayText:
    """One pass over the array. `_text` has been read and not yet returned."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._text = ""
        self._at = 0
        self._place = 0

    def items(self) -> Iterator[tuple[int, str]]:
        self._take("[")
        found = self._take("]") if self._next() == "]" else ","
        while found == ",":
            self._place += 1
            yield self._place, self._item()
            found = self._take(",]")
        if self._next():
            raise self._unreadable(
                codes.files.BAD_JSON_ARRAY, "something stands behind the end of the array"
            )

    def _next(self) -> str:
        """The next character that is no space, which is not consumed; "" at the end."""
        skipped = 0
        while True:
            start = self._at
            if space := _SPACE.match(self._text, start):
                self._at = space.end()
            skipped += self._at - start
            if skipped > LONGEST_GAP:
                message = f"more than {LONGEST_GAP:,} spaces in a row stand outside the items"
                raise self._unreadable(codes.files.BAD_JSON_ARRAY, message)
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def _take(self, expected: str) -> str:
        found = self._next()
        if not found:
            raise Unreadable(codes.files.CUT_OFF, "The JSON array has no end.")
        if found not in expected:
            raise self._unreadable(
                codes.files.BAD_JSON_ARRAY, f"expected {' or '.join(expected)} here"
            )
        self._at += 1
        return found

    def _item(self) -> str:
        if self._next() in (",", "]"):
            raise self._unreadable(codes.files.BAD_JSON_ARRAY, "a value is missing")
        while not (end := self._end()):
            if len(self._text) - self._at > LONGEST_LINE:
                message = f"longer than {LONGEST_LINE:,} characters, or not valid JSON"
                raise self._unreadable(codes.files.LINE_TOO_LONG, message)
            if not self._more():
                if self._text.rstrip().endswith("]"):
                    raise self._unreadable(codes.files.BAD_JSON_ARRAY, "not valid JSON")
                raise self._unreadable(codes.files.CUT_OFF, "the array ends within it")
        text = self._text[self._at : end]
        self._at = end
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
        self._text = self._text[self._at :] + block
        self._at = 0
        return bool(block)

    def _unreadable(self, code: Code, message: str) -> Unreadable:
        return Unreadable(code, message, place=max(self._place, 1), unit="Item")
