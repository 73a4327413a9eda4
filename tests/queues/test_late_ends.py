"""Ends of visits that are told late: learnt where somebody waited, and taken off where nobody did."""

from dataclasses import replace

import pytest

from frontdesk.queues.estimate.doctors import Turns
from frontdesk.queues.estimate.model import Doctor, DoctorPool, OngoingVisit, PastVisit
from frontdesk.queues.estimate.waits import estimate_waits

PLAN = 7
VISIT, LATE = 600.0, 300.0


def told_late(late: float, waited: float = 400.0, count: int = 20) -> list[PastVisit]:
    """A doctor's visits of ten minutes without a pause, each told `late` seconds after its end; the last ends now."""
    return [PastVisit(PLAN, VISIT + late, n * VISIT - late, "a", waited) for n in range(1, count + 1)]


def busy(elapsed: float, waited: float = 400.0) -> Doctor:
    return Doctor(None, 1, (OngoingVisit(PLAN, elapsed, waited),), "a", 36_000.0)


def wait_of(pool: DoctorPool) -> int:
    return estimate_waits(pool, [PLAN], 900.0)[PLAN].seconds


def shifted(past: list[PastVisit], seconds: float) -> list[PastVisit]:
    return [visit._replace(ended_seconds_ago=visit.ended_seconds_ago + seconds) for visit in past]


def test_a_visit_that_looks_in_progress_while_nobody_waits_may_be_over() -> None:
    late = DoctorPool([busy(500.0)], [], shifted(told_late(LATE), 500.0 - VISIT))
    in_time = replace(late, past=shifted(told_late(0.0), 500.0 - VISIT))
    assert wait_of(late) < 0.5 * wait_of(in_time)


def test_a_visit_is_in_progress_for_certain_while_somebody_waits() -> None:
    pool = DoctorPool([busy(500.0)], [PLAN], shifted(told_late(LATE), 500.0 - VISIT), waited=[100.0])
    in_time = replace(pool, past=shifted(told_late(0.0), 500.0 - VISIT))
    assert wait_of(pool) == pytest.approx(wait_of(in_time), rel=0.05)


def test_a_visit_after_which_nobody_waited_was_shorter_than_told() -> None:
    """The last visit before a quiet time: its end is as late as those of the others."""
    quiet = PastVisit(PLAN, VISIT + LATE, 5 * VISIT - LATE, "a", 400.0)
    pool = DoctorPool([busy(100.0, waited=0.0)], [], [quiet, *shifted(told_late(LATE), 5 * VISIT)])
    told = Turns(pool)
    assert told.late_seconds == pytest.approx(LATE, rel=0.2)
    assert told.past[0].seconds == pytest.approx(VISIT, rel=0.1)


def test_ends_in_time_change_nothing() -> None:
    pool = DoctorPool([busy(100.0)], [], shifted(told_late(0.0), 100.0))
    found = Turns(pool)
    assert found.late_ends is None
    assert found.past == list(pool.past)


def late_seconds(late: list[float]) -> float:
    """What is learnt from visits of ten minutes, the newest first, each reported so many seconds after its end."""
    past = [PastVisit(PLAN, VISIT + end, n * VISIT - end, "a", 400.0) for n, end in enumerate(late, start=1)]
    return Turns(DoctorPool([busy(VISIT)], [], past)).late_seconds


def test_one_late_end_among_many_says_little() -> None:
    assert 0 < late_seconds([LATE] + [0.0] * 30) < 30
    assert late_seconds([LATE] * 30) > 0.9 * LATE
    assert late_seconds([300, 300]) == pytest.approx(150.0, rel=0.01)
