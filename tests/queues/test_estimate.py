"""The wait estimate."""

from hypothesis import given
from hypothesis import strategies as st

from frontdesk.queues import NOBODY_ON_DUTY, Pool, estimate_wait

LENGTHS = st.lists(st.floats(1, 7200), max_size=30)
VISITS = st.lists(st.tuples(st.floats(0, 7200), st.floats(1, 7200)), max_size=10)


def test_nobody_on_duty_is_told_as_minus_one() -> None:
    assert estimate_wait(Pool(doctors=0, visits_in_progress=[], waiting=[900])) == NOBODY_ON_DUTY == -1


def test_a_free_doctor_means_no_wait() -> None:
    assert estimate_wait(Pool(doctors=2, visits_in_progress=[(10, 900)], waiting=[])) == 0


def test_everyone_ahead_takes_the_doctor_who_is_free_first() -> None:
    pool = Pool(doctors=2, visits_in_progress=[(300, 900), (600, 900)], waiting=[900, 900])
    assert estimate_wait(pool) == 1200  # free in 300 and 600; after both: 1200 and 1500


def test_a_visit_that_lasts_longer_than_usual_is_not_over_yet() -> None:
    assert estimate_wait(Pool(doctors=1, visits_in_progress=[(5000, 900)], waiting=[])) == 225


@given(st.integers(1, 20), VISITS, LENGTHS)
def test_one_more_ahead_never_shortens_the_wait_and_one_more_doctor_never_lengthens_it(
    doctors: int, visits: list[tuple[float, float]], waiting: list[float]
) -> None:
    visits = visits[:doctors]
    wait = estimate_wait(Pool(doctors, visits, waiting))
    assert wait >= 0
    assert estimate_wait(Pool(doctors, visits, [*waiting, 60.0])) >= wait
    assert estimate_wait(Pool(doctors + 1, visits, waiting)) <= wait
