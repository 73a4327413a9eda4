"""Reading and parsing a large file in a process of its own, while this one decides and writes; it decides nothing.

The child is told on its standard input what to read, and answers with lines on its standard output. A child whose parent
was killed ends at its next write.
"""

import contextlib
import json
import marshal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import IO, Any

from frontdesk.db import Database, open_database
from frontdesk.eligibility.model import Action, MemberRecord, Submission
from frontdesk.errors import Fault, Unavailable
from frontdesk.files.jobs import get_file
from frontdesk.files.model import ChunkRow, EligibilityFile
from frontdesk.files.parse import ReadPosition, read_lines
from frontdesk.files.pipeline import give_way

_LENGTH_BYTES = 4


def read_lines_apart(db: Database, file: EligibilityFile, reading: ReadPosition) -> Iterator[list[ChunkRow]]:
    """What `read_lines` gives. Raises Unavailable when the child ends early: the file goes on after the last chunk."""
    asked = {"url": db.url, "file_id": file.id, "reading": asdict(reading)}
    command = [sys.executable, "-m", __name__]
    # A session of its own, so that Ctrl-C is this process's to settle; no stderr, where a value of a member could stand.
    options: dict[str, Any] = {"stderr": subprocess.DEVNULL, "start_new_session": True}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, **options) as child:  # noqa: S603 - our own
        try:
            if child.stdin is None or child.stdout is None:
                raise Unavailable("The reading process could not be started.")
            child.stdin.write(json.dumps(asked).encode())
            child.stdin.close()
            while (frame := _read_frame(child.stdout)) is not None:
                yield [_line(file, item) for item in frame]
        finally:
            child.kill()


def _read_frame(stream: IO[bytes]) -> list[Any] | None:
    """The next chunk; None after the last one."""
    head = stream.read(_LENGTH_BYTES)
    length = int.from_bytes(head, "big")
    body = stream.read(length) if len(head) == _LENGTH_BYTES else b""
    if len(head) < _LENGTH_BYTES or len(body) < length:
        raise Unavailable("The reading process ended early.")
    found: list[Any] | None = marshal.loads(body) if length else None  # noqa: S302 - written by our own child
    return found


def _line(file: EligibilityFile, item: tuple[Any, ...]) -> ChunkRow:
    place, key, faults, warnings, submitted = item
    if submitted is None:
        return ChunkRow(place, key, None, [Fault(*fault) for fault in faults], warnings)
    plan_id, deed, given, invite, record_faults, record_warnings, ignored = submitted
    record = MemberRecord(
        key, given, invite, tuple(Fault(*fault) for fault in record_faults), record_warnings, ignored
    )
    submission = Submission(file.account_id, plan_id, record, file.client, file.history_key, Action(deed))
    return ChunkRow(place, key, submission, (), warnings)


def _item(line: ChunkRow) -> tuple[Any, ...]:
    faults = [tuple(fault) for fault in line.faults]
    submission = line.submission
    if submission is None:
        return (line.place, line.external_id, faults, tuple(line.warnings), None)
    record = submission.record
    told = [tuple(fault) for fault in record.faults]
    submitted = (
        submission.plan_id,
        submission.action.value,
        record.given,
        record.invite_immediately,
        told,
        record.warnings,
        record.ignored,
    )
    return (line.place, line.external_id, faults, tuple(line.warnings), submitted)


def main() -> None:
    """What the child does."""
    give_way()
    asked = json.load(sys.stdin)
    db = open_database(asked["url"], pool_size=1)
    file = db.ask(lambda tx: get_file(tx, asked["file_id"], account_id=None))
    for lines in read_lines(db, file, ReadPosition(**asked["reading"])):
        body = marshal.dumps([_item(line) for line in lines])
        sys.stdout.buffer.write(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
    sys.stdout.buffer.write((0).to_bytes(_LENGTH_BYTES, "big"))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # whoever asked is gone
        main()
