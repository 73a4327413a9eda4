"""An estimate learns from its own errors: the arithmetic, the replay of a past, and the record that
all processes share.
"""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from math import ceil, exp
from typing import Any

import pytest

from frontdesk.backtest.judge import run_backtest
from frontdesk.db import Database
from frontdesk.queues import QueueSnapshots
from frontdesk.queues.estimate.model import (
    MOST_CLASSES,
    Doctor,
    DoctorPool,
    OngoingVisit,
    PastVisit,
)
from frontdesk.queues.estimate.record import (
    LARGEST_FACTOR,
    LEAST_FACTOR,
    NARROWEST,
    STEP,
    WIDEST,
    EstimateBasis,
    PlanRecord,
    WaitEstimate,
    WidthRecord,
    note_wait,
)
from frontdesk.queues.estimate.simulation import SimulatedWait
from frontdesk.queues.estimate.waits import WIDTHS, estimate_waits, with_record
from frontdesk.queues.model import EstimateRecords, QueueInfo, QueueSnapshot, ReplayEvent
from frontdesk.queues.snapshot import COUNTED_EVERY, LONGEST_LOOK, SETTLED, counted, queue_state
from frontdesk.queues.store.json_forms import records_as_json, records_of_json
from frontdesk.queues.store.snapshots import (
    find_snapshot,
    list_outcomes,
    list_records,
    save_snapshot,
)
from frontdesk.reach import EVERY, Reach
from tests.conftest import SetClock
from tests.factories import NOW
from tests.queues.feed import JOINED, ON, STARTED, Clinic, event, feed, make_clinic

BASIS = EstimateBasis(ahead=2, raw_seconds=600.0)
GIVEN = WaitEstimate(600, 300, 1200, BASIS)
NOTHING = PlanRecord()


def record(
    waits: Iterable[float],
    known: PlanRecord = NOTHING,
    given: WaitEstimate = GIVEN,
    patient_class: str | None = None,
) -> PlanRecord:
    """The record after waits of these seconds under one estimate, which does not learn."""
    for seconds in waits:
        known = known.with_wait(seconds, given, patient_class)
    return known


def corrected(waits: Iterable[float], raw: float, patient_class: str | None = None) -> PlanRecord:
    """The record after waits under estimates that are corrected as it says."""
    known = NOTHING
    for seconds in waits:
        basis = known.basis(2, raw, patient_class)
        known = known.with_wait(seconds, WaitEstimate(0, 0, 9999, basis), patient_class)
    return known


def test_what_is_stored_with_each_estimate_has_few_digits() -> None:
    basis = NOTHING.basis(2, 600.0 / 7, None)
    assert basis == EstimateBasis(ahead=2, raw_seconds=85.7)
    assert NOTHING.basis(2, None, None).raw_seconds is None


def test_a_wait_misses_an_interval_outside_its_whole_seconds() -> None:
    for seconds, sides in ((299.9, (0.9, -0.1)), (300, (-0.1, -0.1)), (1200.9, (-0.1, -0.1))):
        _, below, above = record([seconds]).width
        assert (below, above) == pytest.approx((STEP * sides[0], STEP * sides[1]))
    assert record([1201]).width.above == pytest.approx(STEP * 0.9)


def test_an_end_rests_where_a_tenth_of_the_waits_are_beyond_it() -> None:
    """The proportional rule that was here before rested at 11.6 %. Waits are even from 0 to 1,000 s
    around an estimate of 500 s, whose runs say 300 to 700 s.
    """
    known = NOTHING
    longer = 0
    for number in range(4000):
        wait = 1000.0 * (number * 0.6180339887 % 1)
        given = with_record(SimulatedWait(500.0, 300.0, 700.0, ahead=2), known)
        longer += number >= 2000 and wait >= (given.high_seconds or 0) + 1
        known = known.with_wait(wait, given._replace(basis=EstimateBasis(2, None)), None)
    assert longer / 2000 == pytest.approx(0.1, abs=0.004)


