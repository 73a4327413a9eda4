"""What runs, and what the tests of the lab share. The last section of the output names each test
and its parts' versions.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from frontdesk.clock import system_clock
from frontdesk.db import open_database
from tests.cli.conftest import CommandLine
from tests.factories import Customer, Operator, lift_immediate_limit, make_customer, make_operator
from tests.lab.parts import OF_FILE, POSTGRESQL_BIN, folder, give, missing, version
from tests.postgres import SERVICE, Databases, PostgresServer, as_role

collect_ignore = [file for file in OF_FILE if missing(file)]


def pytest_report_header() -> list[str]:
    lines = [f"{file}: {_versions(file)}" for file in OF_FILE if not missing(file)]
    without = (
        f"{file}: not run, for want of {', '.join(missing(file))}" for file in collect_ignore
    )
    return [f"lab: {line}" for line in (*lines, *without)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("lab")
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.getreports(outcome):
            file, _, test = report.nodeid.rpartition("/")[2].partition("::")
            terminalreporter.line(
                f"{outcome}, {report.duration:.1f} s, with {_versions(file)}: {test}"
            )
            for _, told in report.user_properties:
                terminalreporter.line(f"    {told}")
    for file in collect_ignore:
        terminalreporter.line(f"not run, for want of {', '.join(missing(file))}: {file}")


def _versions(file: str) -> str:
    return ", ".join(f"{part} {version(part)}" for part in OF_FILE[file])


Tell = Callable[[str], None]


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """Adds a line to what is printed of the test: what was measured."""
    return lambda line: record_property("told", line)


@dataclass(frozen=True)
class Installation:
    """A migrated database as the service role sees it, with a customer and an operator, and the
    commands for it.
    """

    url: str
    cli: CommandLine
    customer: Customer
    operator: Operator

    @property
    def members(self) -> str:
        return f"/v2/plans/{self.customer.plan_ids[0]}/eligibility"


def installed(url: str) -> Installation:
    with closing(open_database(url)) as db:
        customer = make_customer(db, now=system_clock())
        lift_immediate_limit(db, customer)
        operator = make_operator(db, now=system_clock())
    return Installation(url, CommandLine(url), customer, operator)


@pytest.fixture
def home() -> Iterator[Path]:
    with folder() as path:
        yield path


class DebianServer(PostgresServer):
    """Debian's PostgreSQL with its own defaults, but for where it listens."""

    def __init__(self) -> None:
        super().__init__(durable=True)
        self.bin_dir = self._server_bin = POSTGRESQL_BIN


@pytest.fixture(scope="session")
def debian() -> Iterator[PostgresServer]:
    server = DebianServer()
    try:
        yield server.start({"shared_preload_libraries": "pg_stat_statements"})
    finally:
        server.stop()


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    path = tmp_path / "frontdesk.db"
    shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@dataclass(frozen=True)
class Certificate:
    """Of localhost, 127.0.0.1 and api.example.com, by a private CA."""

    ca: Path
    chain: Path
    key: Path


@pytest.fixture(scope="session")
def certificate() -> Iterator[Certificate]:
    with folder() as home:
        made = Certificate(home / "ca.pem", home / "chain.pem", home / "key.pem")
        new = (
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
        )
        names = "subjectAltName=DNS:localhost,DNS:api.example.com,IP:127.0.0.1"
        ca = (*new, "-subj", "/CN=A private CA", "-keyout", "ca.key", "-out", made.ca)
        leaf = (
            "-subj",
            "/CN=localhost",
            "-addext",
            names,
            "-addext",
            "basicConstraints=critical,CA:false",
        )
        signed = ("-CA", made.ca, "-CAkey", "ca.key", "-keyout", made.key, "-out", made.chain)
        for command in (ca, (*new, *leaf, *signed)):
            subprocess.run(command, cwd=home, check=True, capture_output=True)
        give(made.key)
        yield made


def install(server: Databases, name: str) -> Installation:
    """On a new database, which its owner migrates by the command line and the service role serves."""
    server.create_database(name)
    owner = server.give_to_owner(name)
    assert CommandLine(owner).run("migrate", "--service-role", SERVICE).exit_code == 0
    return installed(as_role(owner, SERVICE))
