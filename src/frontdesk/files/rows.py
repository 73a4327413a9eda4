"""The rows of a stored file: read once to check it, then parsed into submissions by the rules and codes of a POST.

A large file is parsed by a process of its own, which lets this one decide and write meanwhile. It reads what to parse from
standard input and answers with chunks on standard output. After its parent was killed, it ends at its next write.
"""

import contextlib
import gc
import json
import marshal
import subprocess
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import IO, Any

from frontdesk.db import Database, open_database
from frontdesk.eligibility import ValueCache, parse_member, read_external_id
from frontdesk.eligibility.model import Action, MemberRecord, Submission
from frontdesk.errors import Fault, Unavailable
from frontdesk.files.claims import FileClaim
from frontdesk.files.content import StoredContent
from frontdesk.files.jobs import get_file
from frontdesk.files.mapping import parse_mapping
from frontdesk.files.model import (
    UNKNOWN_PLAN,
    ChunkRow,
    EligibilityFile,
    FileHeader,
    FileMode,
    FileStep,
    Row,
    UnreadRow,
    read_row,
)
from frontdesk.files.readers import open_unread
from frontdesk.files.recognise import RowRecogniser, SeenRow
from frontdesk.files.threads import lower_priority
from frontdesk.plans import list_plans

CHECKPOINT_ROWS = 10_000
COLLECT_AFTER = 200_000  # rows make no cycles, and looking for some took a third of the time
LOOKUP_ROWS = 1000
MOST_ROWS = 5000  # of a chunk: known rows cost it only their lines in the report

_BUCKETS = 256  # sorted one at a time, so that sorting needs little memory besides the hashes themselves
_LENGTH_BYTES = 4


class IdentifierIndex:
    """The identifiers of a file, and those that stand on differing rows, in 16 bytes a row.

    Identifiers and rows are kept as 64-bit hashes: two of a million identifiers agree by chance once in forty million
    files. Call `add` for every row, then `finish` once.
    """

    def __init__(self) -> None:
        self._keys = [array("q") for _ in range(_BUCKETS)]
        self._rows = [array("q") for _ in range(_BUCKETS)]
        self.differing: set[int] = set()

    def add(self, key: str, row_hash: int) -> None:
        hashed = hash(key)
        bucket = hashed % _BUCKETS
        self._keys[bucket].append(hashed)
        self._rows[bucket].append(row_hash)

    def finish(self, *, keep_keys: bool) -> None:
        """Find the identifiers on differing rows. `contains` needs `keep_keys`; else their memory is freed."""
        for number, keys in enumerate(self._keys):
            if len(set(keys)) != len(keys):
                pairs = sorted(zip(keys, self._rows[number], strict=True))
                self.differing.update(
                    key
                    for (key, row), (other, next_row) in pairwise(pairs)
                    if key == other and row != next_row
                )
            self._keys[number] = array("q", sorted(keys) if keep_keys else ())
            self._rows[number] = array("q")

    def is_contradictory(self, key: str) -> bool:
        """True if rows of this identifier differ. They can't all be meant, so none of them is applied."""
        return bool(self.differing) and hash(key) in self.differing

    def contains(self, key: str) -> bool:
        hashed = hash(key)
        keys = self._keys[hashed % _BUCKETS]
        position = bisect_left(keys, hashed)
        return position < len(keys) and keys[position] == hashed


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the first reading found. `mode` is the file's own, else the caller's; `unnamed` counts the rows without a
    readable identifier."""

    header: FileHeader
    rows: int
    mode: FileMode
    file_date: str
    identifiers: IdentifierIndex
    unnamed: int


def check_file(claim: FileClaim) -> CheckResult:
    """Read the whole file once, before anything of it is applied. Raises Unreadable, Stopped."""
    header, rows = _open_rows(claim.db, claim.file)
    identifiers = IdentifierIndex()
    count = unnamed = 0
    for row in rows:
        count += 1
        if count % CHECKPOINT_ROWS == 0:
            claim.checkpoint(FileStep.CHECK, count)
        if row.skipped:
            continue
        key = read_external_id(row.key)
        if key is None:
            unnamed += 1
        else:
            identifiers.add(key, hash(row.text) if isinstance(row, UnreadRow) else _hash_of(row))
    mode = header.mode or claim.file.mode
    identifiers.finish(keep_keys=mode is FileMode.FULL)
    _clear_equal(claim, identifiers)
    day = header.file_date or claim.file.created_at.date().isoformat()
    return CheckResult(header, count, mode, day, identifiers, unnamed)


def _clear_equal(claim: FileClaim, identifiers: IdentifierIndex) -> None:
    """Rows of one identifier that were written in different ways may say the same: read those. Raises Stopped."""
    if not identifiers.differing:
        return
    read = IdentifierIndex()
    for count, row in enumerate(_open_rows(claim.db, claim.file)[1]):
        if count % CHECKPOINT_ROWS == 0:
            claim.checkpoint(FileStep.CHECK, count)
        key = read_external_id(row.key)
        if key is not None and identifiers.is_contradictory(key):
            read.add(key, _hash_of(read_row(row)))
    read.finish(keep_keys=False)
    identifiers.differing &= read.differing


def _open_rows(db: Database, file: EligibilityFile) -> tuple[FileHeader, Iterator[Row | UnreadRow]]:
    """The stored file's header and rows, from its beginning. Raises Unreadable, here or from the rows."""
    content, mapping = StoredContent(db, file.id), parse_mapping(file.mapping or {})
    return open_unread(content, file.format, file.encoding or "utf-8", mapping)


