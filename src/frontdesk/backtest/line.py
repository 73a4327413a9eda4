"""Past events in the order in which the service knew of them, and before each joining the question
how long this patient will wait.

Nothing is kept of events that are over, so a past may be longer than memory.
"""

import heapq
from array import array
from collections.abc import Iterable, Iterator
from math import inf, nextafter
from typing import NamedTuple

from frontdesk.queues.encounters import TRANSITIONS
from frontdesk.queues.model import Encounter, EncounterState, EventType, ReplayEvent

# An event with a larger delay was loaded afterwards: it counts as received at its time.
LOADED_LATER_SECONDS = 3600.0
_OPEN = -inf  # as a wait: it has not ended
_LEFT = inf
# The time, and within an instant the number of the joining: first the events of patients that
# joined earlier, then each patient that joins at this instant, with its own events of the instant.
_Moment = tuple[float, int]
_About = tuple[int, str, str]
_Patient = tuple[int, str]


class Stay(NamedTuple):
    """A patient enters the line of the plan at `joined_at`; `wait_seconds` None: left unseen.

    `asked_at`: when its estimate is asked for.
    """

    group: int
    plan_id: int
    visit: str
    joined_at: float
    wait_seconds: float | None
    asked_at: float
    patient_class: str | None = None
    priority: int = 0


class Waits:
    """The waits of patients that entered the line at `since` or later, by the rules of
    queues/encounters.py.

    `ordered`: events in the order of `event_order`. Compact, because a past may have a million.
    """

    def __init__(self, ordered: Iterable[ReplayEvent], since: float) -> None:
        self._seconds = array("d")
        self._joined_at = array("d")
        patients: dict[_Patient, Encounter[float]] = {}
        numbers: dict[_Patient, int] = {}  # of the joining that a patient's present wait began with
        for event in ordered:
            if event.type not in TRANSITIONS:
                continue
            is_asked = _is_asked(event, since)
            if is_asked:
                self._seconds.append(_OPEN)
                self._joined_at.append(event.at)
            key = event.group, event.visit
            new = Encounter[float](event.plan_id, EncounterState.LEFT, event.at)
            patient = patients.setdefault(key, new)
            waited = patient.waits_for(event.plan_id)
            TRANSITIONS[event.type](patient, event)
            waits = patient.waits_for(event.plan_id)
            if waits and not waited:
                numbers.pop(key, None)
                if is_asked:
                    numbers[key] = len(self._seconds) - 1
            elif waited and not waits:
                self._note(numbers.pop(key, None), patient, event.at)
            if patient.state in (EncounterState.LEFT, EncounterState.ENDED):
                # What comes later counts like the events of a new patient.
                del patients[key]
        self.ended = len(self._seconds) - self._seconds.count(_OPEN)

    def _note(self, number: int | None, patient: Encounter[float], at: float) -> None:
        joined_at = patient.joined_at
        if number is None or joined_at is None or patient.state is EncounterState.ENDED:
            return
        is_seen = patient.state is EncounterState.IN_VISIT
        self._seconds[number] = at - joined_at if is_seen else _LEFT
        self._joined_at[number] = joined_at

    def stay(self, number: int, event: ReplayEvent) -> Stay | None:
        """Of the patient that joined by this event, the `number`th since the beginning; None if it
        began no wait that ended.
        """
        seconds = self._seconds[number]
        joined_at = self._joined_at[number]
        if seconds == _OPEN:
            return None
        return Stay(
            event.group,
            event.plan_id,
            event.visit,
            joined_at,
            None if seconds == _LEFT else seconds,
            # A booked patient is in the line from the booked time on: asked about just before it.
            asked_at=joined_at if joined_at == event.at else nextafter(joined_at, 0.0),
            patient_class=event.patient_class,
            priority=event.priority or 0,
        )


def line_of(
    ordered: Iterable[ReplayEvent], since: float, waits: Waits
) -> Iterator[ReplayEvent | Stay]:
    """The events in the order in which they were known, each patient of `waits` just before its
    joining.

    A visit's events keep their order: an end that arrives before its start counts from the arrival
    of the start.
    """
    pending: list[tuple[_Moment, int, ReplayEvent | Stay]] = []
    latest: dict[_About, _Moment] = {}
    asked = 0
    for number, event in enumerate(ordered, start=1):
        while pending and pending[0][0] < (event.at, 0):
            yield _release(pending, latest)
        in_time = event.at <= event.known_at <= event.at + LOADED_LATER_SECONDS
        joining = number if event.type is EventType.PATIENT_JOINED else 0
        moment = event.known_at if in_time else event.at, joining
        about = _about(event)
        moment = latest[about] = max(moment, latest.get(about, moment))
        if _is_asked(event, since):
            stay = waits.stay(asked, event)
            asked += 1
            if stay is not None:
                heapq.heappush(pending, ((stay.asked_at, moment[1]), 2 * number, stay))
        heapq.heappush(pending, (moment, 2 * number + 1, event))
    while pending:
        yield _release(pending, latest)


def _is_asked(event: ReplayEvent, since: float) -> bool:
    """A patient joins at `since` or later; one that was booked before, at the booked time."""
    if event.type is not EventType.PATIENT_JOINED:
        return False
    return max(event.at, event.not_before or event.at) >= since


def _about(event: ReplayEvent) -> _About:
    return event.group, event.visit, "" if event.visit else event.doctor


def _release(
    pending: list[tuple[_Moment, int, ReplayEvent | Stay]], latest: dict[_About, _Moment]
) -> ReplayEvent | Stay:
    moment, _, one = heapq.heappop(pending)
    if isinstance(one, ReplayEvent) and latest.get(_about(one)) == moment:
        del latest[_about(one)]
    return one
