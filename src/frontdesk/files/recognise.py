"""Recognises rows that say what the same member's last row said, before they are parsed (docs/decisions/0075).

A member keeps the digest of the row that it agrees with, and every write of the member sets or clears it. A row with a kept
digest is `unchanged`, without a warning: nothing else that its outcome depends on can have changed.
"""

from collections.abc import Collection, Iterator, Sequence
from hashlib import blake2b
from itertools import count, repeat
from typing import NamedTuple

import orjson

from frontdesk.db import Database
from frontdesk.eligibility import find_row_digests, read_external_id, read_external_ids, row_digest_key
from frontdesk.eligibility.model import Action, Outcome
from frontdesk.files.model import SKIPPED, EligibilityFile, FileMode, ReadItem, Row, RowOutcome, UnreadRows
from frontdesk.plans.model import Plan

DIGEST_BYTES = 16
# Raise it when a row of some file comes to mean something else (tests/files/test_row_meaning.py finds that): then every row is
# parsed once more.
ROW_MEANING_VERSION = b"1"
_UNCHANGED, _NOTHING = repeat(Outcome.UNCHANGED.value), repeat(())


class SeenRow(NamedTuple):
    """A row before it is parsed. `plan_id` is None where the account has no such plan; `digest` is None for a row that is
    always parsed."""

    row: Row
    plan_id: int | None
    external_id: str | None = None
    digest: str | None = None

    def split(self, known: Collection[str]) -> Iterator["SeenRow | list[RowOutcome]"]:
        """The row, or its outcome if it needs not be parsed: it is skipped, or its digest is among the `known` ones."""
        if self.row.skipped:
            yield [RowOutcome(self.row.place, None, SKIPPED)]
        elif self.digest in known:
            yield [RowOutcome.unchanged(self.row.place, self.external_id)]
        else:
            yield self


class SeenRows(NamedTuple):
    """Rows of a table before they are read, with what SeenRow has of each. `digests` are "" if they are always parsed."""

    rows: UnreadRows
    plan_id: int
    external_ids: Sequence[str | None]
    digests: Sequence[str]

    def split(self, known: Collection[str]) -> Iterator[SeenRow | list[RowOutcome]]:
        """In order: the outcomes of rows whose digests are `known`, many at a time, and the other rows, now read."""
        start, rows = 0, self.rows
        unknown = [position for position, digest in enumerate(self.digests) if digest not in known]
        for position in (*unknown, len(rows)):
            if start < position:
                keys = self.external_ids[start:position]
                told = zip(count(rows.place + start), keys, _UNCHANGED, repeat(0), _NOTHING, _NOTHING)
                yield [*map(RowOutcome._make, told)]
            if position < len(rows):
                yield SeenRow(
                    rows.row(position),
                    self.plan_id,
                    self.external_ids[position],
                    self.digests[position] or None,
                )
            start = position + 1


class RowRecogniser:
    """Makes the digests of a file's rows and finds those that are kept. `plans` are those of the account, `columns` those of the
    file (FileHeader). Rows for a plan that is not active are always parsed: each gets a warning."""

    def __init__(
        self, db: Database, file: EligibilityFile, plans: Collection[Plan], columns: Sequence[str]
    ) -> None:
        self._db, self._file = db, file
        self._plan_ids = {plan.external_id: plan.id for plan in plans}
        self._hasher = blake2b(ROW_MEANING_VERSION, digest_size=DIGEST_BYTES, key=db.ask(row_digest_key))
        self._text_hasher = self._hasher.copy()
        told = (file.plan_id, columns, file.mapping)
        self._text_hasher.update(orjson.dumps(told, option=orjson.OPT_SORT_KEYS))
        self._is_compared = file.mode is FileMode.COMPARE
        self._inactive = {plan.id for plan in plans if not plan.accepting_patients}

    def see(self, item: ReadItem) -> SeenRow | SeenRows:
        """The row or the rows with their digests, which cover the plan and every value, and so the account and the identifier."""
        return self._see_unread(item) if isinstance(item, UnreadRows) else self._see_row(item)

    def _see_unread(self, rows: UnreadRows) -> SeenRows:
        texts, plan_id = rows.texts, self._file.plan_id
        is_parsed = self._is_compared or plan_id in self._inactive
        digests = [""] * len(texts) if is_parsed else [*map(self._digest_of_text, texts)]
        return SeenRows(rows, plan_id, read_external_ids(rows.keys), digests)

    def _digest_of_text(self, text: str) -> str:
        hasher = self._text_hasher.copy()
        hasher.update(text.encode())
        return hasher.hexdigest()

    def _see_row(self, row: Row) -> SeenRow:
        plan_id: int | None = self._file.plan_id
        if row.plan is not None:
            plan_id = self._plan_ids.get(row.plan)
        says_more = row.skipped or row.faults or row.warnings or row.action is not Action.ENROL
        if says_more or self._is_compared or plan_id in self._inactive:
            return SeenRow(row, plan_id)
        hasher = self._hasher.copy()
        try:
            family = row.hints.family and row.hints.family.digest
            hasher.update(orjson.dumps((plan_id, row.values, row.values_of_new, family)))
        except TypeError:  # half of a surrogate pair, or a number that no field takes
            return SeenRow(row, plan_id)
        return SeenRow(row, plan_id, read_external_id(row.key), hasher.hexdigest())

    def known_digests(self, seen: Sequence[SeenRow | SeenRows]) -> set[str]:
        """The digests of those rows that say what their members say, in one read."""
        keys: list[str] = []
        digests: set[str] = set()
        for each in seen:
            if isinstance(each, SeenRows):
                if any(each.digests):
                    keys += filter(None, each.external_ids)
                    digests.update(each.digests)
            elif each.external_id is not None and each.digest is not None:
                keys.append(each.external_id)
                digests.add(each.digest)
        return self._db.ask(lambda tx: find_row_digests(tx, keys)) & digests if keys else set()
