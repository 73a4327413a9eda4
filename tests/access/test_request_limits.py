"""How much a client may ask in a minute, counted over all processes."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, nullcontext

import pytest
from sqlalchemy import select

from frontdesk.access.accounts import create_client
from frontdesk.access.callers import RequestLimits
from frontdesk.access.model import NewClient, RequestAllowance, Scope
from frontdesk.access.tables import request_allowances
from frontdesk.db import Database, open_database
from frontdesk.errors import RateLimited, Unavailable
from tests.conftest import SetClock
from tests.db.statements import statements
from tests.factories import Customer

DEFAULT = 600  # requests per minute of a client without a limit of its own


class Process:
    """One serving process's limits; `spend` asks `times` times and says how many were let through."""

    def __init__(
        self, db: Database, clock: SetClock, client: int = 1, limit: int | None = 600
    ) -> None:
        self.limits = RequestLimits(db, clock, default=DEFAULT)
        self.client = client
        self.limit = limit

    async def ask(self) -> RequestAllowance | RateLimited | None:
        try:
            return await self.limits.admit(self.client, self.limit)
        except RateLimited as limited:
            return limited

    def once(self) -> RequestAllowance | RateLimited | None:
        return asyncio.run(self.ask())

    def spend(self, times: int, *, at_once: bool = False) -> int:
        async def all_of_them() -> list[RequestAllowance | RateLimited | None]:
            if at_once:
                return await asyncio.gather(*(self.ask() for _ in range(times)))
            return [await self.ask() for _ in range(times)]

        return sum(isinstance(answer, RequestAllowance) for answer in asyncio.run(all_of_them()))


@pytest.fixture
def process(db: Database, clock: SetClock, customer: Customer) -> Process:
    return Process(db, clock)


@pytest.fixture
def other_process(process: Process, database_url: str, clock: SetClock) -> Iterator[Process]:
    with closing(open_database(database_url)) as db:
        yield Process(db, clock)


def test_a_usual_client_asks_nothing_of_the_database(process: Process, db: Database) -> None:
    process.limit = None
    with statements(db) as sent:
        assert process.limits.admit_now(process.client, None) == RequestAllowance(
            DEFAULT, DEFAULT - 1, 60
        )
        assert process.spend(DEFAULT // 20 - 1) == DEFAULT // 20 - 1
    assert sent == []


def test_another_process_adds_a_twentieth(
    process: Process, other_process: Process, clock: SetClock
) -> None:
    process.limit = other_process.limit = None
    for _ in range(2):
        assert process.spend(DEFAULT + 50) == DEFAULT
        assert other_process.spend(DEFAULT) == DEFAULT // 20
        clock.advance(60)


@pytest.mark.parametrize(("own_limit", "let_through"), [(None, 1000), (600, 0)])
def test_while_the_database_takes_no_writes_each_process_counts_by_itself(
    process: Process, own_limit: int | None, let_through: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise Unavailable("The disk is full.")

    monkeypatch.setattr("frontdesk.access.callers.write_alone", away)
    process.limit = own_limit
    with pytest.raises(Unavailable) if own_limit else nullcontext():
        assert process.spend(1000) == let_through


def test_two_processes_together_let_exactly_the_limit_through_to_each_client(
    process: Process, other_process: Process, db: Database, customer: Customer, clock: SetClock
) -> None:
    async def both() -> list[RequestAllowance | RateLimited | None]:
        return await asyncio.gather(
            *(p.ask() for _ in range(650) for p in (process, other_process))
        )

    assert sum(isinstance(answer, RequestAllowance) for answer in asyncio.run(both())) == 600
    with db.write() as tx:
        new = NewClient(customer.account_id, "Another", {Scope.CUSTOMER})
        client, _ = create_client(tx, new, now=clock())
    process.client = client.id
    process.limit = 5
    assert process.spend(10) == 5


def test_a_process_whose_clock_is_behind_opens_no_minute_anew(
    process: Process, other_process: Process, db: Database, clock: SetClock
) -> None:
    behind = SetClock(clock())
    clock.advance(60)
    let_through = 0
    for _ in range(30):  # in turns, as they would at the turn of a minute
        process.limits = RequestLimits(db, clock, default=DEFAULT)
        other_process.limits = RequestLimits(db, behind, default=DEFAULT)
        let_through += process.spend(15)
        other_process.spend(15)
    assert let_through <= 600
    rows = select(request_allowances.c.minute, request_allowances.c.taken)
    taken = dict(db.ask(lambda tx: [tuple(row) for row in tx.execute(rows)]))
    assert len(taken) == 2
    assert max(taken.values()) <= 600


@pytest.mark.parametrize("limit", [1, 2, 19, 20, 59, 600])
@pytest.mark.parametrize("at_once", [False, True])
def test_exactly_the_limit_is_let_through_in_a_minute(
    process: Process, limit: int, *, at_once: bool
) -> None:
    process.limit = limit
    assert process.spend(limit + 20, at_once=at_once) == limit


def test_numbers_count_down_until_the_next_minute(
    process: Process, clock: SetClock, db: Database
) -> None:
    process.limit = 50
    clock.advance(15)
    for _ in range(5):
        told = [process.once() for _ in range(50)]
        assert told == [RequestAllowance(50, left, 45) for left in range(49, -1, -1)]
        clock.advance(44.9)
        refused = process.once()
        assert isinstance(refused, RateLimited)
        assert refused.retry_after_seconds == 1
        clock.advance(15.1)
    with db.read() as tx:  # the rows of past minutes are cleared away
        assert len(tx.execute(request_allowances.select()).all()) == 2


def test_a_clock_that_is_set_back_counts_in_its_own_minute(
    process: Process, clock: SetClock
) -> None:
    process.limit = 3
    spent = []
    for seconds in (0, -3600, 3600):
        clock.advance(seconds)
        spent.append(process.spend(5))
    assert spent == [3, 3, 0]


def test_little_is_kept_by_few_statements(
    process: Process, other_process: Process, db: Database
) -> None:
    process.limit = other_process.limit = 6000
    assert other_process.spend(3) == 3
    with statements(db, "SELECT") as sent:
        assert process.spend(7000) >= 6000 - 2 * 3
    assert len(sent) < 200
    with statements(db) as sent:
        assert process.spend(50) == 0
    assert sent == []
