"""The wait estimate, and what it learns of doctors: pauses in which they take nobody, and ends that
are reported late.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.queues.estimate.doctors import Turns
from frontdesk.queues.estimate.late_feed import MOST_LATE_SECONDS, usual_lateness
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
from tests.queues.pools import FEW, HOUR, PLAN, PLANS, SIBLING, TEN_MINUTES, VISIT, busy, worked

SPREAD = [PastVisit(PLAN, 60.0 + 20 * i, i * 60.0) for i in range(60)]
SHORT_OR_LONG = [PastVisit(PLAN, 300.0 if i % 3 else 1800.0, i * 60.0) for i in range(60)]
EXPONENTIAL = [PastVisit(PLAN, -600 * log(1 - (i + 0.5) / 100), i * 37.0 % 100) for i in range(100)]

some_visits = st.builds(OngoingVisit, st.sampled_from(PLANS), st.floats(0, 20_000))
past_visits = st.builds(PastVisit, st.sampled_from(PLANS), st.floats(0, 20_000), st.floats(0, 1e6))
past_waits = st.builds(PastWait, st.floats(0, 7200), st.booleans())
served = st.sampled_from(
    [None, frozenset({PLAN}), frozenset({SIBLING}), frozenset(PLANS), frozenset[int]()]
)


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


def line(count: int, past: Sequence[PastVisit] = TEN_MINUTES, **fields: Any) -> DoctorPool:
    """A busy doctor with so many patients ahead."""
    return DoctorPool([busy(0)], [PLAN] * count, past, **fields)


def wait_of(pool: DoctorPool, plan_id: int = PLAN) -> int:
    return estimate_waits(pool, PLANS)[plan_id].seconds


@FEW
@given(pools())
def test_minus_one_only_if_nobody_serves_the_plan_and_none_only_if_a_doctor_is_free(
    pool: DoctorPool,
) -> None:
    for plan_id, (wait, low, high, _) in estimate_waits(pool, PLANS).items():
        attended = any(serves(doctor, plan_id) for doctor in pool.doctors)
        if attended:
            assert 0 <= (-1 if low is None else low) <= wait <= (-1 if high is None else high)
        else:
            assert (wait, low, high) == (NOBODY_ON_DUTY, None, None) == (-1, None, None)
        assert estimate_waits(pool, [plan_id])[plan_id].seconds == wait, "whatever else is asked"
    nobody_ahead = replace(pool, waiting=[], waited=[])
    for plan_id, (wait, *_) in estimate_waits(nobody_ahead, PLANS).items():
        serving = [doctor for doctor in pool.doctors if serves(doctor, plan_id)]
        free = any(len(doctor.visits) < doctor.capacity for doctor in serving)
        assert not serving or (wait == 0) == free


@FEW
@given(pools(), st.sampled_from(PLANS), st.floats(0, 7200))
def test_one_more_ahead_never_shortens_the_wait(
    pool: DoctorPool, plan_id: int, waited: float
) -> None:
    pool = replace(pool, past_waits=())
    longer = replace(pool, waiting=[*pool.waiting, plan_id], waited=[*pool.waited, waited])
    assert all(wait_of(longer, plan) >= wait_of(pool, plan) for plan in PLANS)


@FEW
@given(pools(everyone_serves_all), st.integers(1, 3))
def test_one_more_doctor_never_lengthens_the_wait(pool: DoctorPool, capacity: int) -> None:
    pool = replace(pool, past_waits=(), doctors=pool.doctors or [busy(60)])
    more = replace(pool, doctors=[*pool.doctors, Doctor(None, capacity, visits=())])
    assert all(wait_of(more, plan) <= wait_of(pool, plan) for plan in PLANS)


ONLY_PLAN = frozenset({PLAN})
ONLY_SIBLING = frozenset({SIBLING})
APART = [busy(0, plan_ids=ONLY_PLAN), busy(0, plan_ids=ONLY_SIBLING)]
CHAT = busy(0, 200, 400, capacity=3)
WITH_SIBLING = Doctor(None, 1, (OngoingVisit(SIBLING, 0),))
KNOWN_WAITS = {
    "where no visit is known": (line(10, []), 11 * DEFAULT_VISIT_SECONDS, 0.1),
    "a known plan outweighs the default": (line(10), 11 * 600, 0.03),
    "an unknown plan takes its sibling's visits": (
        DoctorPool([WITH_SIBLING], [SIBLING] * 10, TEN_MINUTES), 11 * 600, 0.05,
    ),
    "siblings ahead who share a doctor": (DoctorPool([busy(0)], [SIBLING] * 3, TEN_MINUTES), 2400, 0.1),
    "siblings ahead who do not": (DoctorPool(APART, [SIBLING] * 3, TEN_MINUTES), 600, 0.1),
    "three visits at a time": (DoctorPool([CHAT], [PLAN] * 9, TEN_MINUTES), 4 * 600 - 400, 0.1),
    "one of three places is free": (DoctorPool([busy(0, 200, capacity=3)], [], TEN_MINUTES), 0, 0),
    "recent visits count more than old ones": (
        line(9, [PastVisit(PLAN, 1200.0 if i < 60 else 600.0, i * 60.0) for i in range(120)]), 10_600, 0.15),
    "a fresh visit needs the mean": (line(0, SHORT_OR_LONG), 800, 0.15),
    "a long one what such long ones still needed": (DoctorPool([busy(400)], [], SHORT_OR_LONG), 1400, 0.15),
    # M/M/c: with c busy doctors and k ahead the mean wait is (k + 1) / c visits, however long the
    # visits have lasted.
    "the textbook's wait": (
        DoctorPool([*map(busy, (100, 500, 900, 1300))], [PLAN] * 11, EXPONENTIAL), 12 / 4 * 600, 0.07,
    ),
    "the far end of a line goes to whichever team is free first": (
        DoctorPool([*APART, busy(0)] * 3, [PLAN, SIBLING] * 3000, TEN_MINUTES), 6000 / 9 * 600, 0.05,
    ),
    "a line of ten thousand": (DoctorPool([busy(300)] * 500, [PLAN] * 10_000, TEN_MINUTES), 12_000, 0.05),
}  # fmt: skip


@pytest.mark.parametrize("case", KNOWN_WAITS)
def test_the_wait_of_a_known_queue(case: str) -> None:
    pool, seconds, error = KNOWN_WAITS[case]
    assert wait_of(pool) == pytest.approx(seconds, rel=error)


LATE = 300.0
DAY = 36_000.0


def known(
    name: str, *elapsed: float, waited: float = 300.0, capacity: int = 1, duty: float = DAY
) -> Doctor:
    """A doctor whose past visits are known by the name."""
    return Doctor(
        None, capacity, tuple(OngoingVisit(PLAN, each, waited) for each in elapsed), name, duty
    )


def told_late(late: float, ago: float) -> list[PastVisit]:
    """A doctor's visits of ten minutes without a pause, each told `late` seconds after its end."""
    return [PastVisit(PLAN, VISIT + late, n * VISIT - late + ago, "a", 400.0) for n in range(1, 21)]


