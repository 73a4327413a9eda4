"""A file has one worker, which reads ahead of what it writes; an account has one file at a time."""

import os
import sys
import threading
from collections.abc import Generator, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from frontdesk.clock import system_clock
from frontdesk.files import store
from frontdesk.files.actions import Upload, begin_file, cancel_file, delete_left_content
from frontdesk.files.claims import (
    NICENESS,
    FileClaim,
    GoOn,
    LostClaim,
    claim_next,
    reading_ahead,
    renewing,
)
from frontdesk.files.model import FileKey, FileStep, NewFile
from frontdesk.reach import EVERY
from tests.conftest import SetClock
from tests.files.loading import COLUMNS, OPTIONS, Desk, csv_of, row
from tests.formats.workbooks import workbook
from tests.patience import PATIENCE_SECONDS, wait_until

ROWS = [row(n, email=None) for n in range(30)]
THIRTY = csv_of(ROWS)


def claimed(desk: Desk, lease_seconds: float = 60) -> FileClaim:
    claim = claim_next(desk.db, desk.clock, replace(OPTIONS, lease_seconds=lease_seconds))
    assert claim is not None
    return claim


@pytest.mark.parametrize(
    "content", [THIRTY, workbook([COLUMNS, *([*each.values()] for each in ROWS)])]
)
def test_a_stopped_file_goes_on_where_it_stopped(desk: Desk, content: bytes) -> None:
    file = desk.hand_in(content)
    running = desk.options
    desk.options = replace(
        running, chunk_rows=10, should_stop=lambda: desk.reread(file).rows_done == 20
    )
    stopped = desk.work(file)
    assert (stopped.state, stopped.rows_done, stopped.counts) == ("waiting", 20, {"created": 20})
    desk.options = running
    done = desk.work(file)
    assert (done.state, done.rows_done, done.counts) == ("done", 30, {"created": 30})
    assert [line["row"] for line in desk.report(file)] == list(range(2, 32))


def test_an_account_has_one_file_at_a_time_and_another_account_its_own(
    desk: Desk, other: Desk
) -> None:
    first = desk.hand_in(csv_of([row(1)]))
    second = desk.hand_in(csv_of([row(2)]))
    theirs = other.hand_in(csv_of([row(3)]))
    claims = [claim_next(desk.db, desk.clock, OPTIONS) for _ in range(3)]
    assert [claim and claim.file.id for claim in claims] == [first.id, theirs.id, None]
    assert claim_next(desk.db, desk.clock, OPTIONS, only=second.id) is None


def test_a_worker_that_slept_past_its_lease_changes_nothing(desk: Desk) -> None:
    file = desk.hand_in(csv_of([row(1)]))
    sleeper = claimed(desk, -1)
    other = claimed(desk, -1)
    for _ in range(2):
        with pytest.raises(LostClaim):
            sleeper.update(counts={"created": 99})
        other.update(rows_done=0)
        assert desk.reread(file).epoch == other.file.epoch == 2
    assert desk.work(file).counts == {"created": 1}
    for late in (sleeper, other):
        with pytest.raises(LostClaim):
            late.update(counts={"created": 99})
    assert desk.reread(file).counts == {"created": 1}


def test_a_lapsed_lease_that_was_renewed_since_is_not_taken(desk: Desk) -> None:
    file = desk.hand_in(csv_of([row(1)]))
    owner = claimed(desk)
    now = system_clock()
    for late, is_taken in ((timedelta(0), False), (timedelta(seconds=120), True)):
        with desk.db.write() as tx:
            at = now + late
            taken = store.claim(tx, file.id, owner.file.epoch, now=at, lease_until=at + late)
            assert (taken is not None) is is_taken


@pytest.mark.usefixtures("impatient")
def test_a_lease_is_renewed_while_nothing_is_written_until_the_file_is_cancelled(
    desk: Desk,
) -> None:
    file = desk.hand_in(csv_of([row(1)]))
    claim = claimed(desk)
    first = desk.reread(file).lease_until
    assert first is not None
    with renewing(claim):
        wait_until(lambda: (desk.reread(file).lease_until or first) > first, "a longer lease")
        claim.checkpoint(FileStep.CHECK, 48_200)
        wait_until(lambda: desk.reread(file).rows_checked == 48_200, "the row of the check")
        desk.cancel(file)
        wait_until(lambda: claim.is_lost, "the claim to be lost")
        with pytest.raises(LostClaim):
            claim.checkpoint(FileStep.CHECK, 1)


