"""Two groups of serving processes, each with a worker, on one PostgreSQL, as on two hosts: nothing
is done twice, and what one host has acknowledged holds on the other.
"""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count, cycle
from typing import Any

import pytest

from frontdesk import invitations
from frontdesk.clock import system_clock
from frontdesk.db import Database, open_database
from tests.conftest import migrated
from tests.factories import Customer, make_customer, member_body
from tests.faults.callers import call
from tests.faults.server import Server, mailing
from tests.files.loading import csv_of, row
from tests.mail.relay import Relay
from tests.patience import wait_until
from tests.postgres import Databases

MEMBERS = 30
LIMIT = 5
ROWS = 300

_numbers = count(1000, 1000)


@dataclass(frozen=True)
class TwoHosts:
    db: Database
    relay: Relay
    ports: tuple[int, int]

    def customer(self) -> Customer:
        return make_customer(self.db, now=system_clock())

    def invite(self, customer: Customer, members: int, *, at_once: bool) -> list[str]:
        """New members through the two hosts in turn; their addresses."""
        start = next(_numbers)
        bodies = [member_body(n, invite_immediately=at_once) for n in range(start, start + members)]
        for port, body in zip(cycle(self.ports), bodies, strict=False):
            path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
            assert call(port, "POST", path, body, customer.token)[0] == 201
        return [body["email"] for body in bodies]

    def mailed(self, addresses: list[str]) -> Counter[str]:
        return Counter(
            address for address in list(self.relay.recipients) if address in set(addresses)
        )


@pytest.fixture(scope="module")
def hosts(postgres: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoHosts]:
    with ExitStack() as stack:
        plain = migrated(postgres, "two_hosts")
        stack.callback(postgres.drop_database, "two_hosts")
        db = open_database(plain)
        stack.callback(db.close)
        relay = stack.enter_context(Relay())
        one_snapshot = {"FRONTDESK_QUEUE_TTL_SECONDS": "3600"}  # for the whole test
        settings = mailing(relay.port) | one_snapshot

        def start(name: str) -> Server:
            log = tmp_path_factory.mktemp(name) / "log"
            return stack.enter_context(Server(plain, log, settings=settings, with_worker=True))

        with ThreadPoolExecutor(2) as threads:
            first, second = threads.map(start, ("first", "second"))
        yield TwoHosts(db, relay, (first.port, second.port))


def test_two_workers_send_one_mail_a_member_within_one_hourly_limit(hosts: TwoHosts) -> None:
    customer = hosts.customer()
    settings = {
        "enabled": True,
        "batch_size": 100,
        "batch_interval_seconds": 1,
        "hourly_limit": LIMIT,
    }
    with hosts.db.write() as tx:
        invitations.set_deliverability(tx, customer.account_id, **settings)
    batched = hosts.invite(customer, 3 * LIMIT, at_once=False)
    wait_until(lambda: hosts.mailed(batched).total() >= LIMIT, "as many as an hour allows")
    # Both workers go on: they deliver what the limit does not count.
    others = hosts.invite(customer, MEMBERS, at_once=True)
    wait_until(lambda: len(hosts.mailed(others)) == MEMBERS, "the immediate ones")
    sent = "SELECT count(*) FROM invitations WHERE state = 'sent'"
    wait_until(lambda: stored(hosts.db, sent) == {MEMBERS + LIMIT}, "all to be written down")
    assert hosts.mailed(others) == dict.fromkeys(others, 1)
    assert hosts.mailed(batched).total() == LIMIT


def test_files_of_two_accounts_are_each_loaded_once_and_reported_by_the_other_host(
    hosts: TwoHosts,
) -> None:
    customers = [hosts.customer(), hosts.customer()]
    histories = "SELECT id FROM member_history"
    before = stored(hosts.db, histories)
    uploaded = []
    for port, customer in zip(hosts.ports, customers, strict=True):
        start = next(_numbers)
        content = csv_of(row(number) for number in range(start, start + ROWS))
        path = f"/v2/plans/{customer.plan_ids[0]}/eligibility-files"
        status, told = call(port, "POST", path, content, customer.token, kind="text/csv")
        assert status == 202
        uploaded.append(f"{path}/{told['data']['id']}")
    for port, customer, path in zip(reversed(hosts.ports), customers, uploaded, strict=True):

        def file() -> Any:
            return call(port, "GET", path, token=customer.token)[1]["data"]  # noqa: B023 - used at once

        wait_until(
            lambda: file()["state"] == "done", "the file", progress=lambda: file()["rows_done"]
        )
        assert file()["counts"] == {"created": ROWS}
    assert len(stored(hosts.db, histories) - before) == 2 * ROWS


def test_both_hosts_answer_with_one_snapshot_of_the_queues(hosts: TwoHosts) -> None:
    customer = hosts.customer()
    told: list[tuple[int, Any]] = []

    def agree() -> bool:
        ports = [port for _ in range(4) for port in hosts.ports]
        told[:] = threads.map(
            lambda port: call(port, "GET", "/v2/plans", token=customer.token), ports
        )
        return all(answer == told[0] for answer in told)

    with ThreadPoolExecutor(8) as threads:
        wait_until(agree, "what a slow disk kept one of them from storing")
    assert told[0][0] == 200
    assert told[0][1]["data"][0]["queue_info"]["cache_info"]["ttl"] == 3600


def test_what_one_host_has_acknowledged_the_other_knows(hosts: TwoHosts) -> None:
    customer = hosts.customer()
    plan = f"/v2/plans/{customer.plan_ids[0]}"
    for number, (one, other) in zip(
        range(6), cycle([hosts.ports, hosts.ports[::-1]]), strict=False
    ):
        assert call(one, "PATCH", plan, {"name": f"Plan {number}"}, customer.token)[0] == 200
        assert (
            call(other, "GET", plan, token=customer.token)[1]["data"][0]["name"] == f"Plan {number}"
        )
        body = member_body(next(_numbers))
        assert call(one, "POST", f"{plan}/eligibility", body, customer.token)[0] == 201
        assert call(other, "POST", f"{plan}/eligibility", body, customer.token)[0] == 200


def stored(db: Database, query: str) -> set[Any]:
    return set(db.ask(lambda tx: tx.exec_driver_sql(query).scalars()))
