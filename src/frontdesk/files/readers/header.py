"""Finds the header of a table among its first rows: titles, dates and blank rows may stand above it."""

from collections.abc import Sequence
from typing import NamedTuple

from frontdesk.files.mapping import SEARCHED_ROWS, FileMapping
from frontdesk.files.model import Unreadable
from frontdesk.files.names import fold_name
from frontdesk.files.readers.table import KEY, target_of


class HeaderRow(NamedTuple):
    """The number of the header's row, from 1. Of several ways to split a file, the one of the highest rank is right: with the
    key, as far up as possible, with as many fields as possible."""

    place: int
    rank: tuple[bool, int, int]


def find_header(rows: Sequence[Sequence[str]], mapping: FileMapping) -> HeaderRow:
    """The mapping's row, else the first that has the key, else the one that names most fields, else the first row.

    Raises Unreadable if the mapping names a row that the file does not have.
    """
    if mapping.header_row is not None and mapping.header_row > len(rows):
        message = f"the file has no row {mapping.header_row}, which is said to be the header"
        raise Unreadable("no_header", message, place=mapping.header_row)
    if mapping.header_row is not None:
        place = mapping.header_row
        return HeaderRow(place, _rank(rows[place - 1], mapping, place))
    headers = (
        HeaderRow(place, _rank(cells, mapping, place)) for place, cells in enumerate(rows[:SEARCHED_ROWS], 1)
    )
    return max(headers, key=lambda header: header.rank, default=HeaderRow(1, (False, 0, -1)))


def _rank(names: Sequence[str], mapping: FileMapping, place: int) -> tuple[bool, int, int]:
    folded = {fold_name(name) for name in names}
    named = [target_of(name, mapping) for name in names]
    rules = [rule for rule in mapping.fields.values() if rule.columns and not folded.isdisjoint(rule.columns)]
    count = sum(target is not None for target in named) + len(rules)
    key_rule = mapping.fields.get(KEY)
    has_key = KEY in named or (
        key_rule is not None and bool(key_rule.columns) and folded.issuperset(key_rule.columns)
    )
    return (True, -place, count) if has_key else (False, count, -place)
