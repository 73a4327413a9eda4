"""The events that a clinical system would have sent for the rows of a file, made while they are
read: an object for each event of a million rows would not fit into memory.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from heapq import merge

from frontdesk.backtest.columns import ABSENT, NO_PRIORITY, EncounterColumns
from frontdesk.backtest.shifts import derive_shifts
from frontdesk.queues.encounters import event_order
from frontdesk.queues.model import EventType, ReplayEvent


class FileEvents:
    """In the order in which events count, at each iteration anew. `since`: patients that were gone
    before are left out.

    A row without an end of the wait has no events: its patient would stay in the line for a day.
    A plan's id is its number among the names, from 1.
    """

    def __init__(self, rows: EncounterColumns, since: float) -> None:
        self._rows = rows
        self._doctors = rows.doctors.in_order()
        self._classes = rows.classes.in_order()
        chosen = array("i", (row for row in range(len(rows)) if self._is_chosen(row, since)))
        self._columns = (
            (EventType.PATIENT_JOINED, rows.joined, _by_time(rows.joined, chosen)),
            (EventType.VISIT_STARTED, rows.started, _by_time(rows.started, chosen)),
            (EventType.VISIT_ENDED, rows.ended, _by_time(rows.ended, chosen)),
            (EventType.PATIENT_LEFT, rows.left, _by_time(rows.left, chosen)),
        )
        shifts = derive_shifts(rows, chosen)
        self._shifts = shifts
        everything = range(len(shifts.on))
        self._by_on = array("i", sorted(everything, key=shifts.on.__getitem__))
        self._by_off = array("i", sorted(everything, key=shifts.off.__getitem__))

    def __iter__(self) -> Iterator[ReplayEvent]:
        patients = (self._of_rows(*column) for column in self._columns)
        return merge(self._off_duty(), self._on_duty(), *patients, key=event_order)

    def _is_chosen(self, row: int, since: float) -> bool:
        rows = self._rows
        if not rows.wait_ended(row):
            return False
        return max(rows.joined[row], rows.started[row], rows.ended[row], rows.left[row]) >= since

    def _of_rows(
        self, type_: EventType, times: Sequence[float], ordered: Sequence[int]
    ) -> Iterator[ReplayEvent]:
        rows = self._rows
        for row in ordered:
            at = times[row]
            event = ReplayEvent(
                at,
                type_,
                plan_id=rows.plan[row] + 1,
                visit=str(row),
                doctor=self._doctors[rows.doctor[row]],
                known_at=at,
            )
            yield self._with_class(event, row) if type_ is EventType.PATIENT_JOINED else event

    def _with_class(self, event: ReplayEvent, row: int) -> ReplayEvent:
        priority = self._rows.priority[row]
        patient_class = self._classes[self._rows.patient_class[row]]
        if not patient_class and priority == NO_PRIORITY:
            return event
        return event._replace(
            patient_class=patient_class or None,
            priority=None if priority == NO_PRIORITY else priority,
        )

    def _on_duty(self) -> Iterator[ReplayEvent]:
        shifts = self._shifts
        for shift in self._by_on:
            at = shifts.on[shift]
            plans, capacity = shifts.terms[shifts.doctor[shift]]
            yield ReplayEvent(
                at,
                EventType.DOCTOR_ON_DUTY,
                doctor=self._doctors[shifts.doctor[shift]],
                plan_ids=frozenset(plan + 1 for plan in plans),
                capacity=capacity,
                known_at=at,
            )

    def _off_duty(self) -> Iterator[ReplayEvent]:
        shifts = self._shifts
        for shift in self._by_off:
            at = shifts.off[shift]
            doctor = self._doctors[shifts.doctor[shift]]
            yield ReplayEvent(at, EventType.DOCTOR_OFF_DUTY, doctor=doctor, known_at=at)


def _by_time(times: "array[float]", chosen: Sequence[int]) -> "array[int]":
    """The rows that have the time, in its order; those of one instant in the order of the file."""
    at: Callable[[int], float] = times.__getitem__
    return array("i", sorted((row for row in chosen if times[row] != ABSENT), key=at))
