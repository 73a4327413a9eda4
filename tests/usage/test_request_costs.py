"""Which client takes the service's time: counted in memory, kept for two days, shown by a command and
two metrics.
"""

import asyncio
import io
import time
from datetime import timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from frontdesk.access.store import list_clients
from frontdesk.app import App
from frontdesk.clock import system_clock
from frontdesk.db import Database
from frontdesk.installation import build_asgi
from frontdesk.metering import IN_WORK, RequestCost, metered, timed
from frontdesk.privacy.store import delete_counters
from frontdesk.reach import EVERY
from frontdesk.usage import RequestCostCounter, list_request_costs, oldest_slot
from frontdesk.usage.model import NO_CLIENT, RequestCosts
from frontdesk.usage.request_costs import MOST_CLIENTS, save
from frontdesk.web.telemetry import Telemetry
from tests.cli.conftest import CommandLine
from tests.conftest import Api
from tests.factories import Customer, make_customer, make_operator, member_body
from tests.patience import in_event_loop, wait_until


@pytest.fixture
def cli(database_url: str) -> CommandLine:
    return CommandLine(database_url)


@pytest.fixture
def saved_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk.usage.request_costs.SAVE_SECONDS", 0.0)


def costs(db: Database) -> dict[int, RequestCosts]:
    found = db.ask(lambda tx: list_request_costs(tx, "2000"))
    return {each.client: each for each in found}


def counted(db: Database) -> int:
    return sum(each.requests for each in costs(db).values())


@pytest.mark.usefixtures("saved_at_once")
def test_requests_and_their_time_are_counted_by_client(
    api: Api, app: App, db: Database, customer: Customer
) -> None:
    neighbour = make_customer(db)
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    members = [member_body(number) for number in range(10, 60)]
    assert api.post(f"{path}/batch", members).status_code == 207
    assert api.post(path, member_body(1)).status_code == 201
    assert api.get(path).status_code in (200, 403)
    assert api.as_(neighbour.token).get("/v2/plans").status_code == 200
    assert api.as_("wrong").get("/v2/plans").status_code == 401
    wait_until(lambda: counted(db) == 5, "the counts")
    ids = {each.client_id: each.id for each in db.ask(lambda tx: list_clients(tx, EVERY))}
    found = costs(db)
    own = found[ids[customer.client_id]]
    other = found[ids[neighbour.client_id]]
    assert (own.account_id, own.requests) == (customer.account_id, 3)
    assert (other.account_id, other.requests) == (neighbour.account_id, 1)
    assert (found[NO_CLIENT].account_id, found[NO_CLIENT].requests) == (None, 1)
    assert own.loop_us > other.loop_us > 0
    assert own.database_us > other.database_us == 0
    assert next(iter(found)) == own.client


def test_what_is_left_is_saved_when_the_process_ends(
    app: App, db: Database, customer: Customer
) -> None:
    bearer = {"Authorization": f"Bearer {customer.token}"}
    with TestClient(build_asgi(app, Telemetry(io.StringIO()))) as http:
        assert http.get("/v2/plans", headers=bearer).status_code == 200
        assert counted(db) == 0  # a minute has not passed
    assert counted(db) == 1


def count(
    counter: RequestCostCounter, client: int, account_id: int | None, loop: float, database: float
) -> None:
    cost = RequestCost()
    cost.client = client
    cost.account_id = account_id
    cost.database_seconds = database
    counter.count(cost, loop)


def add(db: Database, *rows: tuple[int, int | None, int, int], minutes_ago: int = 0) -> None:
    counter = RequestCostCounter()
    for client, account_id, loop, database in rows:
        count(counter, client, account_id, loop, database)
    save(db, counter.take(), system_clock() - timedelta(minutes=minutes_ago))


