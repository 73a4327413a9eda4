"""An installation that can't be used leads to sentences with a remedy, never to a traceback."""

from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine


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
    assert "There is no database here." in result.stdout
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
    assert "can't be reached" in said
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
        tx.exec_driver_sql("UPDATE installation SET uniqueness = uniqueness")
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
