"""deploy/restore-drill proves a good backup on both databases, and says what is wrong with any
other.
"""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from frontdesk.db import Database
from tests.conftest import Api, SetClock
from tests.factories import Customer, member_body
from tests.postgres import PostgresServer, as_superuser

DRILL = Path(__file__).parents[2] / "deploy/restore-drill"


class Backups:
    """A folder of backups of the test's database, and the drill on it."""

    def __init__(self, folder: Path, db: Database, url: str, tools: Path | None) -> None:
        self.folder = folder
        self.url = url
        self.tools = tools
        self.is_sqlite = db.is_sqlite
        self.file = folder / ("2026-11-24.db" if self.is_sqlite else "2026-11-24.dump")
        self.owner = as_superuser(url).replace("+psycopg", "")

    def make(self) -> None:
        """As docs/operations.md does."""
        if self.tools is not None:
            command: list[str | Path] = [
                self.tools / "pg_dump",
                "-Fc",
                "-Z0",
                "-f",
                self.file,
                self.owner,
            ]
            subprocess.run(command, check=True, capture_output=True)
            return
        import pysqlite3 as sqlite3

        with sqlite3.connect(self.url.removeprefix("sqlite:///")) as source:
            source.execute("VACUUM INTO ?", (str(self.file),))

    def drill(self) -> tuple[int, str]:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("FRONTDESK_")
        }
        environment |= {
            "FRONTDESK_DATABASE_URL": self.url,
            "PATH": f"{self.tools}:{os.environ['PATH']}",
        }
        command: list[str | Path] = [sys.executable, DRILL, self.folder]
        if not self.is_sqlite:
            owner = self.folder / "owner_database_url"
            owner.write_text(self.owner + "\n")
            command.append(owner)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert [path for path in self.folder.iterdir() if path.name.startswith(".")] == []
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def backups(
    request: pytest.FixtureRequest, tmp_path: Path, db: Database, database_url: str
) -> Backups:
    server = None if db.is_sqlite else request.getfixturevalue("postgres")
    assert server is None or isinstance(server, PostgresServer)
    folder = tmp_path / "backups"
    folder.mkdir()
    return Backups(folder, db, database_url, None if server is None else server.bin_dir)


def test_a_good_backup_is_proven_and_any_other_is_told(
    backups: Backups, api: Api, customer: Customer, clock: SetClock, superuser: Database
) -> None:
    def enrol(number: int) -> None:
        path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
        assert api.post(path, member_body(number)).status_code == 201

    def refused(reason: str) -> str:
        status, text = backups.drill()
        assert (status, reason in text, text.count("PROVEN")) == (1, True, 1), text
        return text

    refused("holds no *.d")
    enrol(1)
    enrol(2)
    clock.advance(300)
    enrol(3)  # in the backup, and too new to be compared
    backups.make()
    status, text = backups.drill()
    assert (status, "\nPROVEN" in text) == (0, True), text
    assert "members                    2 in the backup            2 in the live database" in text

    clock.advance(-300)
    enrol(4)  # as old as the first two, and not in the backup
    refused("lacks rows of members, member_history")
    with superuser.write() as tx:
        assert tx.exec_driver_sql("SELECT count(*) FROM members").scalar() == 4  # as it was
        if not backups.is_sqlite:
            databases = "SELECT count(*) FROM pg_database WHERE datname = 'frontdesk_restore_drill'"
            assert tx.exec_driver_sql(databases).scalar() == 0

    whole = backups.file.read_bytes()
    backups.file.write_bytes(whole[: len(whole) // 2])
    refused("NOT PROVEN")
    if not backups.is_sqlite:
        backups.file.write_bytes(whole.replace(b"1977-01-11", b"1977-31-11"))
        assert "1977" not in refused('COPY failed for table "members"')
    backups.file.write_bytes(whole)
    then = backups.file.stat().st_mtime - timedelta(hours=27).total_seconds()
    os.utime(backups.file, (then, then))
    refused("27 hours old")
