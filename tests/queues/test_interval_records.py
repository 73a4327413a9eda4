"""An interval learns from its own misses: the arithmetic, the replay of a past, and the record that
all processes share.
"""

from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from math import ceil

import pytest

from frontdesk.backtest.judge import run_backtest
from frontdesk.db import Database
from frontdesk.queues import QueueSnapshots
from frontdesk.queues.estimate.model import (
    MOST_WAITS,
    NARROWEST,
    WIDEST,
    IntervalRecord,
    WaitEstimate,
    note_wait,
)
from frontdesk.queues.estimate.waits import WIDTHS, with_interval
from frontdesk.queues.model import IntervalRecords, QueueInfo, QueueSnapshot, ReplayEvent
from frontdesk.queues.snapshot import COUNTED_EVERY, LONGEST_LOOK, SETTLED, counted, queue_state
from frontdesk.queues.store.snapshots import list_records, save_snapshot
from frontdesk.reach import EVERY, Reach
from tests.conftest import SetClock
from tests.factories import NOW
from tests.queues.feed import JOINED, ON, STARTED, Clinic, event, feed, make_clinic

TOLD = WaitEstimate(600, 300, 1200)
NOTHING = IntervalRecord()


def record(waits: Sequence[float], known: IntervalRecord = NOTHING) -> IntervalRecord:
    for seconds in waits:
        known = known.with_wait(seconds, 300, 1200)
    return known


def test_a_wait_misses_an_interval_outside_its_whole_seconds() -> None:
    assert record([299.9, 300, 1200.9, 1201]) == (4, 1, 1)


def test_an_end_that_misses_too_often_moves_out_and_too_seldom_in() -> None:
    below, above = record([1300] * 90 + [600] * 210).factors()
    assert below < 1 < above
    assert record([100, 1300, *[600] * 8] * 300).factors() == pytest.approx((1.0, 1.0), abs=0.01)
    assert record([]).factors() == (1.0, 1.0)


def test_few_waits_move_an_end_little_and_many_up_to_a_bound() -> None:
    aboves = [record([1300] * count).factors()[1] for count in (0, 1, 10, 100, 4000)]
    assert aboves == sorted(aboves)
    assert (aboves[1] < 1.1, aboves[-1]) == (True, WIDEST)
    assert record([600] * 4000).factors() == (NARROWEST, NARROWEST)


def test_old_waits_are_forgotten() -> None:
    known = record([1300] * 4000)
    later = record([600] * 8000, known)
    assert known.waits == later.waits == pytest.approx(MOST_WAITS)
    assert later.longer < 0.05 * later.waits


def test_a_doctor_that_is_ready_has_the_interval_zero_which_counts_in_no_record() -> None:
    """Wrong zeros judge it."""
    assert with_interval(0.0, 0.0, 0.0, ahead=0, record=record([1300] * 100)) == WaitEstimate(
        0, 0, 0
    )
    records: dict[int, IntervalRecord] = {}
    note_wait(records, 1, 90.0, 0, 0)
    note_wait(records, 1, 90.0, None, None)
    assert records == {}


def test_the_widths_of_a_position_apply_from_its_number_of_patients_ahead() -> None:
    for start, below, above in WIDTHS:
        _, low, high = with_interval(600.0, 400.0, 800.0, ahead=start, record=NOTHING)
        assert (low, high) == (int(600 - 200 * below), ceil(600 + 200 * above))
    before, last = (with_interval(600.0, 400.0, 800.0, ahead=n, record=NOTHING) for n in (7, 1000))
    assert last.low_seconds == int(600 - 200 * WIDTHS[-1][1])
    assert (before.low_seconds or 0) > (last.low_seconds or 0)


def test_a_back_test_learns_from_the_waits_that_followed() -> None:
    """Each wait is the same, so the interval becomes narrow."""
    visits = [
        ReplayEvent(780.0 * number - ahead, type_, 1, str(number), "a")
        for number in range(200)
        for type_, ahead in ((JOINED, 500), (STARTED, 0))
    ]
    judged = run_backtest([ReplayEvent(0.0, ON, doctor="a"), *visits], since=0.0).judged
    widths = [(one.estimate.high_seconds or 0) - (one.estimate.low_seconds or 0) for one in judged]
    assert widths[-1] < 0.8 * widths[60]


