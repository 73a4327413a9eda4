"""A primary is killed under load and its synchronous standby promoted: nothing acknowledged is
lost, nobody is mailed twice, and the service goes on without a restart. `-s` prints the times.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from frontdesk.clock import system_clock
from frontdesk.config import read_config
from frontdesk.db import Database, database_identity, open_database
from frontdesk.db.database_identity import FailoverWitness
from frontdesk.eligibility import find_expired
from frontdesk.invitations.delivery_hold import find_hold, find_hold_reason
from frontdesk.invitations.model import DeliveryPolicy, HoldReason
from frontdesk.invitations.protocol import DeliveryContext, claim, seconds_to_work
from tests.conftest import migrated
from tests.factories import NOW, lift_immediate_limit, make_customer, make_operator
from tests.faults.callers import Callers, call, visits
from tests.faults.server import Server, mailing
from tests.files.loading import csv_of, row
from tests.mail.relay import Relay
from tests.patience import wait_until
from tests.postgres import PostgresServer

ROWS = 10_000  # of the file
WAIT_FOR_STANDBY = ("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
STOP_FOLLOWING = ("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")


@dataclass(frozen=True)
class Pair:
    """A primary and its standby, and the database whose `address` names both."""

    primary: PostgresServer
    standby: PostgresServer
    address: str
    db: Database

    def fail_over(self) -> float:
        """Kill the primary and promote the standby; the time when it was promoted."""
        self.primary.kill()
        self.standby.promote()
        return time.monotonic()

    def count(self, query: str) -> int:
        return int(self.db.ask(lambda tx: tx.exec_driver_sql(query).scalar_one()))


def execute(server: PostgresServer, *statements: str) -> Any:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        *_, last = [connection.execute(statement.encode()) for statement in statements]
        return last.fetchone() if last.description else None


@pytest.fixture
def pair() -> Iterator[Pair]:
    with (
        PostgresServer(durable=True) as primary,
        PostgresServer(durable=True, follows=primary) as standby,
    ):
        one, both = (
            f"127.0.0.1:{primary.port}{also}/" for also in ("", f",127.0.0.1:{standby.port}")
        )
        url = migrated(primary, "moved").replace(one, both).replace("+psycopg", "")
        with closing(
            open_database(read_config({"FRONTDESK_DATABASE_URL": url}).database_url)
        ) as db:
            yield Pair(primary, standby, url, db)


def server_of(pair: Pair, relay: Relay, folder: Path) -> Server:
    return Server(pair.address, folder / "log", settings=mailing(relay.port), with_worker=True)


def test_a_failover_under_load_loses_nothing_that_was_acknowledged(
    pair: Pair, tmp_path: Path
) -> None:
    execute(pair.primary, *WAIT_FOR_STANDBY)
    caller, filer, feeder = (make_customer(pair.db, now=system_clock()) for _ in range(3))
    lift_immediate_limit(pair.db, caller)
    operator = make_operator(pair.db, now=system_clock())
    files = f"/v2/plans/{filer.plan_ids[0]}/eligibility-files"
    with Relay() as relay, server_of(pair, relay, tmp_path) as server:
        members = Callers(
            server.port, f"/v2/plans/{caller.plan_ids[0]}/eligibility", caller.token, threads=8
        )
        bodies = partial(visits, feeder.plan_ids)
        events = Callers(
            server.port, "/operator/v1/queue-events", operator.token, bodies, threads=4
        )
        content = csv_of(row(number) for number in range(ROWS))
        status, told = call(server.port, "POST", files, content, filer.token, kind="text/csv")
        assert status == 202

        def file() -> Any:
            return call(server.port, "GET", f"{files}/{told['data']['id']}", token=filer.token)[1][
                "data"
            ]

        with members, events:
            members.wait_for(50)
            events.wait_for(50)
            wait_until(lambda: len(relay.recipients) > 20, "mails")
            wait_until(
                lambda: pair.count("SELECT sum(rows_done) FROM eligibility_files") > 0,
                "a chunk of the file",
            )
            assert file()["state"] == "running"
            promoted_at = pair.fail_over()
            mailed = len(relay.recipients)
            is_back: dict[str, Callable[[], object]] = {
                "a POST": partial(
                    lambda before: len(members.acknowledged) > before, len(members.acknowledged)
                ),
                "readiness": server.ready,
                "a mail": lambda: len(relay.recipients) > mailed,
            }
            for what, condition in is_back.items():
                wait_until(condition, what)
                print(f"{what}: {time.monotonic() - promoted_at:.1f} s after the promotion")  # noqa: T201
            members.wait_for(100)
            events.wait_for(50)
        wait_until(
            lambda: file()["state"] == "done", "the file", progress=lambda: file()["rows_done"]
        )
        # A claim that is stored, but was never answered, ends with its lease; then its mails go on.
        unsent = partial(pair.count, "SELECT count(*) FROM invitations WHERE state <> 'sent'")
        wait_until(
            lambda: unsent() == 0,
            "all mails",
            at_earliest_after=DeliveryPolicy("example.com").lease_seconds,
            progress=unsent,
        )
        assert file()["counts"] == {"created": ROWS}
    check_promises(pair, members, events, relay)
    assert [server.told(f"{name}_process_ended") for name in ("serving", "worker")] == [[], []]
    assert server.told("delivery_held") == []


def check_promises(pair: Pair, members: Callers, events: Callers, relay: Relay) -> None:
    """Every acknowledged record is there, once, and so is the mail to each invited member."""
    found = pair.db.ask(
        lambda tx: tx.exec_driver_sql("SELECT external_id, last_name FROM members").all()
    )
    assert members.acknowledged.items() <= dict(found).items()
    assert members.statuses <= {200, 201, 503}
    assert pair.count("SELECT count(*) FROM member_history WHERE outcome = 'created'") == len(found)
    told = pair.db.ask(
        lambda tx: tx.exec_driver_sql(
            "SELECT event_id, visit FROM queue_events WHERE visit > ''"
        ).all()
    )
    assert events.acknowledged.items() <= dict(told).items()
    assert set(relay.taken.values()) == {1}
    assert (
        len(relay.recipients)
        == len(set(relay.recipients))
        == pair.count("SELECT count(*) FROM invitations")
    )


def test_delivery_goes_on_after_a_failover_where_a_worker_saw_that_nothing_is_lost(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_identity, "LOOK_SECONDS", 0.0)
    home = pair.db.ask(lambda tx: tx.exec_driver_sql("SELECT home FROM delivery_home").scalar_one())

    def look(witness: FailoverWitness) -> None:
        for _ in range(2):
            pair.db.ask(lambda tx: witness.look(tx, lambda: home))

    complete, asynchronous, ahead, late = (FailoverWitness("delivery_home") for _ in range(4))
    look(asynchronous)
    execute(pair.primary, *WAIT_FOR_STANDBY)
    wait_until(
        lambda: execute(pair.primary, "SELECT sync_state FROM pg_stat_replication") == ("sync",),
        "the standby",
    )
    look(complete)
    execute(pair.standby, *STOP_FOLLOWING)
    wait_until(
        lambda: execute(pair.primary, "SELECT count(*) FROM pg_stat_replication") == (0,),
        "the end of it",
    )
    execute(pair.primary, "SET synchronous_commit = local", "CREATE TABLE lost_with_the_primary ()")
    look(ahead)
    pair.fail_over()
    look(late)
    with pair.db.write() as tx:
        # at once, though the control file still has the old timeline
        assert find_hold_reason(tx) is HoldReason.MOVED
        for witness in (None, asynchronous, ahead, late):
            assert find_hold(tx, witness) is HoldReason.MOVED
        # Nothing waits, and yet the worker's next look finds out that nothing is held.
        context = DeliveryContext(DeliveryPolicy(message_domain="example.com"), witness=complete)
        assert seconds_to_work(tx, context, now=NOW) == 0
        assert claim(tx, context, now=NOW, count=1, find_expired=find_expired) == []
        assert find_hold_reason(tx) is None
        assert [find_hold(tx, witness) for witness in (None, asynchronous)] == [None, None]
