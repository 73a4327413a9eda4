"""Migrations: up and down with data, and the models they lead to."""

import shutil
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect

from frontdesk.cli.command_group import migrated_database
from frontdesk.config import Config, read_config
from frontdesk.db import Database, migrate, open_database
from frontdesk.db.checks import HEAD, problems, revision_of
from frontdesk.db.schema import metadata
from frontdesk.errors import FrontdeskError, Unavailable
from tests.conftest import Api
from tests.factories import make_customer


@pytest.fixture
def db(owner: Database) -> Database:
    """Migrations run as the owner of the tables."""
    return owner


def test_the_migrated_schema_is_that_of_the_models(db: Database) -> None:
    with db.read() as tx:
        context = MigrationContext.configure(tx)
        assert compare_metadata(context, metadata) == []
        found = context.get_current_revision()
    assert (
        revision_of(db) == found == HEAD == ScriptDirectory(str(migrate.FOLDER)).get_current_head()
    )


def test_down_and_up_again_with_data_leaves_an_empty_schema_that_works(
    db: Database, database_url: str
) -> None:
    config = read_config({"FRONTDESK_DATABASE_URL": database_url})
    make_customer(db)
    migrate.downgrade(db, "base")
    assert revision_of(db) is None
    assert "frontdesk migrate" in problems(db, config)[0].remedy
    with db.read() as tx:
        assert [name for name in inspect(tx).get_table_names() if name != "alembic_version"] == []
    assert migrate.upgrade(db)[-1] == HEAD
    assert migrate.upgrade(db) == []
    assert problems(db, config) == []
    make_customer(db)


SECOND = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, BACKWARD_COMPATIBLE = "0002", "0001", {compatible}


def upgrade():
    op.add_column("plans", sa.Column("invented", sa.Text()))


def downgrade():
    op.drop_column("plans", "invented")
"""


@pytest.mark.parametrize("is_compatible", [True, False])
def test_a_program_works_with_a_newer_compatible_schema(
    db: Database,
    api: Api,
    config: Config,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_compatible: bool,
) -> None:
    folder = shutil.copytree(migrate.FOLDER, tmp_path / "migrations")
    (folder / "versions" / "v0002_second.py").write_text(SECOND.format(compatible=is_compatible))
    monkeypatch.setattr(migrate, "FOLDER", folder)
    monkeypatch.setattr(migrate, "HEAD", "0002")  # of the newer program only
    assert api.get("/readyz").json()["revision"] == "0001"
    assert migrate.upgrade(db) == ["0002"]
    try:
        ready = api.get("/readyz")
        assert ready.json().get("revision", ready.status_code) == ("0002" if is_compatible else 503)
        assert api.get("/v2/plans").status_code == 200
        refused = ["newer frontdesk" in each.remedy for each in problems(db, config)]
        assert refused == ([] if is_compatible else [True])
        expected = (
            nullcontext()
            if is_compatible
            else pytest.raises(FrontdeskError, match="newer frontdesk")
        )
        with expected, migrated_database(config):
            pass
    finally:
        migrate.downgrade(db, "0001")
    assert api.get("/readyz").status_code == 200


def test_a_migration_waits_for_locks_so_long_and_changes_nothing(
    db: Database, database_url: str
) -> None:
    lock = (
        "UPDATE installation SET uniqueness = uniqueness"
        if db.is_sqlite
        else "SELECT * FROM installation"
    )
    with closing(open_database(database_url)) as blocker, blocker.write() as tx:
        tx.exec_driver_sql(lock)
        with pytest.raises(Unavailable):
            migrate.downgrade(db, "base")
    assert revision_of(db) == HEAD
