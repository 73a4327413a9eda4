"""Keyed digests of names and birth dates, which stand in no identifier as they are: identifiers
are in addresses, reports and logs (docs/file-formats.md, docs/834.md).
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

from frontdesk.eligibility.persons import fold_name
from frontdesk.mapping.values import FieldRule

PERSON_BYTES = 4  # beside the number of a family
_LONE_PERSON_BYTES = 8  # of an identifier that has no other part
_DOB = "dob"
# A middle name, which many rows lack, counts where the column holds no other name.
_PERSON_FIELDS = ("first_name", "last_name", _DOB, "middle_name")

Hide = Callable[[list[str]], list[str]]
# A field, its rule, and the places of the rule's columns.
PlacedRule = tuple[str, FieldRule, Sequence[int]]


def person_digest(text: str, secret: bytes, *, size: int = PERSON_BYTES) -> str:
    """The digest of the text as hexadecimal digits, two for each byte. `secret` is the account's."""
    return blake2b(text.encode(), key=secret, digest_size=size).hexdigest()


class PersonColumns:
    """The columns of a table that hold names or birth dates: those that the mapping reads as such.

    `plain` are the fields of the columns that need no rule.
    """

    def __init__(
        self,
        plain: Sequence[str | None],
        rules: Iterable[PlacedRule],
        *,
        clear: frozenset[str],
        secret: bytes,
    ) -> None:
        self._secret = secret
        placed = {target: (rule, at) for target, rule, at in rules}
        self._readers: dict[int, list[Callable[[str], str]]] = {}
        for target in _PERSON_FIELDS:
            at = plain.index(target) if target in plain else None
            rule, positions = placed.get(target, (FieldRule(), [] if at is None else [at]))
            for position in positions:
                known = self._readers.setdefault(position, [])
                if not (known and target == "middle_name"):
                    known.append(_reader(target, rule, clear))

    def hider(self, positions: Sequence[int]) -> Hide | None:
        """A function from the cells of an identifier to its parts: those of a person become one
        digest, the last part. None if no cell is one of a person.
        """
        readers = [self._readers.get(position, []) for position in positions]
        if not any(readers):
            return None
        secret = self._secret
        size = PERSON_BYTES if not all(readers) else _LONE_PERSON_BYTES

        def hide(cells: list[str]) -> list[str]:
            others = [cell for cell, reads in zip(cells, readers, strict=False) if not reads]
            of_person = [
                read(cell) for cell, reads in zip(cells, readers, strict=False) for read in reads
            ]
            digest = person_digest(" ".join(of_person), secret, size=size) if cells else ""
            return [*others, digest]

        return hide


def _reader(target: str, rule: FieldRule, clear: frozenset[str]) -> Callable[[str], str]:
    """What a cell counts as: letter case, punctuation and the format of a date make no difference."""
    make = rule.maker(target, [0], clear) if len(rule.columns) < 2 else None

    def read(cell: str) -> str:
        text = make([cell]) if make else cell
        return text or "" if target == _DOB else fold_name(text or "")

    return read
