"""The names of people in identifiers and digests, the digest that similar people share, and the
person of a stored member.
"""

import re
import unicodedata
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from frontdesk.eligibility.model import StatedPerson
from frontdesk.text import keyed_hash

PERSON_FIELDS = frozenset(("first_name", "last_name", "dob"))
# The fields of a row that describe the person, and tell it from another one.
STATED_FIELDS = frozenset(("first_name", "last_name", "dob", "gender", "subscriber_relationship"))
DIGEST_SIZE = 16  # bytes

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


def person_of(values: Values) -> StatedPerson:
    """The person of a stored member."""
    return StatedPerson(
        first_name=values["first_name"],
        last_name=values["last_name"],
        dob=values["dob"],
        gender=values["gender"],
        role=values["subscriber_relationship"] or "",
        family=values["family_digest"] or "",
    )


def stated_person(given: Values) -> StatedPerson:
    """The person of a row by its values; the row of a table has no more."""
    return StatedPerson(
        first_name=given.get("first_name") or "",
        last_name=given.get("last_name") or "",
        dob=given.get("dob") or "",
        gender=given.get("gender") or "",
        role=given.get("subscriber_relationship") or "",
    )


def person_digest(hasher: blake2b, values: Values) -> str | None:
    """Equal for members of one account with the same birth date and the same letters and digits in
    both names.
    """
    first = fold_name(values["first_name"])
    last = fold_name(values["last_name"])
    if not first or not last:
        return None
    return keyed_hash(f"{values['account_id']}\0{first}\0{last}\0{values['dob']}", hasher)
