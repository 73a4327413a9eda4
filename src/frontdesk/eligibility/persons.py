"""The person check (pure): compares an 834's row with the stored member. And the digest that
similar people share.

An 834 identifies a person by the way of the account's mapping. The person check refuses a row if
name, birth date, role or family show that the stored member with its identifier is another person
(docs/834.md, The person check).
"""

import re
import unicodedata
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from frontdesk.eligibility.model import StatedPerson
from frontdesk.text import keyed_hash

PERSON_FIELDS = frozenset(("first_name", "last_name", "dob"))
DIGEST_SIZE = 16  # bytes

# Placeholders for a child without a name yet, folded.
_NEWBORN = re.compile(
    r"(?:baby|newborn|infant|nb)(?:boy|girl|male|female|[a-dfgm1-4])?"
    r"|(?:boy|girl)[a-d1-4]?|b[bg]|(?:baby(?:boy|girl|of)|newborn).*"
)

_BETWEEN_WORDS = re.compile(r"[\W_]+")
_SHORTEST_WORD = 3
# Parts of last names that many families have.
_NO_NAMES = frozenset(
    (
        *("del", "della", "las", "los", "san", "saint", "santa", "mac", "bin", "ibn"),
        *("van", "von", "vom", "vander", "der", "den", "ten", "ter", "zum", "zur"),
        *("junior", "senior", "iii", "2nd", "3rd", "4th", "phd", "dds", "dmd", "esq", "cpa"),
    )
)

Values = Mapping[str, Any]


def fold_name(name: str) -> str:
    """A name without letter case, spaces and punctuation, in Unicode normal form C: a letter and
    its accent may come as two characters.
    """
    composed = name if name.isascii() else unicodedata.normalize("NFC", name)
    folded = composed.casefold()
    return folded if folded.isalnum() else "".join(filter(str.isalnum, folded))


def names_in(last_name: str) -> frozenset[str]:
    """The last name, and each of its longer words: those of a family have one of them in common,
    such as Sample and Sample-Lee. Empty without a name.

    >>> sorted(names_in("Sample-Lee"))
    ['lee', 'sample', 'samplelee']
    """
    words = _BETWEEN_WORDS.split(last_name.casefold())
    long_words = (word for word in words if len(word) >= _SHORTEST_WORD and word not in _NO_NAMES)
    return frozenset(filter(None, (fold_name(last_name), *long_words)))


def are_two_people(person: StatedPerson, other: StatedPerson) -> bool:
    """True if a row and a stored member, or two rows, clearly describe two people."""
    first_names = [
        *filter(None, map(_known_first_name, (person.first_name, person.former_first_name)))
    ]
    last_names = [*filter(None, map(fold_name, (person.last_name, person.former_last_name)))]
    births = [*filter(None, (person.dob, person.former_dob))]
    first = _known_first_name(other.first_name)
    last = fold_name(other.last_name)
    same_first = any(first.startswith(name) or name.startswith(first) for name in first_names)
    has_first = same_first if first_names and first else None
    has_last = last in last_names if last_names and last else None
    has_dob = other.dob in births if births and other.dob else None
    has_other_role = _differ(person.role, other.role)
    has_other_family = _differ(person.family, other.family)
    is_twin = _differ(person.sequence, other.sequence)
    if is_twin or has_first is False:
        return True
    if has_dob is False and (has_last is False or has_other_role):
        return True
    if has_other_family:
        return not (has_first and has_dob)
    return has_first is None and has_dob is None and has_other_role


def _differ(one: str, other: str) -> bool:
    """True if both values are there and differ."""
    return bool(one and other) and one != other


def person_of(values: Values) -> StatedPerson:
    """The person of a stored member."""
    role = values["subscriber_relationship"] or ""
    family = values["family_digest"] or ""
    return StatedPerson(values["first_name"], values["last_name"], values["dob"], role, family)


def _known_first_name(name: str) -> str:
    """The folded name; "" for an initial or a placeholder."""
    folded = fold_name(name)
    return "" if len(folded) < 2 or _NEWBORN.fullmatch(folded) else folded


def person_digest(hasher: blake2b, values: Values) -> str | None:
    """Equal for members of one account with the same birth date and the same letters and digits in
    both names.
    """
    first = fold_name(values["first_name"])
    last = fold_name(values["last_name"])
    if not first or not last:
        return None
    return keyed_hash(f"{values['account_id']}\0{first}\0{last}\0{values['dob']}", hasher)
