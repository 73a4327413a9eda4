"""The rows of a stored file, parsed into submissions by the rules and codes of a POST."""

import hmac
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain
from typing import TypedDict, Unpack

from frontdesk.db import Database
from frontdesk.eligibility import ValueCache, parse_member, row_digest_key
from frontdesk.eligibility.model import Action, Submission
from frontdesk.files.content import StoredContent
from frontdesk.files.mapping import parse_mapping
from frontdesk.files.model import (
    NO_PLAN,
    NOTHING_YET,
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
from frontdesk.files.overtime import Overtime
from frontdesk.files.readers import SharedNumbers, X12Options, open_in_steps
from frontdesk.files.recognise import RowRecogniser, SeenRow
from frontdesk.files.steps import Steps, yielding
from frontdesk.plans import list_plans

LOOKUP_ROWS = 1000
MOST_ROWS = 5000  # of a chunk: known rows cost it only their lines in the report


class ParseOptions(TypedDict):
    """How rows are parsed: the most rows of a chunk that are to be written, the day as `YYYY-MM-DD`, and of an 834 the places of
    the rows of members with others elsewhere in the file, and the keys of numbers that several people carry."""

    chunk_rows: int
    today: str
    apart: Sequence[int]
    shared: Sequence[int]


def open_rows(
    db: Database, file: EligibilityFile, apart: Sequence[int] = (), shared: SharedNumbers | None = None
) -> Steps[tuple[FileHeader, Iterator[ReadItem]]]:
    """The stored file's header and rows, from its beginning (open_in_steps). Raises Unreadable, here or from the rows."""
    content, mapping = StoredContent(db, file.id), parse_mapping(file.mapping or {})
    x12 = X12Options(file.asked_mode, secret_of(db, file), apart, shared)
    opening = open_in_steps(content, file.format, file.encoding or "utf-8", mapping, x12=x12)
    return (yield from opening)


def secret_of(db: Database, file: EligibilityFile) -> bytes:
    """The account's secret for hashes in its 834s, which stays the same."""
    return hmac.digest(db.ask(row_digest_key), f"834 of account {file.account_id}".encode(), "sha256")


def parse_rows(
    db: Database,
    file: EligibilityFile,
    *,
    leave_from_rows: int | None = None,
    **options: Unpack[ParseOptions],
) -> Generator[list[ChunkItem], None, None]:
    """The rows that are not applied yet, by the chunk. The file has been checked, so its mode and its date are known.

    A chunk has up to `chunk_rows` rows that are parsed, known rows up to MOST_ROWS in all, and the rest of its last
    family: chunks that share one can't be written at the same time. It ends early, before rows that are mostly unknown, while
    at least `leave_from_rows` rows are left, and when its rows took long to read and parse, however few they are. It may be
    empty: then it only shows that there are none yet.
    """
    chunk_rows, today = options["chunk_rows"], options["today"]
    plans = db.ask(lambda tx: list_plans(tx, file.account_id))
    shared = SharedNumbers(secret_of(db, file), options["shared"])
    header, items = yield from yielding([], open_rows(db, file, options["apart"], shared))
    recogniser, cache = RowRecogniser(db, file, plans, header.columns), ValueCache()
    most_rows = max(chunk_rows, MOST_ROWS)
    chunk: list[ChunkItem] = []
    is_late = False
    parsed, family, slow = 0, None, Overtime()
    left = (file.rows_total or 0) - file.rows_done
    for batch in _batches(items, skip=file.rows_done):
        if not batch:
            yield chunk
            chunk, parsed, is_late, slow = [], 0, False, Overtime()
            continue
        seen = [recogniser.see(item) for item in batch]
        known, rows = recogniser.known_digests(seen), sum(map(count_rows, batch))
        if leave_from_rows is not None and left >= leave_from_rows and 2 * len(known) < rows:
            break
        left -= rows
        for found in chain.from_iterable(each.split(known) for each in seen):
            is_row = isinstance(found, SeenRow)
            is_late = is_late or slow.has_begun()
            is_full = (
                is_late or parsed >= chunk_rows or len(chunk) + (1 if is_row else len(found)) > most_rows
            )
            own = found.family if isinstance(found, SeenRow) else None
            is_between = own is None or own != family or is_late or len(chunk) >= 2 * most_rows
            if is_full and chunk and is_between:
                yield chunk
                chunk, parsed, is_late, slow = [], 0, False, Overtime()
            family = own
            if isinstance(found, SeenRow):
                chunk.append(_parse(found, file, today, cache))
                parsed += 1
            else:
                chunk += found
    if chunk:
        yield chunk


def _batches(items: Iterable[ReadItem], *, skip: int) -> Iterator[list[ReadItem]]:
    """The items after the first `skip` rows, in batches of LOOKUP_ROWS rows, and of fewer where they take long. An empty batch
    stands for a long time without one."""
    batch, room, slow = list[ReadItem](), LOOKUP_ROWS, Overtime()
    for item in items:
        start, skip = skip, max(skip - count_rows(item), 0)
        while start < count_rows(item):
            part = item.part(start, start + room) if isinstance(item, UnreadRows) else item
            batch.append(part)
            start += count_rows(part)
            room -= count_rows(part)
            if not room or slow.has_begun():
                yield batch
                batch, room, slow = [], LOOKUP_ROWS, Overtime()
        if item is NOTHING_YET or (not batch and slow.has_begun()):
            if batch:
                yield batch
            yield []
            batch, room, slow = [], LOOKUP_ROWS, Overtime()
    if batch:
        yield batch


def _parse(seen: SeenRow, file: EligibilityFile, today: str, cache: ValueCache) -> ChunkItem:
    row, plan_id = seen.row, seen.plan_id
    values = row.values
    hints = row.hints
    if row.action is Action.END and not values.get("expiry_date"):
        values, hints = values | {"expiry_date": file.file_date}, hints._replace(keeps_earlier_end=True)
    of_new = row.values_of_new
    record = parse_member({**values, **of_new} if of_new else values, today=today, lenient=True, cache=cache)
    if of_new:
        record.given_of_new = {name: record.given.pop(name) for name in of_new if name in record.given}
    record.hints = hints
    faults = list(row.faults)
    if faults:  # they explain a missing identifier
        faults += [fault for fault in record.faults if fault[:2] != ("external_id", "required")]
    if plan_id is None:
        faults.append(NO_PLAN)
    if faults or plan_id is None:
        return RowOutcome.refused(row.place, None if row.hints.hides_key else record.external_id, faults)
    action = Action.COMPARE if file.mode is FileMode.COMPARE else row.action
    digest = None if record.faults or record.warnings or row.warnings else seen.digest
    submission = Submission(
        file.account_id, plan_id, record, file.client, file.request_id, action, file.id, row_digest=digest
    )
    return ChunkRow(row.place, record.external_id, submission, row.warnings)
