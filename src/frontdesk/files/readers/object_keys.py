"""What the keys of a file's JSON objects mean: the fields of a request body, or what a mapping says (docs/file-formats.md)."""

import json
from typing import Any, Protocol

from frontdesk.eligibility.fields import FIELDS
from frontdesk.errors import Fault
from frontdesk.files.mapping import FileMapping
from frontdesk.files.model import Row, Unreadable
from frontdesk.files.names import fold_name
from frontdesk.files.readers.table import TableColumns
from frontdesk.text import SHOWN_NAMES, shown_name

# The objects of a file have few sets of keys; those of a hostile one have many.
MOST_HEADERS = 64


class ObjectKeys(Protocol):
    """Makes rows of objects. `ignored` names the keys that are no field, of all objects so far."""

    ignored: list[str]

    def row(self, place: int, values: dict[str, Any]) -> Row: ...

    def check_all_seen(self) -> None:
        """Call it after the last row. Raises Unreadable if the mapping names a key that no object has."""


def object_keys(mapping: FileMapping) -> ObjectKeys:
    is_translated = mapping.columns or mapping.fields or mapping.skip or mapping.end
    return _MappedKeys(mapping) if is_translated else _FieldKeys()


class _FieldKeys:
    """Objects as bodies of a POST."""

    def __init__(self) -> None:
        self.ignored: list[str] = []
        self._unknown: set[str] = set()

    def row(self, place: int, values: dict[str, Any]) -> Row:
        if not values.keys() <= FIELDS.keys() and len(self.ignored) < SHOWN_NAMES:
            new = [name for name in values if name not in FIELDS and name not in self._unknown]
            self._unknown.update(new)
            self.ignored += map(shown_name, new[: SHOWN_NAMES - len(self.ignored)])
        return Row(place, values)

    def check_all_seen(self) -> None:
        pass


class _MappedKeys:
    """Each object is read as the row of a table with these cells."""

    def __init__(self, mapping: FileMapping) -> None:
        self.ignored: list[str] = []
        self._mapping = mapping
        self._clear = min(mapping.clear)
        in_rules = [column for rule in mapping.fields.values() for column in rule.columns]
        self._needed = dict.fromkeys([*in_rules, *(rule.column for rule in (*mapping.skip, *mapping.end))])
        self._unseen = set(self._needed)
        self._headers: dict[tuple[str, ...], TableColumns] = {}

    def row(self, place: int, values: dict[str, Any]) -> Row:
        names = tuple(values)
        try:
            columns = self._headers.get(names) or self._columns(names, place)
        except Unreadable:
            return Row(place, {}, faults=(Fault("row", "not_json", "two keys of the object hold one field"),))
        cells = [self._clear if value is None else cell_of(value) for value in values.values()]
        cells += [""] * (columns.width - len(cells))
        return Row(place, {}, skipped=True) if columns.skips(cells) else columns.row(place, cells)

    def check_all_seen(self) -> None:
        if self._unseen:
            raise Unreadable("missing_column", "The mapping names a key that no row of the file has.")

    def _columns(self, names: tuple[str, ...], place: int) -> TableColumns:
        """The columns of objects with these keys. A key that a rule needs may be absent from some of them."""
        folded = set(map(fold_name, names))
        self._unseen -= folded
        absent = [name for name in self._needed if name not in folded]
        columns = TableColumns([*names, *absent], self._mapping, place=place, needs_key=False)
        if len(self._headers) < MOST_HEADERS:
            self._headers[names] = columns
        new = [name for name in columns.ignored if name not in self.ignored]
        self.ignored += new[: SHOWN_NAMES - len(self.ignored)]
        return columns


def cell_of(value: Any) -> str:
    """A JSON value that is not null as the cell of a table."""
    if type(value) is str:
        return value
    whole = type(value) is float and value.is_integer()
    return json.dumps(int(value) if whole else value, ensure_ascii=False)
