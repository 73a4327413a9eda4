"""What is learnt of doctors from their visits: pauses in which they take nobody, and ends that are reported late."""

from dataclasses import replace

import pytest

from frontdesk.queues.estimate.doctors import Pauses, Turns
from frontdesk.queues.estimate.model import Doctor, DoctorPool, DutySpan, OngoingVisit, PastVisit
from frontdesk.queues.estimate.waits import estimate_waits

PLAN = 7
VISIT, LATE = 600.0, 300.0


def worked(
    name: str, pause: float, *, waited: float = 300.0, until: float = 0.0, count: int = 20
) -> list[PastVisit]:
    """A doctor's visits of ten minutes, the last ended `until` seconds ago, with a pause between each two."""
    return [PastVisit(PLAN, VISIT, until + n * (VISIT + pause), name, waited) for n in range(count)]


def idle(name: str, on_duty: float = 36_000.0) -> Doctor:
    return Doctor(None, 1, (), name, on_duty)


def busy(name: str = "a", elapsed: float = 0.0, waited: float = 300.0) -> Doctor:
    return Doctor(None, 1, (OngoingVisit(PLAN, elapsed, waited),), name, 36_000.0)


def wait_of(pool: DoctorPool) -> int:
    return estimate_waits(pool, [PLAN])[PLAN].seconds


def pause_after(pool: DoctorPool) -> float:
    parts = Pauses(pool, Turns(pool)).after_visit(32)
    return sum(parts) / 32 if parts else 0.0


def test_a_doctor_that_writes_notes_after_each_visit_is_not_free_at_its_end() -> None:
    pool = DoctorPool([idle("a")], [], worked("a", 240.0, until=60.0))
    assert wait_of(pool) == pytest.approx(180, rel=0.1)
    assert wait_of(replace(pool, past=worked("a", 0.0, until=60.0))) == 0


def test_each_patient_ahead_takes_a_pause_too() -> None:
    pool = DoctorPool([busy("a")], [PLAN] * 5, worked("a", 200.0), waited=[10.0] * 5)
    at_once = replace(pool, past=worked("a", 0.0))
    assert wait_of(pool) == pytest.approx(wait_of(at_once) + 6 * 200, rel=0.1)


def test_a_pause_is_known_only_while_somebody_waits() -> None:
    """Patients that were taken as soon as they came say that the doctor was ready, however long nobody had come."""
    pool = DoctorPool([busy("a")], [], worked("a", 240.0, waited=2.0))
    assert pause_after(pool) == 0
    mixed = replace(pool, past=[*worked("a", 240.0, waited=2.0), *worked("b", 100.0)])
    assert 0 < pause_after(mixed) < 100


def test_an_idle_doctor_beside_a_waiting_patient_is_away() -> None:
    taken_at_once = worked("a", 0.0, until=900.0)
    pool = DoctorPool([idle("a")], [], taken_at_once)
    assert wait_of(pool) == 0
    assert wait_of(replace(pool, waiting=[PLAN], waited=[400.0])) > VISIT


def test_a_wait_whose_end_was_never_told_does_not_make_every_doctor_away() -> None:
    pool = DoctorPool([idle("a")], [PLAN], worked("a", 0.0, until=900.0), waited=[80_000.0])
    fresh = replace(pool, waited=[400.0])
    assert wait_of(pool) < wait_of(fresh)


def test_a_doctor_that_let_a_patient_wait_for_another_was_away() -> None:
    others = [PastVisit(PLAN, 300.0, 60.0 + n, "b", 400.0) for n in range(3)]
    staff = [idle("a"), busy("b", 20.0, 1.0)]
    let_wait = DoctorPool(staff, [], [*worked("a", 0.0, until=2000.0), *others])
    nobody_waited = replace(let_wait, past=[visit._replace(waited_seconds=0.0) for visit in let_wait.past])
    assert wait_of(let_wait) > 60
    assert wait_of(nobody_waited) == 0


