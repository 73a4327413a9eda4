"""The columns of a table by the names that a mapping gives them (docs/file-formats.md).

Of two columns with one name, `Effective Date#1` is the first and `Effective Date#2` the second. A
header that is itself written so is named by it.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain

from frontdesk.mapping.parser import FileMapping
from frontdesk.mapping.values import field_named, fold_name

MARK = "#"
_MOST_DIGITS = 5


class ColumnNames:
    """The places of a header's columns by their folded names. A name without an ordinal means the
    columns of that name that the mapping does not name by an ordinal.

    `targets` are the fields of the columns by the mapping's `columns`, else by the interface's
    names; None without one, or if the mapping excludes the column.
    """

    def __init__(self, names: Sequence[str], mapping: FileMapping) -> None:
        self._all = defaultdict[str, list[int]](list)
        for position, name in enumerate(names):
            self._all[fold_name(name)].append(position)
        self._by_ordinal: dict[str, int] = {}
        self._too_high: dict[str, int] = {}
        for name, base, ordinal in _ordinals_in(mapping):
            places = [] if name in self._all else self._all.get(base, [])
            if ordinal <= len(places):
                self._by_ordinal[name] = places[ordinal - 1]
            elif places:
                self._too_high[name] = len(places)
        self._ordinal_of = {position: name for name, position in self._by_ordinal.items()}
        self.targets = [self._target(at, name, mapping) for at, name in enumerate(names)]

    def places(self, folded: str) -> list[int]:
        """The places of the columns that the name means; none if there is no such column."""
        if folded in self._by_ordinal:
            return [self._by_ordinal[folded]]
        places = self._all.get(folded, [])
        return [place for place in places if place not in self._ordinal_of] or places

    def times(self, folded: str) -> int | None:
        """For an ordinal that is too high, how many columns have the name."""
        return self._too_high.get(folded)

    def _target(self, position: int, name: str, mapping: FileMapping) -> str | None:
        if position in self._ordinal_of:
            return mapping.columns.get(self._ordinal_of[position]) or None
        target = mapping.columns.get(fold_name(name))
        return field_named(name) if target is None else target or None


def names_apart(names: Sequence[str]) -> list[str]:
    """The names by which a mapping tells the columns apart: with an ordinal where it needs one.

    >>> names_apart(["City", "Zip", "CITY"])
    ['City#1', 'Zip', 'CITY#2']
    """
    places = defaultdict[str, list[int]](list)
    for position, name in enumerate(names):
        places[fold_name(name)].append(position)
    return [
        f"{name}{MARK}{same.index(position) + 1}"
        if len(same := places[fold_name(name)]) > 1 and fold_name(name)
        else name
        for position, name in enumerate(names)
    ]


def _ordinals_in(mapping: FileMapping) -> Iterator[tuple[str, str, int]]:
    """The folded names in the mapping that may have an ordinal: the name, what stands before the
    ordinal, and the ordinal.
    """
    in_rules = chain.from_iterable(rule.columns for rule in mapping.fields.values())
    of_rows = (rule.column for rule in (*mapping.skip, *mapping.end))
    for name in chain(mapping.columns, in_rules, of_rows):
        base, _, digits = name.rpartition(MARK)
        if base and digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS:
            ordinal = int(digits)
            if ordinal:
                yield name, base, ordinal
