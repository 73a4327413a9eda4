"""The rows of a stored file: those that say what the same member's last row said are recognised, the others are parsed into
submissions by the rules and codes of a POST (docs/decisions/0075).

A member keeps the digest of the row that it agrees with, and every write of the member sets or clears it. A row with a kept
digest is `unchanged`, without a warning: nothing else that its outcome depends on can have changed.
"""

import hmac
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, count
from typing import NamedTuple

import orjson

from frontdesk.db import Database
from frontdesk.eligibility import (
    ValueCache,
    find_row_digests,
    parse_member,
    read_external_id,
    read_external_ids,
    row_digest_key,
)
from frontdesk.eligibility.model import Action, Submission
from frontdesk.files.content import StoredContent
from frontdesk.files.model import NO_PLAN, SKIPPED, ChunkItem, ChunkRow, EligibilityFile, RowOutcome
from frontdesk.files.producer import GoOn
from frontdesk.formats.model import FileMode
from frontdesk.mapping.model import FileHeader, ReadItem, Row, UnreadRows, count_rows
from frontdesk.mapping.opening import open_unread
from frontdesk.mapping.parser import parse_mapping
from frontdesk.mapping.x12 import X12Options
from frontdesk.plans import list_plans
from frontdesk.plans.model import Plan

LOOKUP_ROWS = 1000
MOST_ROWS = 5000  # of a chunk: known rows cost it only their lines in the report
DIGEST_BYTES = 16
# Raise it when a row of some file comes to mean something else (tests/files/test_row_meaning.py finds that): then every row is
# parsed once more.
ROW_MEANING_VERSION = b"1"


def open_rows(
    db: Database, file: EligibilityFile, go_on: GoOn, *, apart: Sequence[int] = ()
) -> tuple[FileHeader, Iterator[ReadItem]]:
    """The stored file's header and rows, from its beginning (open_unread). Calls `go_on` before each row, and while there is
    none. Raises Unreadable, here or from the rows."""
    content, mapping = StoredContent(db, file.id, go_on), parse_mapping(file.mapping or {})
    # The account's secret for hashes in its 834s, which stays the same.
    secret = hmac.digest(db.ask(row_digest_key), f"834 of account {file.account_id}".encode(), "sha256")
    x12 = X12Options(file.asked_mode, secret, apart)
    encoding = file.encoding or "utf-8"
    header, items = open_unread(content, file.format, encoding, mapping, x12=x12, go_on=go_on)
    return header, _going_on(items, go_on)


def _going_on(items: Iterable[ReadItem], go_on: GoOn) -> Iterator[ReadItem]:
    for item in items:
        go_on()
        yield item


def parse_rows(
    db: Database,
    file: EligibilityFile,
    go_on: GoOn,
    *,
    chunk_rows: int,
    today: str,
    apart: Sequence[int],
) -> Generator[list[ChunkItem]]:
    """The rows that are not applied yet, by the chunk. The file has been checked, so its mode and its date are known.

    A chunk has up to `chunk_rows` rows that are parsed, and up to MOST_ROWS with the known ones. `today` is `YYYY-MM-DD`. Of an
    834, `apart` are the places of the rows of members with others elsewhere in the file. Calls `go_on` before each row.
    """
    plans = db.ask(lambda tx: list_plans(tx, file.account_id))
    header, items = open_rows(db, file, go_on, apart=apart)
    recogniser, cache = RowRecogniser(db, file, plans, header.columns), ValueCache()
    chunk: list[ChunkItem] = []
    parsed = 0
    for batch in _batches(items, skip=file.rows_done):
        seen = [recogniser.see(item) for item in batch]
        known = recogniser.known_digests(seen)
        for found in chain.from_iterable(each.split(known) for each in seen):
            rows = 1 if isinstance(found, SeenRow) else len(found)
            if chunk and (parsed >= chunk_rows or len(chunk) + rows > MOST_ROWS):
                yield chunk
                chunk, parsed = [], 0
            if isinstance(found, SeenRow):
                go_on()
                chunk.append(_parse(found, file, today, cache))
                parsed += 1
            else:
                chunk += found
    if chunk:
        yield chunk


def _batches(items: Iterable[ReadItem], *, skip: int) -> Iterator[list[ReadItem]]:
    """The items after the first `skip` rows, in batches of LOOKUP_ROWS rows."""
    batch, room = list[ReadItem](), LOOKUP_ROWS
    for item in items:
        start, skip = skip, max(skip - count_rows(item), 0)
        while start < count_rows(item):
            part = item.part(start, start + room) if isinstance(item, UnreadRows) else item
            batch.append(part)
            start += count_rows(part)
            room -= count_rows(part)
            if not room:
                yield batch
                batch, room = [], LOOKUP_ROWS
    if batch:
        yield batch


