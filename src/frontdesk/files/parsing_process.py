"""Parses the rows of a large file in a process of its own, which lets this one decide and write meanwhile.

The child reads what to parse from standard input and answers with chunks on standard output. After its parent was killed, it
ends at its next write.
"""

import contextlib
import gc
import marshal
import subprocess
import sys
from array import array
from collections.abc import Generator
from dataclasses import replace
from typing import IO, Any, Unpack

from frontdesk.db import Database, open_database
from frontdesk.eligibility.model import Action, MemberRecord, Submission
from frontdesk.eligibility.row_hints import NO_HINTS, FamilyMember, RowHints
from frontdesk.errors import Fault, Unavailable
from frontdesk.files.jobs import get_file
from frontdesk.files.model import ChunkItem, ChunkRow, EligibilityFile, RowOutcome
from frontdesk.files.rows import ParseOptions, parse_rows
from frontdesk.files.steps import ChildPipe, Steps, yielding
from frontdesk.files.threads import lower_priority

COLLECT_AFTER = 200_000  # rows make no cycles, and looking for some took a third of the time


def parse_in_process(
    db: Database, file: EligibilityFile, **options: Unpack[ParseOptions]
) -> Generator[list[ChunkItem], None, None]:
    """`parse_rows` in a child process. Raises Unavailable if the child ends early: the file goes on after the last chunk."""
    apart = array("Q", options["apart"]).tobytes()
    told = {**options, "apart": apart, "shared": [*options["shared"]]}
    request = (db.url, file.id, file.rows_done, told)
    command = [sys.executable, "-m", __name__]
    # A session of its own, so that Ctrl-C reaches this process only; no stderr, which could hold a value of a member.
    detached: dict[str, Any] = {"stderr": subprocess.DEVNULL, "start_new_session": True}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, **detached) as child:  # noqa: S603 - our own
        try:
            if child.stdin is None or child.stdout is None:
                raise Unavailable("The parsing process could not be started.")
            child.stdin.write(marshal.dumps(request))
            child.stdin.close()
            chunks = ChildPipe(child.stdout)
            while chunk := (yield from yielding([], _read_chunk(chunks))):
                yield [_from_wire(file, *row) for row in chunk]
        finally:
            child.kill()


def _read_chunk(pipe: ChildPipe) -> Steps[list[Any]]:
    """The next chunk; an empty one after the last."""
    body = yield from pipe.read_block()
    if body is None:
        raise Unavailable("The parsing process ended early.")
    chunk: list[Any] = marshal.loads(body)  # noqa: S302 - written by our own child
    return chunk


def _write_chunk(stream: IO[bytes], chunk: list[ChunkItem]) -> None:
    body = marshal.dumps([_to_wire(row) for row in chunk])
    stream.write(len(body).to_bytes(ChildPipe.LENGTH_BYTES, "big") + body)


def _to_wire(row: ChunkItem) -> tuple[Any, ...]:
    """A row with its outcome has four parts, a submitted one five, and one more if it says more than the values of its fields."""
    if isinstance(row, RowOutcome):
        return (row.place, row.external_id, row.outcome, (row.member_id, row.faults))
    submission = row.submission
    record = submission.record
    told = (row.place, row.external_id, submission.plan_id, submission.row_digest, record.given)
    says_more = record.faults or record.warnings or record.ignored or record.given_of_new or row.warnings
    if (
        record.hints is NO_HINTS
        and submission.action is Action.ENROL
        and not (says_more or record.invite_immediately)
    ):
        return told
    causes, *hints, family = record.hints or NO_HINTS
    more = (
        submission.action.value,
        row.warnings,
        record.invite_immediately,
        [*map(tuple, record.faults)],
        record.warnings,
        record.ignored,
        ([*map(tuple, causes)], *hints, family and tuple(family)),
        record.given_of_new,
    )
    return (*told, more)


def _from_wire(file: EligibilityFile, place: int, key: str | None, *parts: Any) -> ChunkItem:
    if len(parts) == 2:
        outcome, (member_id, faults) = parts
        return RowOutcome(place, key, outcome, member_id, faults)
    plan_id, digest, given, *more = parts
    record, action, notes = MemberRecord(key, given, False, (), (), (), NO_HINTS), Action.ENROL, ()
    if more:
        word, notes, invite, faults, warnings, ignored, hints, given_of_new = more[0]
        action = Action(word)
        record = MemberRecord(
            key, given, invite, _faults(faults), warnings, ignored, _hints(*hints), given_of_new
        )
    submission = Submission(
        file.account_id, plan_id, record, file.client, file.request_id, action, file.id, None, digest
    )
    return ChunkRow(place, key, submission, notes)


def _hints(causes: Any, *parts: Any) -> RowHints:
    hints = RowHints(_faults(causes), *parts)
    return hints._replace(family=hints.family and FamilyMember(*hints.family))


def _faults(told: Any) -> tuple[Fault, ...]:
    return tuple(Fault(*fault) for fault in told)


def _main() -> None:
    """The child's work."""
    lower_priority()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
    url, file_id, rows_done, options = marshal.load(sys.stdin.buffer)  # noqa: S302 - written by our own parent
    options["apart"] = array("Q", options["apart"])
    db = open_database(url, pool_size=1)
    file = db.ask(lambda tx: get_file(tx, file_id, account_id=None))
    for chunk in parse_rows(db, replace(file, rows_done=rows_done), **options):
        if chunk:
            _write_chunk(sys.stdout.buffer, chunk)
    _write_chunk(sys.stdout.buffer, [])
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # the parent is gone
        _main()
