"""One SELECT inside the event loop: the same answers as in a transaction, and what happens when the
database is in trouble. One query for many identical reads: no caller sees a state from before it
asked.
"""

import asyncio
import gc
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from functools import partial
from typing import Any

import psycopg
import pysqlite3
import pytest

from frontdesk import plans
from frontdesk.access import caller_of
from frontdesk.access.callers import digest
from frontdesk.db import Database, lookups
from frontdesk.db.lookups import Lookups, PostgresqlLookups, SharedReads, SqliteLookups
from frontdesk.deadlines import Deadlines
from frontdesk.errors import NotFound, Unavailable
from frontdesk.plans.model import Plan
from tests.factories import Customer
from tests.patience import in_event_loop

POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


OURS = (
    "FROM pg_stat_activity WHERE application_name = 'frontdesk' AND datname = current_database() "
    "AND usename = current_user"
)


class Threads(ThreadPoolExecutor):
    """One thread; `used` counts what it was given."""

    used = 0

    def submit(self, *work: Any, **options: Any) -> Any:
        self.used += 1
        return super().submit(*work, **options)


@asynccontextmanager
async def opened(db: Database) -> AsyncIterator[tuple[Lookups, Threads]]:
    with Threads(1) as threads:
        lookups = SqliteLookups(db, threads) if db.is_sqlite else PostgresqlLookups(db)
        with closing(lookups):
            yield lookups, threads


def first_plan(customer: Customer) -> Any:
    return plans.find_plan(customer.account_id, customer.plan_ids[0])


@in_event_loop
async def test_an_answer_is_what_a_transaction_reads(db: Database, customer: Customer) -> None:
    find_plans = partial(
        plans.find_plans, customer.account_id, external_id=None, after_id=0, limit=None
    )
    asked: list[Any] = [
        first_plan(customer),
        find_plans(),
        find_plans(after_id=customer.plan_ids[0], limit=1),
        find_plans(external_id="it's", limit=9),
        caller_of(digest(customer.token)),
        caller_of(digest("unknown")),
    ]
    async with opened(db) as (lookups, _):
        answers = []
        for lookup in asked * 2:
            with pytest.raises(NotFound):  # after which the connection goes on
                await lookups.ask(plans.find_plan(customer.account_id, 10**17))
            answers.append(await lookups.ask(lookup))
        assert answers == [db.ask(lookup.read) for lookup in asked] * 2
        assert (type(answers[0]), type(answers[0].accepting_patients)) == (Plan, bool)
        assert answers[4].client_id == customer.client_id
        # What follows from rows is made again when they change.
        with db.write() as tx:
            tx.exec_driver_sql("UPDATE plans SET name = 'Changed'")
        assert await lookups.ask(first_plan(customer)) == replace(answers[0], name="Changed")


def test_as_much_is_remembered_as_there_is_room_for() -> None:
    made: list[int] = []
    remembered = lookups.Remembered()
    last = lookups.REMEMBERED
    all_others = [(key, key) for key in range(1, last + 1)]
    for key, source in [(0, 1), (0, 1), (0, 2), *all_others, (last, last), (0, 2)]:
        remembered.get(key, source, lambda key=key: made.append(key))  # type: ignore[misc]
    assert made == [0, 0, *range(1, last + 1), 0]


