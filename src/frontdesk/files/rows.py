"""The rows of a stored file, parsed into submissions by the rules and codes of a POST.

A large file is parsed by a process of its own, which lets this one decide and write meanwhile. It reads what to parse from
standard input and answers with chunks on standard output. After its parent was killed, it ends at its next write.
"""

import contextlib
import gc
import hmac
import marshal
import subprocess
import sys
from array import array
from collections.abc import Generator, Iterator, Sequence
from itertools import islice
from typing import IO, Any

from frontdesk.db import Database, open_database
from frontdesk.eligibility import ValueCache, parse_member, row_digest_key
from frontdesk.eligibility.model import Action, MemberRecord, Submission
from frontdesk.eligibility.row_hints import NO_HINTS, FamilyMember, RowHints
from frontdesk.errors import Fault, Unavailable
from frontdesk.files.content import StoredContent
from frontdesk.files.jobs import get_file
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
from frontdesk.files.threads import lower_priority
from frontdesk.plans import list_plans

COLLECT_AFTER = 200_000  # rows make no cycles, and looking for some took a third of the time
LOOKUP_ROWS = 1000
MOST_ROWS = 5000  # of a chunk: known rows cost it only their lines in the report

_LENGTH_BYTES = 4


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
    db: Database, file: EligibilityFile, *, chunk_rows: int, today: str, apart: Sequence[int] = ()
) -> Generator[list[ChunkRow], None, None]:
    """The rows that are not applied yet, by the chunk. The file has been checked, so its mode and its date are known.

    A chunk has up to `chunk_rows` rows that are to be written, known rows up to MOST_ROWS in all, and the rest of its last
    family: chunks that share one can't be written at the same time. `today` is `YYYY-MM-DD`.
    """
    plan_ids = {plan.external_id: plan.id for plan in db.ask(lambda tx: list_plans(tx, file.account_id))}
    header, rows = open_rows(db, file, apart)
    rows = islice(rows, file.rows_done, None)
    recogniser, cache = RowRecogniser(db, file, plan_ids, header.columns), ValueCache()
    most_rows = max(chunk_rows, MOST_ROWS)
    chunk: list[ChunkRow] = []
    to_write, family = 0, None
    while batch := [recogniser.see(row) for row in islice(rows, LOOKUP_ROWS)]:
        known = recogniser.known_digests(batch)
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


def parse_in_process(
    db: Database, file: EligibilityFile, *, chunk_rows: int, today: str, apart: Sequence[int] = ()
) -> Generator[list[ChunkRow], None, None]:
    """`parse_rows` in a child process. Raises Unavailable if the child ends early: the file goes on after the last chunk."""
    request = {
        "url": db.url,
        "file_id": file.id,
        "chunk_rows": chunk_rows,
        "today": today,
        "apart": array("Q", apart).tobytes(),
    }
    command = [sys.executable, "-m", __name__]
    # A session of its own, so that Ctrl-C reaches this process only; no stderr, which could hold a value of a member.
    options: dict[str, Any] = {"stderr": subprocess.DEVNULL, "start_new_session": True}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, **options) as child:  # noqa: S603 - our own
        try:
            if child.stdin is None or child.stdout is None:
                raise Unavailable("The parsing process could not be started.")
            child.stdin.write(marshal.dumps(request))
            child.stdin.close()
            while chunk := _read_chunk(child.stdout):
                yield [_from_wire(file, *row) for row in chunk]
        finally:
            child.kill()


def _read_chunk(stream: IO[bytes]) -> list[Any]:
    """The next chunk; an empty one after the last."""
    head = stream.read(_LENGTH_BYTES)
    length = int.from_bytes(head, "big")
    body = stream.read(length)
    if len(head) < _LENGTH_BYTES or len(body) < length:
        raise Unavailable("The parsing process ended early.")
    chunk: list[Any] = marshal.loads(body)  # noqa: S302 - written by our own child
    return chunk


def _write_chunk(stream: IO[bytes], chunk: list[ChunkRow]) -> None:
    body = marshal.dumps([_to_wire(row) for row in chunk])
    stream.write(len(body).to_bytes(_LENGTH_BYTES, "big") + body)


def _to_wire(row: ChunkRow) -> tuple[Any, ...]:
    submission = row.submission
    if row.known or row.skipped:
        return (row.place, row.external_id)
    if submission is None:
        return (row.place, row.external_id, [*map(tuple, row.faults)], None)
    record = submission.record
    faults = [*map(tuple, record.faults)]
    given = (record.given, record.invite_immediately, faults, record.warnings, record.ignored)
    causes, *hints, family = record.hints or NO_HINTS
    told = ([*map(tuple, causes)], *hints, family and tuple(family))
    submitted = (
        submission.plan_id,
        submission.action.value,
        submission.row_digest,
        given,
        told,
        record.given_of_new,
    )
    return (row.place, row.external_id, row.warnings, submitted)


def _from_wire(
    file: EligibilityFile, place: int, key: str | None, notes: Any = None, submitted: Any = None
) -> ChunkRow:
    if notes is None:
        return ChunkRow(place, key, known=key is not None, skipped=key is None)
    if submitted is None:
        return ChunkRow(place, key, None, _faults(notes))
    plan_id, action, digest, given, hints, given_of_new = submitted
    values, invite, faults, warnings, ignored = given
    causes, keys, *flags, family = hints
    told = RowHints(_faults(causes), keys, *flags)._replace(family=family and FamilyMember(*family))
    record = MemberRecord(key, values, invite, _faults(faults), warnings, ignored, told, given_of_new)
    submission = Submission(
        file.account_id,
        plan_id,
        record,
        file.client,
        file.request_id,
        Action(action),
        file.id,
        row_digest=digest,
    )
    return ChunkRow(place, key, submission, (), notes)


def _faults(told: Any) -> tuple[Fault, ...]:
    return tuple(Fault(*fault) for fault in told)


def _main() -> None:
    """The child's work."""
    lower_priority()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
    request = marshal.load(sys.stdin.buffer)  # noqa: S302 - written by our own parent
    request["apart"] = array("Q", request["apart"])
    db = open_database(request.pop("url"), pool_size=1)
    file_id = request.pop("file_id")
    file = db.ask(lambda tx: get_file(tx, file_id, account_id=None))
    for chunk in parse_rows(db, file, **request):
        _write_chunk(sys.stdout.buffer, chunk)
    _write_chunk(sys.stdout.buffer, [])
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # the parent is gone
        _main()
