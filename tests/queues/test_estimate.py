"""The wait estimate."""

from frontdesk.queues import NOBODY_ON_DUTY, Doctor, Pool, Visit, estimate_waits

PLAN = 7


def doctor(*elapsed: float, plan_ids: frozenset[int] | None = None, capacity: int = 1) -> Doctor:
    return Doctor(plan_ids, capacity, tuple(Visit(PLAN, seconds) for seconds in elapsed))


def test_nobody_on_duty_is_told_as_minus_one() -> None:
    assert estimate_waits(Pool([], [PLAN], []), [PLAN], 900.0) == {PLAN: NOBODY_ON_DUTY} == {PLAN: -1}


def test_a_free_doctor_means_no_wait() -> None:
    assert estimate_waits(Pool([doctor(10), doctor()], [], []), [PLAN], 900.0) == {PLAN: 0}
