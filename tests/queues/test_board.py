"""The board: what it shows of each plan, for whom, computed once for all viewers; the day of a
plan.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import insert

from frontdesk.db import Database, shared_values
from frontdesk.db.shared_values import SharedValues
from frontdesk.errors import NotFound
from frontdesk.queues import board
from frontdesk.queues.board import (
    STEP,
    STEPS,
    PastWaits,
    QueueBoard,
    QueueBoards,
    read_board,
    read_day,
)
from frontdesk.queues.tables import estimate_log
from frontdesk.reach import EVERY, Reach
from tests.conftest import SetClock
from tests.db.statements import statements
from tests.factories import NOW
from tests.queues.feed import (
    JOINED,
    PAUSED,
    STARTED,
    Clinic,
    estimated,
    event,
    feed,
    make_clinic,
    on_duty,
    waited,
)


def open_clinic(db: Database, name: str = "Example") -> Clinic:
    """Two doctors for both plans, one with a patient; one patient waits for the first plan."""
    clinic = make_clinic(db, name)
    plan = clinic.plan_ids[0]
    feed(
        db,
        on_duty(clinic, "a", seconds=0),
        on_duty(clinic, "b", seconds=0),
        event(f"j1-{name}", JOINED, 1, plan_id=plan, visit=f"1-{name}"),
        event(f"s1-{name}", STARTED, 2, plan_id=plan, visit=f"1-{name}", doctor="a"),
        event(f"j2-{name}", JOINED, 3, plan_id=plan, visit=f"2-{name}"),
    )
    return clinic


def test_an_account_sees_its_plans_and_the_installation_all(db: Database) -> None:
    first = open_clinic(db, "First")
    second = open_clinic(db, "Second")
    shut = make_clinic(db, "Shut", plan_count=1)
    now = NOW + timedelta(seconds=60)
    own = db.ask(lambda tx: read_board(tx, Reach.of(first.account_id), now))
    [group] = own.groups
    assert [each.plan.id for each in group.plans] == [*first.plan_ids]
    waited, empty = group.plans
    assert (waited.doctors, waited.busy_doctors, waited.info.queue_length) == (2, 1, 1)
    assert (waited.is_closed, empty.info.queue_length, empty.last_hour) == (False, 0, None)
    every = db.ask(lambda tx: read_board(tx, EVERY, now))
    ids = [first.group_id, second.group_id, shut.group_id]
    assert [each.group.id for each in every.groups] == ids
    [closed] = every.groups[-1].plans
    assert (closed.is_closed, every.feed_age(every.groups[-1])) == (True, None)
    assert every.groups[0] == group


def test_paused_doctors_without_a_patient_are_counted_apart(db: Database) -> None:
    clinic = open_clinic(db)
    group = {"provider_group_id": clinic.group_id}
    until = NOW + timedelta(seconds=90)
    feed(db, *(event(f"p-{name}", PAUSED, 9, doctor=name, until=until, **group) for name in "ab"))
    with db.read() as tx:
        for second, paused in ((60, 1), (91, 0)):
            [shown] = read_board(tx, EVERY, NOW + timedelta(seconds=second)).groups
            plan = shown.plans[0]
            assert (plan.doctors, plan.busy_doctors, plan.paused_doctors) == (2, 1, paused)


def test_the_age_of_the_feed_is_that_of_its_own_group(db: Database) -> None:
    clinic = open_clinic(db)
    fed = db.ask(lambda tx: read_board(tx, Reach.of(clinic.account_id), NOW)).groups[0].fed_at
    assert fed is not None
    later = db.ask(lambda tx: read_board(tx, EVERY, fed + timedelta(minutes=31)))
    assert later.feed_age(later.groups[0]) == timedelta(minutes=31)


def test_the_error_of_the_last_hour_is_that_of_the_plan(db: Database) -> None:
    clinic = open_clinic(db)
    estimated(db, clinic.plan_ids[0], 5, seconds=60)
    waited(db, clinic, [(NOW + timedelta(minutes=5, seconds=20), 90.0)])
    now = NOW + timedelta(minutes=30)
    group = db.ask(lambda tx: read_board(tx, EVERY, now)).groups[0]
    found = group.plans[0].last_hour
    assert found is not None
    assert (found.matched, found.mean_error_seconds) == (1, 30.0)
    assert group.plans[1].last_hour is None
    much_later = NOW + timedelta(hours=2)
    assert db.ask(lambda tx: read_board(tx, EVERY, much_later)).groups[0].plans[0].last_hour is None


def test_a_board_is_read_once_for_all_viewers_of_five_seconds(
    db: Database, clock: SetClock
) -> None:
    clinic = open_clinic(db)
    reach = Reach.of(clinic.account_id)
    boards = QueueBoards(clock, SharedValues(clock))
    assert boards.in_memory(reach) is None
    with statements(db, "FROM duties") as renewals, ThreadPoolExecutor(20) as threads:
        shown = list(threads.map(lambda _: boards.read(db, reach), range(200)))
        assert all(each is shown[0] for each in shown)
        assert boards.in_memory(reach) is shown[0]
        clock.advance(4.9)
        assert boards.read(db, reach) is shown[0]
        assert len(renewals) == 1
        assert boards.read(db, EVERY) is not shown[0]
        clock.advance(10.2)
        assert boards.in_memory(reach) is None
        assert boards.read(db, reach).as_of == clock()
        assert len(renewals) == 3
        clock.advance(-3600)  # a clock that was set back
        assert boards.read(db, reach).as_of == boards.read(db, reach).computed_at == clock()


def test_a_board_is_computed_anew_once_events_came_and_every_fifteen_seconds(
    db: Database, clock: SetClock
) -> None:
    clinic = open_clinic(db)
    make_clinic(db, "Never fed")
    boards = QueueBoards(clock, SharedValues(clock))
    first = boards.read(db, EVERY)
    with statements(db, "FROM duties") as renewals:
        for _ in range(2):
            clock.advance(5.1)
            assert boards.read(db, EVERY) == replace(first, as_of=clock())
        assert renewals == []
        clock.advance(5.1)
        assert boards.read(db, EVERY).computed_at == clock()
        assert len(renewals) == 1
    clock.advance(5.1)
    feed(db, on_duty(clinic, "c", seconds=16), now=clock())
    assert boards.read(db, EVERY).groups[0].plans[0].doctors == 3


def test_while_a_board_is_renewed_the_last_one_is_shown(
    db: Database, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_clinic(db)
    boards = QueueBoards(clock, SharedValues(clock))
    first = boards.read(db, EVERY)
    clock.advance(16)
    seen = []

    renewed = QueueBoard(clock(), clock(), groups=())

    def compute(tx: object, reach: Reach, now: object) -> QueueBoard:
        with ThreadPoolExecutor(1) as thread:
            seen.append(thread.submit(boards.read, db, EVERY).result(timeout=10))
        return renewed

    monkeypatch.setattr(board, "read_board", compute)
    assert boards.read(db, EVERY) is renewed
    assert seen == [first]


def test_the_boards_that_are_kept_are_bounded(
    db: Database, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_values, "MOST_KEPT", 3)
    values = SharedValues(clock)
    boards = QueueBoards(clock, values)
    for account_id in range(1, 9):
        assert boards.read(db, Reach.of(account_id)).groups == ()
    assert len(values._shared) <= 3


def test_a_day_has_the_promised_wait_of_each_five_minutes_and_the_waits_that_came(
    db: Database, clock: SetClock
) -> None:
    clinic = make_clinic(db)
    plan, other = clinic.plan_ids
    estimated(db, plan, -0.1, seconds=100)
    estimated(db, plan, 4.8, seconds=200)
    estimated(db, plan, 12)  # in force at no whole five minutes
    estimated(db, other, 5)
    joined = NOW + timedelta(minutes=5)
    waited(db, clinic, [(joined, 60.0), (joined + timedelta(seconds=299), 180.0)])
    now = NOW + timedelta(minutes=17)
    day = db.ask(lambda tx: read_day(tx, Reach.of(clinic.account_id), plan, now))
    assert [(each.at, each.seconds) for each in day.promised] == [(NOW, 100), (joined, 200)]
    assert (day.promised[1].low_seconds, day.promised[1].high_seconds) == (100, 400)
    assert day.waits == (PastWaits(joined, 2, 120.0, 180.0),)
    assert (day.plan.id, day.as_of) == (plan, now)
    empty = db.ask(lambda tx: read_day(tx, EVERY, plan, now + timedelta(days=1, minutes=10)))
    assert (empty.promised, empty.waits) == ((), ())


def test_a_day_is_bounded(db: Database) -> None:
    clinic = make_clinic(db)
    starts = [NOW + timedelta(minutes=minute) for minute in range(0, 24 * 60 + 2, 2)]
    with db.write() as tx:
        row = {"plan_id": clinic.plan_ids[0], "estimate_seconds": 1}
        rows = [row | {"taken_at": at, "expires_at": at + STEP} for at in starts]
        tx.execute(insert(estimate_log), rows)
    waited(db, clinic, [(at, 1.0) for at in starts])
    now = NOW + timedelta(hours=24)
    day = db.ask(lambda tx: read_day(tx, EVERY, clinic.plan_ids[0], now))
    assert (len(day.promised), len(day.waits)) == (STEPS, STEPS)


def test_the_day_of_another_accounts_plan_does_not_exist(db: Database, clock: SetClock) -> None:
    clinic = make_clinic(db)
    stranger = make_clinic(db, "Stranger")
    boards = QueueBoards(clock, SharedValues(clock))
    for plan_id in (clinic.plan_ids[0], 10**9):
        with pytest.raises(NotFound):
            boards.read_day(db, Reach.of(stranger.account_id), plan_id)
    first = boards.read_day(db, Reach.of(clinic.account_id), clinic.plan_ids[0])
    clock.advance(59)
    assert boards.read_day(db, Reach.of(clinic.account_id), clinic.plan_ids[0]) is first
