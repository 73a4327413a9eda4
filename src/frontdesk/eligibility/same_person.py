"""Compares two descriptions of people, such as a row of a file and a stored member (pure).

The rules are the table of docs/834.md (The person check). Names are compared by a folding of this
module: identifiers and digests keep their own (persons.fold_name).
"""

import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from enum import Enum, auto
from itertools import product
from typing import NamedTuple

from frontdesk.eligibility.model import StatedPerson

# Placeholders for a child without a name yet, folded.
_NEWBORN = re.compile(
    r"(?:baby|newborn|infant|nb)(?:boy|girl|male|female|[a-dfgm1-4])?"
    r"|(?:boy|girl)[a-d1-4]?|b[bg]|(?:baby(?:boy|girl|of)|newborn).*"
)
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_GENERATIONS = {
    "jr": "jr",
    "junior": "jr",
    "sr": "sr",
    "senior": "sr",
    "ii": "ii",
    "2nd": "ii",
    "iii": "iii",
    "3rd": "iii",
    "iv": "iv",
    "4th": "iv",
}
# Letters without a decomposition, and the two ways to write a letter with a mark: Muller, Mueller.
_PLAIN = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "\u0131": "i", "æ": "ae", "œ": "oe"}
)
_SPELT_OUT = _PLAIN | str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})
# Accents of Latin, Greek and Cyrillic letters. The vowel signs of other scripts are no accents.
_FIRST_ACCENT = "\u0300"
_LAST_ACCENT = "\u036f"
# Apostrophes that Unicode counts as letters.
_FIRST_MODIFIER = "\u02b0"
_LAST_MODIFIER = "\u02ff"
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")

LAST_NAME = "last_name"
GENDER = "gender"
ROLE = "role"
FAMILY = "family"
_NOTHING_ELSE = frozenset((LAST_NAME, GENDER, ROLE, FAMILY))


class Likeness(Enum):
    """How two first names, or two birth dates, compare. First names are CLOSE if one begins with
    the other, dates if the year, the month or the day differs, if day and month are exchanged, or
    if they are a day apart.
    """

    EQUAL = auto()
    CLOSE = auto()
    ABSENT = auto()  # one side has none
    DIFFERENT = auto()


_EQUAL = Likeness.EQUAL
_CLOSE = Likeness.CLOSE
_ABSENT = Likeness.ABSENT
_DIFFERENT = Likeness.DIFFERENT

# By the likeness of the first names and of the birth dates: what must not differ if it is to be one
# person. Where nothing is listed, it is another person.
_SAME_UNLESS: dict[tuple[Likeness, Likeness], frozenset[str]] = {
    (_EQUAL, _EQUAL): frozenset(),
    (_CLOSE, _EQUAL): frozenset((GENDER,)),
    (_EQUAL, _CLOSE): _NOTHING_ELSE,
    (_CLOSE, _CLOSE): _NOTHING_ELSE,
    (_EQUAL, _ABSENT): frozenset((GENDER, ROLE, FAMILY)),
    (_CLOSE, _ABSENT): frozenset((GENDER, ROLE, FAMILY)),
    (_ABSENT, _EQUAL): frozenset((GENDER, FAMILY)),
    (_ABSENT, _ABSENT): frozenset((ROLE, FAMILY)),
    (_DIFFERENT, _EQUAL): _NOTHING_ELSE,
}


class PersonComparison(NamedTuple):
    """How two descriptions compare. `is_certain`: they describe one person, and not only because
    nothing else differs.
    """

    first_names: Likeness
    dobs: Likeness
    is_same: bool
    is_certain: bool


def compare_people(person: StatedPerson, other: StatedPerson) -> PersonComparison:
    """The best agreement of the two. A correction may fit by its new or by its former values."""
    versions = versions_of(person)
    others = versions_of(other)
    if len(versions) == len(others) == 1:
        return _compare(person, other)
    return min((_compare(*pair) for pair in product(versions, others)), key=_rank)


def versions_of(person: StatedPerson) -> tuple[StatedPerson, ...]:
    """The person as stated, and as it was before a correction."""
    former = {
        "first_name": person.former_first_name,
        "last_name": person.former_last_name,
        "dob": person.former_dob,
        "gender": person.former_gender,
    }
    corrected = {name: value for name, value in former.items() if value}
    return (person, person._replace(**corrected)) if corrected else (person,)


def spellings(name: str) -> frozenset[str]:
    """The name without letter case, accents, spaces and punctuation, in each way to write its
    letters; empty without a letter or digit.

    >>> sorted(spellings("Müller")), sorted(spellings("O'Neil-Łaski"))
    (['mueller', 'muller'], ['oneillaski'])
    """
    text = name.casefold()
    if text.isascii():
        return frozenset(filter(None, ("".join(filter(str.isalnum, text)),)))
    text = unicodedata.normalize("NFKC", text)
    written = (_letters(text.translate(letters)) for letters in (_PLAIN, _SPELT_OUT))
    return frozenset(filter(None, written))


def words_of(name: str) -> frozenset[str]:
    """The spellings of the name and of each of its words.

    >>> sorted(words_of("Sample-Lee"))
    ['lee', 'sample', 'samplelee']
    """
    found = spellings(name)
    return found if name.isalpha() else found.union(*map(spellings, _BETWEEN_WORDS.split(name)))