class SeenRow(NamedTuple):
    """A row to parse. `plan_id` is None where the account has no such plan; `digest` is None for a row that is always parsed."""

    row: Row
    plan_id: int | None
    digest: str | None


class SeenRows(NamedTuple):
    """Rows of one plan before they are parsed. `digests` are None for rows that are always parsed."""

    rows: UnreadRows | Row
    plan_id: int | None
    external_ids: Sequence[str | None]
    digests: Sequence[str | None]

    def split(self, known: Mapping[str, int]) -> Iterator[SeenRow | list[RowOutcome]]:
        """In order: the outcomes of rows whose digests are `known`, many at a time, and the other rows, now read."""
        rows, start, end = self.rows, 0, len(self.digests)
        unknown = [position for position, digest in enumerate(self.digests) if digest not in known]
        for position in (*unknown, end):
            if start < position:
                keys = self.external_ids[start:position]
                ids = [known[digest] for digest in self.digests[start:position] if digest]
                yield [*map(RowOutcome.unchanged, count(rows.place + start), keys, ids)]
            if position < end:
                row = rows.row(position) if isinstance(rows, UnreadRows) else rows
                yield SeenRow(row, self.plan_id, self.digests[position])
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
        self._always_parsed = {plan.id for plan in plans if not plan.accepting_patients}
        if file.mode is FileMode.COMPARE:
            self._always_parsed = {plan.id for plan in plans}

    def see(self, item: ReadItem) -> SeenRows:
        """The rows with their digests, which cover the plan and every value, and so the account and the identifier."""
        if isinstance(item, UnreadRows):
            plan_id = self._file.plan_id
            digests: Sequence[str | None] = [None] * len(item)
            if plan_id not in self._always_parsed:
                digests = [*map(self._digest_of_text, item.texts)]
            return SeenRows(item, plan_id, read_external_ids(item.keys), digests)
        named = self._file.plan_id if item.plan is None else self._plan_ids.get(item.plan)
        return SeenRows(item, named, [read_external_id(item.key)], [self._digest_of_row(item, named)])

    def _digest_of_text(self, text: str) -> str:
        hasher = self._text_hasher.copy()
        hasher.update(text.encode())
        return hasher.hexdigest()

    def _digest_of_row(self, row: Row, plan_id: int | None) -> str | None:
        says_more = row.skipped or row.faults or row.is_warned or row.action is not Action.ENROL
        if says_more or plan_id in self._always_parsed:
            return None
        hasher = self._hasher.copy()
        try:
            person = row.context.person and tuple(row.context.person)
            hasher.update(orjson.dumps((plan_id, row.values, row.values_of_new, person)))
        except TypeError:  # half of a surrogate pair, or a number that no field takes
            return None
        return hasher.hexdigest()

    def known_digests(self, seen: Sequence[SeenRows]) -> dict[str, int]:
        """The members of those rows that say what their members say, by digest, in one read."""
        keys: list[str] = []
        digests: set[str | None] = set()
        for each in seen:
            if any(each.digests):
                keys += filter(None, each.external_ids)
                digests.update(each.digests)
        found = self._db.ask(lambda tx: find_row_digests(tx, keys)) if keys else {}
        return {digest: member_id for digest, member_id in found.items() if digest in digests}


def _parse(seen: SeenRow, file: EligibilityFile, today: str, cache: ValueCache) -> ChunkItem:
    row, plan_id = seen.row, seen.plan_id
    if row.skipped:
        return RowOutcome(row.place, None, SKIPPED)
    values, context = row.values, row.context
    if row.action is Action.END and not values.get("expiry_date"):
        values, context = values | {"expiry_date": file.file_date}, context._replace(keeps_earlier_end=True)
    of_new = row.values_of_new
    record = parse_member({**values, **of_new} if of_new else values, today=today, lenient=True, cache=cache)
    if of_new:
        given_of_new = {name: record.given.pop(name) for name in of_new if name in record.given}
        context = context._replace(given_of_new=given_of_new)
    faults = list(row.faults)
    if faults:  # they explain a missing identifier
        faults += [fault for fault in record.faults if fault[:2] != ("external_id", "required")]
    if plan_id is None:
        faults.append(NO_PLAN)
    if faults or plan_id is None:
        return RowOutcome.refused(row.place, record.external_id, faults)
    action = Action.COMPARE if file.mode is FileMode.COMPARE else row.action
    digest = None if record.faults or record.warnings or row.is_warned else seen.digest
    submission = Submission(
        file.account_id, plan_id, record, file.client, file.request_id, action, file.id, None, digest, context
    )
    return ChunkRow(row.place, record.external_id, submission, row.warnings)
