"""PgBouncer: Debian's 1.18 carries the settings of a connection in no mode, so the service refuses
it by name (0104).
"""

import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.cli.conftest import CommandLine
from tests.lab.conftest import Installation, Tell, install
from tests.lab.parts import give, running
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.postgres import PostgresServer, free_port

INI = """
[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {home}/users
pool_mode = {mode}
ignore_startup_parameters = {ignored}
"""
# by `ignored`
REASONS = {"options": "lock_timeout is 0, not ", "": "it refuses the startup parameter options"}


@pytest.fixture(scope="module")
def lab(debian: PostgresServer) -> Installation:
    return install(debian, "behind_a_pooler")


@pytest.mark.parametrize("mode", ["transaction", "session"])
@pytest.mark.parametrize("ignored", REASONS, ids=["drops", "refuses"])
def test_a_pooler_that_drops_or_refuses_settings_is_refused_by_name_with_the_remedy(
    lab: Installation, debian: PostgresServer, home: Path, mode: str, ignored: str, tell: Tell
) -> None:
    port = free_port()
    (home / "users").write_text('"frontdesk_test_service" ""\n"frontdesk_test_owner" ""\n')
    ini = home / "pgbouncer.ini"
    ini.write_text(INI.format(server=debian.port, port=port, home=home, mode=mode, ignored=ignored))
    give(ini, home / "users")
    url = lab.url.replace(f":{debian.port}", f":{port}")
    with running(["/usr/sbin/pgbouncer", ini], home) as pooler:
        wait_until(lambda: pooler.has_told("process up"), "PgBouncer")
        with psycopg.connect(url) as connection:  # what keeps no settings gets through
            assert connection.execute("SELECT count(*) FROM plans").fetchone() == (2,)
        serve = [sys.executable, "-m", "frontdesk", "serve", "--port", str(free_port())]
        settings = {"FRONTDESK_DATABASE_URL": url, "COLUMNS": "1000"}
        served = subprocess.run(
            serve,
            env=settings,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        ended = [(served.returncode, served.stdout + served.stderr)]
        for command in ("check", "migrate"):
            run = CommandLine(url).run(command)
            ended.append((run.exit_code, run.output))
        for status, told in ended:
            assert status == 1, told
            words = " ".join(re.sub("[│╭╮╰╯─]", " ", told).split())
            assert REASONS[ignored] in words
            assert (
                "A connection pooler such as PgBouncer drops them: connect to PostgreSQL itself"
                in words
            )
    tell(
        f"{mode} mode, options {'dropped' if ignored else 'refused'}: check, "
        "migrate and serve end with 1 and name it"
    )