def test_few_waits_move_an_end_little_and_many_up_to_a_bound() -> None:
    aboves = [record([1300] * count).width_factors(2)[1] for count in (0, 1, 10, 100, 4000)]
    assert aboves == sorted(aboves)
    assert aboves[1] < 1.1
    assert aboves[-1] == pytest.approx(WIDEST)
    assert record([600] * 4000).width_factors(2) == pytest.approx((NARROWEST, NARROWEST))


def test_each_band_of_the_line_has_an_interval_of_its_own() -> None:
    """Waits with one patient ahead are always too long, with five never."""
    one = GIVEN._replace(basis=EstimateBasis(1, 600.0))
    five = GIVEN._replace(basis=EstimateBasis(5, 600.0))
    known = NOTHING
    for _ in range(300):
        known = known.with_wait(1300, one, None).with_wait(700, five, None)
    assert known.width_factors(1)[1] > 2
    assert known.width_factors(4)[1] < 1
    assert known.width_factors(4) == known.width_factors(5), "4 and 5 ahead are one band"
    new_band = known.width_factors(100)
    assert new_band == pytest.approx(tuple(map(exp, known.width[1:]))), "it follows the plan"


def test_a_lasting_error_corrects_the_estimate() -> None:
    known = corrected([300.0] * 3000, raw=600.0)
    given = with_record(SimulatedWait(600.0, 500.0, 700.0, ahead=2), known)
    assert given.seconds == pytest.approx(300, abs=10)
    assert (given.low_seconds or 0) <= given.seconds <= (given.high_seconds or 0)
    late = with_record(SimulatedWait(600.0, 500.0, 700.0, ahead=2), known, is_late=True)
    assert late.seconds == 600, "off while the feed is late"
    assert with_record(SimulatedWait(0.0, 0.0, 0.0, ahead=0), known).seconds == 0


def test_few_waits_or_errors_that_come_in_waves_correct_nothing() -> None:
    assert corrected([300.0] * 10, raw=600.0).correction(None) == 1.0
    waves = ([300.0] * 20 + [900.0] * 20) * 100
    assert corrected(waves, raw=600.0).correction(None) == pytest.approx(1.0, abs=0.02)
    assert corrected([], raw=600.0).correction(None) == 1.0


def test_a_correction_has_bounds() -> None:
    assert corrected([1000.0] * 5000, raw=100.0).correction(None) == pytest.approx(LARGEST_FACTOR)
    assert corrected([0.0] * 5000, raw=600.0).correction(None) == pytest.approx(LEAST_FACTOR)


def test_a_class_learns_its_own_error_and_follows_the_plan_until_then() -> None:
    known = NOTHING
    for _ in range(3000):
        for patient_class, seconds in (("urgent", 200.0), ("new", 1000.0)):
            basis = known.basis(2, 600.0, patient_class)
            given = WaitEstimate(600, 0, 9999, basis)
            known = known.with_wait(seconds, given, patient_class)
    assert known.correction("urgent") == pytest.approx(1 / 3, abs=0.02)
    assert known.correction("new") == pytest.approx(5 / 3, abs=0.02)
    assert known.correction("unknown") == known.correction(None)


def test_a_plan_keeps_the_errors_of_few_classes() -> None:
    known = NOTHING
    for number in range(50):
        known = record([600], known, patient_class=f"class-{number}")
        known = record([600], known, patient_class="urgent")
    assert len(known.errors) == MOST_CLASSES + 1
    assert {None, "urgent", "class-49"} <= set(known.errors), "those that learnt last"
    assert known.errors["urgent"].waits == 50


def test_a_patient_that_was_forgotten_spoils_no_correction() -> None:
    """It was seen the next morning. Without the bound the next would be told 1,389 s."""
    known = corrected([300.0] * 3000, raw=600.0)
    after = known.with_wait(
        15 * 3600.0, WaitEstimate(0, 0, 9999, known.basis(2, 600.0, None)), None
    )
    assert known.correction(None) == pytest.approx(0.5, abs=0.02)
    assert after.correction(None) < 0.6


