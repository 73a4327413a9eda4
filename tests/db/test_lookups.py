"""One SELECT inside the event loop: the same answers as in a transaction, and what happens when the database is in trouble."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import psycopg
import pysqlite3
import pytest
from sqlalchemy import update

from frontdesk import plans
from frontdesk.access import caller_of
from frontdesk.access.model import digest
from frontdesk.db import Database, lookups
from frontdesk.db.lookups import Lookups, PostgresqlLookups, SqliteLookups
from frontdesk.errors import NotFound, Unavailable
from frontdesk.plans.model import Plan
from frontdesk.plans.tables import plans as plan_table
from tests.factories import Customer

POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


class Threads(ThreadPoolExecutor):
    """One thread; `used` counts what it was given."""

    used = 0

    def submit(self, *work: Any, **options: Any) -> Any:
        self.used += 1
        return super().submit(*work, **options)


def run(db: Database, scene: Callable[[Lookups, Threads], Awaitable[Any]]) -> Any:
    async def play() -> Any:
        with Threads(1) as threads:
            opened = SqliteLookups(db, threads) if db.is_sqlite else PostgresqlLookups(db.url)
            try:
                return await scene(opened, threads)
            finally:
                opened.close()

    return asyncio.run(play())


def first_plan(customer: Customer) -> Any:
    return plans.find_plan(customer.account_id, customer.plan_ids[0])


def rename(db: Database, name: str) -> None:
    with db.write() as tx:
        tx.execute(update(plan_table).values(name=name))


def test_an_answer_is_what_a_transaction_reads(db: Database, customer: Customer) -> None:
    asked = [
        first_plan(customer),
        plans.find_plans(customer.account_id, external_id=None, after_id=0, limit=None),
        plans.find_plans(customer.account_id, external_id=None, after_id=customer.plan_ids[0], limit=1),
        plans.find_plans(customer.account_id, external_id="it's", after_id=0, limit=9),
        caller_of(digest(customer.token)),
        caller_of(digest("unknown")),
    ]

    async def twice(lookups: Lookups, _: Threads) -> list[Any]:
        return [await lookups.ask(lookup) for lookup in asked * 2]

    answers = run(db, twice)
    assert answers == [db.ask(lookup.read) for lookup in asked] * 2
    assert isinstance(answers[0], Plan)
    assert type(answers[0].accepting_patients) is bool
    assert answers[4].client_id == customer.client_id


def test_a_plan_that_is_not_there_is_not_found_and_the_connection_goes_on(
    db: Database, customer: Customer
) -> None:
    async def scene(lookups: Lookups, _: Threads) -> int:
        for _n in range(2):
            with pytest.raises(NotFound):
                await lookups.ask(plans.find_plan(customer.account_id, 10**17))
        found: Plan = await lookups.ask(first_plan(customer))
        return found.id

    assert run(db, scene) == customer.plan_ids[0]


def test_every_answer_has_the_writes_before_it(db: Database, customer: Customer) -> None:
    async def scene(lookups: Lookups, _: Threads) -> list[str]:
        seen = []
        for n in range(5):
            rename(db, f"Plan {n}")
            seen.append((await lookups.ask(first_plan(customer))).name)
        return seen

    assert run(db, scene) == [f"Plan {n}" for n in range(5)]


def test_what_follows_from_rows_is_worked_out_again_when_they_change(
    db: Database, customer: Customer
) -> None:
    async def scene(lookups: Lookups, _: Threads) -> list[Plan]:
        await lookups.ask(first_plan(customer))
        found = [await lookups.ask(first_plan(customer)) for _n in range(2)]
        rename(db, "Changed")
        return [*found, await lookups.ask(first_plan(customer))]

    first, second, changed = run(db, scene)
    assert first is second
    assert changed == replace(first, name="Changed")


def test_as_much_is_remembered_as_there_is_room_for() -> None:
    made: list[int] = []
    remembered: lookups.Remembered[int] = lookups.Remembered()

    def get(key: int, source: int) -> int:
        def make() -> int:
            made.append(key)
            return source

        return remembered.get(key, source, make)

    assert [get(0, 1), get(0, 1), get(0, 2)] == [1, 1, 2]
    assert made == [0, 0]
    for key in range(1, lookups.REMEMBERED + 1):
        get(key, key)
    made.clear()
    assert [get(lookups.REMEMBERED, lookups.REMEMBERED), get(0, 2)] == [lookups.REMEMBERED, 2]
    assert made == [0]


@SQLITE
def test_sqlite_takes_no_thread_once_it_is_open_and_waits_for_no_writer(
    db: Database, customer: Customer
) -> None:
    async def scene(lookups: Lookups, threads: Threads) -> int:
        await lookups.ask(first_plan(customer))
        used = threads.used
        with db.write() as tx:
            tx.exec_driver_sql("UPDATE plans SET name = 'unseen'")
            for _ in range(10):
                assert (await lookups.ask(first_plan(customer))).name != "unseen"
        return threads.used - used

    assert run(db, scene) == 0


@SQLITE
def test_a_file_that_is_locked_or_slow_is_read_in_threads_for_a_while(
    db: Database, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(lookups, "monotonic", lambda: now)

    async def ask(lookups: Lookups, threads: Threads) -> int:
        """How often a thread was used for it."""
        used = threads.used
        assert (await lookups.ask(first_plan(customer))).id == customer.plan_ids[0]
        return threads.used - used

    async def scene(opened: Lookups, threads: Threads) -> None:
        nonlocal now
        assert [await ask(opened, threads), await ask(opened, threads)] == [1, 0]
        # Nobody else can open the file: so it is while another process recovers it.
        db.engine.dispose()
        assert isinstance(opened, SqliteLookups)
        reader, opened._connection = opened._connection, _Locked()
        assert [await ask(opened, threads), await ask(opened, threads)] == [1, 1]
        opened._connection = reader
        now += lookups.IN_THREADS_SECONDS
        with monkeypatch.context() as slow:
            slow.setattr(lookups, "SLOW_SECONDS", -1.0)
            assert [await ask(opened, threads), await ask(opened, threads)] == [0, 1]
        now += lookups.IN_THREADS_SECONDS
        assert [await ask(opened, threads), await ask(opened, threads)] == [0, 0]

    run(db, scene)


class _Locked:
    """A connection to a file that another process is recovering."""

    def execute(self, *_: Any) -> Any:
        raise pysqlite3.OperationalError("database is locked")


@POSTGRESQL
def test_dead_connections_are_replaced_without_an_error(db: Database, customer: Customer) -> None:
    async def scene(lookups: Lookups, _: Threads) -> list[str]:
        await asyncio.gather(*(lookups.ask(first_plan(customer)) for _n in range(20)))
        await asyncio.to_thread(end_connections, db)
        found = await asyncio.gather(*(lookups.ask(first_plan(customer)) for _n in range(8)))
        return [plan.name for plan in found]

    names = run(db, scene)
    assert names == names[:1] * 8


@POSTGRESQL
def test_many_lookups_share_few_connections(db: Database, customer: Customer) -> None:
    before = connections(db)

    async def scene(lookups: Lookups, _: Threads) -> int:
        await asyncio.gather(*(lookups.ask(first_plan(customer)) for _n in range(50)))
        return await asyncio.to_thread(connections, db)

    assert run(db, scene) - before == lookups.POSTGRESQL_LOOKUPS


def test_a_server_that_is_not_there_is_unavailable(customer: Customer) -> None:
    async def ask() -> None:
        nowhere = PostgresqlLookups("postgresql+psycopg://nobody@127.0.0.1:1/none")
        await nowhere.ask(first_plan(customer))

    with pytest.raises(Unavailable):
        asyncio.run(ask())


OURS = (
    "FROM pg_stat_activity WHERE application_name = 'frontdesk' AND datname = current_database() "
    "AND usename = current_user"
)


def connections(db: Database) -> int:
    [(count,)] = _as_stranger(db, f"SELECT count(*) {OURS}")
    return int(count)


def end_connections(db: Database) -> None:
    db.close()
    _as_stranger(db, f"SELECT pg_terminate_backend(pid, 5000) {OURS}")


def _as_stranger(db: Database, sql: str) -> list[Any]:
    with psycopg.connect(db.url.replace("+psycopg", ""), autocommit=True) as stranger:
        return stranger.execute(sql.encode()).fetchall()
