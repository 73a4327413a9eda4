"""An installation that can't be used leads to sentences with a remedy, never to a traceback."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from frontdesk.db import open_database
from frontdesk.db.checks import HEAD
from tests.cli.conftest import CommandLine
from tests.postgres import OWNER, Databases, as_role


def test_settings_that_cant_be_used_are_all_named(bare_cli: CommandLine) -> None:
    said = bare_cli.refused("account", "list", base_url="nowhere", environment="lab")
    assert "FRONTDESK_BASE_URL: use an absolute http(s) address" in said
    assert "FRONTDESK_ENVIRONMENT: use one of: sandbox, production" in said


WORDS = [
    ("account", "list"),
    ("account", "create", "--name", "Example Health"),
    ("worker",),
    ("serve", "--port", "20004"),
    ("queue", "simulate"),
]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_only_migrate_makes_a_database(bare_cli: CommandLine, words: tuple[str, ...], tmp_path: Path) -> None:
    said = bare_cli.refused(*words)
    assert "There is no database here. Run: frontdesk migrate" in said
    assert list(tmp_path.iterdir()) == []


def test_a_check_makes_no_database(bare_cli: CommandLine, tmp_path: Path) -> None:
    result = bare_cli.run("check")
    assert result.exit_code == 1
    assert "Problem: There is no database here." in result.stdout
    assert "Run: frontdesk migrate" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_tables_is_to_be_migrated(bare_cli: CommandLine) -> None:
    db = bare_cli.open()
    db.make_missing_file()
    db.close()
    said = bare_cli.refused("account", "list")
    assert "The database has no tables yet. Run: frontdesk migrate" in said


def test_a_database_that_nobody_answers_for_is_unreachable(bare_cli: CommandLine) -> None:
    # Port 1 of the own machine: nothing listens there.
    said = bare_cli.refused(
        "account", "list", database_url="postgresql://somebody:hush@127.0.0.1:1/frontdesk"
    )
    assert "No database server listens" in said
    assert "frontdesk check" in said
    assert "hush" not in said


def test_a_locked_database_changes_nothing_and_says_so(cli: CommandLine) -> None:
    if not cli.database_url.startswith("sqlite"):
        return  # one account more locks nobody out there
    db = cli.open()
    with db.write():
        said = cli.refused("account", "create", "--name", "Example Health")
    db.close()
    assert "Nothing was changed." in said
    assert cli.json("account", "list") == []


def test_a_check_of_a_locked_database_says_that_it_is_locked(cli: CommandLine) -> None:
    db = cli.open()
    with db.write() as tx:
        tx.exec_driver_sql("UPDATE installation SET written = written")
        result = cli.run("check")
    db.close()
    assert result.exit_code == 1
    assert "The database is busy." in result.stdout
    assert "holds a lock" in result.stdout
    assert "disk" not in result.stdout


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Nothing but notes, and more than enough of them. " * 20)
    notes = CommandLine(f"sqlite:///{path}")
    assert "not a database" in notes.refused("account", "list")
    told = notes.run("check").stdout
    assert "not a database" in told
    assert "backup" in told


def test_a_folder_that_cant_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    blocked = CommandLine(f"sqlite:///{tmp_path}/file/frontdesk.db")
    assert "file can't be made" in blocked.refused("migrate")
    assert "There is no database here" in blocked.refused("account", "list")


@pytest.mark.parametrize("url", ["postgresql://host:port/frontdesk", "postgresql://[host/frontdesk"])
def test_a_malformed_address_is_told(bare_cli: CommandLine, url: str) -> None:
    said = bare_cli.refused("account", "list", database_url=url)
    assert said.startswith("Error: ")


def test_a_database_of_a_newer_version_is_told_with_the_remedy(cli: CommandLine) -> None:
    newer = "UPDATE alembic_version SET version_num = '9' || version_num"
    db = open_database(as_role(cli.database_url, OWNER))
    with db.write() as tx:
        tx.exec_driver_sql(newer)
    try:
        said = [cli.refused("migrate"), cli.refused("account", "list"), cli.run("check").stdout]
    finally:
        with db.write() as tx:  # other tests have the same database
            tx.exec_driver_sql("UPDATE alembic_version SET version_num = substr(version_num, 2)")
        db.close()
    for each in said:
        assert f"at revision 9{HEAD}, this program needs {HEAD}" in each
        assert "A newer frontdesk has migrated the database: use that version" in each


REFUSALS = {
    "somebody:hush@127.0.0.1:{port}/postgres": (
        "refuses the user or the password",
        "Correct user and password",
    ),
    "{owner}@127.0.0.1:{port}/hidden": ("no database of the name", "make the database"),
    "{owner}@nowhere.invalid:{port}/postgres": (
        "The host of FRONTDESK_DATABASE_URL is unknown",
        "Correct the host",
    ),
    "somebody:hush@127.0.0.1:1/postgres": ("No database server listens", "Start the server"),
    "{owner}@127.0.0.1:{port}/postgres?sslmode=require": ("No TLS connection", "Correct sslmode"),
}


@pytest.mark.parametrize("address", REFUSALS)
def test_a_check_says_why_postgresql_can_not_be_reached_and_no_value(
    bare_cli: CommandLine, postgres: Databases, address: str
) -> None:
    parts = urlsplit(postgres.url())
    filled = address.format(port=parts.port, owner=parts.netloc.partition("@")[0])
    what, remedy = REFUSALS[address]
    url = f"postgresql://{filled}"
    checked = bare_cli.run("check", database_url=url)
    assert checked.exit_code == 1
    assert what in checked.stdout
    assert remedy in checked.stdout
    assert what in bare_cli.refused("account", "list", database_url=url)
    assert not any(value in checked.stdout for value in ("hush", "somebody", "hidden", "nowhere"))
