"""The items of a JSON array as texts, one after the other, in constant memory (docs/file-formats.md)."""

import re
from collections.abc import Iterator

from frontdesk.files.model import Unreadable
from frontdesk.files.readers.source import LONGEST_LINE, Source

_SPACE = re.compile(r"[ \t\r\n]+")
_STRING = r'"(?:[^"\\]++|\\.)*+"'
# An object without objects in it, or a value without any: nearly every item, in one step.
_FLAT = re.compile(
    rf'(?:\{{(?:[^{{}}\[\]"]++|{_STRING})*+\}}|(?:[^{{}}\[\]",]++|{_STRING})++)(?=[ \t\r\n]*[,\]])', re.DOTALL
)
_TOKEN = re.compile(rf"{_STRING}|[\[\]{{}}\"]", re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}


def array_items(source: Source) -> Iterator[tuple[int, str]]:
    """Number, from 1, and text of each item of the array that the file is. The text is as long as an item may be, and need
    not be JSON.

    Raises Unreadable for what is no array, or ends too early.
    """
    return _ArrayText(source).items()


class _ArrayText:
    """One pass over the array. `_text` is what was read and not yet given out."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._text, self._at, self._place = "", 0, 0

    def items(self) -> Iterator[tuple[int, str]]:
        self._take("[")
        if self._next() == "]":
            self._at += 1
        else:
            while True:
                self._place += 1
                self._source.found_item()
                yield self._place, self._item()
                if self._take(",]") == "]":
                    break
        if self._next():
            raise self._damaged("something stands behind the end of the array")

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
            raise self._damaged(f"expected {' or '.join(wanted)} here")
        self._at += 1
        return found

    def _item(self) -> str:
        if self._next() in (",", "]"):
            raise self._damaged("a value is missing")
        while True:
            flat = _FLAT.match(self._text, self._at)
            end = flat.end() if flat else self._nested_end()
            if end:
                break
            if len(self._text) - self._at > LONGEST_LINE:
                message = f"longer than {LONGEST_LINE:,} characters, or a bracket is not closed"
                raise Unreadable("line_too_long", message, place=self._place, unit="Item")
            if not self._more():
                raise Unreadable(
                    "cut_off", "The JSON array ends within an item.", place=self._place, unit="Item"
                )
        text, self._at = self._text[self._at : end], end
        if not text.isascii():
            self._source.check(text, place=self._place, unit="Item")
        return text

    def _nested_end(self) -> int:
        """The end of the item that begins here, by its brackets; 0 if it is not read to its end yet."""
        closing: list[str] = []
        for token in _TOKEN.finditer(self._text, self._at):
            found = token[0]
            if found in _CLOSING:
                closing.append(_CLOSING[found])
            elif found == '"':  # a string that is not read to its end
                return 0
            elif closing and found == closing[-1]:  # one that does not fit leaves the item to the parser
                closing.pop()
                if not closing:
                    return token.end()
        return 0

    def _more(self) -> bool:
        """Read on; False at the end of the file."""
        block = self._source.block()
        self._text, self._at = self._text[self._at :] + block, 0
        return bool(block)

    def _damaged(self, message: str) -> Unreadable:
        return Unreadable("bad_json_array", message, place=max(self._place, 1), unit="Item")
