"""The doctors' shifts that follow from their visits, where a file of encounters does not tell them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from operator import attrgetter
from typing import NamedTuple

from frontdesk.queues.backtest.replay import ReplayEvent
from frontdesk.queues.estimate.model import READY_SECONDS
from frontdesk.queues.model import EventType

SHIFT_GAP_SECONDS = 3600.0  # a doctor without a visit for so long was off duty
# A doctor with room takes a patient that waits. So after each start with a wait all places are taken, but for late ends of
# visits (one more) and doctors that have just come (fewer): two thirds of these starts tell the number of places.
MOST_SHARE = 2 / 3
ENOUGH_STARTS = 10
# Where nobody waited: as many as at this share of the starts. Some visits overlap because an end was forgotten.
USUAL_SHARE = 0.05


class SeenVisit(NamedTuple):
    """A visit of the doctor's. `joined` None: the patient was not waiting. Times in seconds since 1970."""

    doctor: str
    plan_id: int
    started: float
    ended: float
    joined: float | None


class _Start(NamedTuple):
    """The number of visits that the doctor then has, by what is told of their ends."""

    in_hand: int
    after_wait: bool


def shifts_of(visits: Iterable[SeenVisit]) -> list[ReplayEvent]:
    """When each doctor comes and goes, the plans of the doctor's visits, and the places."""
    by_doctor: defaultdict[str, list[SeenVisit]] = defaultdict(list)
    for visit in sorted(visits, key=attrgetter("started", "ended")):
        by_doctor[visit.doctor].append(visit)
    starts = {doctor: _starts(own) for doctor, own in by_doctor.items()}
    everyone = _after_wait(start for own in starts.values() for start in own)
    events: list[ReplayEvent] = []
    for doctor, own in by_doctor.items():
        events += _shifts(doctor, own, _places(starts[doctor], everyone))
    return events


def _shifts(doctor: str, visits: Sequence[SeenVisit], places: int) -> Iterator[ReplayEvent]:
    plan_ids = frozenset(visit.plan_id for visit in visits)
    start, until = visits[0].started, visits[0].ended
    shifts = []
    for visit in visits:
        if visit.started - until > SHIFT_GAP_SECONDS:
            shifts.append((start, until))
            start, until = visit.started, visit.ended
        until = max(until, visit.ended)
    for on, off in [*shifts, (start, until)]:
        if off == on:
            continue  # at one instant `on` counts after `off`: the doctor would stay on duty
        yield ReplayEvent(
            on, EventType.DOCTOR_ON_DUTY, doctor=doctor, plan_ids=plan_ids, capacity=places, known_at=on
        )
        yield ReplayEvent(off, EventType.DOCTOR_OFF_DUTY, doctor=doctor, known_at=off)


def _starts(visits: Sequence[SeenVisit]) -> list[_Start]:
    found, ends = [], list[float]()
    for visit in visits:
        ends = [end for end in ends if end > visit.started]
        ends.append(visit.ended)
        waited = visit.joined is not None and visit.started - visit.joined > READY_SECONDS
        found.append(_Start(len(ends), waited))
    return found


def _after_wait(starts: Iterable[_Start]) -> list[int]:
    return [start.in_hand for start in starts if start.after_wait]


def _places(own: Sequence[_Start], everyone: Sequence[int]) -> int:
    """How many visits at a time. `everyone`: the numbers after starts with a wait, of all doctors."""
    waited = _after_wait(own)
    if len(waited) >= ENOUGH_STARTS:
        return _reached(waited, MOST_SHARE)
    if len(everyone) >= ENOUGH_STARTS:
        return _reached(everyone, MOST_SHARE)
    return _reached([start.in_hand for start in own], USUAL_SHARE)


def _reached(numbers: Sequence[int], share: float) -> int:
    """The largest number that so many of them reach."""
    return sorted(numbers, reverse=True)[max(0, ceil(share * len(numbers)) - 1)]