def _hash_of(row: Row) -> int:
    """Equal for rows that say the same, whatever the order of their fields."""
    try:
        values = hash(frozenset(row.values.items()))
    except TypeError:  # metadata is an object
        values = hash(repr(sorted(row.values.items())))
    return hash((values, row.action, row.plan, row.faults != ()))


def parse_rows(
    db: Database, file: EligibilityFile, *, chunk_rows: int, today: str
) -> Iterator[list[ChunkRow]]:
    """The rows that are not applied yet, by the chunk. The file has been checked, so its mode and its date are known.

    A chunk has up to `chunk_rows` rows that are to be written, and known rows up to MOST_ROWS in all. `today` is `YYYY-MM-DD`.
    """
    plan_ids = {plan.external_id: plan.id for plan in db.ask(lambda tx: list_plans(tx, file.account_id))}
    header, rows = _open_rows(db, file)
    rows = islice(rows, file.rows_done, None)
    recogniser, cache = RowRecogniser(db, file, plan_ids, header.columns), ValueCache()
    most_rows = max(chunk_rows, MOST_ROWS)
    chunk: list[ChunkRow] = []
    to_write = 0
    while batch := [recogniser.see(row) for row in islice(rows, LOOKUP_ROWS)]:
        known = recogniser.known_digests(batch)
        for seen in batch:
            if seen.row.skipped:
                chunk.append(ChunkRow(seen.row.place, None, skipped=True))
            elif seen.digest in known:
                chunk.append(ChunkRow(seen.row.place, seen.external_id, known=True))
            else:
                chunk.append(_parse(seen, file, today, cache))
                to_write += 1
            if to_write == chunk_rows or len(chunk) == most_rows:
                yield chunk
                chunk, to_write = [], 0
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
    record.causes, record.subscriber_keys, record.is_weak_key = (
        row.causes,
        row.subscriber_keys,
        row.is_weak_key,
    )
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
    db: Database, file: EligibilityFile, *, chunk_rows: int, today: str
) -> Iterator[list[ChunkRow]]:
    """`parse_rows` in a child process. Raises Unavailable if the child ends early: the file goes on after the last chunk."""
    request = {"url": db.url, "file_id": file.id, "chunk_rows": chunk_rows, "today": today}
    command = [sys.executable, "-m", __name__]
    # A session of its own, so that Ctrl-C reaches this process only; no stderr, which could hold a value of a member.
    options: dict[str, Any] = {"stderr": subprocess.DEVNULL, "start_new_session": True}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, **options) as child:  # noqa: S603 - our own
        try:
            if child.stdin is None or child.stdout is None:
                raise Unavailable("The parsing process could not be started.")
            child.stdin.write(json.dumps(request).encode())
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
    of_new = (record.given_of_new, [*map(tuple, record.causes)], record.subscriber_keys, record.is_weak_key)
    submitted = (submission.plan_id, submission.action.value, submission.row_digest, given, of_new)
    return (row.place, row.external_id, row.warnings, submitted)


def _from_wire(
    file: EligibilityFile, place: int, key: str | None, notes: Any = None, submitted: Any = None
) -> ChunkRow:
    if notes is None:
        return ChunkRow(place, key, known=key is not None, skipped=key is None)
    if submitted is None:
        return ChunkRow(place, key, None, _faults(notes))
    plan_id, action, digest, given, (given_of_new, causes, *rest) = submitted
    values, invite, faults, warnings, ignored = given
    record = MemberRecord(
        key, values, invite, _faults(faults), warnings, ignored, given_of_new, _faults(causes), *rest
    )
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
    request = json.load(sys.stdin)
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
