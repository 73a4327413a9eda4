"""Nothing is left of the PostgreSQL server that the tests start."""

import signal
import subprocess
import sys
from pathlib import Path

from tests import postgres_keeper

START_A_SERVER_AND_WAIT = """
import sys
from tests.postgres import PostgresServer
server = PostgresServer().start()
print(server.pid, server.folder, flush=True)
sys.stdin.read()
"""


def test_nothing_is_left_of_a_server_whose_starter_is_killed() -> None:
    command = [sys.executable, "-c", START_A_SERVER_AND_WAIT]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        pid, folder = starter.stdout.readline().split()
        starter.send_signal(signal.SIGKILL)
    assert postgres_keeper.wait_until(lambda: not Path(folder).exists(), seconds=20)
    assert not postgres_keeper.alive(int(pid))
