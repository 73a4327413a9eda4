"""The peers of `python -m bench requests` do the work that its note says they do."""

import pytest

from bench.load import Measured
from bench.requests import PgBench, Run, check_written, count_written, make_peer_database
from tests.postgres import PostgresServer


def test_half_of_the_members_that_pgbench_writes_are_new() -> None:
    with PostgresServer() as server:
        make_peer_database(server, "peer")
        peer = PgBench(server, "peer")
        before = count_written(peer.url)
        measured = peer.measure("POST", 16, 1)
        assert before[1:] == [0, 0]
        assert measured.answered > 100
        members, history, audit = count_written(peer.url)
        check_written("pgbench", Run(measured, 0.0, 0.0, [members - before[0], history, audit]), 16)
        one_row = Run(Measured(1000, 1.0, 0.001, 0.001), 0.0, 0.0, [60, 1000, 1000])
        with pytest.raises(RuntimeError, match="wrote"):
            check_written("pgbench", one_row, 4)
        server.create_database("empty")
        with pytest.raises(RuntimeError, match="pgbench ended with"):
            PgBench(server, "empty").measure("POST", 2, 1)
