"""The rows of a stored file, parsed into submissions by the rules and codes of a POST."""

import hmac
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain

from frontdesk.db import Database
from frontdesk.eligibility import ValueCache, parse_member, row_digest_key
from frontdesk.eligibility.model import Action, Submission
from frontdesk.files.content import StoredContent
from frontdesk.files.mapping import parse_mapping
from frontdesk.files.model import (
    UNKNOWN_PLAN,
    ChunkItem,
    ChunkRow,
    EligibilityFile,
    FileHeader,
    FileMode,
    ReadItem,
    RowOutcome,
    UnreadRows,
    count_rows,
)
from frontdesk.files.producer import GoOn
from frontdesk.files.readers import SharedNumbers, X12Options, open_unread
from frontdesk.files.recognise import RowRecogniser, SeenRow
from frontdesk.plans import list_plans

LOOKUP_ROWS = 1000
MOST_ROWS = 5000  # of a chunk: known rows cost it only their lines in the report


def open_rows(
    db: Database,
    file: EligibilityFile,
    go_on: GoOn,
    *,
    apart: Sequence[int] = (),
    shared: SharedNumbers | None = None,
) -> tuple[FileHeader, Iterator[ReadItem]]:
    """The stored file's header and rows, from its beginning (open_unread). Calls `go_on` before each row, and while there is
    none. Raises Unreadable, here or from the rows."""
    content, mapping = StoredContent(db, file.id, go_on), parse_mapping(file.mapping or {})
    x12 = X12Options(file.asked_mode, secret_of(db, file), apart, shared)
    encoding = file.encoding or "utf-8"
    header, items = open_unread(content, file.format, encoding, mapping, x12=x12, go_on=go_on)
    return header, _going_on(items, go_on)


def _going_on(items: Iterable[ReadItem], go_on: GoOn) -> Iterator[ReadItem]:
    for item in items:
        go_on()
        yield item


def secret_of(db: Database, file: EligibilityFile) -> bytes:
    """The account's secret for hashes in its 834s, which stays the same."""
    return hmac.digest(db.ask(row_digest_key), f"834 of account {file.account_id}".encode(), "sha256")


def parse_rows(  # noqa: PLR0913 - until `shared` is gone
    db: Database,
    file: EligibilityFile,
    go_on: GoOn,
    *,
    chunk_rows: int,
    today: str,
    apart: Sequence[int],
    shared: Sequence[int],
) -> Generator[list[ChunkItem]]:
    """The rows that are not applied yet, by the chunk. The file has been checked, so its mode and its date are known.

    A chunk has up to `chunk_rows` rows that are parsed, and up to MOST_ROWS with the known ones. `today` is `YYYY-MM-DD`. Of an
    834, `apart` are the places of the rows of members with others elsewhere in the file, `shared` the keys of numbers that
    several people carry. Calls `go_on` before each row.
    """
    plans = db.ask(lambda tx: list_plans(tx, file.account_id))
    numbers = SharedNumbers(secret_of(db, file), shared)
    header, items = open_rows(db, file, go_on, apart=apart, shared=numbers)
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


def _parse(seen: SeenRow, file: EligibilityFile, today: str, cache: ValueCache) -> ChunkItem:
    row, plan_id = seen.row, seen.plan_id
    values = row.values
    if row.action is Action.END and not values.get("expiry_date"):
        values = values | {"expiry_date": file.file_date}
    of_new = row.values_of_new
    record = parse_member({**values, **of_new} if of_new else values, today=today, lenient=True, cache=cache)
    if of_new:
        record.given_of_new = {name: record.given.pop(name) for name in of_new if name in record.given}
    record.hints = row.hints
    faults = list(row.faults)
    if faults:  # they explain a missing identifier
        faults += [fault for fault in record.faults if fault[:2] != ("external_id", "required")]
    if plan_id is None:
        faults.append(UNKNOWN_PLAN)
    if faults or plan_id is None:
        return RowOutcome.refused(row.place, None if row.hints.hides_key else record.external_id, faults)
    action = Action.COMPARE if file.mode is FileMode.COMPARE else row.action
    digest = None if record.faults or record.warnings or row.warnings else seen.digest
    submission = Submission(
        file.account_id, plan_id, record, file.client, file.request_id, action, file.id, row_digest=digest
    )
    return ChunkRow(row.place, record.external_id, submission, row.warnings)
