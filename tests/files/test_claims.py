"""A worker has one file of an account at a time, and a file never has two workers."""

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from frontdesk.clock import system_clock
from frontdesk.db import Database
from frontdesk.files import store
from frontdesk.files.actions import cancel_file
from frontdesk.files.claims import LostClaim, claim_next, renewing
from frontdesk.files.model import FileKey, FileStep
from tests.conftest import SetClock
from tests.factories import make_customer
from tests.files.loading import OPTIONS, Desk, csv_of, row
from tests.patience import wait_until


def test_a_stopped_file_goes_on_where_it_stopped(desk: Desk) -> None:
    file = desk.hand_in(csv_of(row(n) for n in range(30)))
    looks = iter([False, False, True])
    desk.options = replace(desk.options, chunk_rows=10, should_stop=lambda: next(looks))
    stopped = desk.work(file)
    assert (stopped.state, stopped.rows_done, stopped.counts) == ("waiting", 20, {"created": 20})
    desk.options = replace(desk.options, should_stop=lambda: False)
    done = desk.work(file)
    assert (done.state, done.rows_done, done.counts) == ("done", 30, {"created": 30})
    assert [line["row"] for line in desk.report(file)] == list(range(2, 32))


def test_an_account_has_one_file_at_a_time_and_another_account_its_own(
    desk: Desk, db: Database, clock: SetClock
) -> None:
    other = Desk(db, make_customer(db, name="Other"), clock)
    first, second = desk.hand_in(csv_of([row(1)])), desk.hand_in(csv_of([row(2)]))
    theirs = other.hand_in(csv_of([row(3)]))
    claims = [claim_next(db, clock, OPTIONS) for _ in range(3)]
    assert [claim and claim.file.id for claim in claims] == [first.id, theirs.id, None]
    assert claim_next(db, clock, OPTIONS, only=second.id) is None


def test_a_worker_that_slept_past_its_lease_changes_nothing(
    desk: Desk, db: Database, clock: SetClock
) -> None:
    file = desk.hand_in(csv_of([row(1)]))
    sleeper = claim_next(db, clock, replace(OPTIONS, lease_seconds=-1))
    assert sleeper is not None
    assert desk.work(file).state == "done"
    with pytest.raises(LostClaim):
        sleeper.update(counts={"created": 99})
    assert desk.reread(file).counts == {"created": 1}


def test_a_worker_that_slept_between_its_commit_and_the_next_look_has_lost_the_file(
    desk: Desk, db: Database, clock: SetClock
) -> None:
    file = desk.hand_in(csv_of([row(1)]))
    sleeper = claim_next(db, clock, replace(OPTIONS, lease_seconds=-1))
    other = claim_next(db, clock, OPTIONS)
    assert sleeper is not None
    assert other is not None
    with pytest.raises(LostClaim):
        sleeper.update(counts={"created": 99})
    other.update(rows_done=0)
    assert desk.reread(file).epoch == other.file.epoch == 2


def test_a_lapsed_lease_that_was_renewed_since_is_not_taken(
    desk: Desk, db: Database, clock: SetClock
) -> None:
    file = desk.hand_in(csv_of([row(1)]))
    owner = claim_next(db, clock, replace(OPTIONS, lease_seconds=60))
    assert owner is not None
    now = system_clock()
    for late, is_taken in ((timedelta(0), False), (timedelta(seconds=120), True)):
        with db.write() as tx:
            at = now + late
            taken = store.claim(tx, file.id, owner.file.epoch, now=at, lease_until=at + late)
            assert (taken is not None) is is_taken


def test_a_lease_is_renewed_while_nothing_is_written(
    desk: Desk, db: Database, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.files.claims.RENEW_SECONDS", 0.01)
    file = desk.hand_in(csv_of([row(1)]))
    claim = claim_next(db, clock, OPTIONS)
    assert claim is not None
    first = desk.reread(file).lease_until
    assert first is not None
    with renewing(claim):
        wait_until(lambda: (desk.reread(file).lease_until or first) > first, "a longer lease")


def test_two_workers_share_the_files_and_apply_each_once(desk: Desk, db: Database, clock: SetClock) -> None:
    other = Desk(db, make_customer(db, name="Other"), clock)
    files = [
        owner.hand_in(csv_of(row(100 * n + k) for k in range(40)))
        for n, owner in enumerate([desk, other, desk, other, desk])
    ]

    def work() -> None:
        while any(desk.reread(file).state in ("waiting", "running") for file in files):
            desk.work_on_any()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [desk.reread(file).counts for file in files] == [{"created": 40}] * 5
    assert desk.count("members") == desk.count("member_history") == 200


def test_an_upload_that_broke_off_is_never_loaded_and_is_deleted_after_a_day(
    desk: Desk, clock: SetClock
) -> None:
    desk.break_off()
    assert claim_next(desk.db, clock, OPTIONS) is None
    clock.advance(25 * 3600)
    desk.clean_up()
    assert desk.count("eligibility_files") == 0


@pytest.mark.parametrize("full", [False, True])
def test_a_file_that_is_cancelled_while_it_runs_stops_after_the_chunk_in_hand(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """Whoever cancels it: the worker finds out at its next write, and what it was writing is rolled back."""
    desk.load(csv_of(row(n) for n in range(100, 120)))
    file = desk.hand_in(csv_of(row(n) for n in range(200)), full=full)

    def cancel_when_begun() -> bool:
        running = desk.reread(file)
        if running.rows_done and running.state == "running":
            with desk.db.write() as tx:
                cancel_file(tx, FileKey(file.id), desk.requester())
        return False

    desk.options = replace(desk.options, chunk_rows=10, should_stop=cancel_when_begun)
    cancelled = desk.work(file)
    counted = sum(cancelled.counts.get(outcome, 0) for outcome in ("created", "unchanged"))
    assert (cancelled.state, counted) == ("cancelled", cancelled.rows_done)
    assert 0 < cancelled.rows_done < 200
    assert len(desk.members()) == 20 + cancelled.counts["created"]
    assert (desk.count("file_parts"), desk.work_on_any()) == (0, False)
    assert desk.undo(cancelled).counts["withdrawn"] == cancelled.counts["created"]


def test_a_claim_on_a_cancelled_file_is_lost_while_nothing_is_written(
    desk: Desk, db: Database, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.files.claims.RENEW_SECONDS", 0.01)
    file = desk.hand_in(csv_of([row(1)]))
    claim = claim_next(db, clock, OPTIONS)
    assert claim is not None
    with renewing(claim):
        claim.checkpoint(FileStep.CHECK, 1)
        desk.cancel(file)
        wait_until(lambda: claim.is_lost, "the claim to be lost")
        with pytest.raises(LostClaim):
            claim.checkpoint(FileStep.CHECK, 1)