def test_a_doctor_that_is_ready_has_the_interval_zero_which_counts_in_no_record() -> None:
    """Wrong zeros judge it."""
    ready = with_record(SimulatedWait(0.0, 0.0, 0.0, ahead=0), record([1300] * 100))
    assert ready[:3] == (0, 0, 0)
    records: dict[int, PlanRecord] = {}
    note_wait(records, 1, 90.0, ready)
    note_wait(records, 1, 90.0, WaitEstimate(-1, None, None))
    assert records == {}


def test_the_widths_of_a_position_apply_from_its_number_of_patients_ahead() -> None:
    for start, below, above in WIDTHS:
        given = with_record(SimulatedWait(600.0, 400.0, 800.0, ahead=start), NOTHING)
        assert given[1:3] == (int(600 - 200 * below), ceil(600 + 200 * above))
    before, last = (
        with_record(SimulatedWait(600.0, 400.0, 800.0, ahead=ahead), NOTHING) for ahead in (7, 1000)
    )
    assert last.low_seconds == int(600 - 200 * WIDTHS[-1][1])
    assert (before.low_seconds or 0) > (last.low_seconds or 0)


def test_the_upper_half_is_wider_while_few_visits_have_ended() -> None:
    """Without it a quarter of the waits of a simulated cold start were longer."""
    widths = []
    for ended in (0, 1, 3, 6):
        past = [PastVisit(1, 900.0, 60.0 * number) for number in range(2 * ended)]
        busy = Doctor(None, 1, (OngoingVisit(1, 60.0),))
        pool = DoctorPool([busy, busy], [1, 1], past)
        estimate = estimate_waits(pool, [1])[1]
        widths.append((estimate.high_seconds or 0) - estimate.seconds)
    usual = with_record(SimulatedWait(600.0, 400.0, 800.0, ahead=0), NOTHING)
    wider = with_record(SimulatedWait(600.0, 400.0, 800.0, ahead=0), NOTHING, widening=1.7)
    assert usual[:2] == wider[:2]
    assert (wider.high_seconds or 0) - 600 == ceil(1.7 * ((usual.high_seconds or 0) - 600))
    assert widths == sorted(widths, reverse=True)


def test_what_was_learnt_is_stored_and_read_as_it_was(db: Database) -> None:
    clinic = make_clinic(db)
    plan = clinic.plan_ids[0]
    known = record([1300, 100, 600], patient_class="urgent")
    urgent = WaitEstimate(60, 30, 90, EstimateBasis(0, 66.0, 0.9, 1.1))
    info = QueueInfo(
        600,
        3,
        doctors_on_duty=True,
        low_seconds=300,
        high_seconds=1200,
        basis=BASIS,
        classes={"urgent": urgent},
    )
    records = EstimateRecords(NOW, {plan: known})
    stored = QueueSnapshot({plan: info}, 60, NOW, NOW + timedelta(minutes=1), records)
    with db.write() as tx:
        save_snapshot(tx, clinic.account_id, stored, logged=())
    assert db.ask(lambda tx: find_snapshot(tx, clinic.account_id)) == stored
    assert info.of_class("urgent")[:5] == (60, 3, True, 30, 90)
    assert info.of_class(None) == info.of_class("unknown") == info


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
    basis = EstimateBasis(ahead=0, raw_seconds=15.0)
    info = QueueInfo(15, 0, doctors_on_duty=True, low_seconds=10, high_seconds=20, basis=basis)
    for number in range(4):
        at = NOW + timedelta(minutes=number)
        snapshot = QueueSnapshot({plan: info}, 60, at, at + timedelta(minutes=1))
        with db.write() as tx:
            save_snapshot(tx, clinic.account_id, snapshot, logged=())
    return clinic


