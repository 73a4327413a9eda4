"""Writes the chunks of a file: members, the outcomes of the rows and the file's position, in ONE transaction per chunk.

A kill before the commit leaves nothing of the chunk, a kill after it everything: no row is applied twice, and the report
is complete. On PostgreSQL two chunks are written at once and committed in order; rows are read ahead of their use.
"""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Final, TypeVar

from frontdesk.db.races import WriteInOne
from frontdesk.eligibility import enrol
from frontdesk.eligibility.dry_run import DryRun
from frontdesk.eligibility.fields import UNIQUE
from frontdesk.eligibility.model import Action, Enrolled, Outcome, Submission
from frontdesk.errors import Fault, Invalid, NotFound, Unavailable
from frontdesk.files.claims import FileClaim
from frontdesk.files.model import NO_PLAN, NOT_NOW, NOT_STORED, WARNED_FIELDS, ChunkRow, RowOutcome

Item = TypeVar("Item")
NICENESS = 10
PATIENCE_SECONDS = 0.3  # less than a POST waits for a lock, so that the POST is not the one that gives up
_END: Final = None


def lower_priority() -> None:
    """Let the threads that answer requests run before this thread; only Linux can."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def prefetch(items: Iterator[Item], *, depth: int = 2) -> Iterator[Item]:
    """The items in order; a thread takes up to `depth` of them ahead of their use. Raises what `items` raises."""
    with ThreadPoolExecutor(1, thread_name_prefix="prefetch") as pool:
        pending = deque(pool.submit(next, items, _END) for _ in range(depth))
        try:
            while (item := pending.popleft().result()) is not _END:
                pending.append(pool.submit(next, items, _END))
                yield item
        finally:
            pool.shutdown(cancel_futures=True)


class OutOfTurn(Exception):
    """The chunk before is not committed yet, perhaps because it waits for a lock of this one: roll back, `wait`, begin anew."""


class _EarlierFailed(Exception):
    """An earlier chunk failed, so this one must not be committed."""


class CommitTurn:
    """The place of a chunk in the order of commits."""

    def __init__(self, before: "Future[None] | None" = None) -> None:
        self._before = before

    def take(self) -> None:
        """Return once the chunk before is committed. Raises OutOfTurn after PATIENCE_SECONDS."""
        if self._before is not None:
            if wait([self._before], PATIENCE_SECONDS).not_done:
                raise OutOfTurn
            if self._before.exception() is not None:
                raise _EarlierFailed
            self._before = None

    def wait(self) -> None:
        """Wait, holding no lock, until the chunk before has ended. Its statements have timeouts, so it does end."""
        if self._before is not None:
            wait([self._before])


def ordered_commit(
    items: Iterable[Item],
    write: Callable[[Item, CommitTurn], None],
    *,
    keys_of: Callable[[Item], set[str]],
    threads: int,
) -> None:
    """Call `write(item, turn)` for each item, in up to `threads` threads; `write` calls `turn.take()` before it commits.

    Items that share a key are written one after the other, so that the later one sees what the earlier one did. Raises the
    first error of a write, else that of `items`, once every write that has begun has ended.
    """
    if threads == 1:
        for item in items:
            write(item, CommitTurn())
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="commit", initializer=lower_priority) as pool:
        begun: deque[tuple[Future[None], set[str]]] = deque()
        try:
            for item in items:
                keys = keys_of(item)
                turn = CommitTurn(begun[-1][0] if begun else None)
                if any(not keys.isdisjoint(others) for _, others in begun):
                    turn.wait()
                begun.append((pool.submit(write, item, turn), keys))
                if len(begun) > threads:  # one more is read, and waits for a thread
                    begun[0][0].result()
                    begun.popleft()
        finally:
            for future, _ in begun:
                future.result()  # an error of a write goes before that of the items


def keys_of(rows: Sequence[ChunkRow]) -> set[str]:
    """Every value by which the rows can find a member. Chunks without a common one do not affect one another."""
    records = [row.submission.record for row in rows if row.submission is not None]
    keys = {
        key
        for column in UNIQUE.values()
        for record in records
        if (key := record.given.get(column)) is not None
    }
    return keys.union(*(record.subscriber_keys for record in records))


class ChunkWriter:
    """Writes the chunks of one file. With a DryRun no member is written, only the outcomes are."""

    def __init__(self, claim: FileClaim, dry_run: DryRun | None) -> None:
        self._claim = claim
        uniqueness = claim.options.uniqueness
        self._enrol = dry_run.enrol if dry_run else partial(enrol, uniqueness=uniqueness, audited=False)

    def write(self, rows: Sequence[ChunkRow], turn: CommitTurn) -> None:
        """Write the rows, move the file's position, and commit when it is the chunk's turn.

        Raises LostClaim, Unavailable; then nothing is written.
        """
        try:
            self._write(rows, turn)
        except OutOfTurn:
            turn.wait()
            self._write(rows, turn)
        self._claim.refresh()

    def _write(self, rows: Sequence[ChunkRow], turn: CommitTurn) -> None:
        claim = self._claim
        submissions = [row.submission for row in rows if row.submission is not None]
        for attempt in WriteInOne[Submission, Enrolled](claim.db, submissions):
            with attempt:
                for part in attempt.parts():
                    with part:
                        part.results = self._enrol(part.tx, part.items, now=claim.clock())
                results = iter(attempt.results)
                day = claim.file.file_date or ""
                outcomes = [
                    _outcome_unwritten(row)
                    if row.submission is None
                    else _outcome(row, row.submission, next(results), day)
                    for row in rows
                ]
                turn.take()
                rows_done = sum(row.place is not None for row in rows)
                claim.save_chunk(attempt.tx, outcomes, rows_done=rows_done)


def _outcome_unwritten(row: ChunkRow) -> RowOutcome:
    if row.known:
        return RowOutcome.unchanged(row.place, row.external_id)
    return RowOutcome.refused(row.place, row.external_id, row.faults)


def _outcome(
    row: ChunkRow, submission: Submission, result: Enrolled | Exception, file_date: str
) -> RowOutcome:
    if not isinstance(result, Enrolled):
        return RowOutcome.refused(row.place, row.external_id, faults_of(result))
    codes = (*row.warnings, *result.warnings)
    if row.place is None and result.outcome is Outcome.UNCHANGED:
        codes = ()  # a newer change kept the member from being ended, so the warning did not come true
    warnings = [(WARNED_FIELDS.get(code, "external_id"), code) for code in codes]
    values = result.stored.values
    if submission.action is Action.COMPARE:
        warnings += [(name, "differs") for name in result.changes]
    elif (
        "expiry_date" not in submission.record.given
        and values["expiry_date"] is not None
        and values["expiry_date"] <= max(file_date, values["effective_date"])
    ):
        # Else it would not be seen that a member that came back to a full file still has no access.
        warnings.append(("expiry_date", "still_ended"))
    member_id = 0 if result.outcome is Outcome.UNCHANGED else int(values["id"] or 0)
    return RowOutcome(row.place, row.external_id, result.outcome.value, member_id, (), warnings)


def faults_of(error: Exception) -> Sequence[Fault]:
    """The faults of a row that could not be written."""
    if isinstance(error, Invalid):
        return error.faults
    if isinstance(error, NotFound):
        return [NO_PLAN]
    # The database would not take the row even alone.
    return [NOT_NOW if isinstance(error, Unavailable) else NOT_STORED]