HELPED = [PastVisit(PLAN, 300.0, 60.0 + n, "b", 400.0) for n in range(3)]
AWAY = DoctorPool(
    [known("a"), known("b", 20.0, waited=1.0)], [], [*worked("a", 0, until=2000), *HELPED]
)
CHOSEN = [PastVisit(PLAN, 60.0, 100.0 + n * 200, "b", 0.0) for n in range(12)]
PASSED = DoctorPool(
    [known("a"), known("b", 20.0, waited=0.0)], [], [*worked("a", 0, until=3000), *CHOSEN]
)
AT_ONCE = DoctorPool([known("a")], [], worked("a", 0.0, until=900.0))
ENDING = DoctorPool([known("a", 500.0)], [], told_late(LATE, 500.0 - VISIT))
IN_TIME = replace(ENDING, past=told_late(0.0, 500.0 - VISIT))
SIX_AHEAD = DoctorPool([known("a", 0.0)], [PLAN] * 5, worked("a", 0.0), waited=[10.0] * 5)
NINE_LATE = DoctorPool([known("a", 0.0)], [PLAN] * 9,
    [PastVisit(PLAN, VISIT, n * 300.0, "a", 300.0) for n in range(20)], waited=[10.0] * 9)  # fmt: skip
MIXED = [
    one for n in range(10) for one in worked("a", 900.0 * (n % 2), until=30.0 + n * 9000.0, count=2)
]
ONE_SERVES = DoctorPool([busy(0, plan_ids=ONLY_PLAN)], [], TEN_MINUTES)
THREE, EIGHT = (
    DoctorPool([busy(0)] * n, [PLAN] * ahead, TEN_MINUTES) for n, ahead in ((3, 15), (8, 100))
)
BROKEN_OFF = DoctorPool([known("a", 0.0)], [PLAN] * 5,
    [*worked("a", 0.0, waited=1700.0, count=4), *worked("a", 0.0, until=4000.0, count=10)],
    duty=[DutySpan("a", 20_000.0, 3990.0)], waited=[10.0] * 5)  # fmt: skip