def first_name_spellings(name: str) -> frozenset[str]:
    """The spellings of a first name; none of an initial and of a placeholder for a newborn."""
    return frozenset(filter(_is_first_name, spellings(_without_generation(name)[0])))


def last_name_spellings(name: str) -> frozenset[str]:
    """The spellings of a last name without Jr, Sr or II."""
    return spellings(_without_generation(name)[0])


def are_a_day_apart(one: str, other: str) -> bool:
    """True for two dates (`YYYY-MM-DD`) of which one is the day after the other."""
    first = _day(one)
    second = _day(other)
    return first is not None and second is not None and abs((first - second).days) == 1


def _compare(person: StatedPerson, other: StatedPerson) -> PersonComparison:
    first_names = _compare_first_names(person.first_name, other.first_name)
    dobs = _compare_dobs(person.dob, other.dob)
    same_unless = _SAME_UNLESS.get((first_names, dobs))
    is_same = same_unless is not None
    if same_unless:
        is_same = same_unless.isdisjoint(_differences(person, other))
    if _differ(person.sequence, other.sequence):
        is_same = False
    if is_same and dobs is not _EQUAL and _differ(_generation(person), _generation(other)):
        is_same = False
    is_certain = is_same and same_unless is not _NOTHING_ELSE
    return PersonComparison(first_names, dobs, is_same, is_certain)


def _rank(comparison: PersonComparison) -> tuple[bool, bool, bool, bool]:
    """The best comparison has the lowest."""
    return (
        not comparison.is_same,
        not comparison.is_certain,
        comparison.first_names is _DIFFERENT,
        comparison.dobs is not _EQUAL,
    )


def _compare_first_names(one: str, other: str) -> Likeness:
    if not one or not other:
        return _ABSENT
    own = spellings(_without_generation(one)[0])
    others = spellings(_without_generation(other)[0])
    if not own.isdisjoint(others):
        return _EQUAL
    names = [*filter(_is_first_name, own)]
    other_names = [*filter(_is_first_name, others)]
    if not names or not other_names:
        return _ABSENT
    if any(a.startswith(b) or b.startswith(a) for a, b in product(names, other_names)):
        return _CLOSE
    return _DIFFERENT


def _is_first_name(folded: str) -> bool:
    # One letter of an alphabet is an initial; one sign of another script can be a name.
    is_initial = len(folded) == 1 and unicodedata.category(folded) != "Lo"
    return not is_initial and not _NEWBORN.fullmatch(folded)


def _compare_dobs(one: str, other: str) -> Likeness:
    if not one or not other:
        return _ABSENT
    first = _day(one)
    second = _day(other)
    if first is None or second is None:
        return _ABSENT
    if first == second:
        return _EQUAL
    parts = (first.year, first.month, first.day)
    equal_parts = sum(map(int.__eq__, parts, (second.year, second.month, second.day)))
    is_exchanged = parts == (second.year, second.day, second.month)
    # A fault of a time zone moves dates by a day, also from one month to the next.
    is_shifted = are_a_day_apart(one, other)
    return _CLOSE if equal_parts == 2 or is_exchanged or is_shifted else _DIFFERENT


def _day(text: str) -> date | None:
    """The day; None for a text that is no date, which says nothing."""
    if _DAY.fullmatch(text):
        with suppress(ValueError):
            return date.fromisoformat(text)
    return None


def _differences(person: StatedPerson, other: StatedPerson) -> Iterator[str]:
    """What differs besides first name and birth date, as far as both have it."""
    if person.last_name != other.last_name:
        own = last_name_spellings(person.last_name)
        others = last_name_spellings(other.last_name)
        if own and others and own.isdisjoint(others):
            yield LAST_NAME
    if {person.gender, other.gender} == {"male", "female"}:
        yield GENDER
    if _differ(person.role, other.role):
        yield ROLE
    if _differ(person.family, other.family):
        yield FAMILY


def _differ(one: str, other: str) -> bool:
    """True if both values are there and differ."""
    return bool(one and other) and one != other


def _generation(person: StatedPerson) -> str:
    """Jr, Sr or II, which stands in either name."""
    return _without_generation(person.last_name)[1] or _without_generation(person.first_name)[1]


def _without_generation(name: str) -> tuple[str, str]:
    """The name, and the Jr, Sr or II at its end. A name that has no other word keeps it."""
    if not name or name.isalpha():
        return name, ""
    rest = name.casefold().rstrip(" .,")
    words = _BETWEEN_WORDS.split(rest)
    generation = _GENERATIONS.get(words[-1], "")
    if not generation or not any(words[:-1]):
        return name, ""
    return rest[: -len(words[-1])], generation


def _letters(text: str) -> str:
    """The letters, digits and vowel signs of the text, without accents."""
    return "".join(filter(_counts, unicodedata.normalize("NFKD", text)))


def _counts(character: str) -> bool:
    if _FIRST_ACCENT <= character <= _LAST_ACCENT:
        return False
    if _FIRST_MODIFIER <= character <= _LAST_MODIFIER:
        return False
    return character.isalnum() or unicodedata.category(character).startswith("M")
