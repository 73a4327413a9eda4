"""An invented provider group at work: patients join, wait, leave or are seen; doctors come and go.
It has its own clock.

It reports what happens as a clinical system does.
"""

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import log
from random import Random
from typing import Any

# of a lognormal visit
VISIT_MINUTES = 12.0
SPREAD = 0.5
LOAD = 0.9  # how busy the doctors are kept
PATIENCE_MINUTES = 45.0
SHIFT_MINUTES = 180.0
BREAK_MINUTES = 30.0
# Of its patients. Urgent ones are seen first.
CLASSES = {"new": 60, "follow-up": 25, "urgent": 15}
URGENT = "urgent"

# seconds of the practice's clock, an event without id and time
TimedEvent = tuple[float, dict[str, Any]]


@dataclass
class Practice:
    """Starts at second 0 with its `doctors` and the patients that wait already (visit, plan).

    `arriving` holds those of its doctors that come on duty at second 0.
    """

    provider_group_id: int
    plan_ids: Sequence[int]
    doctors: Sequence[str]
    mark: str  # the prefix of its new visits
    chance: Random
    waiting: deque[tuple[str, int]] = field(default_factory=deque)
    arriving: Sequence[str] = ()
    _agenda: list[tuple[float, int, str, str]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)
    _visits: Iterator[int] = field(default_factory=lambda: count(1))
    _free: list[str] = field(default_factory=list)
    _leaving: set[str] = field(default_factory=set)
    _busy: dict[str, tuple[str, int]] = field(default_factory=dict)
    _urgent: set[str] = field(default_factory=set)  # the visits that wait in front of the others

    def begin(self, in_visit: Sequence[tuple[str, int, str]] = ()) -> None:
        """`in_visit`: visit, plan and doctor of the visits in progress."""
        for visit, plan_id, doctor in in_visit:
            self._busy[doctor] = (visit, plan_id)
            self._schedule(self._minutes(VISIT_MINUTES / 2), "done", doctor)
        for visit, _ in self.waiting:
            self._schedule(self._minutes(PATIENCE_MINUTES), "gives_up", visit)
        for doctor in self.doctors:
            if doctor not in self._busy:
                self._free.append(doctor)
            self._schedule(self._minutes(SHIFT_MINUTES), "goes", doctor)
        self._schedule(0.0, "opens", "")
        self._schedule(0.0, "comes", "")

    def until(self, second: float) -> Iterator[TimedEvent]:
        """The events up to that second."""
        while self._agenda and self._agenda[0][0] <= second:
            at, _, action, subject = heapq.heappop(self._agenda)
            for event in getattr(self, f"_{action}")(at, subject):
                yield at, event
            for event in self._see(at):
                yield at, event

    def _comes(self, at: float, _: str) -> Iterator[dict[str, Any]]:
        visit = f"{self.mark}-{next(self._visits)}"
        plan_id = self.chance.choice(self.plan_ids)
        [patient_class] = self.chance.choices([*CLASSES], [*CLASSES.values()])
        joined: dict[str, Any] = {"type": "patient.joined", "plan_id": plan_id, "visit": visit}
        joined["class"] = patient_class
        if patient_class == URGENT:
            joined["priority"] = 1
            self.waiting.insert(
                sum(known in self._urgent for known, _ in self.waiting), (visit, plan_id)
            )
            self._urgent.add(visit)
        else:
            self.waiting.append((visit, plan_id))
        self._schedule(at + self._minutes(PATIENCE_MINUTES), "gives_up", visit)
        self._schedule(
            at + self._minutes(VISIT_MINUTES / LOAD / max(1, len(self.doctors))), "comes", ""
        )
        yield joined

    def _gives_up(self, _at: float, visit: str) -> Iterator[dict[str, Any]]:
        for known, plan_id in [patient for patient in self.waiting if patient[0] == visit]:
            self.waiting.remove((known, plan_id))
            self._urgent.discard(known)
            yield {"type": "patient.left", "plan_id": plan_id, "visit": visit}

    def _done(self, _at: float, doctor: str) -> Iterator[dict[str, Any]]:
        visit, plan_id = self._busy.pop(doctor)
        yield {"type": "visit.ended", "plan_id": plan_id, "visit": visit, "doctor": doctor}
        if doctor in self._leaving:
            yield self._off(doctor)
        else:
            self._free.append(doctor)

    def _goes(self, at: float, doctor: str) -> Iterator[dict[str, Any]]:
        """A doctor with a patient goes after the visit. The last doctor stays."""
        self._schedule(at + self._minutes(BREAK_MINUTES), "returns", doctor)
        if len(self._free) + len(self._busy) - len(self._leaving) < 2:
            return
        self._leaving.add(doctor)
        if doctor in self._free:
            self._free.remove(doctor)
            yield self._off(doctor)

    def _returns(self, at: float, doctor: str) -> Iterator[dict[str, Any]]:
        self._schedule(at + self._minutes(SHIFT_MINUTES), "goes", doctor)
        if doctor in self._leaving:
            # the visit took longer than the break: the doctor just stays
            self._leaving.remove(doctor)
        elif doctor not in self._free and doctor not in self._busy:
            self._free.append(doctor)
            yield {
                "type": "doctor.on_duty",
                "provider_group_id": self.provider_group_id,
                "doctor": doctor,
            }

    def _opens(self, _at: float, _: str) -> Iterator[dict[str, Any]]:
        for doctor in self.arriving:
            yield {
                "type": "doctor.on_duty",
                "provider_group_id": self.provider_group_id,
                "doctor": doctor,
            }

    def _see(self, at: float) -> Iterator[dict[str, Any]]:
        while self._free and self.waiting:
            doctor = self._free.pop(0)
            visit, plan_id = self.waiting.popleft()
            self._urgent.discard(visit)
            self._busy[doctor] = (visit, plan_id)
            seconds = 60 * self.chance.lognormvariate(log(VISIT_MINUTES) - SPREAD**2 / 2, SPREAD)
            self._schedule(at + seconds, "done", doctor)
            yield {"type": "visit.started", "plan_id": plan_id, "visit": visit, "doctor": doctor}

    def _off(self, doctor: str) -> dict[str, Any]:
        self._leaving.discard(doctor)
        return {
            "type": "doctor.off_duty",
            "provider_group_id": self.provider_group_id,
            "doctor": doctor,
        }

    def _minutes(self, mean: float) -> float:
        return 60 * self.chance.expovariate(1 / mean)

    def _schedule(self, at: float, action: str, subject: str) -> None:
        heapq.heappush(self._agenda, (at, next(self._numbers), action, subject))
