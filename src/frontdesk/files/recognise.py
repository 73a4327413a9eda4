"""Recognises rows that say what the same member's last row said, before they are parsed (docs/decisions/0075).

A member keeps the digest of the row that it agrees with, and every write of the member sets or clears it. A row whose digest
is kept is `unchanged`, without a warning: nothing else that its outcome depends on can have changed.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import orjson

from frontdesk.db import Database
from frontdesk.eligibility import find_row_digests, read_external_id, row_digest_key
from frontdesk.eligibility.model import Action
from frontdesk.files.model import EligibilityFile, FileMode, Row

# Counted up when the fields, their readers or the decision about a record change what a row means: then every row is parsed
# once more. A test holds a digest of those modules.
RULES = b"rules-2"
DIGEST_BYTES = 16


class SeenRow(NamedTuple):
    """A row before it is parsed. `plan_id` is None where the account has no such plan; `digest` is None for a row that is
    always parsed."""

    row: Row
    plan_id: int | None
    external_id: str | None = None
    digest: str | None = None


class RowRecogniser:
    """Makes the digests of a file's rows and finds those that are kept. `plan_ids` are the account's plans by external_id."""

    def __init__(self, db: Database, file: EligibilityFile, plan_ids: Mapping[str, int]) -> None:
        self._db, self._file, self._plan_ids = db, file, plan_ids
        self._hasher = blake2b(digest_size=DIGEST_BYTES, key=db.ask(row_digest_key), person=RULES)
        self._is_compared = file.mode is FileMode.COMPARE

    def see(self, row: Row) -> SeenRow:
        """The row with its digest, which covers the plan and every value, and so the account and the identifier."""
        plan_id = self._file.plan_id if row.plan is None else self._plan_ids.get(row.plan)
        if row.faults or row.warnings or row.action is not Action.ENROL or self._is_compared:
            return SeenRow(row, plan_id)
        try:
            said = orjson.dumps((plan_id, row.values, row.values_of_new))
        except TypeError:  # half of a surrogate pair, or a number that no field takes
            return SeenRow(row, plan_id)
        hasher = self._hasher.copy()
        hasher.update(said)
        return SeenRow(row, plan_id, read_external_id(row.values), hasher.hexdigest())

    def known_digests(self, rows: Sequence[SeenRow]) -> set[str]:
        """The digests of those rows that say what their members say, in one read."""
        keys = {seen.external_id for seen in rows if seen.external_id is not None}
        return self._db.ask(lambda tx: find_row_digests(tx, keys)) if keys else set()