@SQLITE
@in_event_loop
async def test_a_file_that_is_locked_or_slow_is_read_in_threads_for_a_while(
    db: Database, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(lookups, "monotonic", lambda: now)
    async with opened(db) as (reads, threads):

        async def used() -> int:
            """How often a thread is used for a read."""
            before = threads.used
            assert (await reads.ask(first_plan(customer))).id == customer.plan_ids[0]
            return threads.used - before

        assert [await used(), await used()] == [1, 0]
        # Nobody else can open the file: so it is while another process recovers it.
        db.engine.dispose()
        assert isinstance(reads, SqliteLookups)
        reader = reads._connection
        reads._connection = _Locked()
        assert [await used(), await used()] == [1, 1]
        reads._connection = reader
        now += lookups.IN_THREADS_SECONDS
        with monkeypatch.context() as slow:
            slow.setattr(lookups, "SLOW_SECONDS", -1.0)
            assert [await used(), await used()] == [0, 1]
        now += lookups.IN_THREADS_SECONDS
        assert [await used(), await used()] == [0, 0]


class _Locked:
    """A connection to a file that another process is recovering."""

    def execute(self, *_: Any) -> Any:
        raise pysqlite3.OperationalError("database is locked")


@POSTGRESQL
@in_event_loop
async def test_lookups_share_connections_and_replace_dead_ones(
    db: Database, customer: Customer
) -> None:
    def ours(of_each: str) -> list[Any]:
        with psycopg.connect(db.url.replace("+psycopg", ""), autocommit=True) as stranger:
            return stranger.execute(f"SELECT {of_each} {OURS}".encode()).fetchall()

    before = len(ours("pid"))
    async with opened(db) as (reads, _):
        await asyncio.gather(*(reads.ask(first_plan(customer)) for _n in range(50)))
        assert len(ours("pid")) - before == lookups.POSTGRESQL_LOOKUPS
        db.close()
        await asyncio.to_thread(ours, "pg_terminate_backend(pid, 5000)")
        found = await asyncio.gather(*(reads.ask(first_plan(customer)) for _n in range(8)))
    assert [plan.id for plan in found] == customer.plan_ids[:1] * 8


class Shelf:
    """A value that reads take, each held until it is let go; `begun` counts the reads."""

    def __init__(self) -> None:
        self.value = 0
        self.begun = 0
        self.let_go = asyncio.Event()
        self.reads = SharedReads[int](Deadlines(60))
        self._begun = asyncio.Semaphore(0)

    async def has_begun(self) -> None:
        """Return when one more read has begun."""
        await self._begun.acquire()

    def ask(self, key: object = "k") -> asyncio.Task[int]:
        return asyncio.create_task(self.reads.get(key, self._read))

    async def _read(self) -> int:
        seen = self.value
        self.begun += 1
        self._begun.release()
        await self.let_go.wait()
        return seen


@in_event_loop
async def test_those_who_wait_for_the_same_share_one_read_that_starts_after_they_came() -> None:
    shelf = Shelf()
    first = shelf.ask()
    await shelf.has_begun()
    shelf.value = 1  # written, and acknowledged, before the others ask
    gone, *others = [shelf.ask() for _ in range(6)]
    shelf.ask("another")
    await shelf.has_begun()  # which does not wait for the first
    gone.cancel()  # and takes nobody along
    shelf.let_go.set()
    assert await asyncio.gather(first, *others) == [0] + [1] * 5
    assert shelf.begun == 3
    await asyncio.sleep(0)
    # nothing is kept
    assert (gone.cancelled(), shelf.reads._running, shelf.reads._next) == (True, {}, {})


@in_event_loop
async def test_each_caller_has_its_own_time_whatever_came_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shelf = Shelf()
    # Not a fixed number: on a machine that has just started it would be past the deadline of the
    # test itself.
    now = asyncio.get_running_loop().time()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    first = shelf.ask()
    await shelf.has_begun()
    now += 1
    second = shelf.ask()
    await asyncio.sleep(0)
    now += 50
    third = shelf.ask()
    await asyncio.sleep(0)
    now += 9  # 60 s since the first came
    with pytest.raises(Unavailable):
        await first
    await shelf.has_begun()  # the read that the others share
    now += 1
    with pytest.raises(Unavailable):
        await second
    shelf.let_go.set()
    assert await third == 0
    gc.collect()  # CPython 3.11 can't parse source, as pytest does at its end, while it collects these


@in_event_loop
async def test_a_read_that_fails_tells_all_who_shared_it_and_the_next_one_works() -> None:
    async def fail() -> int:
        raise LookupError

    shelf = Shelf()
    answers = await asyncio.gather(
        *(shelf.reads.get("k", fail) for _ in range(3)), return_exceptions=True
    )
    assert [type(answer) for answer in answers] == [LookupError] * 3
    shelf.let_go.set()
    assert await shelf.ask() == 0
