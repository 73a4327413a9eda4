"""Recognises rows that say what the same member's last row said, before they are parsed (docs/decisions/0075).

A member keeps the digest of the row that it agrees with, and every write of the member sets or clears it. A row with a kept
digest is `unchanged`, without a warning: nothing else that its outcome depends on can have changed.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from importlib.resources import files as folder_of
from importlib.resources.abc import Traversable
from typing import NamedTuple

import orjson

from frontdesk.db import Database
from frontdesk.eligibility import find_row_digests, read_external_id, row_digest_key
from frontdesk.eligibility.model import Action
from frontdesk.files.model import EligibilityFile, FileMode, Row, UnreadRow

DIGEST_BYTES = 16


class SeenRow(NamedTuple):
    """A row before it is parsed. `plan_id` is None where the account has no such plan; `digest` is None for a row that is
    always parsed."""

    row: Row | UnreadRow
    plan_id: int | None
    external_id: str | None = None
    digest: str | None = None

    @property
    def family(self) -> str | None:
        """What stands for the family of an 834's member."""
        family = None if isinstance(self.row, UnreadRow) else self.row.hints.family
        return family and family.digest


class RowRecogniser:
    """Makes the digests of a file's rows and finds those that are kept. `plan_ids` are the account's plans by external_id,
    `columns` those of the file (FileHeader)."""

    def __init__(
        self, db: Database, file: EligibilityFile, plan_ids: Mapping[str, int], columns: Sequence[str]
    ) -> None:
        self._db, self._file, self._plan_ids = db, file, plan_ids
        self._hasher = blake2b(_digest_of_code(), digest_size=DIGEST_BYTES, key=db.ask(row_digest_key))
        self._text_hasher = self._hasher.copy()
        told = (file.plan_id, columns, file.mapping)
        self._text_hasher.update(orjson.dumps(told, option=orjson.OPT_SORT_KEYS))
        self._is_compared = file.mode is FileMode.COMPARE

    def see(self, row: Row | UnreadRow) -> SeenRow:
        """The row with its digest, which covers the plan and every value, and so the account and the identifier."""
        plan_id: int | None = self._file.plan_id
        if isinstance(row, UnreadRow):
            hasher = self._text_hasher.copy()
            hasher.update(row.text.encode())
        else:
            if row.plan is not None:
                plan_id = self._plan_ids.get(row.plan)
            if row.skipped or row.faults or row.warnings or row.action is not Action.ENROL:
                return SeenRow(row, plan_id)
            hasher = self._hasher.copy()
            try:
                family = row.hints.family and row.hints.family.digest
                hasher.update(orjson.dumps((plan_id, row.values, row.values_of_new, family)))
            except TypeError:  # half of a surrogate pair, or a number that no field takes
                return SeenRow(row, plan_id)
        if self._is_compared:
            return SeenRow(row, plan_id)
        return SeenRow(row, plan_id, read_external_id(row.key), hasher.hexdigest())

    def known_digests(self, rows: Sequence[SeenRow]) -> set[str]:
        """The digests of those rows that say what their members say, in one read."""
        keys = {seen.external_id for seen in rows if seen.external_id is not None}
        return self._db.ask(lambda tx: find_row_digests(tx, keys)) if keys else set()


@cache
def _digest_of_code() -> bytes:
    """Another one when the code that says what a row means may be another: then every row is parsed once more."""
    hasher = blake2b(digest_size=DIGEST_BYTES)
    package = folder_of("frontdesk")
    for part in ("eligibility", "files", "strict_json.py", "text.py"):
        _hash_sources(package / part, hasher)
    return hasher.digest()


def _hash_sources(place: Traversable, hasher: blake2b) -> None:
    if place.is_dir():
        for inside in sorted(place.iterdir(), key=lambda each: each.name):
            if inside.name != "__pycache__":
                _hash_sources(inside, hasher)
    else:
        hasher.update(place.read_bytes())
