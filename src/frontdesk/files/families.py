"""Recognises unchanged families of an 834 by their text, before they are parsed: most of a full file equals that of the day
before.

Each member of a family stores the digest of the family's text, with the member's position. A row that depends on more than that
text is no part of its family (mapping.x12), so such a family is parsed, and its rows are recognised one by one.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

import orjson

from frontdesk.db import Database, sets
from frontdesk.eligibility import find_kept_digests, list_ids_under
from frontdesk.files.model import EligibilityFile
from frontdesk.formats.x12 import Family
from frontdesk.mapping.model import FamilyPart, ReadItem, Row, UnreadLoops, UnreadRows, read_rows
from frontdesk.plans.model import Plan

# Increase it when the parsing of any row changes (tests/files/test_row_meaning.py fails then): every row is parsed once more.
ROW_MEANING_VERSION = b"2"
FAMILY_BYTES, POSITION_BYTES = 12, 4  # of the digest of a row
INDEXED_TOGETHER, CONFIRMED_TOGETHER = 5000, 1000  # members


class KnownRows(NamedTuple):
    """Rows of an 834 that were recognised before they were read: their places, and the ids of their members."""

    places: Sequence[int]
    member_ids: Sequence[int]

    def __len__(self) -> int:
        return len(self.places)


class FamilyRecogniser:
    """Makes the digests of families, and finds those stored with the account's members. `plans` are the account's plans."""

    def __init__(self, db: Database, file: EligibilityFile, plans: Collection[Plan]) -> None:
        self._db = db
        names_plans = "plan" in (file.mapping or {}).get("834", {})
        self._plans = [plan for plan in plans if names_plans or plan.id == file.plan_id]
        key = db.ask(sets.installation_key)
        self._hasher = blake2b(ROW_MEANING_VERSION, digest_size=FAMILY_BYTES, key=key)
        named = sorted((plan.external_id or "", plan.id) for plan in self._plans)
        told = (file.plan_id, named, file.mapping)
        self._hasher.update(orjson.dumps(told, option=orjson.OPT_SORT_KEYS))
        self._last: tuple[Family | None, bytes] = None, b""
        # 64 bits of the stored digests, in order, and their members.
        self._keys, self._ids = array("Q"), array("q")

    def __len__(self) -> int:
        """The number of members with a digest; 0 before `make_index`."""
        return len(self._ids)

    def digest_of(self, part: FamilyPart) -> str:
        """The digest of the row of a part."""
        family, position = part
        return (self._digest(family) + position.to_bytes(POSITION_BYTES, "big")).hex()

    def recognised(self, items: Iterable[ReadItem]) -> Iterator[Row | UnreadRows | KnownRows]:
        """The rows of an 834 in order, parsed unless their family is recognised. If a plan is not active all rows are parsed:
        each gets a warning."""
        if not all(plan.accepting_patients for plan in self._plans):
            yield from read_rows(items)
            return
        batch: list[tuple[UnreadLoops, Sequence[int]]] = []
        members = 0
        for item in items:
            if not isinstance(item, UnreadLoops):
                yield item
                continue
            batch.append((item, self._find(item.family)))
            members += len(batch[-1][1]) or 1
            if members >= CONFIRMED_TOGETHER:
                yield from self._confirmed(batch)
                batch, members = [], 0
        yield from self._confirmed(batch)

    def _digest(self, family: Family) -> bytes:
        if self._last[0] is not family:
            hasher, transaction = self._hasher.copy(), family.transaction
            hasher.update(orjson.dumps((transaction.payor_name, transaction.references, *family.segments)))
            self._last = family, hasher.digest()
        return self._last[1]

    def make_index(self) -> None:
        """To be called before `recognised`."""
        entries: list[int] = []  # 64 bits of the family's digest, 32 of the position, 64 of the member
        for plan in self._plans:
            under = partial(list_ids_under, plan_id=plan.id, limit=INDEXED_TOGETHER)
            after = 0
            while ids := self._db.ask(partial(under, after_id=after)):
                kept = self._db.ask(partial(find_kept_digests, ids=ids))
                found = ((id_, digest) for id_, digest in kept.items() if digest)
                entries += (int(digest[:16] + digest[-8:], 16) << 64 | id_ for id_, digest in found)
                after = ids[-1]
        entries.sort()
        self._keys = array("Q", (entry >> 96 for entry in entries))
        self._ids = array("q", (entry & (2**64 - 1) for entry in entries))

    def _find(self, family: Family | None) -> Sequence[int]:
        """The members that may have the digests of the family's rows."""
        if family is None:
            return ()
        key = int.from_bytes(self._digest(family)[:8], "big")
        start = bisect_left(self._keys, key)
        return self._ids[start : bisect_right(self._keys, key, start)]

    def _confirmed(self, batch: Sequence[tuple[UnreadLoops, Sequence[int]]]) -> Iterator[Row | KnownRows]:
        """Members may have changed since the index was made."""
        wanted = [id_ for _, ids in batch for id_ in ids]
        kept = self._db.ask(partial(find_kept_digests, ids=wanted)) if wanted else {}
        for item, ids in batch:
            places = item.family.places() if item.family and ids else []
            if item.family is not None and places and len(places) == len(ids):
                digests = [self.digest_of((item.family, position)) for position in range(len(places))]
                if digests == [kept.get(id_) for id_ in ids]:
                    yield from item.pass_by()
                    yield KnownRows(places, ids)
                    continue
            yield from item.read()
