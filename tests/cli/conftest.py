"""A command line on an empty database: SQLite and PostgreSQL in turn."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from frontdesk.audit import list_entries
from frontdesk.cli.app import app
from frontdesk.config import SETTINGS
from frontdesk.db import Database, open_database
from frontdesk.reach import EVERY
from tests.worker.conftest import post

__all__ = ["post"]


class CommandLine:
    """`frontdesk` with a database of its own; every other setting has its default."""

    def __init__(self, database_url: str) -> None:
        self.database_url = database_url

    def run(self, *arguments: str, **settings: str) -> Result:
        """Raises what the command raised: a traceback is never an answer."""
        variables: dict[str, str | None] = {setting.variable: None for setting in SETTINGS}
        variables["FRONTDESK_DATABASE_URL"] = self.database_url
        variables |= {f"FRONTDESK_{name.upper()}": value for name, value in settings.items()}
        return CliRunner().invoke(app, arguments, env=variables, catch_exceptions=False)

    def json(self, *arguments: str, **settings: str) -> Any:
        """What the command prints for programs; nothing may stand beside it."""
        result = self.run(*arguments, "--json", **settings)
        assert (result.exit_code, result.stderr) == (0, "")
        return json.loads(result.stdout)

    def text(self, *arguments: str, **settings: str) -> str:
        """What the command prints for people, here into a file, so without colour codes."""
        result = self.run(*arguments, **settings)
        assert (result.exit_code, result.stderr) == (0, "")
        assert "\x1b" not in result.stdout
        return result.stdout

    def refused(self, *arguments: str, status: int = 1, **settings: str) -> str:
        """What the command says on stderr when it can't do what it is asked for."""
        result = self.run(*arguments, **settings)
        assert (result.exit_code, result.stdout) == (status, "")
        assert "\x1b" not in result.stderr
        return result.stderr

    def audit_trail(self) -> list[dict[str, Any]]:
        """The audit entries, oldest first."""
        db = self.open()
        try:
            return list(reversed(db.ask(lambda tx: list_entries(tx, EVERY))))
        finally:
            db.close()

    def open(self) -> Database:
        return open_database(self.database_url)


@pytest.fixture
def cli(database_url: str) -> CommandLine:
    """A command line on a migrated database without a row."""
    return CommandLine(database_url)


@pytest.fixture
def bare_cli(tmp_path: Path) -> CommandLine:
    """A command line on an SQLite database that nobody has made yet."""
    return CommandLine(f"sqlite:///{tmp_path / 'new' / 'frontdesk.db'}")


@pytest.fixture
def account(cli: CommandLine) -> str:
    """The id of an account."""
    return str(cli.json("account", "create", "--name", "Example Health")["id"])


@pytest.fixture
def group(cli: CommandLine) -> str:
    """The id of a provider group."""
    return str(cli.json("provider-group", "create", "--name", "Doctors")["id"])


@pytest.fixture
def plan(cli: CommandLine, account: str, group: str) -> str:
    """The id of a plan of the account, which the group serves."""
    names = ("--external-id", "gold", "--name", "Gold <2026>")
    return str(
        cli.json("plan", "create", "--account", account, "--provider-group", group, *names)["id"]
    )
