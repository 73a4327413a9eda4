"""Rows of JSON lines and of a JSON array, in constant memory: objects with the fields of a request body, or with keys that a
mapping translates (docs/file-formats.md)."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from frontdesk.eligibility.fields import FIELDS
from frontdesk.errors import Fault
from frontdesk.formats.model import Format, Unreadable
from frontdesk.formats.source import LONGEST_LINE, Source
from frontdesk.mapping.model import FileHeader, Row
from frontdesk.mapping.parser import FileMapping
from frontdesk.mapping.table import TableColumns
from frontdesk.mapping.values import fold_name
from frontdesk.strict_json import NotStrict, parse_strictly
from frontdesk.text import SHOWN_NAMES, shown_name

# The objects of a file have few sets of keys; those of a hostile one have many.
MOST_HEADERS = 64

_SPACE = re.compile(r"[ \t\r\n]+")
_STRING = r'"(?:[^"\\]++|\\.)*+"'
# An object without objects in it, or a value without any: nearly every item, in one step.
_FLAT = re.compile(
    rf'(?:\{{(?:[^{{}}\[\]"]++|{_STRING})*+\}}|(?:[^{{}}\[\]",]++|{_STRING})++)(?=[ \t\r\n]*[,\]])', re.DOTALL
)
_TOKEN = re.compile(rf"{_STRING}|[\[\]{{}}\"]", re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}


def read_json(source: Source, format_: Format, mapping: FileMapping) -> tuple[FileHeader, Iterator[Row]]:
    """The header and the rows, one per line or item, read as strictly as a request body.

    Raises Unreadable, also after the last row if the mapping names a key that no object has.
    """
    keys = _ObjectKeys(mapping)
    return FileHeader(format_, ignored=keys.ignored), _rows(json_texts(source, format_), keys)


def json_texts(source: Source, format_: Format) -> Iterator[tuple[int, str]]:
    """The lines of JSON lines, or the items of an array, numbered from 1. Such a text is as long as an item may be, and need not
    be JSON. Raises Unreadable for what is no array, or ends too early."""
    return _ArrayText(source).items() if format_ is Format.JSON else enumerate(source.lines(), 1)


def _rows(texts: Iterator[tuple[int, str]], keys: "_ObjectKeys") -> Iterator[Row]:
    for place, text in texts:
        if text.isspace():
            continue
        values, message = None, "must be a JSON object"
        try:
            values = parse_strictly(text)
        except NotStrict as error:
            message = str(error)
        if type(values) is dict:
            yield keys.row(place, values)
        else:
            yield Row(place, {}, faults=(Fault("row", "not_json", message),))
    keys.check_all_seen()


class _ObjectKeys:
    """Makes rows of objects: bodies of a POST, or with a mapping rows of a table with their values as cells. `ignored` names the
    keys that are no field, of all objects so far."""

    def __init__(self, mapping: FileMapping) -> None:
        self.ignored: list[str] = []
        self._mapping = mapping
        self._is_translated = bool(mapping.columns or mapping.fields or mapping.skip or mapping.end)
        in_rules = [column for rule in mapping.fields.values() for column in rule.columns]
        self._needed = dict.fromkeys([*in_rules, *(rule.column for rule in (*mapping.skip, *mapping.end))])
        self._unseen = set(self._needed)
        self._headers: dict[tuple[str, ...], TableColumns] = {}

    def row(self, place: int, values: dict[str, Any]) -> Row:
        if not self._is_translated:
            if not values.keys() <= FIELDS.keys() and len(self.ignored) < SHOWN_NAMES:
                self._ignore([shown_name(name) for name in values if name not in FIELDS])
            return Row(place, values)
        names = tuple(values)
        try:
            columns = self._headers.get(names) or self._columns(names, place)
        except Unreadable:
            return Row(place, {}, faults=(Fault("row", "not_json", "two keys of the object hold one field"),))
        clear = min(self._mapping.clear)
        cells = [clear if value is None else cell_of(value) for value in values.values()]
        return columns.row(place, [*cells, *[""] * (columns.width - len(cells))])

    def check_all_seen(self) -> None:
        """Call it after the last row. Raises Unreadable if the mapping names a key that no object has."""
        if self._headers and self._unseen:
            raise Unreadable("missing_column", "The mapping names a key that no row of the file has.")

    def _columns(self, names: tuple[str, ...], place: int) -> TableColumns:
        """The columns of objects with these keys. A key that a rule needs may be absent from some of them."""
        folded = set(map(fold_name, names))
        self._unseen -= folded
        absent = [name for name in self._needed if name not in folded]
        columns = TableColumns([*names, *absent], self._mapping, place=place, needs_key=False)
        if len(self._headers) < MOST_HEADERS:
            self._headers[names] = columns
        self._ignore(columns.ignored)
        return columns

    def _ignore(self, names: Sequence[str]) -> None:
        new = [name for name in names if name not in self.ignored]
        self.ignored += new[: SHOWN_NAMES - len(self.ignored)]


def cell_of(value: Any) -> str:
    """A JSON value that is not null as the cell of a table."""
    if type(value) is str:
        return value
    whole = type(value) is float and value.is_integer()
    return json.dumps(int(value) if whole else value, ensure_ascii=False)


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