RARE = [PastVisit(PLAN, 600.0, i * 3600.0) for i in range(1, 20)]
NEARLY_OVER = DoctorPool(
    [busy(710)], [], [PastVisit(PLAN, 600.0, 4000.0 + i * 60.0) for i in range(49)]
)
STAY = [DutySpan(f"stays {i}", 4 * HOUR, 0.0) for i in range(2)]
CHANGE = [
    *(DutySpan(f"goes {i}", 3 * HOUR, 1.5 * HOUR) for i in range(4)),
    DutySpan("goes 0", 0.2 * HOUR, 0.0),
]
GONE = [DutySpan(f"goes {i}", 4 * HOUR, i * 0.1 * HOUR) for i in range(1, 9)]
NEW = [DutySpan(f"stays {i}", 0.5 * HOUR, 0.0) for i in range(8)]
# The least and the most that a wait may be: so many seconds, or as a share of the wait of another
# pool.
Bounds = tuple[DoctorPool, float, float, DoctorPool | None]
BOUNDS: dict[str, Bounds] = {
    "of more visits than a doctor can have the latest count": (
        DoctorPool([busy(9000, 500)], [], TEN_MINUTES),
        1,
        1,
        DoctorPool([busy(500)], [], TEN_MINUTES),
    ),
    "a visit longer than any before is not over yet": (
        DoctorPool([busy(5000)], [], TEN_MINUTES),
        61,
        9999,
        None,
    ),
    "several busy doctors are free sooner than one of them on average": (
        DoctorPool([busy(0)] * 5, [], SPREAD),
        0,
        0.49,
        line(0, SPREAD),
    ),
    "one visit that nobody ended hardly changes the estimate": (
        line(5, [PastVisit(PLAN, 80_000.0, 0.0), *TEN_MINUTES]),
        0.9,
        1.1,
        line(5),
    ),
    "patients who never lost patience change nothing": (
        line(10, waited=[0.0] * 10, past_waits=[PastWait(1200.0, left=False)] * 40),
        1,
        1,
        line(10, waited=[0.0] * 10),
    ),
    "patients who lose patience shorten the wait of those behind them": (
        line(10, waited=[0.0] * 10, past_waits=[PastWait(1200.0, i % 2 == 0) for i in range(40)]),
        0,
        0.7,
        line(10, waited=[0.0] * 10),
    ),
    "who waits for a plan that nobody serves is in nobody's way": (
        replace(ONE_SERVES, waiting=[SIBLING] * 20),
        1,
        1,
        ONE_SERVES,
    ),
    "doctors who stay change nothing": (replace(THREE, duty=STAY), 1, 1, THREE),
    "fewer doctors than usual become more": (replace(THREE, duty=[*STAY, *CHANGE]), 0, 0.99, THREE),
    "doctors who do not come back lengthen the wait at most to twice": (
        replace(EIGHT, duty=[*GONE, *NEW]),
        1.01,
        2,
        EIGHT,
    ),
    "a doctor that writes notes after each visit is not free at its end": (
        DoctorPool([known("a")], [], worked("a", 240.0, until=60.0)),
        162,
        198,
        None,
    ),
    "a doctor that does not is": (
        DoctorPool([known("a")], [], worked("a", 0.0, until=60.0)),
        0,
        0,
        None,
    ),
    "an idle doctor is ready": (AT_ONCE, 0, 0, None),
    "an idle doctor beside a waiting patient is away": (
        replace(AT_ONCE, waiting=[PLAN], waited=[400.0]),
        VISIT + 1,
        9999,
        None,
    ),
    "but not beside one whose end was never told": (
        replace(AT_ONCE, waiting=[PLAN], waited=[80_000.0]),
        0,
        0.99,
        replace(AT_ONCE, waiting=[PLAN], waited=[400.0]),
    ),
    "a doctor that let a patient wait for another was away": (AWAY, 61, 9999, None),
    "where nobody waited the doctor is ready": (
        replace(AWAY, past=[each._replace(waited_seconds=0.0) for each in AWAY.past]),
        0,
        0,
        None,
    ),
    "a doctor passed over again and again is in doubt": (PASSED, 31, 9999, None),
    "a doctor passed over once is not": (replace(PASSED, past=PASSED.past[:21]), 0, 0, None),
    "an end that is told late was when the doctor took the next patient": (
        NINE_LATE,
        2400,
        3600,
        None,
    ),
    "but not where two visits run at a time": (
        replace(NINE_LATE, doctors=[known("a", 0.0, 0.0, waited=1.0, capacity=2)]),
        2400,
        3600,
        None,
    ),
    "nobody is told zero while the chance of a wait is one half": (
        DoctorPool([known("a")], [], MIXED),
        31,
        9999,
        None,
    ),
    "a visit that looks in progress while nobody waits may be over": (ENDING, 0, 0.49, IN_TIME),
    "a told break is no pause": (
        replace(BROKEN_OFF, doctors=[known("a", 0.0, duty=4 * VISIT)]),
        0,
        0.95,
        BROKEN_OFF,
    ),
    "a feed in time changes nothing": (replace(SIX_AHEAD, feed_late_seconds=4.0), 1, 1, SIX_AHEAD),
    "patients that joined unseen take doctors that look idle": (
        DoctorPool(
            [Doctor(None, 1, visits=()), busy(100)], [], TEN_MINUTES, feed_late_seconds=120.0
        ),
        101,
        9999,
        None,
    ),
    "where hardly anybody joins an idle doctor is still idle": (
        DoctorPool([Doctor(None, 1, visits=())], [], RARE, feed_late_seconds=120.0),
        0,
        0,
        None,
    ),
    "of another plan's doctors and of none nobody is on duty": (
        DoctorPool(
            [Doctor(ONLY_SIBLING, 1, visits=())], [PLAN], TEN_MINUTES, feed_late_seconds=120.0
        ),
        -1,
        -1,
        None,
    ),
    "a visit that was nearly over at the last news is over now": (
        replace(NEARLY_OVER, feed_late_seconds=120.0),
        0,
        0.99,
        NEARLY_OVER,
    ),
    "a visit is in progress for certain while somebody waits": (
        replace(ENDING, waiting=[PLAN], waited=[100.0]),
        0.95,
        1.05,
        replace(IN_TIME, waiting=[PLAN], waited=[100.0]),
    ),
}


