"""How much of the runs the interval leaves out."""

from frontdesk.queues.estimate.model import PastWait
from frontdesk.queues.estimate.telling import LeftOut, left_out, wait_to_tell

WAITED, AT_ONCE = PastWait(300.0, left=False), PastWait(0.0, left=False)


def of(past: list[PastWait], *, leaving: bool = False, changing: bool = False) -> LeftOut:
    return left_out(past, leaving=leaving, changing=changing, pauses=None)


def test_where_all_wait_a_tenth_is_left_out_at_either_end() -> None:
    assert of([WAITED] * 200) == of([]) == LeftOut(0.1, 0.1)


def test_where_many_are_taken_at_once_more_of_the_others_may_be_outside() -> None:
    half, few = of([WAITED, AT_ONCE] * 100), of([WAITED] * 180 + [AT_ONCE] * 20)
    assert half.below > few.below > 0.1
    assert half.above > few.above > 0.1
    assert of([AT_ONCE] * 2).below < 0.15  # two patients say little


def test_a_patient_that_left_was_not_taken_at_once() -> None:
    assert of([PastWait(5.0, left=True)] * 100) == LeftOut(0.1, 0.1)


def test_leaving_patients_and_changing_staff_widen_it() -> None:
    ready = [AT_ONCE] * 200
    assert of(ready, leaving=True).below < of(ready, changing=True).below < of(ready).below
    assert of(ready, changing=True).above < of(ready).above


def test_few_long_pauses_among_short_ones_raise_the_upper_end() -> None:
    regular = left_out([], leaving=False, changing=False, pauses=[60.0, 120.0, 180.0, 240.0])
    irregular = left_out([], leaving=False, changing=False, pauses=[0.0] * 7 + [900.0])
    assert irregular.above < regular.above == 0.1


def test_the_interval_grows_with_the_doubt_about_the_mean_visit() -> None:
    waits = [100.0 + n for n in range(32)]
    sure, unsure = (wait_to_tell(waits, doubt, LeftOut(0.1, 0.1)) for doubt in (0.0, 0.2))
    assert unsure.low < sure.low < sure.high < unsure.high