@pytest.mark.usefixtures("impatient")
def test_the_row_of_a_check_is_that_of_its_claim(desk: Desk) -> None:
    file = desk.hand_in(csv_of([row(1)]))
    claim = claimed(desk)
    with renewing(claim):
        claim.checkpoint(FileStep.CHECK, 3)
        wait_until(lambda: desk.reread(file).rows_checked == 3, "the row of the check")
    with desk.db.write() as tx:
        later = system_clock() + timedelta(seconds=120)
        again = store.claim(tx, file.id, claim.file.epoch, now=later, lease_until=later)
    assert again is not None
    assert again.rows_checked is None


def test_an_upload_that_broke_off_is_not_loaded_and_deleted_after_a_day(
    desk: Desk, clock: SetClock
) -> None:
    with desk.db.write() as tx:
        new = NewFile(desk.customer.account_id, desk.customer.plan_ids[0])
        file = begin_file(tx, new, desk.requester())
    upload = Upload(desk.db, file)
    upload.write(b"external_id")
    upload.flush()
    assert claim_next(desk.db, clock, OPTIONS) is None
    clock.advance(25 * 3600)
    delete_left_content(desk.db, clock())
    assert desk.count("eligibility_files") == 0


@pytest.mark.parametrize("full", [False, True])
def test_a_file_that_is_cancelled_while_it_runs_stops_after_the_chunk_in_hand(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """Whoever cancels it: the worker finds out at its next write, and what it was writing is rolled
    back.
    """
    desk.load(csv_of(row(n) for n in range(100, 120)))
    file = desk.hand_in(csv_of(row(n) for n in range(200)), full=full)

    def cancel_when_begun() -> bool:
        running = desk.reread(file)
        if running.rows_done and running.state == "running":
            with desk.db.write() as tx:
                cancel_file(tx, FileKey(file.id, EVERY), desk.requester())
        return False

    desk.options = replace(desk.options, chunk_rows=10, should_stop=cancel_when_begun)
    cancelled = desk.work(file)
    counted = sum(cancelled.counts.get(outcome, 0) for outcome in ("created", "unchanged"))
    assert (cancelled.state, counted) == ("cancelled", cancelled.rows_done)
    assert 0 < cancelled.rows_done < 200
    assert len(desk.members()) == 20 + cancelled.counts["created"]
    assert (desk.count("file_parts"), desk.work_on_any()) == (0, False)
    assert desk.undo(cancelled).counts["withdrawn"] == cancelled.counts["created"]


class Broken(Exception):
    pass


@pytest.fixture
def running() -> threading.Event:
    running = threading.Event()
    running.set()
    return running


def never() -> None:
    raise AssertionError


@pytest.mark.parametrize("ahead", [0, 2])
def test_items_come_in_order_so_many_ahead_and_then_the_error(
    running: threading.Event, ahead: int
) -> None:
    made: list[int] = []

    def make(_go_on: GoOn) -> Generator[int]:
        for number in range(5):
            made.append(number)
            yield number
        raise Broken

    taken: list[int] = []

    def take(items: Iterator[int]) -> None:
        for item in items:
            assert len(made) <= item + 1 + ahead
            taken.append(item)

    with (
        reading_ahead(make, running, checkpoint=never, ahead=ahead) as made_ahead,
        pytest.raises(Broken),
    ):
        take(made_ahead)
    assert taken == made == list(range(5))


@pytest.mark.usefixtures("impatient")
def test_nothing_is_made_while_it_is_paused(running: threading.Event) -> None:
    made: list[int] = []

    def make(go_on: GoOn) -> Generator[int]:
        for number in range(10):
            go_on()
            made.append(number)
            if number == 2:
                running.clear()
        yield len(made)

    def resume() -> None:
        if not running.is_set():
            made.append(-1)
            running.set()

    rescue = threading.Timer(PATIENCE_SECONDS, running.set)  # else it would wait for ever
    rescue.start()
    with reading_ahead(make, running, checkpoint=resume) as items:
        assert [*items] == [10 + 1]
    rescue.cancel()
    assert made == [0, 1, 2, -1, *range(3, 10)]


def test_the_thread_has_a_lower_priority_than_its_caller(running: threading.Event) -> None:
    before = os.nice(0)

    def make(_go_on: GoOn) -> Generator[int]:
        yield os.nice(0)

    with reading_ahead(make, running, checkpoint=never) as items:
        assert [*items] == [NICENESS if sys.platform == "linux" else before]
    assert os.nice(0) == before
