"""After an erasure SQLite's files hold no byte of the person's values: the database, its write-ahead log and the log's index."""

from pathlib import Path
from typing import Any

import pytest

from frontdesk.config import Config
from frontdesk.db import Database, open_database
from frontdesk.errors import Unavailable
from frontdesk.files import store as files_store
from frontdesk.privacy.retention import RetentionTurn, kept_days
from frontdesk.worker.background import LeftoverCleaner
from tests.cli.conftest import CommandLine
from tests.files.loading import csv_of, row
from tests.privacy.conftest import SOUGHT, Life
from tests.privacy.test_export import operator_of

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

# A date of birth has no place of its own: other numbers may have its bytes.
CANARIES = {value.encode() for value in SOUGHT if len(value) > 7} - {b"1931-07-19"}


def hits(db: Database) -> dict[str, int]:
    """How often each file of the database holds a value of the person."""
    path = Path(str(db.engine.url.database))
    files = [path, *(Path(f"{path}{ending}") for ending in ("-wal", "-shm"))]
    found = {each.name: sum(map(each.read_bytes().count, CANARIES)) for each in files if each.exists()}
    return {name: count for name, count in found.items() if count}


@pytest.fixture
def cleaner(life: Life) -> LeftoverCleaner:
    assert hits(life.db)
    return LeftoverCleaner(life.db, clock=life.clock)


@pytest.fixture
def cli(life: Life) -> CommandLine:
    return CommandLine(life.config.database_url)


def test_a_member_that_an_operators_call_erases_is_in_no_byte_of_the_files(life: Life) -> None:
    assert hits(life.db)
    answer = operator_of(life).request("DELETE", f"/operator/v1/members/{life.member_id}")
    assert answer.status_code == 200
    assert hits(life.db) == {}


def test_a_member_that_the_command_line_erases_beside_a_service_is_in_no_byte_of_the_files(
    life: Life, cli: CommandLine
) -> None:
    cli.json("member", "erase", "--id", str(life.member_id), "--yes")
    assert hits(life.db) == {}


def test_a_member_that_is_erased_over_http_is_in_no_byte_of_the_files(life: Life) -> None:
    assert operator_of(life).request("DELETE", f"/operator/v1/members/{life.member_id}").status_code == 200
    assert hits(life.db) == {}


def test_a_reader_holds_the_log_and_a_worker_empties_it_when_the_reader_has_ended(
    life: Life, cleaner: LeftoverCleaner
) -> None:
    with life.db.read() as reader:
        reader.exec_driver_sql("SELECT count(*) FROM members").one()
        life.erase()
        cleaner.step()
        assert hits(life.db)
    cleaner.step()
    assert hits(life.db) == {}


def test_a_worker_that_starts_later_empties_the_log_of_earlier_erasures(life: Life) -> None:
    with life.db.read() as reader:
        reader.exec_driver_sql("SELECT count(*) FROM members").one()
        life.erase()
    assert hits(life.db)
    LeftoverCleaner(life.db, clock=life.clock).step()
    assert hits(life.db) == {}


def test_a_log_is_emptied_only_after_an_erasure(
    life: Life, cleaner: LeftoverCleaner, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Database] = []
    empty_log = Database.empty_log

    def counted(db: Database) -> bool:
        calls.append(db)
        return empty_log(db)

    monkeypatch.setattr(Database, "empty_log", counted)
    cleaner.step()
    assert calls == []
    life.erase()
    for _ in range(3):
        cleaner.step()
    assert len(calls) == 2  # by the erasure and, once, by the worker


def test_what_retention_takes_out_leaves_the_files_too(
    life: Life, config: Config, cleaner: LeftoverCleaner
) -> None:
    life.clock.advance(20 * 366 * 86_400)
    with life.db.write() as tx:
        tx.exec_driver_sql("UPDATE members SET expiry_date = '2026-01-02' WHERE expiry_date IS NULL")
        tx.exec_driver_sql("DELETE FROM suppressions")
    turn = RetentionTurn(life.db, life.clock, kept_days(config), life.requester())
    turn.run()
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
    assert life.db.ask(lambda tx: files_store.unfinished_files(tx, life.customer.account_id)) == [file.id]
    cleaner.step()
    assert life.desk.count("file_parts") == 0
    life.erase()
    assert hits(life.db) == {}


def test_every_connection_overwrites_what_it_deletes(life: Life) -> None:
    connections = [life.db.engine.connect() for _ in range(3)]
    for connection in connections:
        assert connection.exec_driver_sql("PRAGMA secure_delete").scalar() == 1
        connection.close()


class _Forgetful:
    """A connection to an SQLite that knows no secure_delete."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, sql: str) -> Any:
        return self._connection.execute("SELECT 0" if "secure_delete" in sql else sql)


def test_an_sqlite_that_does_not_overwrite_is_refused(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    from frontdesk.db import sqlite

    configure = sqlite._configure
    monkeypatch.setattr(sqlite, "_configure", lambda made, record: configure(_Forgetful(made), record))
    db = open_database(life.db.url)
    with pytest.raises(Unavailable, match="secure_delete"):
        db.ask(str)
    db.close()
