"""Names in a table: which field a column's name means, and the parts of a person's name in one cell (docs/file-formats.md)."""

import re
from collections import deque
from itertools import chain
from typing import NamedTuple

from frontdesk.eligibility.fields import FIELDS, METADATA_KEY_LENGTH

METADATA_PREFIX = "metadata."
COLUMN_NAME = re.compile(r"[^\s_\-]")  # what a name has that is left when it is folded
METADATA_FIELD = re.compile(rf"metadata[.]\S(?:[^\r\n]{{0,{METADATA_KEY_LENGTH - 2}}}\S)?")


def words_in(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TITLES = words_in("mr mrs ms miss mx dr prof rev hon sir")
NAME_SUFFIXES = words_in("jr sr junior senior ii iii iv 2nd 3rd 4th md phd dds dmd esq cpa rn")
# A family name begins with the first of them that follows a given name.
_PARTICLES = words_in(
    "de da das del della di do dos du la las le los van von vom vander der den ten ter te zu zum zur bin ibn al el st saint"
    " san santa mc mac"
)


def fold_name(name: str) -> str:
    """A column's name without letter case, spaces, underscores and hyphens, which senders vary."""
    return re.sub(r"[\s_\-]+", "", name).lower()


_BY_FOLDED = {fold_name(name): name for name in FIELDS}


def field_named(name: str) -> str | None:
    """The field (or `metadata.key`) that a column's name means; None if there is none."""
    name = name.strip()
    if name[: len(METADATA_PREFIX)].lower() == METADATA_PREFIX and len(name) > len(METADATA_PREFIX):
        return METADATA_PREFIX + name[len(METADATA_PREFIX) :]
    return _BY_FOLDED.get(fold_name(name))


def mappable_field(name: str) -> str | None:
    """The field (or `metadata.key`, with a key that a member may have) that a mapping means; None if there is none."""
    known = field_named(name)
    return known if known in FIELDS or METADATA_FIELD.fullmatch(known or "") else None


class PersonName(NamedTuple):
    """The parts of a name, "" for one that is not there. A suffix stays with the last name; a title is no part."""

    first: str
    middle: str
    last: str


def split_name(text: str) -> PersonName:
    """The parts of a name in one cell, `Last, First Middle` or `First Middle Last`; a word that stands alone is a last name."""
    family, *others = (piece.split() for piece in text.split(","))
    suffixes = deque(word for piece in others if _are_suffixes(piece) for word in piece)
    rest = [piece for piece in others if piece and not _are_suffixes(piece)]
    words = deque(chain.from_iterable(rest) if rest else family)
    while words and _folded(words[0]) in _TITLES:
        words.popleft()
    while len(words) > 1 and _folded(words[-1]) in NAME_SUFFIXES:
        suffixes.appendleft(words.pop())
    given = [*words]
    if not rest:
        particles = (at for at, word in enumerate(given[1:-1], 1) if _folded(word) in _PARTICLES)
        at = max(next(particles, len(given) - 1), 0)
        given, family = given[:at], given[at:]
    return PersonName("".join(given[:1]), " ".join(given[1:]), " ".join([*family, *suffixes]))


def _are_suffixes(words: list[str]) -> bool:
    return bool(words) and all(_folded(word) in NAME_SUFFIXES for word in words)


def _folded(word: str) -> str:
    return word.casefold().replace(".", "")