def count(
    db: Database, clinic: Clinic, records: EstimateRecords | None, minutes: float
) -> EstimateRecords:
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
    assert second.plans[plan].width == WidthRecord().with_wait(
        shorter=True, longer=False
    ).with_wait(shorter=False, longer=False)
    third = count(db, clinic, second, settled + 2 + every)
    assert third.plans[plan].width.waits == third.plans[plan].errors[None].waits == 4
    assert count(db, clinic, third, settled + 2 + 2 * every).plans == third.plans


def test_waits_of_others_or_long_ago_do_not_count(db: Database, clinic: Clinic) -> None:
    began = EstimateRecords(NOW - timedelta(hours=1), {})
    assert count(db, make_clinic(db, "Other"), began, 60).plans == {}
    assert count(db, clinic, began, 60).plans != {}
    unread = EstimateRecords(NOW - timedelta(days=90), {})
    assert count(db, clinic, unread, 60 + (LONGEST_LOOK + SETTLED).total_seconds() / 60).plans == {}
    known = {clinic.plan_ids[0]: PlanRecord(WidthRecord(7, 0.1, 0.1))}
    ahead = EstimateRecords(NOW + timedelta(days=30), known)
    assert count(db, clinic, ahead, 60) == (NOW + timedelta(minutes=60) - SETTLED, ahead.plans)


def test_the_shared_snapshot_has_the_corrected_interval(
    db: Database, clinic: Clinic, clock: SetClock
) -> None:
    plan = clinic.plan_ids[0]
    served = []
    clock.advance(300)  # the doctor is busy
    for above in (0.0, 0.8):
        records = EstimateRecords(NOW, {plan: PlanRecord(WidthRecord(100, 0.0, above))})
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


def test_a_record_of_other_bands_keeps_those_that_are_left() -> None:
    """Stored by a version that had a band from 16 patients on, and none from 9 on."""
    stored: Any = records_as_json(EstimateRecords(NOW, {1: record([1300] * 5)}))
    bands = stored["plans"]["1"]["bands"]
    bands["16"] = bands.pop("9")
    read = records_of_json(stored)
    assert read is not None
    assert read.plans[1].bands == record([1300] * 5).bands


def test_a_patient_is_compared_with_the_estimate_of_its_class(db: Database) -> None:
    """A class that the plan had not when the estimate was given counts as any patient."""
    clinic = make_clinic(db)
    plan = clinic.plan_ids[0]
    urgent = WaitEstimate(5, 2, 9, EstimateBasis(0, 5.0))
    info = QueueInfo(
        60,
        0,
        doctors_on_duty=True,
        low_seconds=30,
        high_seconds=90,
        basis=BASIS,
        classes={"urgent": urgent},
    )
    snapshot = QueueSnapshot({plan: info}, 60, NOW, NOW + timedelta(minutes=1))
    later = replace(
        snapshot, taken_at=NOW + timedelta(minutes=1), expires_at=NOW + timedelta(minutes=2)
    )
    with db.write() as tx:
        save_snapshot(tx, clinic.account_id, snapshot, logged=())
        save_snapshot(tx, clinic.account_id, later, logged=())
    classes = {"v0": "urgent", "v1": "new"}
    events = [event("on", ON, -100, provider_group_id=clinic.group_id, doctor="a")]
    for number, (visit, patient_class) in enumerate(classes.items()):
        of_visit = {"plan_id": plan, "visit": visit}
        joined = event(f"j{number}", JOINED, 60 * number + 1, **of_visit)
        events.append(joined._replace(patient_class=patient_class))
        events.append(event(f"s{number}", STARTED, 60 * number + 8, doctor="a", **of_visit))
    feed(db, *events)
    first, second = db.ask(lambda tx: list_outcomes(tx, Reach.of(clinic.account_id), NOW))
    assert (first.estimate, first.patient_class) == (urgent, "urgent")
    assert (second.estimate[:3], second.patient_class) == ((60, 30, 90), None)
    counted_now = count(db, clinic, EstimateRecords(NOW, {}), 60)
    assert set(counted_now.plans[plan].errors) == {None, "urgent"}
