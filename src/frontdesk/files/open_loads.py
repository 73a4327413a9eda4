"""What a worker has in memory of a load: the reading of the check, the parsing of the rows, the scratch database of a dry run.

It is kept while other accounts have their turn, so that the file goes on where it was and no row is read twice for it. Meanwhile
the file stays with its worker. A check or a dry run that can't be kept is not given back.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from frontdesk.db import Database
from frontdesk.eligibility import dry_run
from frontdesk.errors import Unavailable
from frontdesk.files import store
from frontdesk.files.check import FileCheck
from frontdesk.files.claims import FileClaim, RunOptions, TurnOver
from frontdesk.files.model import ChunkItem, EligibilityFile
from frontdesk.files.pace import ChunkPace

MOST_KEPT = 4  # each takes 16 bytes a row, and a parsing process

Chunks = Generator[Sequence[ChunkItem], None, None]


class OpenLoad:
    """The load of one file. `has_started` once the result of its check is stored; `scratch` is for a dry run only, `pace` for
    SQLite."""

    def __init__(self, db: Database, file: EligibilityFile, options: RunOptions) -> None:
        self._stack = ExitStack()
        self.check = FileCheck(db, file)
        self._stack.callback(self.check.close)
        rehearsal = dry_run(options.uniqueness, probe_limit=options.probe_limit) if file.dry_run else None
        self.scratch = None if rehearsal is None else self._stack.enter_context(rehearsal)
        self.has_started = False
        self.pace = ChunkPace() if db.is_sqlite else None
        self._chunks: Chunks | None = None
        self._rows_taken = 0

    def begin_rows(self, rows_done: int, parse: Callable[[], Chunks]) -> None:
        """Let `next_chunk` go on after so many rows. Calls `parse` unless the rows are open there already."""
        if self._chunks is None or self._rows_taken != rows_done:
            self._chunks, self._rows_taken = parse(), rows_done
            self._stack.callback(self._chunks.close)

    def next_chunk(self) -> Sequence[ChunkItem] | None:
        """None after the last one."""
        rows = None if self._chunks is None else next(self._chunks, None)
        self._rows_taken += sum(row.place is not None for row in rows or ())
        return rows

    def close(self) -> None:
        self._stack.close()


class OpenLoads:
    """The loads that wait for their account's next turn, up to `most` of them. One thread uses it."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: dict[int, tuple[int, OpenLoad]] = {}

    @property
    def epochs(self) -> dict[int, int]:
        """The epochs of the files with a kept load, by id."""
        return {file_id: epoch for file_id, (epoch, _) in self._kept.items()}

    @contextmanager
    def opened(self, claim: FileClaim) -> Iterator[OpenLoad]:
        """The load of the claimed file: a kept one, else a new one. It is kept when the block raises TurnOver."""
        file = claim.file
        epoch, load = self._kept.pop(file.id, (0, None))
        if load is None or epoch + 1 != file.epoch:
            load = OpenLoad(claim.db, file, claim.options)
        claim.is_kept = len(self._kept) < self._most
        with ExitStack() as closing:
            closing.callback(load.close)
            try:
                yield load
            except TurnOver:
                if claim.is_kept:
                    closing.pop_all()
                    self._kept[file.id] = (file.epoch, load)
                raise

    def drop_outdated(self, db: Database) -> None:
        """Let go of the loads that other workers have gone on with, and of files that have ended."""
        if self._kept:
            waiting = db.ask(lambda tx: store.waiting_epochs(tx, self._kept))
            for file_id in [each for each in self._kept if waiting.get(each) != self._kept[each][0]]:
                self._kept.pop(file_id)[1].close()

    def close(self, db: Database) -> None:
        """Let go of all, so that other workers go on with the files at once."""
        epochs = self.epochs
        while self._kept:
            self._kept.popitem()[1][1].close()
        if epochs:
            with suppress(Unavailable), db.write() as tx:
                store.keep(tx, epochs, until=None)
