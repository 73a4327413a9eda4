"""The input of the wait estimate: a provider group as plain records. Times are seconds before now."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

NOBODY_ON_DUTY = -1  # the estimate of a plan that no doctor on duty serves
DEFAULT_VISIT_SECONDS = 900.0  # the length of a visit while none is known
# A doctor that takes a new patient within this time was ready; an estimate of 0 before a longer
# wait is wrong.
READY_SECONDS = 30.0
KNOWN_VISITS = (
    50  # the newest of each plan that an estimate gets; a plan with fewer has no older ones
)
RECENT_SECONDS = 4 * 3600.0  # how far back waits and duties are looked at
MOST_CLASSES = 8  # of a plan, that have estimates and errors of their own
SHORTEST_SECONDS = 1.0  # of a visit
LEAST_SECONDS = 5.0  # a pause or a delay that is shorter counts as none


class Newcomer(NamedTuple):
    """A patient that joins the plan now. `patient_class` None: like the patients of the last hours."""

    plan_id: int
    patient_class: str | None = None


class OngoingVisit(NamedTuple):
    """A visit in progress. `waited_seconds`: the wait of its patient before it; None if unknown."""

    plan_id: int
    elapsed_seconds: float
    waited_seconds: float | None = None
    patient_class: str | None = None


@dataclass(frozen=True, slots=True)
class Doctor:
    """A doctor on duty. `plan_ids` None: all plans of the group. `capacity`: how many visits at a
    time.

    `name` identifies the doctor's past visits; without it, or without `on_duty_seconds`, the
    doctor's pauses are unknown. `paused_seconds`: a reported pause is expected to last so much
    longer; 0 without one.
    """

    plan_ids: frozenset[int] | None
    capacity: int
    visits: tuple[OngoingVisit, ...]
    name: str | None = None
    on_duty_seconds: float | None = None
    paused_seconds: float = 0.0

    def serves(self, plan_id: int) -> bool:
        return self.plan_ids is None or plan_id in self.plan_ids


class PastVisit(NamedTuple):
    """A visit that has ended. `waited_seconds`: the wait of its patient before it; None if unknown."""

    plan_id: int
    seconds: float
    ended_seconds_ago: float
    doctor: str | None = None
    waited_seconds: float | None = None
    patient_class: str | None = None


class PastWait(NamedTuple):
    """A wait that has ended: with a visit, or the patient left. A higher `priority` goes first;
    `plan_id` None: unknown.
    """

    seconds: float
    left: bool
    plan_id: int | None = None
    patient_class: str | None = None
    priority: int = 0


class DutySpan(NamedTuple):
    """A doctor was on duty from `from_ago` to `until_ago` seconds ago; 0: is still on duty."""

    doctor: str
    from_ago: float
    until_ago: float


@dataclass(frozen=True, slots=True)
class DoctorPool:
    """A provider group now: its doctors, its waiting patients and its recent past.

    `waiting` holds the plan of each waiting patient in order of arrival, `past` the newest
    KNOWN_VISITS visits of each plan. The rest may be left out; the estimate then assumes that no
    patient leaves the line and that no doctor comes or goes: `waited` (seconds, in the order of
    `waiting`), `past_waits` (the last 200 or so) and `duty` (the last four hours, doctors on duty
    now included). `feed_late_seconds`: the delay of events.

    In the order of `waiting`, too: `classes` and `priorities` of the patients; left out where no
    patient has one. `resumed`: when reported pauses of the last four hours ended, as doctor and
    seconds ago.
    """

    doctors: Sequence[Doctor]
    waiting: Sequence[int]
    past: Sequence[PastVisit]
    waited: Sequence[float] = ()
    past_waits: Sequence[PastWait] = ()
    duty: Sequence[DutySpan] = ()
    feed_late_seconds: float = 0.0
    classes: Sequence[str | None] = ()
    priorities: Sequence[int] = ()
    resumed: Sequence[tuple[str, float]] = ()