@pytest.mark.parametrize("case", BOUNDS)
def test_the_wait_lies_between(case: str) -> None:
    pool, least, most, other = BOUNDS[case]
    unit = 1 if other is None else wait_of(other)
    assert least * unit <= wait_of(pool) <= most * unit


def test_each_patient_ahead_takes_a_pause_too() -> None:
    pausing = replace(SIX_AHEAD, past=worked("a", 200.0))
    assert wait_of(pausing) == pytest.approx(wait_of(SIX_AHEAD) + 6 * 200, rel=0.1)


def late_seconds(late: list[float]) -> float:
    """What is learnt from visits of ten minutes, the newest first, each reported so many seconds
    after its end.
    """
    past = [
        PastVisit(PLAN, VISIT + end, n * VISIT - end, "a", 400.0)
        for n, end in enumerate(late, start=1)
    ]
    return Turns(DoctorPool([known("a", VISIT)], [], past)).late_seconds


def test_one_late_end_among_many_says_little() -> None:
    assert 0 < late_seconds([LATE] + [0.0] * 30) < 30
    assert late_seconds([LATE] * 30) > 0.9 * LATE
    assert late_seconds([300, 300]) == pytest.approx(150.0, rel=0.01)


def test_a_longer_line_waits_longer_also_where_it_is_no_longer_played() -> None:
    crowd = DoctorPool([busy(300)] * 500, [], TEN_MINUTES)
    ahead = [wait_of(replace(crowd, waiting=[PLAN] * count)) for count in range(500, 2500, 100)]
    assert ahead == sorted(ahead)


