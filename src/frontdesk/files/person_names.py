"""Takes a name in one cell apart: `Last, First Middle` or `First Middle Last`, with titles, suffixes and family names of several
words (docs/file-formats.md)."""

from typing import NamedTuple

_TITLES = frozenset(
    {"mr", "mrs", "ms", "miss", "mx", "dr", "prof", "rev", "hon", "sir", "herr", "frau", "mme", "sra"}
)
_SUFFIXES = frozenset(
    {
        "jr",
        "sr",
        "junior",
        "senior",
        "ii",
        "iii",
        "iv",
        "2nd",
        "3rd",
        "4th",
        "md",
        "phd",
        "dds",
        "dmd",
        "esq",
        "cpa",
        "rn",
    }
)
# A family name begins with the first of them that follows a given name.
_PARTICLES = frozenset(
    {"de", "da", "das", "del", "della", "di", "do", "dos", "du", "la", "las", "le", "los", "van", "von", "vom", "vander",
     "der", "den", "ten", "ter", "te", "zu", "zum", "zur", "bin", "ibn", "al", "el", "st", "saint", "san", "santa", "mc", "mac"}
)  # fmt: skip


class PersonName(NamedTuple):
    """The parts of a name, "" for one that is not there. A suffix stays with the last name; a title is no part."""

    first: str
    middle: str
    last: str


def split_name(text: str) -> PersonName:
    """The parts of a name in one cell; a word that stands alone is a last name."""
    pieces = [piece.split() for piece in text.split(",")]
    suffixes = [word for piece in pieces[1:] if _are_suffixes(piece) for word in piece]
    pieces = [pieces[0], *(piece for piece in pieces[1:] if piece and not _are_suffixes(piece))]
    last_first = len(pieces) > 1
    given = _without_titles([word for piece in pieces[1:] for word in piece] if last_first else pieces[0])
    end = len(given)
    while end > 1 and _is_suffix(given[end - 1]):
        end -= 1
    given, suffixes = given[:end], [*given[end:], *suffixes]
    if last_first:
        family = pieces[0]
    else:
        at = next(
            (at for at, word in enumerate(given[1:-1], 1) if _folded(word) in _PARTICLES), len(given) - 1
        )
        given, family = given[: max(at, 0)], given[max(at, 0) :]
    return PersonName("".join(given[:1]), " ".join(given[1:]), " ".join([*family, *suffixes]))


def _without_titles(words: list[str]) -> list[str]:
    at = next((at for at, word in enumerate(words) if _folded(word) not in _TITLES), len(words))
    return words[at:]


def _are_suffixes(words: list[str]) -> bool:
    return bool(words) and all(map(_is_suffix, words))


def _is_suffix(word: str) -> bool:
    return _folded(word) in _SUFFIXES


def _folded(word: str) -> str:
    return word.casefold().replace(".", "")
