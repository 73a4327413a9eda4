"""A file's rows into chunks of submissions, applied in the file's order from where the last worker stopped.

It knows neither formats (`readers`) nor the rules of a record (`eligibility`), and no door.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from frontdesk.config import Uniqueness
from frontdesk.db import Tx
from frontdesk.eligibility import enrol
from frontdesk.eligibility.model import Enrolled, Submission
from frontdesk.errors import FrontdeskError
from frontdesk.files import absence, store
from frontdesk.files.ahead import ahead
from frontdesk.files.check import CheckResult, check
from frontdesk.files.chunks import Write, keys_of, write_chunk
from frontdesk.files.claims import FileClaim
from frontdesk.files.model import ChunkRow, FileMode, FileStep
from frontdesk.files.parse import ReadPosition, read_lines, refuse_differing
from frontdesk.files.parse_process import read_lines_apart
from frontdesk.files.pipeline import CommitTurn, write_in_turn
from frontdesk.files.rehearsal import rehearsing

# SQLite has one writer, so a chunk is short for the sake of those who wait.
SQLITE_ROWS, POSTGRESQL_ROWS = 250, 2000
LANES = 2  # on PostgreSQL
APART_FROM_ROWS = 30_000  # a process takes a second to start

# Between two chunks, whoever waits for SQLite's one writer looks at least twice.
GIVE_WAY_SECONDS = 0.005


class Stopped(Exception):
    """The worker was told to stop; another goes on after the last committed chunk."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What goes along with a piece of work: the installation's rule, whether to stop, and who watches.

    `watch(step, done, total)` counts rows; `total` is None while it is not known. `chunk_rows` None: what suits the
    database. So many rows as `apart_from_rows` are read by a process of their own.
    """

    uniqueness: Uniqueness
    stop: Callable[[], bool] = lambda: False
    watch: Callable[[str, int, int | None], None] = lambda _step, _done, _total: None
    chunk_rows: int | None = None
    apart_from_rows: int = APART_FROM_ROWS

    def breathe(self, claim: FileClaim, step: str, done: int) -> None:
        """Between two pieces. Raises Stopped."""
        if claim.db.is_sqlite:
            time.sleep(GIVE_WAY_SECONDS)
        self.watch(step, done, claim.file.rows_total)
        if self.stop():
            raise Stopped


def run_load(claim: FileClaim, turn: RunOptions) -> None:
    """Check, apply, and, for a full file, end. Raises Unreadable, Stopped, LostClaim, Unavailable."""
    checked = check(claim, lambda rows: turn.breathe(claim, FileStep.CHECK, rows))
    _begin(claim, checked)
    with _writer(claim, turn) as write:
        if claim.file.step == FileStep.APPLY:
            _apply(claim, checked, turn, write)
            claim.update(step=FileStep.END.value)
        if checked.mode is FileMode.FULL:
            absence.end_missing(claim, checked, write, lambda done: turn.breathe(claim, FileStep.END, done))


def _begin(claim: FileClaim, checked: CheckResult) -> None:
    """Write down what the first reading found. A dry run starts anew each time: what it rehearsed is not stored."""
    file = claim.file
    now = claim.clock()
    with claim.db.write() as tx:
        if file.dry_run:
            store.delete_outcomes(tx, file.id)
            claim.save(tx, step=FileStep.CHECK.value, chunks_done=0, rows_done=0, counts={})
        if file.step == FileStep.CHECK or file.dry_run:
            claim.save(
                tx,
                step=FileStep.APPLY.value,
                format=checked.head.format.value,
                mode=checked.mode.value,
                file_date=checked.file_date,
                ignored=list(checked.head.ignored),
                rows_total=checked.rows,
                members_before=absence.members_before(tx, file, checked),
                started_at=file.started_at or now,
            )
    claim.refresh()


def _writer(claim: FileClaim, turn: RunOptions) -> AbstractContextManager[Write]:
    if claim.file.dry_run:
        return rehearsing(claim.clock, turn.uniqueness)

    def write(tx: Tx, submissions: Sequence[Submission]) -> Sequence[Enrolled | FrontdeskError]:
        return enrol(tx, submissions, now=claim.clock(), uniqueness=turn.uniqueness, audited=False)

    return nullcontext(write)


def _apply(claim: FileClaim, checked: CheckResult, turn: RunOptions, write: Write) -> None:
    def apply(lines: list[ChunkRow], place: CommitTurn) -> None:
        refuse_differing(lines, checked.repeats)
        write_chunk(claim, lines, write, rows=len(lines), place=place)

    alone = claim.db.is_sqlite or claim.file.dry_run
    write_in_turn(_breathing(claim, turn), apply, keys_of=keys_of, lanes=1 if alone else LANES)
    turn.breathe(claim, FileStep.APPLY, claim.file.rows_done)


def _breathing(claim: FileClaim, turn: RunOptions) -> Iterator[list[ChunkRow]]:
    for lines in _lines(claim, turn):
        turn.breathe(claim, FileStep.APPLY, claim.file.rows_done)
        yield lines


def _lines(claim: FileClaim, turn: RunOptions) -> Iterator[list[ChunkRow]]:
    """The rows that are not applied yet, read ahead while the database writes."""
    file, db = claim.file, claim.db
    size = turn.chunk_rows or (SQLITE_ROWS if db.is_sqlite else POSTGRESQL_ROWS)
    reading = ReadPosition(file.rows_done, size, claim.clock().date().isoformat())
    if (file.rows_total or 0) - file.rows_done >= turn.apart_from_rows:
        return read_lines_apart(db, file, reading)
    lines = read_lines(db, file, reading)
    # SQLite lets go of the interpreter at every row, and would wait for the reading thread each time.
    return lines if db.is_sqlite else ahead(lines)