def interval_of(pool: DoctorPool) -> tuple[int, int]:
    _, low, high, _ = estimate_waits(pool, PLANS)[PLAN]
    return low or 0, high or 0


def test_visits_of_one_length_leave_no_doubt_and_spread_ones_do() -> None:
    known, doubtful = (
        interval_of(DoctorPool([busy(0)], [PLAN], past)) for past in (TEN_MINUTES, SPREAD)
    )
    assert known[1] - known[0] < 0.5 * (doubtful[1] - doubtful[0])
    assert interval_of(DoctorPool([Doctor(None, 1, visits=())], [], SPREAD)) == (0, 0)


def test_the_textbooks_interval_of_one_visit() -> None:
    """One exponential visit in progress: a tenth of the rests is below 0.105 means, a tenth above
    2.3 means.
    """
    low, high = interval_of(DoctorPool([busy(0)], [], EXPONENTIAL))
    assert low == pytest.approx(0.09 * 600, abs=30)
    assert high == pytest.approx(2.4 * 600, rel=0.15)


def test_the_interval_of_a_long_line_is_narrow_and_that_of_few_runs_is_one() -> None:
    pool = DoctorPool([busy(100 + i % 500) for i in range(100)], [PLAN] * 2000, SPREAD)
    low, high = interval_of(pool)
    wait = wait_of(pool)
    assert 0.9 * wait < low < high < 1.1 * wait
    assert high - low > 10


def test_a_state_that_was_loaded_at_once_is_no_late_feed() -> None:
    too_late = (90.0, MOST_LATE_SECONDS + 1)
    assert usual_lateness([(10.0, 100.0), (50.0, 130.0), (70.0, 120.0), too_late]) == 120.0
    assert usual_lateness([(10.0, 240.0), (10.0, 600.0), (10.0, 480.0)]) == 0.0
    assert usual_lateness([(10.0, 240.0), (10.0, 600.0), (50.0, 1.0)]) == 1.0
    assert usual_lateness([]) == 0.0


def test_one_quick_leaver_does_not_empty_the_line() -> None:
    three = DoctorPool(
        [busy(300)] * 3, [PLAN] * 40, TEN_MINUTES, waited=[3 * HOUR - 60 * i for i in range(40)]
    )
    with_leaver = replace(three, past_waits=[PastWait(30.0, left=True)])
    assert wait_of(with_leaver) > 0.7 * wait_of(three)


@pytest.mark.parametrize("days_on_duty", [0.2, 7])
def test_the_longer_a_patient_waits_beside_a_ready_doctor_the_longer_the_wait(
    days_on_duty: float,
) -> None:
    silent = replace(known("a"), on_duty_seconds=days_on_duty * 24 * HOUR)
    waits = [
        wait_of(DoctorPool([silent], [PLAN], RARE, waited=[minutes * 60.0]))
        for minutes in (1, 10, 60, 180)
    ]
    assert waits[0] <= waits[1] < waits[2] < waits[3]
    assert waits[2] > HOUR
    assert waits[3] > 2.5 * HOUR
