"""A database whose tables are another program's, or an older version's: each command says so in a
sentence and leaves the tables alone.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import inspect

from frontdesk.db import Database, open_database
from frontdesk.db.checks import HEAD
from tests.cli.conftest import CommandLine
from tests.postgres import Databases

KINDS = ("sqlite", "postgresql")


@pytest.fixture(params=KINDS)
def unused(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CommandLine]:
    """A command line on a database without a table."""
    if request.param == "sqlite":
        cli = CommandLine(f"sqlite:///{tmp_path / 'frontdesk.db'}")
        with closing(cli.open()) as db:
            db.make_missing_file()
        yield cli
        return
    postgres: Databases = request.getfixturevalue("postgres")
    with postgres.database() as url:
        yield CommandLine(url.replace("postgresql:", "postgresql+psycopg:"))


def execute(cli: CommandLine, *statements: str) -> None:
    with closing(open_database(cli.database_url)) as db, db.write_schema() as tx:
        for statement in statements:
            tx.exec_driver_sql(statement)


def tables(db: Database) -> list[str]:
    with db.read() as tx:
        return sorted(inspect(tx).get_table_names())


def test_a_table_of_somebody_else_is_named_and_left_alone(unused: CommandLine) -> None:
    execute(unused, "CREATE TABLE members (name text)", "CREATE TABLE orders (id integer)")
    for words in ("migrate", "account list", "worker", "serve --port 20007"):
        said = unused.refused(*words.split())
        assert "has a table members already, which no migration of frontdesk has made" in said
        assert "Name an empty database" in said
    checked = unused.run("check")
    assert (checked.exit_code, "a table members already" in checked.stdout) == (1, True)
    with closing(unused.open()) as db:
        assert tables(db) == ["members", "orders"]


@pytest.mark.parametrize("revision", ["ae1027a6acf3", "0000", "1f2b"])
def test_the_revision_of_another_program_is_not_ours(unused: CommandLine, revision: str) -> None:
    execute(
        unused,
        "CREATE TABLE alembic_version (version_num varchar(32))",
        f"INSERT INTO alembic_version VALUES ('{revision}')",  # noqa: S608
    )
    for words in ("migrate", "migrate --uniqueness account", "account list", "worker"):
        said = unused.refused(*words.split())
        assert "those of another program" in said
        assert "newer frontdesk" not in said
    assert "those of another program" in unused.run("check").stdout


def test_tables_of_other_names_are_no_obstacle(unused: CommandLine) -> None:
    execute(unused, "CREATE TABLE orders (id integer)")
    assert unused.json("migrate")["revision"] == HEAD
    assert unused.json("check")["ok"]


def test_tables_of_an_older_version_are_told_by_revision_and_column(unused: CommandLine) -> None:
    assert unused.json("migrate")["revision"] == HEAD
    execute(
        unused,
        "ALTER TABLE installation DROP COLUMN written",
        "ALTER TABLE plans RENAME COLUMN name TO title",
    )
    expected = (
        f"at revision {HEAD}, but its tables are those of an older version: they lack "
        "installation.written and 1 more. Use the version"
    )
    for words in ("serve --port 20008", "worker", "migrate"):
        assert expected in unused.refused(*words.split())
    checked = unused.run("check")
    assert (checked.exit_code, "they lack installation.written" in checked.stdout) == (1, True)
