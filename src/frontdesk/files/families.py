"""Recognises unchanged families of an 834 by their text, before they are parsed: most of a full
file equals that of the day before.

Each member of a family stores the digest of the family's text, with the member's position. A row
that depends on more than that text is no part of its family (mapping.x12), so such a family is
parsed, and its rows are recognised one by one.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

import orjson

from frontdesk.db import Database, sets
from frontdesk.eligibility import find_digests_of, list_ids_under
from frontdesk.eligibility.meaning import row_meaning
from frontdesk.files.model import EligibilityFile
from frontdesk.formats.x12 import Family
from frontdesk.mapping.model import FamilyPart, ReadItem, Row, UnreadLoops, UnreadRows, read_rows
from frontdesk.plans.model import Plan

# of the digest of a row
FAMILY_BYTES = 12
POSITION_BYTES = 4
# members
INDEXED_TOGETHER = 5000
CONFIRMED_TOGETHER = 1000


class KnownRows(NamedTuple):
    """Rows of an 834 that were recognised before they were read: their places in the file, the ids of
    their members, their transaction, and the place of the first of them in that.
    """

    places: Sequence[int]
    member_ids: Sequence[int]
    transaction: int
    ordinal: int

    def __len__(self) -> int:
        return len(self.places)


class FamilyRecogniser:
    """Makes the digests of families, and finds those stored with the account's members. `plans` are
    the account's plans.
    """

    def __init__(self, db: Database, file: EligibilityFile, plans: Collection[Plan]) -> None:
        self._db = db
        names_plans = "plan" in (file.mapping or {}).get("834", {})
        self._plans = [plan for plan in plans if names_plans or plan.id == file.plan_id]
        key = db.ask(sets.installation_key)
        self._hasher = blake2b(row_meaning(), digest_size=FAMILY_BYTES, key=key)
        named = sorted((plan.external_id or "", plan.id) for plan in self._plans)
        meaning = (file.plan_id, named, file.mapping)
        self._hasher.update(orjson.dumps(meaning, option=orjson.OPT_SORT_KEYS))
        self._last: tuple[Family | None, bytes] = None, b""
        # 64 bits of the stored digests, in order, and their members.
        self._keys = array("Q")
        self._ids = array("q")

    def __len__(self) -> int:
        """The number of members with a digest; 0 before `make_index`."""
        return len(self._ids)

    def digest_of(self, part: FamilyPart) -> str:
        """The digest of the row of a part."""
        family, position = part
        return (self._digest(family) + position.to_bytes(POSITION_BYTES, "big")).hex()

    def recognised(self, items: Iterable[ReadItem]) -> Iterator[Row | UnreadRows | KnownRows]:
        """The rows of an 834 in order, parsed unless their family is recognised. If a plan is not
        active all rows are parsed: each gets a warning.
        """
        if not all(plan.accepting_patients for plan in self._plans):
            yield from read_rows(items)
            return
        batch: list[tuple[UnreadLoops, Sequence[int]]] = []
        members = 0
        for item in items:
            if not isinstance(item, UnreadLoops):
                yield item
                continue
            member_ids = self._find(item.family)
            batch.append((item, member_ids))
            members += len(member_ids) or 1
            if members >= CONFIRMED_TOGETHER:
                yield from self._confirmed(batch)
                batch = []
                members = 0
        yield from self._confirmed(batch)

    def _digest(self, family: Family) -> bytes:
        if self._last[0] is not family:
            hasher = self._hasher.copy()
            transaction = family.transaction
            hasher.update(
                orjson.dumps((transaction.payor_name, transaction.references, *family.segments))
            )
            self._last = family, hasher.digest()
        return self._last[1]

    def make_index(self) -> None:
        """To be called before `recognised`."""
        # Of each: 64 bits of the family's digest, 32 of the position, 64 of the member.
        entries: list[int] = []
        for plan in self._plans:
            for stored in self._stored_digests(plan):
                for id_, digest in stored.items():
                    if digest:
                        entries.append(int(digest[:16] + digest[-8:], 16) << 64 | id_)
        entries.sort()
        self._keys = array("Q", (entry >> 96 for entry in entries))
        self._ids = array("q", (entry & (2**64 - 1) for entry in entries))

    def _stored_digests(self, plan: Plan) -> Iterator[Mapping[int, str | None]]:
        """The digests of the plan's members by id, in batches."""
        find_ids = partial(list_ids_under, plan_id=plan.id, limit=INDEXED_TOGETHER)
        after = 0
        while True:
            ids = self._db.ask(partial(find_ids, after_id=after))
            if not ids:
                return
            yield self._db.ask(partial(find_digests_of, ids=ids))
            after = ids[-1]

    def _find(self, family: Family | None) -> Sequence[int]:
        """The members that may have the digests of the family's rows."""
        if family is None:
            return ()
        key = int.from_bytes(self._digest(family)[:8], "big")
        start = bisect_left(self._keys, key)
        return self._ids[start : bisect_right(self._keys, key, start)]

    def _confirmed(
        self, batch: Sequence[tuple[UnreadLoops, Sequence[int]]]
    ) -> Iterator[Row | KnownRows]:
        """Members may have changed since the index was made."""
        stored: Mapping[int, str | None] = {}
        all_ids = [id_ for _, ids in batch for id_ in ids]
        if all_ids:
            stored = self._db.ask(partial(find_digests_of, ids=all_ids))
        for item, ids in batch:
            places = item.family.places() if item.family and ids else []
            if item.family is not None and places and len(places) == len(ids):
                digests = [
                    self.digest_of((item.family, position)) for position in range(len(places))
                ]
                if digests == [stored.get(id_) for id_ in ids]:
                    yield from item.pass_by()
                    transaction = item.family.transaction.number
                    yield KnownRows(places, ids, transaction, item.family.ordinal)
                    continue
            yield from item.read()
