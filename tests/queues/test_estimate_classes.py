"""The wait estimate where patients have a class and a priority, and doctors report their pauses."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.queues.estimate.arrivals import recent_classes
from frontdesk.queues.estimate.doctors import Turns
from frontdesk.queues.estimate.late_feed import as_reported
from frontdesk.queues.estimate.model import (
    MOST_CLASSES,
    NOBODY_ON_DUTY,
    Doctor,
    DoctorPool,
    DutySpan,
    Newcomer,
    OngoingVisit,
    PastVisit,
    PastWait,
)
from frontdesk.queues.estimate.simulation import QueueSimulation
from frontdesk.queues.estimate.waits import estimate_newcomers
from tests.queues.pools import FEW, HOUR, PLAN, PLANS, SIBLING, TEN_MINUTES, busy, worked

PRIORITIES = {"urgent": 2, "booked": 1, "new": 0, None: 0}
CLASSES = list(PRIORITIES)
NEWCOMERS = [Newcomer(plan_id, one) for plan_id in PLANS for one in [*CLASSES, "unheard of"]]


def seen(
    patient_class: str | None, count: int, priority: int = 0, plan_id: int = PLAN
) -> list[PastWait]:
    """So many waits that ended with a visit."""
    wait = PastWait(
        300.0, left=False, plan_id=plan_id, patient_class=patient_class, priority=priority
    )
    return [wait] * count


IDLE_A = Doctor(None, 1, visits=(), name="a", on_duty_seconds=10 * HOUR)
EACH_CLASS = [
    wait
    for plan_id in PLANS
    for one, priority in PRIORITIES.items()
    for wait in seen(one, 3, priority, plan_id)
]

plans = st.sampled_from(PLANS)
classes = st.sampled_from(CLASSES)
seconds = st.floats(0, 7200)
classed_visits = st.builds(OngoingVisit, plans, seconds, st.none(), classes)
classed_past = st.builds(PastVisit, plans, seconds, st.floats(0, 9000), st.none(), seconds, classes)


@st.composite
def seen_waits(draw: st.DrawFn) -> PastWait:
    """A wait that ended with a visit."""
    one = draw(classes)
    return PastWait(
        draw(seconds), left=False, plan_id=draw(plans), patient_class=one, priority=PRIORITIES[one]
    )


@st.composite
def pausing_doctors(
    draw: st.DrawFn, served: st.SearchStrategy[frozenset[int] | None] | None = None
) -> Doctor:
    capacity = draw(st.integers(1, 3))
    visits = tuple(draw(st.lists(classed_visits, max_size=capacity)))
    paused = draw(st.sampled_from([0.0, 0.0, 300.0, 1500.0]))
    plan_ids = None if served is None else draw(served)
    return Doctor(plan_ids, capacity, visits, paused_seconds=paused)


@st.composite
def classed_pools(
    draw: st.DrawFn, served: st.SearchStrategy[frozenset[int] | None] | None = None
) -> DoctorPool:
    """`served` None: every doctor serves all plans."""
    waiting = draw(st.lists(plans, max_size=8))
    size = len(waiting)
    of_class = draw(st.lists(classes, min_size=size, max_size=size))
    return DoctorPool(
        draw(st.lists(pausing_doctors(served), min_size=1, max_size=5)),
        waiting,
        draw(st.lists(classed_past, max_size=12)),
        waited=draw(st.lists(seconds, min_size=size, max_size=size)),
        past_waits=[
            # So that each plan's classes are known: then the line tells nothing of them.
            *draw(st.lists(seen_waits(), max_size=20)),
            *EACH_CLASS,
        ],
        classes=of_class,
        priorities=[PRIORITIES[one] for one in of_class],
    )


def with_one_more(pool: DoctorPool, plan_id: int, patient_class: str | None) -> DoctorPool:
    return replace(
        pool,
        waiting=[*pool.waiting, plan_id],
        waited=[*pool.waited, 0.0],
        classes=[*pool.classes, patient_class],
        priorities=[*pool.priorities, PRIORITIES[patient_class]],
    )


def all_waits(pool: DoctorPool) -> list[int]:
    """Of newcomers of each plan and class."""
    return [estimate.seconds for estimate in estimate_newcomers(pool, NEWCOMERS).values()]


def wait_of(pool: DoctorPool, patient_class: str | None = None) -> int:
    newcomer = Newcomer(PLAN, patient_class)
    return estimate_newcomers(pool, [newcomer])[newcomer].seconds


def ahead_of(pool: DoctorPool, patient_class: str | None = None) -> int:
    newcomer = Newcomer(PLAN, patient_class)
    simulated = QueueSimulation(pool, [PLAN]).waits([newcomer])[newcomer]
    assert simulated is not None
    return simulated.ahead


@FEW
@given(classed_pools(), plans, classes)
def test_one_more_ahead_of_any_class_never_shortens_a_wait(
    pool: DoctorPool, plan_id: int, patient_class: str | None
) -> None:
    longer = with_one_more(pool, plan_id, patient_class)
    pairs = zip(all_waits(pool), all_waits(longer), strict=True)
    assert all(before <= after for before, after in pairs)


@FEW
@given(classed_pools(), st.integers(1, 3))
def test_one_more_doctor_never_lengthens_a_wait(pool: DoctorPool, capacity: int) -> None:
    more = replace(pool, doctors=[*pool.doctors, Doctor(None, capacity, visits=())])
    pairs = zip(all_waits(pool), all_waits(more), strict=True)
    assert all(before >= after for before, after in pairs)


@FEW
@given(classed_pools())
def test_a_higher_priority_never_waits_longer(pool: DoctorPool) -> None:
    waits = [wait_of(pool, one) for one in ("urgent", "booked", "new")]
    assert waits == sorted(waits)


@FEW
@given(classed_pools(st.sampled_from([None, frozenset({PLAN}), frozenset({SIBLING})])))
def test_minus_one_exactly_where_no_doctor_serves_the_plan_whether_it_pauses_or_not(
    pool: DoctorPool,
) -> None:
    for newcomer, estimate in estimate_newcomers(pool, NEWCOMERS).items():
        attended = any(doctor.serves(newcomer.plan_id) for doctor in pool.doctors)
        assert (estimate.seconds == NOBODY_ON_DUTY) == (not attended)
        alone = estimate_newcomers(pool, [newcomer])[newcomer]
        assert alone.seconds == estimate.seconds, "whoever else is asked for"


@FEW
@given(classed_pools())
def test_classes_without_visits_or_priorities_change_nothing(pool: DoctorPool) -> None:
    blind = replace(
        pool,
        classes=(),
        priorities=(),
        past_waits=[wait._replace(patient_class=None, priority=0) for wait in pool.past_waits],
    )
    classed = replace(blind, classes=pool.classes)
    assert all_waits(blind) == all_waits(classed)


def mixed_line(**fields: Any) -> DoctorPool:
    """A busy doctor, six patients in the line, every other one urgent."""
    return DoctorPool(
        [busy(0)],
        [PLAN] * 6,
        TEN_MINUTES,
        classes=["urgent", "new"] * 3,
        priorities=[1, 0] * 3,
        **fields,
    )


def test_an_urgent_newcomer_waits_for_the_urgent_ones_only() -> None:
    pool = mixed_line(past_waits=seen("urgent", 1, priority=1) + seen("new", 30))
    assert wait_of(pool, "urgent") == pytest.approx(4 * 600, rel=0.1)
    assert wait_of(pool, "new") > 7 * 550
    assert ahead_of(pool, "urgent") == 3
    assert ahead_of(pool, "new") == 6


def test_the_line_is_served_by_priority_and_then_in_order_of_arrival() -> None:
    """The urgent patients are those of the sibling plan, whose visits take half an hour."""
    half_hours = [PastVisit(SIBLING, 1800.0, i * 60.0) for i in range(60)]
    pool = DoctorPool(
        [busy(0)],
        [PLAN, PLAN, SIBLING, SIBLING],
        [*TEN_MINUTES, *half_hours],
        past_waits=seen("urgent", 1, priority=1) + seen("new", 30),
        priorities=[0, 0, 1, 1],
    )
    assert wait_of(pool, "urgent") == pytest.approx(600 + 2 * 1800, rel=0.1)
    first = replace(pool, priorities=[1, 0, 0, 1])
    assert wait_of(first, "urgent") == pytest.approx(600 + 600 + 1800, rel=0.1)


def test_a_newcomer_of_no_known_class_is_any_of_the_recent_ones() -> None:
    pool = mixed_line(past_waits=seen("urgent", 8, priority=1) + seen("new", 8))
    assert wait_of(pool, "urgent") < wait_of(pool) < wait_of(pool, "new")
    assert wait_of(pool, "unheard of") == wait_of(pool)
    assert ahead_of(pool) in (4, 5)


def test_the_line_tells_of_its_patients_while_few_waits_have_ended() -> None:
    assert ahead_of(mixed_line(past_waits=seen("urgent", 2, priority=1))) in (4, 5)
    assert ahead_of(mixed_line(past_waits=seen("urgent", 10, priority=1))) == 3


def overtaken(share: int, doctors: int = 1) -> DoctorPool:
    """Doctors busy for an hour to come, of whose visits `share` of 20 were urgent; two an hour for
    each.
    """
    urgent = ["urgent" if i % 20 < share else "new" for i in range(40)]
    past = [
        PastVisit(PLAN, 900.0, 1800.0 * (i // doctors), patient_class=urgent[i]) for i in range(40)
    ]
    ended = seen("urgent", share, priority=1) + seen("new", 20 - share)
    return DoctorPool([busy(0)] * doctors, [PLAN] * 8 * doctors, past, past_waits=ended)


def test_patients_of_a_higher_priority_that_will_join_lengthen_the_wait() -> None:
    """By 1 / (1 - load), as in Cobham's queue: the doctor is busy for half of the time, with three
    in five urgent patients.
    """
    alone = wait_of(overtaken(0), "new")
    assert wait_of(overtaken(12), "new") == pytest.approx(alone / (1 - 0.3), rel=0.1)
    assert wait_of(overtaken(12, doctors=4), "new") == pytest.approx(
        wait_of(overtaken(0, doctors=4), "new") / (1 - 0.3), rel=0.1
    )
    assert wait_of(overtaken(12), "urgent") == pytest.approx(alone / 9, rel=0.1)


def test_an_overload_of_urgent_patients_is_bounded() -> None:
    """Twice as many as the doctor can see: a load of nine tenths counts."""
    past = [PastVisit(PLAN, 900.0, 450.0 * i, patient_class="urgent") for i in range(20)]
    pool = DoctorPool([busy(0)], [PLAN] * 8, past, past_waits=seen("urgent", 20, priority=1))
    pool = replace(pool, priorities=[0] * 8, classes=["new"] * 8)
    assert 9 * 900 < wait_of(pool, "new") < 12 * 9 * 900


def test_a_class_with_visits_enough_has_lengths_of_its_own() -> None:
    past = [
        PastVisit(PLAN, 300.0 if i % 2 else 1500.0, i * 60.0, patient_class=CLASSES[i % 2])
        for i in range(50)
    ]
    short, long = (
        DoctorPool([busy(0)], [PLAN] * 5, past, classes=[CLASSES[number]] * 5) for number in (1, 0)
    )
    assert wait_of(long) - wait_of(short) == pytest.approx(5 * 1200, rel=0.15)
    few = replace(short, past=[one._replace(patient_class=None) for one in past[10:]])
    assert wait_of(replace(few, classes=())) == wait_of(few)


def test_a_class_that_leaves_sooner_shortens_the_wait_behind_it() -> None:
    past_waits = [
        PastWait(600.0, left=left, plan_id=PLAN, patient_class=one)
        for one, leavers in (("new", 18), ("booked", 2))
        for left in [True] * leavers + [False] * (20 - leavers)
    ]
    hasty, patient = (
        DoctorPool(
            [busy(0)],
            [PLAN] * 10,
            TEN_MINUTES,
            waited=[0.0] * 10,
            past_waits=past_waits,
            classes=[one] * 10,
        )
        for one in ("new", "booked")
    )
    assert wait_of(hasty) < 0.8 * wait_of(patient)


def test_the_most_frequent_classes_of_a_plan_come_first() -> None:
    waits = [wait for i in range(12) for wait in seen(f"c{i:02}", 1)] + seen("c05", 3)
    pool = DoctorPool([], [SIBLING, PLAN], [], past_waits=waits, classes=[None, "c07"])
    assert recent_classes(pool) == {PLAN: ["c05", "c07", "c00", "c01", "c02", "c03", "c04", "c06"]}
    assert len(recent_classes(pool)[PLAN]) == MOST_CLASSES


def paused(seconds: float, *elapsed: float) -> Doctor:
    return replace(busy(*elapsed), paused_seconds=seconds)


PAUSED: dict[str, tuple[Sequence[Doctor], float, float]] = {
    "ready at the end of the pause": ([paused(700.0)], 700, 700),
    "not before the visit in progress is over": ([paused(60.0, 100.0)], 450, 550),
    "nor before the pause after it": ([paused(900.0, 100.0)], 900, 900),
    "another doctor is ready": ([paused(700.0), Doctor(None, 1, visits=())], 0, 0),
}


@pytest.mark.parametrize("case", PAUSED)
def test_a_doctor_in_a_reported_pause_is(case: str) -> None:
    doctors, least, most = PAUSED[case]
    assert least <= wait_of(DoctorPool(doctors, [], TEN_MINUTES)) <= most


def back_from_pause(**fields: Any) -> DoctorPool:
    """A doctor without a patient since 20 minutes, beside one that waits for a minute."""
    doctor = IDLE_A
    past = worked("a", 0.0, until=1200.0)
    return DoctorPool([doctor], [PLAN], past, waited=[20.0], **fields)


def test_an_idle_time_counts_from_the_end_of_a_reported_pause() -> None:
    assert Turns(back_from_pause()).idle_seconds == {"a": 1200.0}
    assert Turns(back_from_pause(resumed=[("a", 10.0)])).idle_seconds == {"a": 10.0}


def test_a_reported_pause_is_not_learnt_as_an_unreported_one() -> None:
    """Ten visits, with 20 minutes after each; the doctor is idle again, and nobody waits."""
    doctor = IDLE_A
    past = worked("a", 1200.0, until=60.0, waited=1300.0, count=10)
    silent = DoctorPool([doctor], [], past)
    assert wait_of(silent) > 600
    pauses = [("a", visit.ended_seconds_ago + visit.seconds) for visit in past]
    assert wait_of(replace(silent, resumed=pauses)) == 0


def test_a_reported_pause_may_follow_the_visits_to_come_too() -> None:
    """The doctor pauses for 20 minutes after every other visit."""
    doctor = Doctor(None, 1, (OngoingVisit(PLAN, 0.0),), "a", 10 * HOUR)
    ended = [600.0 * n + 1200.0 * (n // 2) for n in range(12)]
    past = [PastVisit(PLAN, 600.0, ago, "a", 2000.0) for ago in ended]
    pool = DoctorPool([doctor], [PLAN] * 9, past, waited=[1.0] * 9)
    resumed = [("a", ago + 600.0) for ago in ended[1::2]]
    assert wait_of(replace(pool, resumed=resumed)) == pytest.approx(10 * 1200, rel=0.2)


def test_a_late_feed_shifts_reported_pauses_too() -> None:
    """The last news is two minutes old. Then the first pause had 400 s left, and the second 30 s."""
    past = [PastVisit(PLAN, 600.0, 4000.0 + i * 3600.0) for i in range(20)]
    late = DoctorPool([paused(280.0)], [], past, feed_late_seconds=120.0)
    assert wait_of(late) == 280
    over = DoctorPool(
        [replace(busy(), name="a")], [], past, feed_late_seconds=120.0, resumed=[("a", 90.0)]
    )
    assert wait_of(over) == 0
    assert wait_of(replace(over, waiting=[PLAN], waited=[300.0])) == pytest.approx(510, abs=9)
    news = as_reported(replace(over, resumed=[("a", 90.0), ("a", 300.0)]))
    assert news.resumed == [("a", 180.0)]


def test_a_patient_that_an_urgent_one_passed_still_waits_beside_an_idle_doctor() -> None:
    """An urgent patient joined last and was taken first. So the other one waits indeed, beside a
    doctor that is away.
    """
    away = IDLE_A
    helper = Doctor(None, 1, (OngoingVisit(PLAN, 30.0, 100.0, "urgent"),), "b", 10 * HOUR)
    pool = DoctorPool(
        [away, helper],
        [PLAN],
        [PastVisit(PLAN, 600.0, 3000.0 + n * 600.0, "a", 1.0, "new") for n in range(20)],
        waited=[900.0],
        past_waits=seen("urgent", 5, priority=1) + seen("new", 15),
        duty=[DutySpan("a", 4 * HOUR, 0.0), DutySpan("b", 4 * HOUR, 0.0)],
        classes=["new"],
        priorities=[0],
    )
    same = replace(pool, priorities=[1], classes=["urgent"])
    assert wait_of(pool, "new") > wait_of(same, "new") + 60
