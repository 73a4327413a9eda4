"""An invented provider group at work: patients come, wait, give up or are seen, doctors come and go; pure, by its own clock.

It tells what happens as a clinical system would, and knows nothing of who listens.
"""

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import log
from random import Random
from typing import Any

VISIT_MINUTES, SPREAD = 12.0, 0.5  # of a lognormal visit
LOAD = 0.9  # how busy the doctors are kept
PATIENCE_MINUTES, SHIFT_MINUTES, BREAK_MINUTES = 45.0, 180.0, 30.0

Happening = tuple[float, dict[str, Any]]  # seconds of the practice's clock, an event without id and time


@dataclass
class Practice:
    """Starts at second 0 with who is there already: doctors on duty, patients waiting (visit, plan) and with a doctor.

    `arriving` are those of its doctors who come on duty at second 0.
    """

    provider_group_id: int
    plan_ids: Sequence[int]
    doctors: Sequence[str]
    mark: str  # what its new visits are named after
    chance: Random
    waiting: deque[tuple[str, int]] = field(default_factory=deque)
    arriving: Sequence[str] = ()
    _agenda: list[tuple[float, int, str, str]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)
    _visits: Iterator[int] = field(default_factory=lambda: count(1))
    _free: list[str] = field(default_factory=list)
    _leaving: set[str] = field(default_factory=set)
    _busy: dict[str, tuple[str, int]] = field(default_factory=dict)

    def begin(self, in_visit: Sequence[tuple[str, int, str]] = ()) -> None:
        """`in_visit`: visit, plan and doctor of those who are seen already."""
        for visit, plan_id, doctor in in_visit:
            self._busy[doctor] = (visit, plan_id)
            self._plan(self._minutes(VISIT_MINUTES / 2), "done", doctor)
        for visit, _ in self.waiting:
            self._plan(self._minutes(PATIENCE_MINUTES), "gives_up", visit)
        for doctor in self.doctors:
            if doctor not in self._busy:
                self._free.append(doctor)
            self._plan(self._minutes(SHIFT_MINUTES), "goes", doctor)
        self._plan(0.0, "opens", "")
        self._plan(0.0, "comes", "")

    def until(self, second: float) -> Iterator[Happening]:
        """What happens up to that second."""
        while self._agenda and self._agenda[0][0] <= second:
            at, _, what, who = heapq.heappop(self._agenda)
            for event in getattr(self, f"_{what}")(at, who):
                yield at, event
            for event in self._see(at):
                yield at, event

    def _comes(self, at: float, _: str) -> Iterator[dict[str, Any]]:
        visit, plan_id = f"{self.mark}-{next(self._visits)}", self.chance.choice(self.plan_ids)
        self.waiting.append((visit, plan_id))
        self._plan(at + self._minutes(PATIENCE_MINUTES), "gives_up", visit)
        self._plan(at + self._minutes(VISIT_MINUTES / LOAD / max(1, len(self.doctors))), "comes", "")
        yield {"type": "patient.joined", "plan_id": plan_id, "visit": visit}

    def _gives_up(self, _at: float, visit: str) -> Iterator[dict[str, Any]]:
        for known, plan_id in [patient for patient in self.waiting if patient[0] == visit]:
            self.waiting.remove((known, plan_id))
            yield {"type": "patient.left", "plan_id": plan_id, "visit": visit}

    def _done(self, _at: float, doctor: str) -> Iterator[dict[str, Any]]:
        visit, plan_id = self._busy.pop(doctor)
        yield {"type": "visit.ended", "plan_id": plan_id, "visit": visit, "doctor": doctor}
        if doctor in self._leaving:
            yield self._off(doctor)
        else:
            self._free.append(doctor)

    def _goes(self, at: float, doctor: str) -> Iterator[dict[str, Any]]:
        """A doctor with a patient goes after the visit; one of a few stays, so that somebody is there."""
        self._plan(at + self._minutes(BREAK_MINUTES), "returns", doctor)
        if len(self._free) + len(self._busy) - len(self._leaving) < 2:
            return
        self._leaving.add(doctor)
        if doctor in self._free:
            self._free.remove(doctor)
            yield self._off(doctor)

    def _returns(self, at: float, doctor: str) -> Iterator[dict[str, Any]]:
        self._plan(at + self._minutes(SHIFT_MINUTES), "goes", doctor)
        if doctor in self._leaving:
            self._leaving.remove(doctor)  # the visit took longer than the break: the doctor just stays
        elif doctor not in self._free and doctor not in self._busy:
            self._free.append(doctor)
            yield {"type": "doctor.on_duty", "provider_group_id": self.provider_group_id, "doctor": doctor}

    def _opens(self, _at: float, _: str) -> Iterator[dict[str, Any]]:
        for doctor in self.arriving:
            yield {"type": "doctor.on_duty", "provider_group_id": self.provider_group_id, "doctor": doctor}

    def _see(self, at: float) -> Iterator[dict[str, Any]]:
        while self._free and self.waiting:
            doctor, (visit, plan_id) = self._free.pop(0), self.waiting.popleft()
            self._busy[doctor] = (visit, plan_id)
            seconds = 60 * self.chance.lognormvariate(log(VISIT_MINUTES) - SPREAD**2 / 2, SPREAD)
            self._plan(at + seconds, "done", doctor)
            yield {"type": "visit.started", "plan_id": plan_id, "visit": visit, "doctor": doctor}

    def _off(self, doctor: str) -> dict[str, Any]:
        self._leaving.discard(doctor)
        return {"type": "doctor.off_duty", "provider_group_id": self.provider_group_id, "doctor": doctor}

    def _minutes(self, mean: float) -> float:
        return 60 * self.chance.expovariate(1 / mean)

    def _plan(self, at: float, what: str, who: str) -> None:
        heapq.heappush(self._agenda, (at, next(self._numbers), what, who))
