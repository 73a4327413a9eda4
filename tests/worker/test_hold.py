"""Delivery is held by hand, and on a database that was restored, until it is released."""

import json
import shutil
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from frontdesk.db import Database, open_database
from frontdesk.db.migrate import upgrade
from frontdesk.invitations import delivery, delivery_hold
from frontdesk.invitations.delivery_hold import find_hold
from frontdesk.invitations.model import HoldReason
from frontdesk.invitations.tables import invitations
from tests.db.statements import statements
from tests.postgres import Databases
from tests.worker.conftest import Post


def held(db: Database) -> HoldReason | None:
    with db.write() as tx:
        return find_hold(tx)


def release(db: Database) -> None:
    with db.write() as tx:
        delivery_hold.release(tx)


def test_claimed_and_ambiguous_invitations_of_a_backup_are_held_back(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would be sent by itself: after its lease, or after its hold."""
    monkeypatch.setattr(delivery, "PAGE_ROWS", 2)
    post.enrol(4)
    first, *_, last = [row["id"] for row in post.rows()]
    with post.db.write() as tx:
        for number, state in enumerate(("claimed", "offered", "ambiguous"), first):
            due = post.clock() + timedelta(hours=1)
            values = {"state": state, "due_at": due, "losses": state == "ambiguous"}
            tx.execute(update(invitations).where(invitations.c.id == number).values(values))
    with statements(post.db, "ORDER BY invitations.id") as sent, post.db.write() as tx:
        assert delivery.keep_back(tx, now=post.clock()) == 4
    given = [
        list(values.values() if isinstance(values, dict) else values)[:2] for _, values in sent
    ]
    # no page is looked for from the beginning
    assert given == [[after, 2] for after in (0, first + 1, last)]
    worker = post.worker()
    for _ in range(3):
        worker.turn()
        post.clock.advance(100_000)
    assert post.states() == ["ambiguous"] * 4
    assert post.mailer.messages == []


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("has_delivered", "put_back", "reason"),
    [
        (True, shutil.copyfile, HoldReason.OLDER),  # the same file, with older content
        (True, Path.replace, HoldReason.MOVED),
        (False, Path.replace, HoldReason.OLDER),
    ],
    ids=["copied over the file", "put in its place", "from before the first delivery"],
)
def test_a_backup_that_is_put_back_mails_nobody_twice(
    post: Post, tmp_path: Path, has_delivered: bool, put_back: Any, reason: HoldReason
) -> None:
    path = Path(str(post.db.engine.url.database))
    post.enrol()
    assert not has_delivered or held(post.db) is None
    with post.db.engine.connect() as connection:
        for statement in ("COMMIT", "PRAGMA wal_checkpoint(TRUNCATE)", "BEGIN"):
            connection.exec_driver_sql(statement)
    shutil.copyfile(path, tmp_path / "backup")
    post.worker().turn()
    post.db.close()
    put_back(tmp_path / "backup", path)
    assert post.states() == ["pending"]
    assert post.worker().turn() == 0
    assert held(post.db) is reason
    assert len(post.mailer.messages) == 1
    release(post.db)
    assert held(post.db) is None


def test_an_sqlite_file_is_at_home_where_it_was_migrated_as_long_as_it_has_its_mark(
    tmp_path: Path,
) -> None:
    path = tmp_path / "home.db"
    mark = tmp_path / "home.db-delivered"
    url = f"sqlite:///{path}"
    assert held_at(url, migrated=False) is None
    copy = shutil.copy(path, tmp_path / "elsewhere.db")
    assert held_at(f"sqlite:///{copy}") is HoldReason.MOVED
    mark.write_text("41")
    path.unlink()
    assert held_at(url, migrated=False) is None  # a new file in an old one's place
    mark.unlink()  # on another machine a file may well have the same number
    assert held_at(url) is HoldReason.MOVED


def test_a_postgresql_database_that_never_delivered_is_held_elsewhere(postgres: Databases) -> None:
    with postgres.database() as url:
        original = url.replace("postgresql:", "postgresql+psycopg:")
        assert held_at(original, migrated=False) is None
        with postgres.database(template=url.rpartition("/")[2]) as copy:
            elsewhere = copy.replace("postgresql:", "postgresql+psycopg:")
            assert held_at(elsewhere) is HoldReason.MOVED
            with closing(open_database(elsewhere)) as db:
                release(db)
            assert held_at(elsewhere) is None
        assert held_at(original) is None


def test_the_worker_says_that_delivery_is_held_and_that_it_goes_on(post: Post) -> None:
    post.enrol()
    with post.db.write() as tx:
        delivery_hold.hold(tx, HoldReason.BY_OPERATOR)
    worker = post.worker()
    assert [worker.turn() for _ in range(3)] == [0, 0, 0]
    release(post.db)
    assert worker.turn() == 1
    told = [json.loads(line) for line in post.log.getvalue().splitlines()]
    events = [(line["event"], line.get("reason")) for line in told]
    assert events == [
        ("delivery_held", "by_operator"),
        ("delivery_released", None),
        ("delivery", "accepted"),
    ]


def test_a_hold_and_its_end_are_logged_although_nothing_waits(post: Post) -> None:
    worker = post.worker()
    assert worker.step() is False
    with post.db.write() as tx:
        delivery_hold.hold(tx, HoldReason.BY_OPERATOR)
    for _ in range(3):
        post.clock.advance(2)
        assert worker.step() is False
    release(post.db)
    post.clock.advance(2)
    assert worker.step() is False
    told = [json.loads(line) for line in post.log.getvalue().splitlines()]
    assert [line["event"] for line in told] == ["delivery_held", "delivery_released"]


def held_at(url: str, *, migrated: bool = True) -> HoldReason | None:
    with closing(open_database(url)) as db:
        if not migrated:
            upgrade(db)
        return held(db)
