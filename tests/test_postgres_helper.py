"""The PostgreSQL server that the tests start: what it promises to them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests import postgres_keeper
from tests.postgres import PostgresServer

START_A_SERVER_AND_WAIT = """
import sys
from tests.postgres import PostgresServer
server = PostgresServer().start()
print(server.pid, server.folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(durable=True) as started:
        yield started


def test_two_databases_share_nothing(server: PostgresServer) -> None:
    with server.database() as one, server.database() as other:
        execute(one, "CREATE TABLE visit (id int)")
        with pytest.raises(psycopg.errors.UndefinedTable):
            execute(other, "SELECT * FROM visit")


def test_a_killed_server_comes_back_on_its_port_with_what_was_committed(server: PostgresServer) -> None:
    with server.database() as url:
        execute(url, "CREATE TABLE visit AS SELECT 7 AS id")
        server.kill_postmaster()
        with pytest.raises(psycopg.OperationalError):
            execute(url, "SELECT 1")
        server.start()
        assert execute(url, "SELECT id FROM visit") == [(7,)]


def test_a_killed_backend_ends_every_connection_and_the_server_recovers_and_keeps_settings(
    server: PostgresServer,
) -> None:
    with pytest.raises(ValueError, match="no process of this server"):
        server.kill_backend(os.getpid())
    with psycopg.connect(server.url()) as victim, psycopg.connect(server.url()) as neighbour:
        server.kill_backend(victim.info.backend_pid)
        with pytest.raises(psycopg.OperationalError):
            neighbour.execute("SELECT 1")
    server.wait_until_ready()
    server.restart({"work_mem": "5MB"})
    assert execute(server.url(), "SHOW work_mem") == [("5MB",)]


def test_nothing_is_left_of_a_server_whose_starter_is_killed() -> None:
    command = [sys.executable, "-c", START_A_SERVER_AND_WAIT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid, folder = starter.stdout.readline().split()
        starter.send_signal(signal.SIGKILL)
    assert postgres_keeper.wait_until(lambda: not Path(folder).exists(), seconds=20)
    assert not postgres_keeper.alive(int(pid))


def execute(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []
