"""Two members under Patroni with etcd, synchronous, as people run them: the host of the leader dies
under load.
"""

import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests import postgres_keeper as keeper
from tests.faults.callers import Callers, call, visits
from tests.faults.server import Server, mailing
from tests.files.loading import csv_of, row
from tests.lab.conftest import Tell, install
from tests.lab.parts import POSTGRESQL_BIN, Program, give, running
from tests.mail.relay import Relay
from tests.patience import wait_until
from tests.postgres import Databases, free_port

PASSWORD = {"password": "frontdesk-test"}
ROWS = 10_000  # of the file
# Patroni's shortest: a dead leader is missed after 20 s.
TIMES = {"ttl": 20, "loop_wait": 2, "retry_timeout": 3}


@dataclass
class Member:
    """A PostgreSQL with its Patroni."""

    name: str
    home: Path
    etcd: int

    def __post_init__(self) -> None:
        self.port = free_port()
        self.rest = free_port()
        self.data = self.home / self.name
        self.program: Program | None = None

    def configuration(self) -> dict[str, Any]:
        rest = f"127.0.0.1:{self.rest}"
        authentication = {
            "superuser": {"username": "postgres"} | PASSWORD,
            "replication": {"username": "replicator"} | PASSWORD,
        }
        postgresql = {
            "listen": f"127.0.0.1:{self.port}",
            "connect_address": f"127.0.0.1:{self.port}",
            "data_dir": str(self.data),
            "bin_dir": str(POSTGRESQL_BIN),
            "pgpass": str(self.home / f"{self.name}.pgpass"),
            "authentication": authentication,
            "parameters": {"unix_socket_directories": ""},
            "pg_hba": [
                "host all all 127.0.0.1/32 trust",
                "host replication all 127.0.0.1/32 trust",
            ],
        }
        return {
            "scope": "lab",
            "name": self.name,
            "restapi": {"listen": rest, "connect_address": rest},
            "etcd3": {"hosts": f"127.0.0.1:{self.etcd}"},
            "bootstrap": {
                "dcs": TIMES | {"synchronous_mode": True},
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}],
            },
            "postgresql": postgresql,
        }

    @contextmanager
    def running(self) -> Iterator[Program]:
        path = self.home / f"{self.name}.yml"
        path.write_text(json.dumps(self.configuration()))
        give(path)
        with running(["/usr/bin/patroni", path], self.home, name=self.name) as self.program:
            try:
                yield self.program
            finally:
                self.program.end()
                self.end_postgresql(signal.SIGQUIT)

    def die(self) -> None:
        """As a host does: Patroni and PostgreSQL at once, without a word."""
        assert self.program is not None
        os.kill(self.program.pid, signal.SIGKILL)
        self.end_postgresql(signal.SIGKILL)

    def end_postgresql(self, how: signal.Signals) -> None:
        with suppress(FileNotFoundError):
            keeper.end(int((self.data / "postmaster.pid").read_text().split()[0]), first=how)

    def roles(self) -> set[tuple[str, str]]:
        """Role and state of every member, as this one's Patroni sees them."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.rest}/cluster", timeout=2
            ) as answer:
                return {
                    (member["role"], member["state"]) for member in json.load(answer)["members"]
                }
        except OSError:
            return set()

    def ask(self, query: str) -> Any:
        try:
            with closing(
                psycopg.connect(f"postgresql://postgres@127.0.0.1:{self.port}/lab")
            ) as connection:
                return connection.execute(query.encode()).fetchall()
        except psycopg.OperationalError:
            return None


def has_roles(program: Program, member: Member, roles: set[tuple[str, str]]) -> bool:
    """Whether Patroni shows these roles of its members. Raises RuntimeError when the program ended."""
    return program.has_told("") and member.roles() == roles


@pytest.fixture
def members(home: Path) -> Iterator[list[Member]]:
    client = free_port()
    peer = free_port()
    urls = [f"http://127.0.0.1:{port}" for port in (client, peer)]
    etcd = ["/usr/bin/etcd", "--name", "lab", "--data-dir", f"{home}/etcd"]
    etcd += ["--listen-client-urls", urls[0], "--advertise-client-urls", urls[0]]
    etcd += ["--listen-peer-urls", urls[1], "--initial-advertise-peer-urls", urls[1]]
    etcd += ["--initial-cluster", f"lab={urls[1]}"]
    with ExitStack() as stack:
        dcs = stack.enter_context(running(etcd, home))
        wait_until(lambda: dcs.has_told("ready to serve client requests"), "etcd")
        made = [Member(name, home, client) for name in ("one", "two")]
        for member, roles in zip(made, ({"leader"}, {"leader", "sync_standby"}), strict=True):
            program = stack.enter_context(member.running())
            wanted = {(role, "running") for role in roles}
            wait_until(partial(has_roles, program, made[0], wanted), "the members")
        yield made


def test_nothing_acknowledged_is_lost_when_the_host_of_the_leader_dies(
    members: list[Member], tmp_path: Path, tell: Tell
) -> None:
    leader, standby = members
    lab = install(Databases(f"postgresql://postgres@127.0.0.1:{leader.port}"), "lab")
    hosts = f"127.0.0.1:{leader.port},127.0.0.1:{standby.port}"
    url = lab.url.replace(f"127.0.0.1:{leader.port}", hosts) + "?target_session_attrs=read-write"
    files = f"/v2/plans/{lab.customer.plan_ids[1]}/eligibility-files"
    token = lab.customer.token
    with (
        Relay() as relay,
        Server(url, tmp_path / "log", settings=mailing(relay.port), with_worker=True) as server,
    ):
        posts = Callers(server.port, lab.members, token, threads=8)
        bodies = partial(visits, lab.customer.plan_ids)
        events = Callers(
            server.port, "/operator/v1/queue-events", lab.operator.token, bodies, threads=2
        )
        content = csv_of(row(number) for number in range(ROWS))
        status, told = call(server.port, "POST", files, content, token, kind="text/csv")
        assert status == 202

        def file() -> Any:
            return call(server.port, "GET", f"{files}/{told['data']['id']}", token=token)[1]["data"]

        with posts, events:
            posts.wait_for(50)
            events.wait_for(20)
            wait_until(
                lambda: leader.ask("SELECT sum(rows_done) FROM eligibility_files")[0][0], "a chunk"
            )
            leader.die()
            died = time.monotonic()
            wait_until(
                lambda: standby.ask("SELECT pg_is_in_recovery()") == [(False,)],
                "Patroni to promote the standby",
            )
            promoted = time.monotonic()
            before = len(posts.acknowledged)
            posts.wait_for(1)
            back = time.monotonic()
            posts.wait_for(100)
            events.wait_for(20)
        wait_until(lambda: file()["state"] == "done", "the file")
        unsent = "SELECT count(*) FROM invitations WHERE state <> 'sent'"
        wait_until(lambda: standby.ask(unsent) == [(0,)], "all mails")
        assert file()["counts"] == {"created": ROWS}
        ended = [server.told(f"{kind}_process_ended") for kind in ("serving", "worker")]
    stored = dict(standby.ask("SELECT external_id, last_name FROM members"))
    assert posts.acknowledged.items() <= stored.items()
    assert (
        events.acknowledged.items()
        <= dict(standby.ask("SELECT event_id, visit FROM queue_events")).items()
    )
    assert standby.ask("SELECT count(*) FROM invitations") == [(len(relay.taken),)]
    assert set(relay.taken.values()) == {1}
    assert posts.statuses <= {200, 201, 503}
    assert ended == [[], []]
    tell(
        f"promoted {promoted - died:.1f} s after the death, first POST answered "
        f"{back - promoted:.2f} s after the promotion"
    )
    tell(
        f"{len(posts.acknowledged)} members ({before} before the promotion), "
        f"{len(events.acknowledged)} events, {ROWS} rows of a file, {len(relay.taken)} mails: "
        "all stored, each once"
    )
