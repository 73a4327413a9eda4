"""The one place where the parts are put together; a door gets an App and finds everything on it."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from frontdesk.access.limits import RequestLimits
from frontdesk.access.tokens import Caller, TokenCheck, find_caller
from frontdesk.clock import Clock, system_clock
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.db.group_commit import GroupCommit
from frontdesk.db.races import Writable, write_together
from frontdesk.db.shared_reads import SharedReads
from frontdesk.db.wire import WireDatabase, evented
from frontdesk.eligibility import Enrolled, Submission, enrol
from frontdesk.queues import QueueSnapshots, queue_rules

THREADS = 4
POSTGRESQL_LANES = 2  # SQLite has one writer, so a second lane would only wait

Result = TypeVar("Result")


class App:
    """A running installation: its settings, its database, its clock, and what is kept in memory between requests."""

    def __init__(self, config: Config, db: Database, clock: Clock = system_clock) -> None:
        self.config = config
        self.db = db
        self.clock = clock
        self.registry = CollectorRegistry()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="work")
        self.shared_reads: SharedReads[Any] = SharedReads(self._threads)
        self._callers: SharedReads[Caller | None] = SharedReads(self._threads)
        self.tokens = TokenCheck(self._find_caller, clock)
        self.limits = RequestLimits(db, clock)
        self.queues = QueueSnapshots(clock, config.queue_ttl_seconds, queue_rules(config))
        self._wire_db = None if db.is_sqlite else WireDatabase(config.database_url)
        lanes = 1 if db.is_sqlite else POSTGRESQL_LANES
        self.enrolments: GroupCommit[Submission, Enrolled] = GroupCommit(self._enrol_together, lanes=lanes)

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """Run blocking work beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def close(self) -> None:
        """Finish what is under way and let go of the database."""
        await self.enrolments.close()
        self._threads.shutdown()
        self.queues.close()
        if self._wire_db is not None:
            self._wire_db.close()
        self.db.close()

    async def _enrol_together(self, submissions: Sequence[Submission]) -> list[Enrolled | Exception]:
        if self._wire_db is not None:
            return await evented(self._enrol, self._wire_db, submissions)
        return await self.in_thread(lambda: self._enrol(self.db, submissions))

    def _enrol(self, db: Writable, submissions: Sequence[Submission]) -> list[Enrolled | Exception]:
        """Enrol a chunk and commit it; one outcome, or the record's own error, per submission."""
        return write_together(
            db,
            submissions,
            lambda tx, chunk: enrol(tx, chunk, now=self.clock(), uniqueness=self.config.uniqueness),
        )

    async def _find_caller(self, token_hash: bytes) -> Caller | None:
        return await self._callers.get(
            token_hash, lambda: self.db.ask(lambda tx: find_caller(tx, token_hash))
        )