def test_a_doctor_passed_over_again_and_again_is_in_doubt() -> None:
    """Only where a doctor was chosen among idle ones: each choice counts against the others."""
    chosen = [PastVisit(PLAN, 60.0, 100.0 + n * 200, "b", 0.0) for n in range(12)]
    pool = DoctorPool([idle("a"), busy("b", 20.0, 0.0)], [], [*worked("a", 0.0, until=3000.0), *chosen])
    assert wait_of(pool) > 30
    assert wait_of(replace(pool, past=[*worked("a", 0.0, until=3000.0), *chosen[:1]])) == 0


def test_a_told_break_is_no_pause() -> None:
    before, after = worked("a", 0.0, until=4000.0, count=10), worked("a", 0.0, waited=1700.0, count=4)
    pool = DoctorPool([busy("a")], [], [*after, *before], duty=[DutySpan("a", 20_000.0, 3990.0)])
    told = replace(pool, doctors=[replace(busy("a"), on_duty_seconds=4 * VISIT)])
    assert pause_after(told) == 0
    assert pause_after(replace(told, doctors=[busy("a")])) > 30


def test_a_visit_whose_end_is_told_late_ended_when_its_doctor_took_the_next_patient() -> None:
    late = [PastVisit(PLAN, VISIT, n * 300.0, "a", 300.0) for n in range(20)]
    pool = DoctorPool([busy("a")], [PLAN] * 9, late, waited=[10.0] * 9)
    assert wait_of(pool) == pytest.approx(10 * 300, rel=0.2)
    chat = replace(pool, doctors=[Doctor(None, 2, (OngoingVisit(PLAN, 0.0, 1.0),) * 2, "a", 36_000.0)])
    assert wait_of(chat) == pytest.approx(10 / 2 * VISIT, rel=0.2)


def test_nobody_is_told_zero_while_the_chance_of_a_wait_is_one_half() -> None:
    mixed = [
        visit for n in range(10) for visit in worked("a", 900.0 * (n % 2), until=30.0 + n * 9000.0, count=2)
    ]
    assert wait_of(DoctorPool([idle("a")], [], mixed)) > 30


def told_late(late: float, waited: float = 400.0, count: int = 20) -> list[PastVisit]:
    """A doctor's visits of ten minutes without a pause, each told `late` seconds after its end; the last ends now."""
    return [PastVisit(PLAN, VISIT + late, n * VISIT - late, "a", waited) for n in range(1, count + 1)]


def shifted(past: list[PastVisit], seconds: float) -> list[PastVisit]:
    return [visit._replace(ended_seconds_ago=visit.ended_seconds_ago + seconds) for visit in past]


def test_a_visit_that_looks_in_progress_while_nobody_waits_may_be_over() -> None:
    late = DoctorPool([busy("a", 500.0)], [], shifted(told_late(LATE), 500.0 - VISIT))
    in_time = replace(late, past=shifted(told_late(0.0), 500.0 - VISIT))
    assert wait_of(late) < 0.5 * wait_of(in_time)


def test_a_visit_is_in_progress_for_certain_while_somebody_waits() -> None:
    pool = DoctorPool([busy("a", 500.0)], [PLAN], shifted(told_late(LATE), 500.0 - VISIT), waited=[100.0])
    in_time = replace(pool, past=shifted(told_late(0.0), 500.0 - VISIT))
    assert wait_of(pool) == pytest.approx(wait_of(in_time), rel=0.05)


def late_seconds(late: list[float]) -> float:
    """What is learnt from visits of ten minutes, the newest first, each reported so many seconds after its end."""
    past = [PastVisit(PLAN, VISIT + end, n * VISIT - end, "a", 400.0) for n, end in enumerate(late, start=1)]
    return Turns(DoctorPool([busy("a", VISIT)], [], past)).late_seconds


def test_one_late_end_among_many_says_little() -> None:
    assert 0 < late_seconds([LATE] + [0.0] * 30) < 30
    assert late_seconds([LATE] * 30) > 0.9 * LATE
    assert late_seconds([300, 300]) == pytest.approx(150.0, rel=0.01)