@pytest.fixture
def clinic(db: Database) -> Clinic:
    """Four patients joined a minute apart, each under an estimate of its own, 10 to 20 s, and
    waited 5, 15, 25 and 35 s.
    """
    clinic = make_clinic(db)
    plan = clinic.plan_ids[0]
    events = [event("on", ON, -100, provider_group_id=clinic.group_id, doctor="a")]
    for number in range(4):
        visit = f"v{number}"
        joined = 60 * number + 1
        events += [
            event(f"j{number}", JOINED, joined, plan_id=plan, visit=visit),
            event(
                f"s{number}",
                STARTED,
                joined + 5 + 10 * number,
                plan_id=plan,
                visit=visit,
                doctor="a",
            ),
        ]
    feed(db, *events)
    info = QueueInfo(15, 0, doctors_on_duty=True, low_seconds=10, high_seconds=20)
    for number in range(4):
        at = NOW + timedelta(minutes=number)
        snapshot = QueueSnapshot({plan: info}, 60, at, at + timedelta(minutes=1))
        with db.write() as tx:
            save_snapshot(tx, clinic.account_id, snapshot, logged=())
    return clinic


def count(
    db: Database, clinic: Clinic, records: IntervalRecords | None, minutes: float
) -> IntervalRecords:
    now = NOW + timedelta(minutes=minutes)
    return db.ask(lambda tx: counted(tx, clinic.account_id, records, now))


def test_a_wait_counts_once_when_it_is_over(db: Database, clinic: Clinic) -> None:
    plan = clinic.plan_ids[0]
    settled = SETTLED.total_seconds() / 60
    every = COUNTED_EVERY.total_seconds() / 60
    first = count(db, clinic, None, settled - every + 2)
    assert first.plans == {}
    assert count(db, clinic, first, settled + 1) is first, "not due yet"
    second = count(db, clinic, first, settled + 2)
    assert second.plans == {plan: (2, 1, 0)}
    third = count(db, clinic, second, settled + 2 + every)
    assert third.plans == {plan: (4, 1, 2)}
    assert count(db, clinic, third, settled + 2 + 2 * every).plans == third.plans


def test_waits_of_others_or_long_ago_do_not_count(db: Database, clinic: Clinic) -> None:
    began = IntervalRecords(NOW - timedelta(hours=1), {})
    assert count(db, make_clinic(db, "Other"), began, 60).plans == {}
    assert count(db, clinic, began, 60).plans != {}
    unread = IntervalRecords(NOW - timedelta(days=90), {})
    assert count(db, clinic, unread, 60 + (LONGEST_LOOK + SETTLED).total_seconds() / 60).plans == {}
    ahead = IntervalRecords(NOW + timedelta(days=30), {clinic.plan_ids[0]: IntervalRecord(7, 1, 1)})
    assert count(db, clinic, ahead, 60) == (NOW + timedelta(minutes=60) - SETTLED, ahead.plans)


def test_the_shared_snapshot_has_the_corrected_interval(
    db: Database, clinic: Clinic, clock: SetClock
) -> None:
    plan = clinic.plan_ids[0]
    served = []
    clock.advance(300)  # the doctor is busy
    for longer in (10.0, 90.0):
        records = IntervalRecords(NOW, {plan: IntervalRecord(100, 10, longer)})
        expired = QueueSnapshot({}, 15, NOW - timedelta(minutes=1), NOW, records)
        with db.write() as tx:
            save_snapshot(tx, clinic.account_id, expired, logged=())
            assert (
                list_records(tx, Reach.of(clinic.account_id))
                == list_records(tx, EVERY)
                == records.plans
            )
            assert list_records(tx, Reach.of(clinic.account_id + 1)) == {}
        with closing(QueueSnapshots(clock, 15)) as snapshots:
            found = snapshots.read(db, clinic.account_id, clinic.plan_ids)
        assert found is not None
        served.append(found.queues[plan])
        shown = db.ask(lambda tx: queue_state(tx, Reach.of(clinic.account_id), clock())[plan].info)
        assert shown == served[-1], "the board shows what is served"
    few, many = served
    assert (few.estimated_wait_seconds, few.low_seconds) == (
        many.estimated_wait_seconds,
        many.low_seconds,
    )
    assert (many.high_seconds or 0) > 1.5 * (few.high_seconds or 0) > 0
