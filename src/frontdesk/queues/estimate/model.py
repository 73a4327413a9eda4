"""The input of the wait estimate: a provider group as plain records. Times are seconds before now."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

NOBODY_ON_DUTY = -1  # the estimate of a plan that no doctor on duty serves
DEFAULT_VISIT_SECONDS = 900.0


class OngoingVisit(NamedTuple):
    """A visit in progress."""

    plan_id: int
    elapsed_seconds: float


@dataclass(frozen=True, slots=True)
class Doctor:
    """A doctor on duty. `plan_ids` None: all plans of the group. `capacity`: how many visits at a time."""

    plan_ids: frozenset[int] | None
    capacity: int
    visits: tuple[OngoingVisit, ...]

    def serves(self, plan_id: int) -> bool:
        return self.plan_ids is None or plan_id in self.plan_ids


class PastVisit(NamedTuple):
    """A visit that has ended."""

    plan_id: int
    seconds: float
    ended_seconds_ago: float


class PastWait(NamedTuple):
    """A wait that is over: the patient was seen, or left unseen."""

    seconds: float
    left: bool


class DutySpan(NamedTuple):
    """A doctor was on duty from `from_ago` to `until_ago` seconds ago; 0: is still on duty."""

    doctor: str
    from_ago: float
    until_ago: float


@dataclass(frozen=True, slots=True)
class DoctorPool:
    """A provider group now: its doctors, its waiting patients and its recent past.

    `waiting` holds the plan of each waiting patient in order of arrival, `past` the newest 50 to 100 visits of each plan.
    The rest may be left out; the estimate then assumes that nobody leaves the line and that no doctor comes or goes:
    `waited` (seconds, in the order of `waiting`), `past_waits` (the last 200 or so) and `duty` (the last four hours,
    doctors on duty now included).
    """

    doctors: Sequence[Doctor]
    waiting: Sequence[int]
    past: Sequence[PastVisit]
    waited: Sequence[float] = ()
    past_waits: Sequence[PastWait] = ()
    duty: Sequence[DutySpan] = ()
