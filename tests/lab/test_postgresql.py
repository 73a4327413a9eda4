"""Debian's PostgreSQL with its own defaults: its JIT is on, its statistics are old or new."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.factories import member_body
from tests.faults.callers import call
from tests.faults.server import Server
from tests.files.loading import csv_of, row
from tests.lab.conftest import Installation, Tell, install
from tests.patience import wait_until
from tests.postgres import SERVICE, PostgresServer, as_superuser

ROWS = 10_000
COMPILED = "SELECT coalesce(sum(jit_functions), 0) FROM pg_stat_statements"


@pytest.fixture(scope="module")
def lab(debian: PostgresServer) -> Installation:
    return install(debian, "postgresql")


@pytest.fixture
def server(lab: Installation, tmp_path: Path) -> Iterator[Server]:
    with Server(lab.url, tmp_path / "log", workers=2, with_worker=True) as started:
        yield started


def superuser(lab: Installation, statement: str) -> list[Any]:
    with closing(
        psycopg.connect(as_superuser(lab.url).replace("+psycopg", ""), autocommit=True)
    ) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def test_postgresql_compiles_no_statement_before_or_after_analyze(
    lab: Installation, server: Server, tell: Tell
) -> None:
    assert superuser(lab, "SELECT current_setting('jit'), pg_jit_available()") == [("on", True)]
    superuser(lab, "CREATE EXTENSION pg_stat_statements")
    [(before,)] = superuser(lab, COMPILED)
    superuser(lab, "SELECT sum(a.attnum * b.attnum) FROM pg_attribute a, pg_attribute b")
    [(of_a_stranger,)] = superuser(lab, COMPILED)
    assert of_a_stranger > before  # the JIT works, and is counted

    def ask(
        method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> tuple[int, Any]:
        return call(server.port, method, path, body, lab.customer.token, kind=kind)

    for start in (0, 3 * ROWS):
        assert ask("POST", lab.members, member_body(start + 1))[0] == 201
        assert (
            ask("POST", f"{lab.members}/batch", [member_body(start + n) for n in range(2, 102)])[0]
            == 207
        )
        files = f"{lab.members}-files"
        content = csv_of(row(start + number) for number in range(200, 200 + ROWS))
        status, told = ask("POST", files, content, "text/csv")
        assert status == 202, told
        path = f"{files}/{told['data']['id']}"
        wait_until(lambda: ask("GET", path)[1]["data"]["state"] == "done", "the file")  # noqa: B023
        file = ask("GET", path)[1]["data"]
        assert file["counts"] == {"created": ROWS}
        assert ask("GET", "/v2/plans")[0] == 200
        superuser(lab, "ANALYZE")
    assert superuser(lab, "SELECT count(*) FROM members") == [(2 * (ROWS + 101),)]
    [(at_the_end,)] = superuser(lab, f"{COMPILED} WHERE userid = '{SERVICE}'::regrole")
    assert at_the_end == 0
    assert "All is well" in lab.cli.text("check")
    tell(
        f"{2 * ROWS} rows in files; JIT: {of_a_stranger} functions of another program's "
        f"query, {at_the_end} of the service's"
    )
