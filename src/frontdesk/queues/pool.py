"""What the wait estimate is told about a provider group: plain records in seconds before now; no clock, no names of patients."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit in progress."""

    plan_id: int
    elapsed_seconds: float


@dataclass(frozen=True, slots=True)
class Doctor:
    """A doctor on duty. `plan_ids` None: all plans of the group. `capacity`: how many visits at a time."""

    plan_ids: frozenset[int] | None
    capacity: int
    visits: tuple[Visit, ...]


@dataclass(frozen=True, slots=True)
class PastVisit:
    """A visit that ended."""

    plan_id: int
    seconds: float
    ended_seconds_ago: float


class PastWait(NamedTuple):
    """A wait that is over: the patient was seen, or left unseen."""

    seconds: float
    left: bool


class DutySpan(NamedTuple):
    """A doctor was on duty from so many seconds ago until so many seconds ago; until 0: still is."""

    doctor: str
    from_ago: float
    until_ago: float


@dataclass(frozen=True, slots=True)
class Pool:
    """A provider group now. `waiting`: the plan of each waiting patient, in the order they joined.

    `past`: the newest 50 to 100 visits of each plan, however old. The rest is optional: `waited`, how long each of `waiting`
    has waited, in the same order; `past_waits`, the last 200 or so waits that are over; `duty`, who was on duty when in the
    last four hours, those on duty now included.
    """

    doctors: Sequence[Doctor]
    waiting: Sequence[int]
    past: Sequence[PastVisit]
    waited: Sequence[float] = ()
    past_waits: Sequence[PastWait] = ()
    duty: Sequence[DutySpan] = ()
