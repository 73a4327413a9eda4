"""The wait estimate."""

import ast
from dataclasses import replace
from math import log
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.queues import estimate
from frontdesk.queues.estimate.model import (
    DEFAULT_VISIT_SECONDS,
    NOBODY_ON_DUTY,
    Doctor,
    DoctorPool,
    DutySpan,
    OngoingVisit,
    PastVisit,
    PastWait,
)
from frontdesk.queues.estimate.waits import estimate_waits

PLAN, SIBLING = 7, 8
PLANS = [PLAN, SIBLING]
HOUR = 3600.0

FEW = settings(max_examples=40, deadline=None)

TEN_MINUTES = [PastVisit(PLAN, 600.0, i * 60.0) for i in range(60)]
SPREAD = [PastVisit(PLAN, 60.0 + 20 * i, i * 60.0) for i in range(60)]
SHORT_OR_LONG = [PastVisit(PLAN, 300.0 if i % 3 else 1800.0, i * 60.0) for i in range(60)]
EXPONENTIAL = [PastVisit(PLAN, -600 * log(1 - (i + 0.5) / 100), i * 37.0 % 100) for i in range(100)]

some_visits = st.builds(OngoingVisit, st.sampled_from(PLANS), st.floats(0, 20_000))
past_visits = st.builds(PastVisit, st.sampled_from(PLANS), st.floats(0, 20_000), st.floats(0, 1e6))
past_waits = st.builds(PastWait, st.floats(0, 7200), st.booleans())
served = st.sampled_from([None, frozenset({PLAN}), frozenset({SIBLING}), frozenset(PLANS), frozenset[int]()])


@st.composite
def doctors(draw: st.DrawFn, plans: st.SearchStrategy[frozenset[int] | None] = served) -> Doctor:
    capacity = draw(st.integers(1, 3))
    return Doctor(draw(plans), capacity, tuple(draw(st.lists(some_visits, max_size=capacity + 1))))


@st.composite
def pools(draw: st.DrawFn, staff: st.SearchStrategy[Doctor] | None = None) -> DoctorPool:
    waiting = draw(st.lists(st.sampled_from(PLANS), max_size=8))
    return DoctorPool(
        draw(st.lists(doctors() if staff is None else staff, max_size=5)),
        waiting,
        draw(st.lists(past_visits, max_size=8)),
        waited=draw(st.lists(st.floats(0, 7200), min_size=len(waiting), max_size=len(waiting))),
        past_waits=draw(st.lists(past_waits, max_size=8)),
    )


everyone_serves_all = doctors(st.none())


def serves(doctor: Doctor, plan_id: int) -> bool:
    return doctor.plan_ids is None or plan_id in doctor.plan_ids


def busy(*elapsed: float, plan_ids: frozenset[int] | None = None, capacity: int = 1) -> Doctor:
    return Doctor(plan_ids, capacity, tuple(OngoingVisit(PLAN, seconds) for seconds in elapsed))


def wait_of(pool: DoctorPool, plan_id: int = PLAN) -> int:
    return estimate_waits(pool, PLANS)[plan_id].seconds


@FEW
@given(pools())
def test_minus_one_only_if_nobody_on_duty_serves_the_plan_and_never_below_it(pool: DoctorPool) -> None:
    for plan_id, (wait, low, high) in estimate_waits(pool, PLANS).items():
        attended = any(serves(doctor, plan_id) for doctor in pool.doctors)
        if attended:
            assert low is not None
            assert high is not None
            assert 0 <= low <= wait <= high
        else:
            assert (wait, low, high) == (NOBODY_ON_DUTY, None, None) == (-1, None, None)


@FEW
@given(pools())
def test_nobody_waits_where_a_doctor_is_free_and_no_one_is_ahead(pool: DoctorPool) -> None:
    pool = replace(pool, waiting=[], waited=[])
    for plan_id, (wait, _, _) in estimate_waits(pool, PLANS).items():
        serving = [doctor for doctor in pool.doctors if serves(doctor, plan_id)]
        free = any(len(doctor.visits) < doctor.capacity for doctor in serving)
        assert not serving or (wait == 0) == free


@FEW
@given(pools(), st.sampled_from(PLANS), st.floats(0, 7200))
def test_one_more_ahead_never_shortens_the_wait(pool: DoctorPool, plan_id: int, waited: float) -> None:
    pool = replace(pool, past_waits=())
    longer = replace(pool, waiting=[*pool.waiting, plan_id], waited=[*pool.waited, waited])
    assert all(wait_of(longer, plan) >= wait_of(pool, plan) for plan in PLANS)


