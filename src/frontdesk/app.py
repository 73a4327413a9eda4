"""Puts the parts of the service together. An HTTP handler gets an App and finds everything on it."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from frontdesk import codes, usage
from frontdesk.access import caller_of
from frontdesk.access.callers import OneAtATime, RequestLimits, TokenCheck
from frontdesk.access.model import Caller
from frontdesk.clock import AccountDay, Clock, account_day, system_clock
from frontdesk.config import Config
from frontdesk.db import Database, Tx
from frontdesk.db.checks import WriteProbe
from frontdesk.db.engine import write_alone
from frontdesk.db.group_commit import Writers, overdue
from frontdesk.db.lookups import Lookups, PostgresqlLookups, Remembered, SharedReads, SqliteLookups
from frontdesk.db.shared_values import SharedValues
from frontdesk.deadlines import Deadlines
from frontdesk.eligibility.enrolments import Enrolments
from frontdesk.errors import Unavailable
from frontdesk.fair_share import FairShare
from frontdesk.metering import timed
from frontdesk.queues import QueueSnapshots
from frontdesk.queues.board import PlanDay, QueueBoard, QueueBoards
from frontdesk.queues.model import QueueSnapshot
from frontdesk.reach import Reach
from frontdesk.time_slices import SliceScheduler
from frontdesk.usage import request_costs
from frontdesk.usage.counter import SAVE_SECONDS
from frontdesk.users.live_sessions import LiveSessions
from frontdesk.users.model import Session

# Writers wait for each other and for locks, so readers have threads of their own.
READING_THREADS = WRITING_THREADS = 4
BULK_READING_THREADS = 2  # for lists: other readers don't wait for them
COMPUTING_THREADS = 2  # for long work without the database: neither readers nor writers wait for it
SIGN_IN_THREADS = 2

ANSWER_SECONDS = 10  # from a request's last byte to its answer
LOOK_UP_SECONDS = 4  # of a token
READY_SECONDS = 2  # the time limit of a probe
# Once the process is to stop: the longest wait of a request for its answer, and of a writer for a
# lock.
STOP_SECONDS = 2.0
LOCK_SECONDS_LEFT = 1.0

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
        self.metrics = CollectorRegistry()
        self.stored_metrics = CollectorRegistry()
        self.write_probe = WriteProbe(db)
        self.deadlines = Deadlines(ANSWER_SECONDS)
        self.slices = SliceScheduler()
        self.fair_share = FairShare()
        self._reading = ThreadPoolExecutor(READING_THREADS, thread_name_prefix="read")
        self._bulk_reading = ThreadPoolExecutor(BULK_READING_THREADS, thread_name_prefix="bulk")
        self._writing = Writers(WRITING_THREADS, self.deadlines)
        self._computing = ThreadPoolExecutor(COMPUTING_THREADS, thread_name_prefix="compute")
        self._probing = ThreadPoolExecutor(1, thread_name_prefix="probe")
        # A password takes 20 ms and 19 MiB: many at once must not hold up those who write.
        self._signing_in = ThreadPoolExecutor(SIGN_IN_THREADS, thread_name_prefix="sign-in")
        self.lookups: Lookups = (
            SqliteLookups(db, self._reading) if db.is_sqlite else PostgresqlLookups(db)
        )
        self.pages = Remembered()  # of plans, as they are rendered
        self.regions = Remembered()  # of such pages, as they are rendered
        self.shared_reads: SharedReads[Any] = SharedReads(self.deadlines)
        self._probes: SharedReads[Any] = SharedReads(Deadlines(READY_SECONDS))
        self._callers: SharedReads[Caller | None] = SharedReads(Deadlines(LOOK_UP_SECONDS))
        self.tokens = TokenCheck(self._find_caller, clock)
        self.live_sessions = LiveSessions(self.ask, clock)
        detail = (
            "Another whole report is on its way to this client. Read one at a time, or by the page."
        )
        self.open_reports = OneAtATime("report", codes.faults.REPORT_OPEN, detail)
        detail = "Another mapping is being suggested for this account. Send the file again when it is done."
        self.suggestions = OneAtATime("suggest_mapping", codes.faults.SUGGESTION_OPEN, detail)
        # hashes of the idempotency keys of requests under way
        self.keys_in_flight: set[str] = set()
        self.limits = RequestLimits(db, clock, default=config.requests_per_minute)
        self.queues = QueueSnapshots(clock, config.queue_ttl_seconds)
        self.shared_values = SharedValues(
            clock
        )  # of pages of the console that many viewers refresh
        self.boards = QueueBoards(clock, self.shared_values)
        self.usage = usage.counter_of(db.engine)
        self.request_costs = usage.RequestCostCounter(self._save_request_costs_soon)
        self.enrolments = Enrolments(db, config, clock, self.deadlines)

    def day_of(self, caller: Caller) -> AccountDay:
        """The day where the members of the caller's account live."""
        return account_day(self.clock(), caller.time_zone)

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """Run blocking work that may write beside the event loop. Raises Unavailable when it takes
        too long.
        """
        return await self._writing.run(work)

    async def read_in_thread(self, work: Callable[[], Result]) -> Result:
        """Run blocking work that only reads. Raises Unavailable when it takes too long."""
        return await self.in_time(
            asyncio.get_running_loop().run_in_executor(self._reading, timed(work))
        )

    async def sign_in_thread(self, work: Callable[[], Result]) -> Result:
        """Run a step of a sign-in, which may hash a password and write, in threads of its own.
        Raises Unavailable when it takes too long.
        """
        return await self.in_time(
            asyncio.get_running_loop().run_in_executor(self._signing_in, timed(work))
        )

    async def ask(self, question: Callable[[Tx], Result]) -> Result:
        """`question(tx)` in a reading transaction, in a thread. Raises Unavailable."""
        return await self.read_in_thread(lambda: self.db.ask(question))

    async def ask_much(self, question: Callable[[Tx], Result]) -> Result:
        """As `ask`, for a bulk request: in threads that only those use. Raises Unavailable."""
        return await self.read_much_in_thread(lambda: self.db.ask(question))

    async def read_much_in_thread(self, work: Callable[[], Result]) -> Result:
        """As `read_in_thread`, for a bulk request: in threads that only those use. Raises
        Unavailable.
        """
        return await self.in_time(
            asyncio.get_running_loop().run_in_executor(self._bulk_reading, timed(work))
        )

    async def write(self, work: Callable[[Tx], Result]) -> Result:
        """`work(tx)` in a transaction, in a thread, run again when it loses a race. Raises as
        `work` does, and Unavailable.
        """
        return await self.in_thread(lambda: write_alone(self.db, work))

    async def compute(self, work: Callable[[], Result], at_end: Callable[[], None]) -> Result:
        """Run work that needs no database in threads of its own. `at_end` is called once it has
        ended, or will never begin. Raises Unavailable when it takes too long. The work itself is
        not stopped, so it needs a limit of its own.
        """
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
        """Run blocking work in a thread of its own that all probes of this name share. Raises
        Unavailable after 2 s.
        """
        loop = asyncio.get_running_loop()
        answer: Result = await self._probes.get(
            name, lambda: loop.run_in_executor(self._probing, work)
        )
        return answer

    async def queue_snapshot(
        self, account_id: int, plan_ids: Collection[int]
    ) -> QueueSnapshot | None:
        """What `queues.read` answers, without a thread while the snapshot in memory is in time."""
        snapshot = self.queues.in_memory(account_id, plan_ids)
        if snapshot is not None:
            return snapshot
        return await self.read_in_thread(lambda: self.queues.read(self.db, account_id, plan_ids))

    async def live_session(self, secret: str) -> Session | None:
        """What `live_sessions.find` answers, without a wait while the session in memory is recent."""
        session = self.live_sessions.in_memory(secret)
        if session is not None:
            return session
        return await self.in_time(self.live_sessions.find(secret))

    async def queue_board(self, reach: Reach) -> QueueBoard:
        """What `boards.read` answers, without a thread while the board in memory is recent."""
        board = self.boards.in_memory(reach)
        if board is not None:
            return board
        return await self.read_in_thread(lambda: self.boards.read(self.db, reach))

    async def queue_day(self, reach: Reach, plan_id: int) -> PlanDay:
        """What `boards.read_day` answers, without a thread while the day in memory is recent."""
        day = self.boards.day_in_memory(reach, plan_id)
        if day is not None:
            return day
        return await self.read_in_thread(lambda: self.boards.read_day(self.db, reach, plan_id))

    def refuse_used_up_storage(self, account_id: int) -> None:
        """Raises StorageUsedUp if the account has used up a quota, by the totals of a few seconds
        ago. Each request that writes has called `refuse_used_up_trail` before.
        """
        if account_id in self.usage.used_up:
            self.usage.refuse_used_up(account_id, self.clock())

    def refuse_used_up_trail(self, account_id: int) -> None:
        """Raises StorageUsedUp if the account may add no audit entry any more, by the totals of a
        few seconds ago. Has the counts of this process stored when that is due.
        """
        if monotonic() >= self.usage.due_at:
            self._begin_to_save_usage()
        if account_id in self.usage.without_trail:
            self.usage.refuse_used_up_trail(account_id, self.clock())

    def _save_request_costs_soon(self) -> None:
        asyncio.get_running_loop().call_later(request_costs.SAVE_SECONDS, self._save_request_costs)

    def _save_request_costs(self) -> None:
        taken = self.request_costs.take()
        asyncio.get_running_loop().run_in_executor(
            None, request_costs.save, self.db, taken, self.clock()
        )

    def _begin_to_save_usage(self) -> None:
        self.usage.postpone()
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, self._save_usage)
        # What this request and those of the next seconds add, also if no other request comes.
        loop.call_later(SAVE_SECONDS + 1, loop.run_in_executor, None, self._save_rest_of_usage)

    def _save_usage(self) -> None:
        self.usage.save(self.db, self.clock())

    def _save_rest_of_usage(self) -> None:
        self.usage.save_rest(self.db, self.clock())

    async def in_time(self, work: Awaitable[Result]) -> Result:
        """Raises Unavailable when the work takes too long; it is then cut off."""
        try:
            with self.deadlines.timeout():
                return await work
        except TimeoutError:
            raise overdue(outcome_unknown=False) from None

    def shorten_waits(self) -> None:
        """The process is to stop: each request that waits for the database gets an answer within 2
        s.
        """
        self._is_stopping = True
        self.fair_share.stop()
        self.db.shorten_waits(LOCK_SECONDS_LEFT)
        self.deadlines.shorten(STOP_SECONDS)
        self.enrolments.shorten_waits(STOP_SECONDS)
        self.lookups.shorten_waits(STOP_SECONDS)

    async def close(self) -> None:
        """Finish the requests under way and close the database; after `shorten_waits`, drop work
        that has no caller left.
        """
        await self.enrolments.close()
        await asyncio.to_thread(self.usage.save_rest, self.db, self.clock())
        costs = self.request_costs.take()
        await asyncio.to_thread(request_costs.save, self.db, costs, self.clock())
        for executor in (
            self._reading,
            self._bulk_reading,
            self._writing,
            self._computing,
            self._probing,
            self._signing_in,
        ):
            executor.shutdown(wait=not self._is_stopping, cancel_futures=self._is_stopping)
        self.queues.close()
        self.lookups.close()
        self.db.close()

    async def _find_caller(self, token_hash: bytes) -> Caller | None:
        return await self._callers.get(token_hash, lambda: self.lookups.ask(caller_of(token_hash)))
