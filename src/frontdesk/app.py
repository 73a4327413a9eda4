"""The one place where the parts are put together; a door gets an App and finds everything on it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from frontdesk.access.model import Caller
from frontdesk.access.request_limits import RequestLimits
from frontdesk.access.tokens import TokenCheck, find_caller
from frontdesk.clock import Clock, system_clock
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.db.group_commit import GroupCommit, overdue
from frontdesk.db.races import Writable, write_together
from frontdesk.db.shared_reads import SharedReads
from frontdesk.db.wire import WireDatabase, evented
from frontdesk.db.writers import Writers
from frontdesk.deadlines import Deadlines
from frontdesk.eligibility import enrol
from frontdesk.eligibility.model import Enrolled, Submission
from frontdesk.queues import QueueSnapshots, queue_rules

# Writers wait for each other, and for locks; whoever only reads must not stand in line behind them.
READING_THREADS = WRITING_THREADS = 4

ANSWER_SECONDS = 10  # from a request's last byte to its answer
LOOK_UP_SECONDS = 4  # of a token
READY_SECONDS = 2  # what a probe waits
# Once the process is to stop: from the request to its answer, and a writer's wait for a lock.
HURRY_SECONDS, LOCK_SECONDS_LEFT = 2.0, 1.0

POSTGRESQL_LANES = 2  # SQLite has one writer, so a second lane would only wait

Result = TypeVar("Result")


class App:
    """A running installation: its settings, its database, its clock, and what is kept in memory between requests."""

    def __init__(self, config: Config, db: Database, clock: Clock = system_clock) -> None:
        self.config = config
        self.db = db
        self.clock = clock
        self._is_hurried = False
        self.registry = CollectorRegistry()
        self.deadlines = Deadlines(ANSWER_SECONDS)
        self._reading = ThreadPoolExecutor(READING_THREADS, thread_name_prefix="read")
        self._writing = Writers(WRITING_THREADS, self.deadlines)
        self._enrolling = ThreadPoolExecutor(1, thread_name_prefix="enrol")
        self._probing = ThreadPoolExecutor(1, thread_name_prefix="probe")
        self.shared_reads: SharedReads[Any] = SharedReads(self._reading, self.deadlines)
        self.probes: SharedReads[Any] = SharedReads(self._probing, Deadlines(READY_SECONDS))
        self._callers: SharedReads[Caller | None] = SharedReads(self._reading, Deadlines(LOOK_UP_SECONDS))
        self.tokens = TokenCheck(self._find_caller, clock)
        self.limits = RequestLimits(db, clock)
        self.queues = QueueSnapshots(clock, config.queue_ttl_seconds, queue_rules(config))
        self._wire_db = None if db.is_sqlite else WireDatabase(config.database_url)
        lanes = 1 if db.is_sqlite else POSTGRESQL_LANES
        self.enrolments: GroupCommit[Submission, Enrolled] = GroupCommit(
            self._enrol_together, deadlines=self.deadlines, lanes=lanes
        )

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """Run blocking work that may write beside the event loop. Raises Unavailable when it takes too long."""
        return await self._writing.run(work)

    async def read_in_thread(self, work: Callable[[], Result]) -> Result:
        """Run blocking work that only reads. Raises Unavailable when it takes too long."""
        return await self.in_time(asyncio.get_running_loop().run_in_executor(self._reading, work))

    async def in_time(self, work: Awaitable[Result]) -> Result:
        """Raises Unavailable when the work takes too long; it is then cut off."""
        try:
            return await self.deadlines.within(work)
        except TimeoutError:
            raise overdue(outcome_unknown=False) from None

    def hurry(self) -> None:
        """The process is to stop: what waits for the database gets its answer, whatever that is, within 2 s."""
        self._is_hurried = True
        self.db.hurry(LOCK_SECONDS_LEFT)
        self.deadlines.hurry(HURRY_SECONDS)

    async def close(self) -> None:
        """Finish what is under way and let go of the database; in a hurry, leave what nobody waits for any more."""
        await self.enrolments.close()
        for executor in (self._reading, self._writing, self._enrolling, self._probing):
            executor.shutdown(wait=not self._is_hurried, cancel_futures=self._is_hurried)
        self.queues.close()
        if self._wire_db is not None:
            self._wire_db.close()
        self.db.close()

    async def _enrol_together(self, submissions: Sequence[Submission]) -> list[Enrolled | Exception]:
        if self._wire_db is not None:
            return await evented(self._enrol, self._wire_db, submissions)
        enrol_chunk = partial(self._enrol, self.db, submissions)
        return await asyncio.get_running_loop().run_in_executor(self._enrolling, enrol_chunk)

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