def test_the_command_shows_the_costliest_clients_of_the_last_minutes(
    cli: CommandLine, db: Database, customer: Customer
) -> None:
    assert "No requests were counted" in cli.text("requests", "top")
    neighbour = make_customer(db)
    ids = {each.client_id: each.id for each in db.ask(lambda tx: list_clients(tx, EVERY))}
    own = ids[customer.client_id]
    other = ids[neighbour.client_id]
    for _ in range(2):  # two processes
        add(db, (own, customer.account_id, 1, 2), (other, neighbour.account_id, 1, 0))
    add(db, (NO_CLIENT, None, 1, 0))
    add(db, (other, neighbour.account_id, 100, 0), minutes_ago=90)
    rows = cli.json("requests", "top", "--minutes", "30")
    shown = [
        [row[name] for name in ("client_id", "account_id", "requests", "share")] for row in rows
    ]
    assert shown == [
        [customer.client_id, customer.account_id, 2, 0.667],
        [neighbour.client_id, neighbour.account_id, 2, 0.222],
        [None, None, 1, 0.111],
    ]
    assert (rows[0]["loop_seconds"], rows[0]["database_seconds"]) == (2.0, 4.0)
    [first] = cli.json("requests", "top", "--minutes", "120", "--limit", "1")
    assert first["client_id"] == neighbour.client_id
    text = cli.text("requests", "top")
    assert text.index(customer.client_id) < text.index(neighbour.client_id)


def test_metrics_show_the_ten_costliest_clients(api: Api, db: Database, customer: Customer) -> None:
    ids = {each.client_id: each.id for each in db.ask(lambda tx: list_clients(tx, EVERY))}
    rows = [(number, 1, 1, 0) for number in range(1000, 1020)]
    add(db, (ids[customer.client_id], customer.account_id, 5, 7), *rows)
    text = api.as_(make_operator(db).token).get("/metrics").text
    labels = f'account_id="{customer.account_id}",client_id="{customer.client_id}"'
    assert f'frontdesk_client_seconds{{{labels},kind="database"}} 7.0' in text
    assert f'frontdesk_client_seconds{{{labels},kind="loop"}} 5.0' in text
    assert f"frontdesk_client_requests{{{labels}}} 1.0" in text
    assert text.count("\nfrontdesk_client_requests{") == 10


def test_the_space_for_counts_is_bounded_and_they_are_kept_for_two_days(db: Database) -> None:
    counter = RequestCostCounter()
    for client in range(1, 2 * MOST_CLIENTS):
        count(counter, client, 1, 1, 0)
    taken = counter.take()
    assert len(taken) == MOST_CLIENTS + 1
    assert taken[NO_CLIENT].requests == MOST_CLIENTS - 1
    assert counter.take() == {}
    now = system_clock()
    for days in (0, 1, 3):
        save(db, taken, now - timedelta(days=days))
    with db.write() as tx:
        assert delete_counters(tx, now - timedelta(days=2)) == MOST_CLIENTS + 1
    assert counted(db) == 2 * (2 * MOST_CLIENTS - 1)


def test_ten_minutes_begin_at_the_last_full_ten() -> None:
    now = system_clock().replace(hour=13, minute=47)
    assert oldest_slot(now, 0).endswith("T13:40")
    assert oldest_slot(now, 60).endswith("T12:40")


@in_event_loop
async def test_time_is_counted_for_the_request_that_takes_it() -> None:
    found: dict[str, RequestCost] = {}
    spent: dict[RequestCost, float] = {}

    async def request(name: str, seconds: float) -> None:
        cost = IN_WORK.cost
        assert cost is not None
        found[name] = cost
        for _ in range(3):
            time.sleep(seconds)  # noqa: ASYNC251  # as a computation
            await asyncio.sleep(0.02)
            assert IN_WORK.cost is cost
        await asyncio.get_running_loop().run_in_executor(None, timed(lambda: time.sleep(seconds)))

    await asyncio.gather(
        metered(request("busy", 0.03), spent.__setitem__),
        metered(request("idle", 0.0), spent.__setitem__),
    )
    assert IN_WORK.cost is None
    assert spent[found["busy"]] > 0.08 > spent[found["idle"]]
    assert found["busy"].database_seconds > 0.025 > found["idle"].database_seconds


@in_event_loop
async def test_a_request_that_is_cancelled_or_fails_does_so_as_without_a_meter() -> None:
    events: list[Any] = []

    async def request() -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            events.append(IN_WORK.cost is not None)
            raise

    task = asyncio.ensure_future(metered(request(), lambda *_: events.append("counted")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events == [True, "counted"]

    async def fails() -> None:
        await asyncio.sleep(0)
        raise KeyError

    with pytest.raises(KeyError):
        await metered(fails(), lambda *_: events.append("counted"))
    assert IN_WORK.cost is None
