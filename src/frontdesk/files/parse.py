"""Parses the rows of a file into submissions, by the rules and codes of a POST, here or in a process of its own.

The process lets this one decide and write meanwhile. It reads its ParseJob from standard input and answers with chunks on
standard output. After its parent was killed, a child ends at its next write.
"""

import contextlib
import json
import marshal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import IO, Any

from frontdesk.db import Database, open_database
from frontdesk.eligibility import ValueCache, parse_member
from frontdesk.eligibility.model import Action, MemberRecord, Submission
from frontdesk.errors import Fault, Unavailable
from frontdesk.files.check import open_rows
from frontdesk.files.codes import UNKNOWN_PLAN
from frontdesk.files.jobs import get_file
from frontdesk.files.model import ChunkRow, EligibilityFile, FileMode, Row
from frontdesk.files.pipeline import lower_priority
from frontdesk.plans import list_plans

_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class ParseJob:
    """The rows to skip, the rows of a chunk, and the date of today (`YYYY-MM-DD`)."""

    skip_rows: int
    chunk_rows: int
    today: str


def parse_rows(db: Database, file: EligibilityFile, job: ParseJob) -> Iterator[list[ChunkRow]]:
    """The file's rows by the chunk. The file has been checked, so its mode and its date are known."""
    plan_ids = {plan.external_id: plan.id for plan in db.ask(lambda tx: list_plans(tx, file.account_id))}
    rows = islice(open_rows(db, file)[1], job.skip_rows, None)
    cache = ValueCache()
    while chunk := [_parse(row, file, plan_ids, job.today, cache) for row in islice(rows, job.chunk_rows)]:
        yield chunk


def _parse(
    row: Row, file: EligibilityFile, plan_ids: dict[str, int], today: str, cache: ValueCache
) -> ChunkRow:
    values = row.values
    if row.action is Action.END and not values.get("expiry_date"):
        values = values | {"expiry_date": file.file_date}
    record = parse_member(values, today=today, lenient_email=True, cache=cache)
    faults = [*row.faults, *_own_faults(record)] if row.faults else []
    plan_id = file.plan_id if row.plan is None else plan_ids.get(row.plan)
    if plan_id is None:
        faults.append(UNKNOWN_PLAN)
    if faults or plan_id is None:
        return ChunkRow(row.place, record.external_id, None, faults)
    action = Action.COMPARE if file.mode is FileMode.COMPARE else row.action
    submission = Submission(file.account_id, plan_id, record, file.client, file.history_key, action)
    return ChunkRow(row.place, record.external_id, submission, (), row.warnings)


def _own_faults(record: MemberRecord) -> Iterator[Fault]:
    """The record's faults besides those of the reader, which explain a missing identifier."""
    return (fault for fault in record.faults if (fault.field, fault.code) != ("external_id", "required"))


def parse_in_process(db: Database, file: EligibilityFile, job: ParseJob) -> Iterator[list[ChunkRow]]:
    """`parse_rows` in a child process. Raises Unavailable if the child ends early: the file goes on after the last chunk."""
    request = {"url": db.url, "file_id": file.id, "job": asdict(job)}
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
                yield [_from_wire(file, row) for row in chunk]
        finally:
            child.kill()


def _read_chunk(stream: IO[bytes]) -> list[Any]:
    """The next chunk; an empty one after the last."""
    head = stream.read(_LENGTH_BYTES)
    length = int.from_bytes(head, "big")
    body = stream.read(length) if len(head) == _LENGTH_BYTES else b""
    if len(head) < _LENGTH_BYTES or len(body) < length:
        raise Unavailable("The parsing process ended early.")
    chunk: list[Any] = marshal.loads(body)  # noqa: S302 - written by our own child
    return chunk


def _write_chunk(stream: IO[bytes], chunk: list[ChunkRow]) -> None:
    body = marshal.dumps([_to_wire(row) for row in chunk])
    stream.write(len(body).to_bytes(_LENGTH_BYTES, "big") + body)


def _to_wire(row: ChunkRow) -> tuple[Any, ...]:
    submission = row.submission
    if submission is None:
        return (row.place, row.external_id, [*map(tuple, row.faults)], None)
    record = submission.record
    faults = [*map(tuple, record.faults)]
    given = (record.given, record.invite_immediately, faults, record.warnings, record.ignored)
    return (row.place, row.external_id, row.warnings, (submission.plan_id, submission.action.value, given))


def _from_wire(file: EligibilityFile, row: tuple[Any, ...]) -> ChunkRow:
    place, key, notes, submitted = row
    if submitted is None:
        return ChunkRow(place, key, None, [Fault(*fault) for fault in notes])
    plan_id, action, (given, invite, faults, warnings, ignored) = submitted
    record = MemberRecord(key, given, invite, tuple(Fault(*fault) for fault in faults), warnings, ignored)
    submission = Submission(file.account_id, plan_id, record, file.client, file.history_key, Action(action))
    return ChunkRow(place, key, submission, (), notes)


def main() -> None:
    """The child's work."""
    lower_priority()
    request = json.load(sys.stdin)
    db = open_database(request["url"], pool_size=1)
    file = db.ask(lambda tx: get_file(tx, request["file_id"], account_id=None))
    for chunk in parse_rows(db, file, ParseJob(**request["job"])):
        _write_chunk(sys.stdout.buffer, chunk)
    _write_chunk(sys.stdout.buffer, [])
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # the parent is gone
        main()
