"""Derives the shifts of doctors, and how many visits each has at a time, from their visits."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from math import ceil
from typing import NamedTuple

from frontdesk.backtest.columns import ABSENT, EncounterColumns
from frontdesk.queues.estimate.model import READY_SECONDS
from frontdesk.queues.events import MAX_CAPACITY

SHIFT_GAP_SECONDS = 3600.0  # a doctor without a visit for so long was off duty
# A doctor with room takes a waiting patient. So after each start with a wait all places are taken,
# except for late ends of visits (one more) and doctors that have just come (fewer): the number of
# visits that two thirds of these starts reach is the capacity.
MOST_SHARE = 2 / 3
ENOUGH_STARTS = 10
# Without waits: the number at this share of the starts. Some visits overlap because an end was
# forgotten.
USUAL_SHARE = 0.05


class DoctorTerms(NamedTuple):
    """The plans that the doctor's visits are of, as their numbers, and the visits at a time."""

    plans: frozenset[int]
    capacity: int


class DerivedShifts:
    """Shift i: the doctor `doctor[i]` is on duty from `on[i]` until `off[i]`, on `terms[doctor[i]]`."""

    def __init__(self) -> None:
        self.doctor = array("i")
        self.on = array("d")
        self.off = array("d")
        self.terms: dict[int, DoctorTerms] = {}


class _Overlaps(NamedTuple):
    """By start of a visit, how many visits the doctor then has by their reported ends: of all
    starts, and of those after a wait.
    """

    all: "array[int]"
    after_wait: "array[int]"


def derive_shifts(rows: EncounterColumns, chosen: Iterable[int]) -> DerivedShifts:
    """The shifts of each doctor, by these rows with a visit."""
    by_doctor = _visits_by_doctor(rows, chosen)
    overlaps = {doctor: _overlaps(rows, visits) for doctor, visits in by_doctor.items()}
    everyone = list(chain.from_iterable(own.after_wait for own in overlaps.values()))
    usual = _reached(everyone, MOST_SHARE) if len(everyone) >= ENOUGH_STARTS else None
    found = DerivedShifts()
    for doctor, visits in by_doctor.items():
        plans = frozenset(rows.plan[visit] for visit in visits)
        found.terms[doctor] = DoctorTerms(plans, _capacity(overlaps[doctor], usual))
        for on, off in _spans(rows, visits):
            if on == off:
                continue  # at one instant `on` counts after `off`: the doctor would stay on duty
            found.doctor.append(doctor)
            found.on.append(on)
            found.off.append(off)
    return found


def _end(rows: EncounterColumns, visit: int) -> float:
    """The end of the visit; its start where it has none."""
    ended = rows.ended[visit]
    return rows.started[visit] if ended == ABSENT else ended


def _visits_by_doctor(rows: EncounterColumns, chosen: Iterable[int]) -> "dict[int, array[int]]":
    """The visits of each doctor by their starts; the doctors by their first visits."""
    unordered: defaultdict[int, array[int]] = defaultdict(lambda: array("i"))
    for row in chosen:
        if rows.started[row] != ABSENT:
            unordered[rows.doctor[row]].append(row)

    def order(visit: int) -> tuple[float, float, int]:
        return rows.started[visit], _end(rows, visit), visit

    by_doctor = {
        doctor: array("i", sorted(visits, key=order)) for doctor, visits in unordered.items()
    }
    return dict(sorted(by_doctor.items(), key=lambda item: order(item[1][0])))


def _spans(rows: EncounterColumns, visits: Sequence[int]) -> Iterator[tuple[float, float]]:
    start = rows.started[visits[0]]
    until = start
    for visit in visits:
        started = rows.started[visit]
        if started - until > SHIFT_GAP_SECONDS:
            yield start, until
            start = started
            until = started
        until = max(until, _end(rows, visit))
    yield start, until


def _overlaps(rows: EncounterColumns, visits: Sequence[int]) -> _Overlaps:
    found = _Overlaps(array("i"), array("i"))
    ends = list[float]()
    for visit in visits:
        started = rows.started[visit]
        joined = rows.joined[visit]
        ends = [end for end in ends if end > started]
        ends.append(_end(rows, visit))
        found.all.append(len(ends))
        if joined != ABSENT and started - joined > READY_SECONDS:
            found.after_wait.append(len(ends))
    return found


def _capacity(own: _Overlaps, usual: int | None) -> int:
    """How many visits at a time, at most as many as a live feed may say. `usual`: of all doctors,
    None if there are too few waits.
    """
    if len(own.after_wait) >= ENOUGH_STARTS:
        capacity = _reached(own.after_wait, MOST_SHARE)
    elif usual is not None:
        capacity = usual
    else:
        capacity = _reached(own.all, USUAL_SHARE)
    return min(MAX_CAPACITY, capacity)


def _reached(numbers: Sequence[int], share: float) -> int:
    """The largest number that this share of the numbers reaches."""
    return sorted(numbers, reverse=True)[max(0, ceil(share * len(numbers)) - 1)]
