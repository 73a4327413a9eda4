"""kill -9 of the worker and of the database in the middle of a file: every row is applied once, the report is complete."""

import random
import time
from dataclasses import replace
from functools import partial

from frontdesk.clock import system_clock
from frontdesk.db import Database, open_database
from frontdesk.errors import Unavailable
from frontdesk.files.model import EligibilityFile
from tests.conftest import migrated
from tests.factories import make_customer
from tests.faults.callers import times
from tests.faults.loader import start_loader
from tests.files.loading import Desk, csv_of, lines_of, row
from tests.patience import wait_until
from tests.postgres import PostgresServer

ROWS, MISSING = 3000, 20
KILLS = times(10, long=200)  # on each of the two databases
POSTMASTER_KILLS = times(3, long=60)


def hand_in(db: Database, rows: int = ROWS, first: int = 0) -> tuple[Desk, EligibilityFile]:
    """A full file over members of whom it names all but a few, with an invitation for every new one."""
    desk = Desk(db, make_customer(db, now=system_clock()), system_clock)
    end = first + rows
    desk.load(csv_of(row(n) for n in range(end, end + MISSING)))
    lines = (row(n, email=f"r{n}@example.com", invite_immediately=True) for n in range(first, end))
    return desk, desk.hand_in(lines_of(lines), full=True)


def check(desk: Desk, file: EligibilityFile, rows: int = ROWS, first: int = 0, accounts: int = 1) -> None:
    """Each row once: in the members, in their history, in the counts, in the report."""
    assert (file.state, file.counts) == ("done", {"created": rows, "ended": MISSING})
    assert desk.count("members") == accounts * (rows + MISSING)
    assert desk.count("member_history") == accounts * (rows + 2 * MISSING)
    assert desk.count("invitations") == accounts * rows
    report = desk.report(file)
    assert [line["row"] for line in report] == [*range(1, rows + 1), *[None] * MISSING]
    assert {line["outcome"] for line in report[:rows]} == {"created"}
    assert {line["external_id"] for line in report[rows:]} == {
        f"E{n:05d}" for n in range(first + rows, first + rows + MISSING)
    }


def test_a_killed_worker_is_followed_by_another_that_applies_every_row_once(
    db: Database, database_url: str
) -> None:
    desk, file = hand_in(db)
    chance = random.Random(5)
    for _ in range(KILLS):
        before = desk.reread(file)
        worker = start_loader(database_url)
        try:
            wait_until(partial(is_past, desk, before, chunks=chance.randint(0, 5)), "more chunks")
            time.sleep(chance.uniform(0, 0.05))
        finally:
            worker.kill()
            worker.join()
    worker = start_loader(database_url)
    try:
        wait_until(partial(has_ended, desk, file), "the file")
    finally:
        worker.kill()
        worker.join()
    check(desk, desk.reread(file))


def test_a_killed_worker_leaves_paused_loads_that_go_on(db: Database, database_url: str) -> None:
    """Of three accounts' loads two are paused at any time."""
    handed = [hand_in(db, rows=600, first=1000 * n) for n in range(3)]
    for _ in range(KILLS // 2):
        before = [desk.reread(file) for desk, file in handed]
        worker = start_loader(database_url)
        try:
            for (desk, _), file in zip(handed, before, strict=True):
                wait_until(partial(is_past, desk, file, chunks=1), "a chunk of each")
        finally:
            worker.kill()
            worker.join()
    worker = start_loader(database_url)
    try:
        for desk, file in handed:
            wait_until(partial(has_ended, desk, file), "the files")
    finally:
        worker.kill()
        worker.join()
    for n, (desk, file) in enumerate(handed):
        check(desk, desk.reread(file), rows=600, first=1000 * n, accounts=3)


def test_a_killed_database_leaves_a_file_that_goes_on_after_the_last_chunk() -> None:
    with PostgresServer(durable=True) as server:
        db = open_database(migrated(server, "files"))
        rows = 300 * POSTMASTER_KILLS
        desk, file = hand_in(db, rows=rows)
        left = random.Random(6).sample(range(0, rows, 50), POSTMASTER_KILLS)

        def kill_now_and_then(step: str, done: int, _total: int | None) -> None:
            if step == "apply" and done in left:
                left.remove(done)
                server.kill_postmaster()
                server.start()

        desk.options = replace(desk.options, chunk_rows=50, on_progress=kill_now_and_then)
        wait_until(lambda: ended(desk, file), "the file")
        check(desk, desk.reread(file), rows=rows)
        assert left == []
        db.close()


def is_past(desk: Desk, before: EligibilityFile, *, chunks: int) -> bool:
    """Whether a new worker has the file and has committed so many chunks more."""
    now = desk.reread(before)
    return now.state == "done" or (
        now.epoch > before.epoch and now.chunks_done >= before.chunks_done + chunks
    )


def has_ended(desk: Desk, file: EligibilityFile) -> bool:
    return desk.reread(file).state not in ("waiting", "running")


def ended(desk: Desk, file: EligibilityFile) -> bool:
    try:
        desk.try_to_work(file, lease_seconds=0.2)
    except Unavailable:
        return False
    return desk.reread(file).state == "done"
