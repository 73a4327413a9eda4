"""The table of codes: one entry for each word that an answer, a report or a header carries.

Where a word stands decides its meaning, so the key is (where, word). Raise by the constant, as in
`Rejected(codes.faults.TOO_LONG, …)`: a misspelt code does not pass the type check.
"""

from collections.abc import Mapping
from types import MappingProxyType

from frontdesk.codes import faults, files, mail, oauth, operators, queue_events, rows, warnings
from frontdesk.codes.model import ENTRIES, Code, Example, Kind, Remedy, Where, complete

__all__ = [
    "CODES",
    "Code",
    "Example",
    "Kind",
    "Remedy",
    "Where",
    "complete",
    "faults",
    "files",
    "find",
    "find_warning",
    "mail",
    "oauth",
    "of",
    "operators",
    "queue_events",
    "rows",
    "sentences",
    "warnings",
]

# Every entry, also those that are declared later: one for each field that a row can do without.
CODES: Mapping[tuple[Where, str], Code] = MappingProxyType(ENTRIES)


def find(where: Where, word: str) -> Code | None:
    """The entry of a word that was read from a database or sent; None for an unknown one."""
    return CODES.get((where, word))


def find_warning(word: str) -> Code | None:
    """The entry of a warning's word in the report of a file."""
    return find(Where.WARNING, word) or find(Where.ROW, word)


def of(*places: Where) -> tuple[Code, ...]:
    """The codes of these places, in the order of their declaration."""
    return tuple(code for where in places for code in CODES.values() if code.where is where)


def sentences(*places: Where) -> dict[str, str]:
    """The sentence of each code of these places."""
    return {code: code.sentence for code in of(*places)}
