"""The turns that doctors took: how long each doctor had room for a patient before taking the next one.

One pass over the known visits in the order of their starts. Times in here are seconds before now, negative.
"""

from collections import defaultdict
from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple

from frontdesk.queues.estimate.late_ends import LateEnds
from frontdesk.queues.estimate.model import KNOWN_VISITS, DoctorPool

MOST_TURNS = 120  # the latest that are followed
_FOREVER = float("inf")
# Start, end, doctor, plan, seconds waited, place among the past visits (-1: in progress).
_Visit = tuple[float, float, str, int, float | None, int]


class Turn(NamedTuple):
    """A doctor took a patient `ago` seconds ago. `idle_seconds`: for how long the doctor had had room since a visit.

    None where nobody knows, as at the start of a shift.
    """

    ago: float
    plan_id: int
    waited_seconds: float | None
    idle_seconds: float | None
    # The plans that the doctor serves, None: all; of a doctor off duty only the patient's.
    served: frozenset[int] | None


class _Work:
    """What a doctor has in hand, followed in the order of time. `capacity` None: is off duty now, so nobody knows."""

    def __init__(
        self, capacity: int | None, plan_ids: frozenset[int] | None, duty_starts: list[float]
    ) -> None:
        self.capacity = capacity
        self.plan_ids = plan_ids
        self.duty_starts = duty_starts
        self.last_duty_start = max(duty_starts, default=-_FOREVER)
        self.ends: list[float] = []  # of the visits in hand
        self.changed_at = -_FOREVER  # when a visit last began or ended, or the doctor came on duty
        self.after_visit = False
        self.last_visit = -1

    def room_since(self, at: float) -> float:
        """Since when the doctor has had room just before `at`; `at` itself without room."""
        ends = self.ends
        if len(ends) == 1 and ends[0] <= at:  # nearly always
            self.changed_at = ends.pop()
            if self.changed_at >= self.last_duty_start:
                return self.changed_at
        elif over := [end for end in ends if end <= at]:
            self.changed_at, self.ends = max(over), [end for end in ends if end > at]
        elif len(ends) >= (self.capacity or 1):
            return at
        for start in self.duty_starts:
            if self.changed_at < start <= at:
                self.changed_at, self.after_visit = start, False
        return self.changed_at


class Turns:
    """The turns of a pool, `taken`, the latest first; and `past`, its visits.

    A visit ends when its doctor takes the next patient, if its own end was told later; where nobody waited to show that, it is
    shorter by as much as ends are `late_ends` on average. `idle_seconds`: by doctor that has room,
    for how long. `horizon`: for how many seconds back all visits are known.
    """

    def __init__(self, pool: DoctorPool) -> None:
        self.past = list(pool.past)
        visits = sorted(_visits(pool), key=itemgetter(0))[-MOST_TURNS:]
        self.horizon, staff, taken = _horizon(pool), _Staff(pool), []
        if len(visits) == MOST_TURNS:
            self.horizon = min(self.horizon, -visits[0][0])
        self._any_late = False
        known_from, work = -self.horizon, staff.work
        for start, end, name, plan_id, waited, place in visits:
            doctor = work.get(name) or staff.work_of(name, plan_id)
            since = doctor.room_since(start)
            idle = start - since if doctor.after_visit and since >= known_from else None
            taken.append(Turn(-start, plan_id, waited, idle, doctor.plan_ids))
            if doctor.capacity == 1 and doctor.ends:
                self._cut(doctor.last_visit, start)
                doctor.ends.clear()
            doctor.ends.append(end)
            doctor.changed_at, doctor.after_visit, doctor.last_visit = start, True, place
        self.taken = taken[::-1]
        overruns = _overruns(visits, staff) if self._any_late else {}
        self.late_ends = LateEnds(list(overruns.values())[::-1])
        if self.late_ends.known:
            self.past = self.late_ends.corrected(self.past, overruns)
        self.idle_seconds = {
            doctor.name: min(self.horizon, -staff.work_of(doctor.name, 0).room_since(0.0))
            for doctor in pool.doctors
            if doctor.name is not None
            and doctor.on_duty_seconds is not None
            and len(doctor.visits) < doctor.capacity
        }

    def _cut(self, place: int, at: float) -> None:
        """The visit was over when its doctor took the next patient."""
        if place >= 0:
            self._any_late = True
            visit = self.past[place]
            start = -visit.ended_seconds_ago - visit.seconds
            self.past[place] = visit._replace(seconds=at - start, ended_seconds_ago=-at)


def _overruns(visits: Iterable[_Visit], staff: "_Staff") -> dict[int, float]:
    """By place of the visit, how late its end was told, where the doctor's next patient had waited when it was over."""
    found: dict[int, float] = {}
    before: dict[str, _Visit] = {}
    for visit in visits:
        start, _, name, _, waited, _ = visit
        last = before.get(name)
        before[name] = visit
        if last is None or last[-1] < 0 or waited is None or staff.work[name].capacity != 1:
            continue
        told = last[1]
        if waited >= start - told:
            found[last[-1]] = max(0.0, told - start)
    return found


def _visits(pool: DoctorPool) -> list[_Visit]:
    visits: list[_Visit] = [
        (-ago - seconds, -ago, doctor, plan_id, waited, place)
        for place, (plan_id, seconds, ago, doctor, waited) in enumerate(pool.past)
        if doctor is not None
    ]
    for one in pool.doctors:
        if one.name is not None:
            visits += [
                (-visit.elapsed_seconds, _FOREVER, one.name, visit.plan_id, visit.waited_seconds, -1)
                for visit in one.visits
            ]
    return visits


class _Staff:
    """What each doctor has in hand, made where it is asked for: of many doctors few took one of the latest turns."""

    def __init__(self, pool: DoctorPool) -> None:
        self._doctors = {doctor.name: doctor for doctor in pool.doctors if doctor.on_duty_seconds is not None}
        self._starts: defaultdict[str, list[float]] = defaultdict(list)
        for span in pool.duty:
            self._starts[span.doctor].append(-span.from_ago)
        self.work: dict[str, _Work] = {}

    def work_of(self, name: str, plan_id: int) -> _Work:
        """`plan_id`: of a patient of the doctor's."""
        work = self.work.get(name)
        if work is None:
            doctor = self._doctors.get(name)
            if doctor is None:
                work = _Work(None, frozenset([plan_id]), [])
            else:
                starts = [*self._starts[name], -(doctor.on_duty_seconds or 0.0)]
                work = _Work(doctor.capacity, doctor.plan_ids, starts)
            self.work[name] = work
        return work


def _horizon(pool: DoctorPool) -> float:
    """How far back ALL visits are known. Beyond, a doctor that looks idle may have been with a patient of another plan."""
    ended: defaultdict[int, list[float]] = defaultdict(list)
    for visit in pool.past:
        ended[visit.plan_id].append(visit.ended_seconds_ago)
    return min((max(ago) for ago in ended.values() if len(ago) >= KNOWN_VISITS), default=_FOREVER)
