"""Puts the parts of the service together. An HTTP handler gets an App and finds everything on it."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from frontdesk.access import caller_of
from frontdesk.access.callers import OneAtATime, RequestLimits, TokenCheck
from frontdesk.access.model import Caller
from frontdesk.clock import Clock, system_clock
from frontdesk.config import Config
from frontdesk.db import Database, Tx
from frontdesk.db.checks import WriteProbe
from frontdesk.db.engine import write_alone
from frontdesk.db.group_commit import Writers, overdue
from frontdesk.db.lookups import Lookups, PostgresqlLookups, Remembered, SharedReads, SqliteLookups
from frontdesk.deadlines import Deadlines
from frontdesk.eligibility.enrol import Enrolments
from frontdesk.errors import Unavailable
from frontdesk.queues import QueueSnapshots
from frontdesk.queues.model import QueueSnapshot

# Writers wait for each other and for locks, so readers have threads of their own.
READING_THREADS = WRITING_THREADS = 4
COMPUTING_THREADS = 2  # for long work without the database: neither readers nor writers wait for it

ANSWER_SECONDS = 10  # from a request's last byte to its answer
LOOK_UP_SECONDS = 4  # of a token
READY_SECONDS = 2  # the time limit of a probe
# Once the process is to stop: the longest wait of a request for its answer, and of a writer for a lock.
STOP_SECONDS, LOCK_SECONDS_LEFT = 2.0, 1.0

Result = TypeVar("Result")


class App:
    """A running installation: settings, database, clock, and the state in memory between requests."""

    def __init__(self, config: Config, db: Database, clock: Clock = system_clock) -> None:
        self.config = config
        self.db = db
        self.clock = clock
        self.is_draining = False  # the process is to end: callers are sent elsewhere
        self._is_stopping = False
        # In memory, and read from the database.
        self.metrics, self.stored_metrics = CollectorRegistry(), CollectorRegistry()
        self.write_probe = WriteProbe(db)
        self.deadlines = Deadlines(ANSWER_SECONDS)
        self._reading = ThreadPoolExecutor(READING_THREADS, thread_name_prefix="read")
        self._writing = Writers(WRITING_THREADS, self.deadlines)
        self._computing = ThreadPoolExecutor(COMPUTING_THREADS, thread_name_prefix="compute")
        self._probing = ThreadPoolExecutor(1, thread_name_prefix="probe")
        self.lookups: Lookups = SqliteLookups(db, self._reading) if db.is_sqlite else PostgresqlLookups(db)
        self.pages = Remembered()  # of plans, as they are rendered
        self.shared_reads: SharedReads[Any] = SharedReads(self.deadlines)
        self._probes: SharedReads[Any] = SharedReads(Deadlines(READY_SECONDS))
        self._callers: SharedReads[Caller | None] = SharedReads(Deadlines(LOOK_UP_SECONDS))
        self.tokens = TokenCheck(self._find_caller, clock)
        detail = "Another whole report is on its way to this client. Read one at a time, or by the page."
        self.open_reports = OneAtATime("report", "report_open", detail)
        detail = "Another mapping is being suggested for this account. Send the file again when it is done."
        self.suggestions = OneAtATime("suggest_mapping", "suggestion_open", detail)
        self.keys_in_flight: set[str] = set()  # hashes of the idempotency keys of requests under way
        self.limits = RequestLimits(db, clock, default=config.requests_per_minute)
        self.queues = QueueSnapshots(clock, config.queue_ttl_seconds)
        self.enrolments = Enrolments(db, config, clock, self.deadlines)

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """Run blocking work that may write beside the event loop. Raises Unavailable when it takes too long."""
        return await self._writing.run(work)

    async def read_in_thread(self, work: Callable[[], Result]) -> Result:
        """Run blocking work that only reads. Raises Unavailable when it takes too long."""
        return await self.in_time(asyncio.get_running_loop().run_in_executor(self._reading, work))

    async def ask(self, question: Callable[[Tx], Result]) -> Result:
        """`question(tx)` in a reading transaction, in a thread. Raises Unavailable."""
        return await self.read_in_thread(lambda: self.db.ask(question))

    async def write(self, work: Callable[[Tx], Result]) -> Result:
        """`work(tx)` in a transaction, in a thread, run again when it loses a race. Raises as `work` does, and Unavailable."""
        return await self.in_thread(lambda: write_alone(self.db, work))

    async def compute(self, work: Callable[[], Result], at_end: Callable[[], None]) -> Result:
        """Run work that needs no database in threads of its own. `at_end` is called once it has ended, or will never begin.
        Raises Unavailable when it takes too long. The work itself is not stopped, so it needs a limit of its own."""
        future = self._computing.submit(work)
        future.add_done_callback(lambda _: at_end())
        try:
            with self.deadlines.timeout():
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise Unavailable(
                "Mappings are being suggested for too many other files. Send the file again."
            ) from None

    async def probe(self, name: str, work: Callable[[], Result]) -> Result:
        """Run blocking work in a thread of its own that all probes of this name share. Raises Unavailable after 2 s."""
        loop = asyncio.get_running_loop()
        answer: Result = await self._probes.get(name, lambda: loop.run_in_executor(self._probing, work))
        return answer

    async def queue_snapshot(self, account_id: int, plan_ids: Collection[int]) -> QueueSnapshot | None:
        """What `queues.read` answers, without a thread while the snapshot in memory is in time."""
        snapshot = self.queues.in_memory(account_id, plan_ids)
        if snapshot is not None:
            return snapshot
        return await self.read_in_thread(lambda: self.queues.read(self.db, account_id, plan_ids))

    async def in_time(self, work: Awaitable[Result]) -> Result:
        """Raises Unavailable when the work takes too long; it is then cut off."""
        try:
            with self.deadlines.timeout():
                return await work
        except TimeoutError:
            raise overdue(outcome_unknown=False) from None

    def shorten_waits(self) -> None:
        """The process is to stop: each request that waits for the database gets an answer within 2 s."""
        self._is_stopping = True
        self.db.shorten_waits(LOCK_SECONDS_LEFT)
        self.deadlines.shorten(STOP_SECONDS)
        self.enrolments.shorten_waits(STOP_SECONDS)
        self.lookups.shorten_waits(STOP_SECONDS)

    async def close(self) -> None:
        """Finish the requests under way and close the database; after `shorten_waits`, drop work that has no
        caller left."""
        await self.enrolments.close()
        for executor in (self._reading, self._writing, self._computing, self._probing):
            executor.shutdown(wait=not self._is_stopping, cancel_futures=self._is_stopping)
        self.queues.close()
        self.lookups.close()
        self.db.close()

    async def _find_caller(self, token_hash: bytes) -> Caller | None:
        return await self._callers.get(token_hash, lambda: self.lookups.ask(caller_of(token_hash)))
