"""kill -9 of the worker and of the database in the middle of a file: every row is applied once, the
report is complete.
"""

import random
import time
from dataclasses import replace
from functools import partial

import pytest

from frontdesk.clock import system_clock
from frontdesk.db import Database, open_database
from frontdesk.errors import Unavailable
from frontdesk.files.model import EligibilityFile
from tests.conftest import migrated
from tests.factories import make_customer
from tests.faults.callers import times
from tests.faults.workers import load, workers
from tests.files.loading import Desk, csv_of, lines_of, row
from tests.patience import wait_until
from tests.postgres import PostgresServer

MISSING = 20
KILLS = times(10, long=200)  # on each of the two databases
POSTMASTER_KILLS = times(3, long=60)


def hand_in(db: Database, rows: int, first: int = 0) -> tuple[Desk, EligibilityFile]:
    """An approved full file that names none of the few members, with an invitation for every new
    one.
    """
    desk = Desk(db, make_customer(db, now=system_clock()), system_clock)
    end = first + rows
    desk.load(csv_of(row(n) for n in range(end, end + MISSING)))
    lines = (row(n, email=f"r{n}@example.com", invite_immediately=True) for n in range(first, end))
    held = desk.work(desk.hand_in(lines_of(lines), full=True))
    return desk, desk.approve(held, work=False)


def check(desk: Desk, file: EligibilityFile, rows: int, first: int = 0, accounts: int = 1) -> None:
    """Each row once: in the members, in their history, in the counts, in the report."""
    counts = {"created": rows, "ended": MISSING, "lost": MISSING}
    assert (file.state, file.counts) == ("done", counts)
    assert desk.count("members") == accounts * (rows + MISSING)
    assert desk.count("member_history") == accounts * (rows + 2 * MISSING)
    assert desk.count("invitations") == accounts * rows
    report = desk.report(file)
    assert [line["row"] for line in report] == [*range(1, rows + 1), *[None] * MISSING]
    assert {line["outcome"] for line in report[:rows]} == {"created"}
    assert {line["external_id"] for line in report[rows:]} == {
        f"E{n:05d}" for n in range(first + rows, first + rows + MISSING)
    }


# Of three accounts' loads two are paused at any time.
@pytest.mark.parametrize(("accounts", "rows", "kills"), [(1, 3000, KILLS), (3, 600, KILLS // 2)])
def test_a_killed_worker_is_followed_by_another_that_applies_every_row_once(
    db: Database, database_url: str, accounts: int, rows: int, kills: int
) -> None:
    handed = [hand_in(db, rows, first=1000 * n) for n in range(accounts)]
    chance = random.Random(5)
    with workers(load, database_url) as start:
        for _ in range(kills):
            before = [(desk, desk.reread(file)) for desk, file in handed]
            worker = start()
            for desk, file in before:
                chunks = chance.randint(0, 5) if accounts == 1 else 1
                wait_until(partial(is_past, desk, file, chunks=chunks), "more chunks")
            time.sleep(chance.uniform(0, 0.05))
            worker.kill()
            worker.join()
        start()
        for desk, file in handed:
            progress = partial(rows_done, desk, file)
            wait_until(partial(is_settled, desk, file), "the file", progress=progress)
    for n, (desk, file) in enumerate(handed):
        check(desk, desk.reread(file), rows, first=1000 * n, accounts=accounts)


def test_a_killed_database_leaves_a_file_that_goes_on_after_the_last_chunk() -> None:
    with PostgresServer(durable=True) as server:
        db = open_database(migrated(server, "files"))
        rows = 300 * POSTMASTER_KILLS
        desk, file = hand_in(db, rows)
        left = random.Random(6).sample(range(0, rows, 50), POSTMASTER_KILLS)

        def kill_now_and_then(step: str, done: int, _total: int | None) -> None:
            if step == "apply" and done in left:
                left.remove(done)
                server.kill_postmaster()
                server.start()

        desk.options = replace(desk.options, chunk_rows=50, on_progress=kill_now_and_then)
        wait_until(lambda: ended(desk, file), "the file", progress=lambda: len(left))
        check(desk, desk.reread(file), rows)
        assert left == []
        db.close()


def is_past(desk: Desk, before: EligibilityFile, *, chunks: int) -> bool:
    """Whether a new worker has the file and has committed so many chunks more."""
    now = desk.reread(before)
    return now.state == "done" or (
        now.epoch > before.epoch and now.chunks_done >= before.chunks_done + chunks
    )


def is_settled(desk: Desk, file: EligibilityFile) -> bool:
    return desk.reread(file).state not in ("waiting", "running")


def rows_done(desk: Desk, file: EligibilityFile) -> int:
    return desk.reread(file).rows_done


def ended(desk: Desk, file: EligibilityFile) -> bool:
    try:
        desk.try_to_work(file, lease_seconds=0.2)
    except Unavailable:
        return False
    return desk.reread(file).state == "done"
