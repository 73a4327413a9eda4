"""After an erasure SQLite's files hold no byte of the person's values: the database, its
write-ahead log and the log's index.
"""

from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from frontdesk.config import Config
from frontdesk.db import Database, open_database, sqlite
from frontdesk.errors import Unavailable
from frontdesk.files import store as files_store
from frontdesk.privacy.retention import RetentionTurn, retention_days
from frontdesk.worker.background import LeftoverCleaner
from tests.cli.conftest import CommandLine
from tests.files.loading import csv_of, row
from tests.privacy.conftest import SOUGHT, Life

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

# A date of birth has no place of its own: other numbers may have its bytes.
CANARIES = {value.encode() for value in SOUGHT if len(value) > 7} - {b"1931-07-19"}


def hits(db: Database) -> dict[str, int]:
    """How often each file of the database holds a value of the person."""
    path = Path(str(db.engine.url.database))
    files = [path, *(Path(f"{path}{ending}") for ending in ("-wal", "-shm"))]
    found = {
        each.name: sum(map(each.read_bytes().count, CANARIES)) for each in files if each.exists()
    }
    return {name: count for name, count in found.items() if count}


@pytest.fixture
def cleaner(life: Life) -> LeftoverCleaner:
    assert hits(life.db)
    return LeftoverCleaner(life.db, clock=life.clock)


def test_a_member_that_the_command_line_erased_is_in_no_byte_of_the_files(life: Life) -> None:
    """Beside a service."""
    assert hits(life.db)
    CommandLine(life.db.url).json("member", "erase", "--id", str(life.member_id), "--yes")
    assert hits(life.db) == {}


@pytest.mark.parametrize("starts", ["before", "later"])
def test_a_reader_holds_the_log_and_a_worker_empties_it_when_the_reader_has_ended(
    life: Life, cleaner: LeftoverCleaner, starts: str
) -> None:
    with life.db.read() as reader:
        reader.exec_driver_sql("SELECT count(*) FROM members").one()
        life.erase()
        if starts == "before":
            cleaner.step()
        assert hits(life.db)
    (cleaner if starts == "before" else LeftoverCleaner(life.db, clock=life.clock)).step()
    assert hits(life.db) == {}


def test_what_retention_deletes_leaves_the_files(
    life: Life, config: Config, cleaner: LeftoverCleaner
) -> None:
    life.clock.advance(20 * 366 * 86_400)
    with life.db.write() as tx:
        tx.exec_driver_sql(
            "UPDATE members SET expiry_date = '2026-01-02' WHERE expiry_date IS NULL"
        )
        tx.exec_driver_sql("DELETE FROM suppressions")
    RetentionTurn(life.db, life.clock, retention_days(config), life.requester()).run()
    cleaner.step()
    assert life.mentions() == set()
    assert hits(life.db) == {}


def test_a_large_files_content_goes_by_and_by_and_an_erasure_waits_for_it(
    life: Life, cleaner: LeftoverCleaner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_store, "PARTS_TOGETHER", 2)
    file = life.desk.hand_in(csv_of([row(1)]))
    with life.db.write() as tx:
        for number in range(1, 6):
            files_store.insert_part(tx, file.id, number, b"content-of-a-cancelled-file")
    life.desk.cancel(file)
    assert life.desk.count("file_parts") == 4
    assert life.db.ask(lambda tx: files_store.unfinished_files(tx, life.customer.account_id)) == [
        file.id
    ]
    cleaner.step()
    assert life.desk.count("file_parts") == 0
    life.erase()
    assert hits(life.db) == {}


def test_an_sqlite_that_keeps_what_it_deletes_is_refused(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    overwrites = "PRAGMA secure_delete"
    assert life.db.ask(lambda tx: tx.exec_driver_sql(overwrites).scalar()) == 1
    configure = sqlite._configure

    def forget(connection: Any, record: Any) -> None:
        def execute(sql: str) -> Any:
            return connection.execute("SELECT 0" if "secure_delete" in sql else sql)

        configure(Mock(execute=execute), record)

    monkeypatch.setattr(sqlite, "_configure", forget)
    with (
        closing(open_database(life.db.url)) as db,
        pytest.raises(Unavailable, match="secure_delete"),
    ):
        db.ask(str)
