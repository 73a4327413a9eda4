"""The rows of a stored file, parsed into submissions by the rules and codes of a POST."""

import hmac
from collections.abc import Generator, Iterator, Sequence
from itertools import islice
from typing import TypedDict, Unpack

from frontdesk.db import Database
from frontdesk.eligibility import ValueCache, parse_member, row_digest_key
from frontdesk.eligibility.model import Action, Submission
from frontdesk.files.content import StoredContent
from frontdesk.files.mapping import parse_mapping
from frontdesk.files.model import (
    UNKNOWN_PLAN,
    ChunkRow,
    EligibilityFile,
    FileHeader,
    FileMode,
    Row,
    UnreadRow,
    read_row,
)
from frontdesk.files.readers import X12Options, open_unread
from frontdesk.files.recognise import RowRecogniser, SeenRow
from frontdesk.plans import list_plans

LOOKUP_ROWS = 1000
MOST_ROWS = 5000  # of a chunk: known rows cost it only their lines in the report


class ParseOptions(TypedDict):
    """How rows are parsed: the most rows of a chunk that are to be written, the day as `YYYY-MM-DD`, and the places of an 834's
    rows of members with others elsewhere in the file."""

    chunk_rows: int
    today: str
    apart: Sequence[int]


def open_rows(
    db: Database, file: EligibilityFile, apart: Sequence[int] = ()
) -> tuple[FileHeader, Iterator[Row | UnreadRow]]:
    """The stored file's header and rows, from its beginning. Raises Unreadable, here or from the rows."""
    content, mapping = StoredContent(db, file.id), parse_mapping(file.mapping or {})
    x12 = X12Options(file.asked_mode, secret_of(db, file), apart)
    return open_unread(content, file.format, file.encoding or "utf-8", mapping, x12=x12)


def secret_of(db: Database, file: EligibilityFile) -> bytes:
    """The account's secret for hashes in its 834s, which stays the same."""
    return hmac.digest(db.ask(row_digest_key), f"834 of account {file.account_id}".encode(), "sha256")


def parse_rows(
    db: Database,
    file: EligibilityFile,
    *,
    leave_from_rows: int | None = None,
    **options: Unpack[ParseOptions],
) -> Generator[list[ChunkRow], None, None]:
    """The rows that are not applied yet, by the chunk. The file has been checked, so its mode and its date are known.

    A chunk has up to `chunk_rows` rows that are to be written, known rows up to MOST_ROWS in all, and the rest of its last
    family: chunks that share one can't be written at the same time. It ends early, before rows that are mostly unknown, while
    at least `leave_from_rows` rows are left.
    """
    chunk_rows, today = options["chunk_rows"], options["today"]
    plan_ids = {plan.external_id: plan.id for plan in db.ask(lambda tx: list_plans(tx, file.account_id))}
    header, rows = open_rows(db, file, options["apart"])
    rows = islice(rows, file.rows_done, None)
    recogniser, cache = RowRecogniser(db, file, plan_ids, header.columns), ValueCache()
    most_rows = max(chunk_rows, MOST_ROWS)
    chunk: list[ChunkRow] = []
    to_write, family = 0, None
    left = (file.rows_total or 0) - file.rows_done
    while batch := [recogniser.see(row) for row in islice(rows, LOOKUP_ROWS)]:
        known = recogniser.known_digests(batch)
        if leave_from_rows is not None and left >= leave_from_rows and 2 * len(known) < len(batch):
            break
        left -= len(batch)
        for seen in batch:
            is_full = to_write >= chunk_rows or len(chunk) >= most_rows
            if is_full and (seen.family is None or seen.family != family):
                yield chunk
                chunk, to_write = [], 0
            family = seen.family
            if seen.row.skipped:
                chunk.append(ChunkRow(seen.row.place, None, skipped=True))
            elif seen.digest in known:
                chunk.append(ChunkRow(seen.row.place, seen.external_id, known=True))
            else:
                chunk.append(_parse(seen, file, today, cache))
                to_write += 1
    if chunk:
        yield chunk


def _parse(seen: SeenRow, file: EligibilityFile, today: str, cache: ValueCache) -> ChunkRow:
    row, plan_id = read_row(seen.row), seen.plan_id
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
        return ChunkRow(row.place, record.external_id, None, faults)
    action = Action.COMPARE if file.mode is FileMode.COMPARE else row.action
    digest = None if record.faults or record.warnings or row.warnings else seen.digest
    submission = Submission(
        file.account_id, plan_id, record, file.client, file.request_id, action, file.id, row_digest=digest
    )
    return ChunkRow(row.place, record.external_id, submission, (), row.warnings)
