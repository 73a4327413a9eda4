"""The peers of `make bench` do the work that the table says they do."""

from collections.abc import Iterator

import pytest

from bench.__main__ import SAME_WORK, UPSERT, Run, check_written
from bench.contestants import PgBench, Written, count_written, make_peer_database
from bench.load import Measured
from tests.postgres import PostgresServer

SCRIPTS = {SAME_WORK: "same_work.sql", UPSERT: "upsert.sql"}


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as started:
        yield started


@pytest.mark.parametrize("who", SCRIPTS)
def test_half_of_what_pgbench_writes_are_new_members(server: PostgresServer, who: str) -> None:
    make_peer_database(server, "peer")
    peer = PgBench(server, "peer", SCRIPTS[who])
    before = count_written(peer.database_url)
    measured = peer.measure("POST", 4, 1)
    assert measured.answered > 100
    check_written(who, Run(measured, 0.0, 0.0, count_written(peer.database_url).since(before)), 4)


def test_a_peer_whose_new_members_are_one_row_is_refused() -> None:
    run = Run(Measured(1000, 1.0, 0.001, 0.001), 0.0, 0.0, Written(60, 1000, 1000))
    with pytest.raises(RuntimeError, match="wrote"):
        check_written(SAME_WORK, run, 4)


def test_a_pgbench_whose_statements_fail_is_no_measurement(server: PostgresServer) -> None:
    server.create_database("empty")
    with pytest.raises(RuntimeError, match="pgbench ended with"):
        PgBench(server, "empty", "same_work.sql").measure("POST", 2, 1)
