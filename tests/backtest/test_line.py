"""Events in the order in which they were known, without keeping the past."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from frontdesk.backtest.judge import run_backtest
from frontdesk.backtest.line import Stay, Waits, line_of
from frontdesk.queues.encounters import event_order
from frontdesk.queues.model import ReplayEvent
from tests.queues.feed import ENDED, JOINED, LEFT, OFF, ON, STARTED

SINCE = 40.0


def random_events(seed: int) -> list[ReplayEvent]:
    """Of a few visits and doctors: late, doubled, out of order, contradictory."""
    random = Random(seed)
    found = []
    for number in range(random.randrange(60)):
        type_ = random.choice((JOINED, JOINED, STARTED, STARTED, ENDED, LEFT, ON, OFF))
        at = float(random.randrange(100))
        late = random.choice((0.0, 0.0, float(random.randrange(30)), 9000.0, -3.0))
        doctor = random.choice("ab")
        visit = "" if type_ in (ON, OFF) else random.choice("123456")
        plan = random.randrange(1, 3)
        event = ReplayEvent(at, type_, plan, visit, doctor, known_at=at + late, id=f"{number}")
        found.append(event)
    return found


def sorted_line(ordered: Sequence[ReplayEvent]) -> list[Any]:
    """The same in memory: each event with the moment from which it is known, and sorted."""
    line: list[tuple[tuple[float, int], int, Any]] = []
    last: dict[tuple[str, str], tuple[float, int]] = {}
    waits = Waits(ordered, SINCE)
    joined = 0
    for number, event in enumerate(ordered, start=1):
        in_time = event.at <= event.known_at <= event.at + 3600
        joining = number if event.type is JOINED else 0
        moment = event.known_at if in_time else event.at, joining
        about = event.visit, "" if event.visit else event.doctor
        moment = last[about] = max(moment, last.get(about, moment))
        if joining and event.at >= SINCE:
            stay = waits.stay(joined, event)
            joined += 1
            if stay is not None:
                line.append(((stay.asked_at, moment[1]), 2 * number, stay))
        line.append((moment, 2 * number + 1, event))
    return [one for _, _, one in sorted(line, key=lambda item: item[:2])]


@pytest.mark.parametrize("seed", range(60))
def test_events_are_released_as_if_all_were_sorted(seed: int) -> None:
    ordered = sorted(random_events(seed), key=event_order)
    released = list(line_of(ordered, SINCE, Waits(ordered, SINCE)))
    assert released == sorted_line(ordered)
    assert [one for one in released if isinstance(one, ReplayEvent)] != [] or not ordered


def patient(visit: str, *times: tuple[Any, float], **joining: Any) -> list[ReplayEvent]:
    events = [ReplayEvent(at, type_, 1, visit, "a", known_at=at) for type_, at in times]
    return [events[0]._replace(**joining), *events[1:]]


ON_DUTY = ReplayEvent(0.0, ON, doctor="a", known_at=0.0)
BUSY = patient("busy", (JOINED, 10.0), (STARTED, 10.0), (ENDED, 900.0))


def stays(events: list[ReplayEvent]) -> dict[str, Stay]:
    ordered = sorted(events, key=event_order)
    line = line_of(ordered, 0.0, Waits(ordered, 0.0))
    return {one.visit: one for one in line if isinstance(one, Stay)}


@pytest.mark.parametrize(
    ("times", "wait"),
    [
        ([(JOINED, 10.0), (STARTED, 40.0)], 30.0),
        ([(JOINED, 10.0), (LEFT, 40.0)], None),
        ([(JOINED, 10.0), (JOINED, 20.0), (STARTED, 40.0)], 30.0),
        ([(JOINED, 10.0), (LEFT, 20.0), (JOINED, 30.0), (STARTED, 40.0)], 10.0),
    ],
)
def test_the_wait_is_that_of_the_joining_that_began_it(times: Any, wait: float | None) -> None:
    assert stays(patient("1", *times))["1"].wait_seconds == wait


@pytest.mark.parametrize("times", [[(JOINED, 10.0)], [(JOINED, 10.0), (ENDED, 20.0)]])
def test_a_wait_that_did_not_end_is_no_stay(times: Any) -> None:
    assert stays(patient("1", *times)) == {}


def test_a_booked_patient_is_asked_about_at_the_booked_time() -> None:
    """And is not ahead of itself, though its booking was reported before."""
    times = (JOINED, 20.0), (STARTED, 900.0), (ENDED, 1000.0)
    booked = patient("booked", *times, not_before=700.0)
    stay = stays([ON_DUTY, *BUSY, *booked])["booked"]
    assert (stay.joined_at, stay.wait_seconds) == (700.0, 200.0)
    assert run_backtest([ON_DUTY, *BUSY, *booked], since=600.0).joined == 1
    assert run_backtest([ON_DUTY, *BUSY, *booked], since=701.0).joined == 0
    judged = {
        one.joined_at: one for one in run_backtest([ON_DUTY, *BUSY, *booked], since=0.0).judged
    }
    assert (judged[700.0].wait_seconds, judged[700.0].position) == (200.0, 1)


def test_a_patient_that_is_moved_out_of_the_line_waits_from_the_booked_time() -> None:
    times = (JOINED, 20.0), (JOINED, 60.0), (STARTED, 900.0)
    first, *later = patient("moved", *times)
    moved = [first, later[0]._replace(not_before=700.0), later[1]]
    stay = stays([ON_DUTY, *moved])["moved"]
    assert (stay.joined_at, stay.wait_seconds) == (700.0, 200.0)


def test_a_booked_patient_that_is_seen_early_has_no_wait() -> None:
    booked = patient("booked", (JOINED, 20.0), (STARTED, 300.0), not_before=700.0)
    assert "booked" not in stays([ON_DUTY, *booked])


# Four, of which one goes before all others.
WAITING = [
    one
    for number, priority in enumerate((9, None, None, None))
    for one in patient(
        f"w{number}", (JOINED, 100.0 + number), (STARTED, 5000.0 + number), priority=priority
    )
]


@pytest.mark.parametrize(
    ("patient_class", "priority", "position"), [("urgent", 5, 2), (None, None, 5)]
)
def test_a_patient_with_priority_is_judged_before_the_others(
    patient_class: str | None, priority: int | None, position: int
) -> None:
    """Earlier urgent patients have taught the service that these go first."""
    earlier = [
        one
        for number in range(10)
        for one in patient(
            f"e{number}", (JOINED, -900.0 + 20 * number), (STARTED, -890.0 + 20 * number),
            (ENDED, -880.0 + 20 * number), patient_class="urgent", priority=5,
        )
    ]  # fmt: skip
    newcomer = patient(
        "new", (JOINED, 200.0), (STARTED, 950.0), patient_class=patient_class, priority=priority
    )
    on_duty = ON_DUTY._replace(at=-1000.0, known_at=-1000.0)
    events = [on_duty, *earlier, *BUSY, *WAITING, *newcomer]
    [judged] = [one for one in run_backtest(events, since=0.0).judged if one.joined_at == 200.0]
    assert judged.position == position
    assert judged.patient_class == patient_class
    without = [one._replace(patient_class=None) for one in newcomer]
    others = run_backtest([on_duty, *earlier, *BUSY, *WAITING, *without], since=0.0).judged
    [unknown] = [one for one in others if one.joined_at == 200.0]
    if patient_class:
        assert judged.estimate.seconds < unknown.estimate.seconds