@FEW
@given(pools(everyone_serves_all), st.integers(1, 3))
def test_one_more_doctor_never_lengthens_the_wait(pool: DoctorPool, capacity: int) -> None:
    pool = replace(pool, past_waits=(), doctors=pool.doctors or [busy(60)])
    more = replace(pool, doctors=[*pool.doctors, Doctor(None, capacity, ())])
    assert all(wait_of(more, plan) <= wait_of(pool, plan) for plan in PLANS)


@FEW
@given(pools())
def test_the_same_pool_has_the_same_estimate(pool: DoctorPool) -> None:
    shuffled = replace(pool, past=sorted(pool.past, key=lambda visit: -visit.ended_seconds_ago))
    if len({visit.ended_seconds_ago for visit in pool.past}) == len(pool.past):
        assert estimate_waits(pool, PLANS) == estimate_waits(shuffled, [*reversed(PLANS)])


@FEW
@given(pools())
def test_the_estimate_of_a_plan_does_not_depend_on_what_else_is_asked(pool: DoctorPool) -> None:
    assert estimate_waits(pool, [PLAN])[PLAN].seconds == wait_of(pool)


ONLY_PLAN, ONLY_SIBLING = frozenset({PLAN}), frozenset({SIBLING})
APART = [busy(0, plan_ids=ONLY_PLAN), busy(0, plan_ids=ONLY_SIBLING)]
CHAT = busy(0, 200, 400, capacity=3)
WITH_SIBLING = Doctor(None, 1, (OngoingVisit(SIBLING, 0),))
KNOWN_WAITS = {
    "where no visit is known": (DoctorPool([busy(0)], [PLAN] * 10, []), 11 * DEFAULT_VISIT_SECONDS, 0.1),
    "a known plan outweighs the default": (DoctorPool([busy(0)], [PLAN] * 10, TEN_MINUTES), 11 * 600, 0.03),
    "an unknown plan takes its sibling's visits": (
        DoctorPool([WITH_SIBLING], [SIBLING] * 10, TEN_MINUTES), 11 * 600, 0.05,
    ),
    "siblings ahead who share a doctor": (DoctorPool([busy(0)], [SIBLING] * 3, TEN_MINUTES), 2400, 0.1),
    "siblings ahead who do not": (DoctorPool(APART, [SIBLING] * 3, TEN_MINUTES), 600, 0.1),
    "three visits at a time": (DoctorPool([CHAT], [PLAN] * 9, TEN_MINUTES), 4 * 600 - 400, 0.1),
    "one of three places is free": (DoctorPool([busy(0, 200, capacity=3)], [], TEN_MINUTES), 0, 0),
    "a fresh visit needs the mean": (DoctorPool([busy(0)], [], SHORT_OR_LONG), 800, 0.15),
    "a long one what such long ones still needed": (DoctorPool([busy(400)], [], SHORT_OR_LONG), 1400, 0.15),
    # M/M/c: with c busy doctors and k ahead the mean wait is (k + 1) / c visits, however long the visits have lasted.
    "the textbook's wait": (
        DoctorPool([*map(busy, (100, 500, 900, 1300))], [PLAN] * 11, EXPONENTIAL), 12 / 4 * 600, 0.07,
    ),
    "the far end of a line goes to whichever team is free first": (
        DoctorPool([*APART, busy(0)] * 3, [PLAN, SIBLING] * 3000, TEN_MINUTES), 6000 / 9 * 600, 0.05,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", KNOWN_WAITS)
def test_the_wait_of_a_known_queue(case: str) -> None:
    pool, seconds, error = KNOWN_WAITS[case]
    assert wait_of(pool) == pytest.approx(seconds, rel=error)


def test_of_more_visits_than_a_doctor_can_have_the_latest_count() -> None:
    assert wait_of(DoctorPool([busy(9000, 500)], [], TEN_MINUTES)) == wait_of(
        DoctorPool([busy(500)], [], TEN_MINUTES)
    )


def test_a_visit_longer_than_any_before_is_not_over_yet() -> None:
    assert wait_of(DoctorPool([busy(5000)], [], TEN_MINUTES)) > 60


def test_several_busy_doctors_are_free_sooner_than_one_of_them_on_average() -> None:
    one, five = (wait_of(DoctorPool([busy(0)] * count, [], SPREAD)) for count in (1, 5))
    assert five < one / 2


def test_one_visit_that_nobody_ended_hardly_changes_the_estimate() -> None:
    pool = DoctorPool([busy(0)], [PLAN] * 5, TEN_MINUTES)
    forgotten = replace(pool, past=[PastVisit(PLAN, 80_000.0, 0.0), *TEN_MINUTES])
    assert wait_of(forgotten) < 1.1 * wait_of(pool)


def test_recent_visits_count_more_than_old_ones() -> None:
    now_slow = [PastVisit(PLAN, 1200.0 if i < 60 else 600.0, i * 60.0) for i in range(120)]
    assert wait_of(DoctorPool([busy(0)], [PLAN] * 9, now_slow)) > 10 * 900


def test_patients_who_lose_patience_shorten_the_wait_of_those_behind_them() -> None:
    pool = DoctorPool([busy(0)], [PLAN] * 10, TEN_MINUTES, waited=[0.0] * 10)
    patient = replace(pool, past_waits=[PastWait(1200.0, False)] * 40)
    impatient = replace(pool, past_waits=[PastWait(1200.0, i % 2 == 0) for i in range(40)])
    assert wait_of(patient) == wait_of(pool)
    assert wait_of(impatient) < 0.7 * wait_of(pool)


def test_fewer_doctors_than_usual_become_more_and_more_become_fewer() -> None:
    staying = [DutySpan(f"stays {i}", 4 * HOUR, 0.0) for i in range(2)]
    changing = [DutySpan(f"goes {i}", 3 * HOUR, 1.5 * HOUR) for i in range(4)]
    back = [DutySpan("goes 0", 0.2 * HOUR, 0.0)]
    pool = DoctorPool([busy(0)] * 3, [PLAN] * 15, TEN_MINUTES)
    assert wait_of(replace(pool, duty=staying)) == wait_of(pool)
    assert wait_of(replace(pool, duty=[*staying, *changing, *back])) < wait_of(pool)


def test_doctors_who_go_and_do_not_come_back_lengthen_the_wait_at_most_to_twice() -> None:
    leaving = [DutySpan(f"goes {i}", 4 * HOUR, i * 0.1 * HOUR) for i in range(1, 9)]
    staying = [DutySpan(f"stays {i}", 0.5 * HOUR, 0.0) for i in range(8)]
    pool = DoctorPool([busy(0)] * 8, [PLAN] * 100, TEN_MINUTES)
    ending = wait_of(replace(pool, duty=[*leaving, *staying]))
    assert wait_of(pool) < ending <= 2 * wait_of(pool)


def test_a_line_of_ten_thousand_is_counted_at_the_rate_at_which_it_moves() -> None:
    pool = DoctorPool([busy(300)] * 500, [PLAN] * 10_000, TEN_MINUTES)
    assert wait_of(pool) == pytest.approx(10_000 / 500 * 600, rel=0.05)
    ahead = [wait_of(replace(pool, waiting=[PLAN] * count)) for count in range(500, 2500, 100)]
    assert ahead == sorted(ahead)


def test_who_waits_for_a_plan_that_nobody_serves_is_in_nobodys_way() -> None:
    only_plan = DoctorPool([busy(0, plan_ids=frozenset({PLAN}))], [SIBLING] * 20, TEN_MINUTES)
    assert wait_of(only_plan) == wait_of(replace(only_plan, waiting=[]))
    assert wait_of(only_plan, SIBLING) == NOBODY_ON_DUTY


def interval_of(pool: DoctorPool) -> tuple[int, int]:
    _, low, high = estimate_waits(pool, PLANS)[PLAN]
    assert low is not None
    assert high is not None
    return low, high


def test_visits_of_one_length_leave_no_doubt_and_spread_ones_do() -> None:
    known, doubtful = (interval_of(DoctorPool([busy(0)], [PLAN], past)) for past in (TEN_MINUTES, SPREAD))
    assert known[1] - known[0] < 0.5 * (doubtful[1] - doubtful[0])
    assert interval_of(DoctorPool([Doctor(None, 1, ())], [], SPREAD)) == (0, 0)


def test_the_textbooks_interval_of_one_visit() -> None:
    """One exponential visit in progress: a tenth of the rests is below 0.105 means, a tenth above 2.3 means."""
    low, high = interval_of(DoctorPool([busy(0)], [], EXPONENTIAL))
    assert low == pytest.approx(0.09 * 600, abs=30)
    assert high == pytest.approx(2.4 * 600, rel=0.15)


def test_the_interval_of_a_long_line_is_narrow_and_that_of_few_runs_is_one() -> None:
    pool = DoctorPool([busy(100 + i % 500) for i in range(100)], [PLAN] * 2000, SPREAD)
    (low, high), wait = interval_of(pool), wait_of(pool)
    assert 0.9 * wait < low < high < 1.1 * wait
    assert high - low > 10


def test_the_estimate_has_at_most_forty_constants() -> None:
    names = [
        name.id
        for path in Path(estimate.__file__).parent.glob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name) and name.id.isupper()
    ]
    assert 20 < len(names) <= 40, names
