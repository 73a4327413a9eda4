"""The visits of a run, and the pauses after them: as equally likely parts, one for each run."""

from collections.abc import Collection
from operator import add, attrgetter

from frontdesk.queues.estimate.arrivals import Kind, RecentPatients
from frontdesk.queues.estimate.distributions import lengths_by_kind
from frontdesk.queues.estimate.doctors import Pauses, Turns, reported_pause
from frontdesk.queues.estimate.draws import DRAWS, Draw, shuffles
from frontdesk.queues.estimate.model import Doctor, DoctorPool


class VisitParts:
    """`by_kind`: how long a visit and the pause after it take. `rests_of`: how long it takes until a
    doctor is free.
    """

    def __init__(
        self,
        pool: DoctorPool,
        turns: Turns,
        *,
        patients: RecentPatients,
        kinds: Collection[Kind],
        runs: int,
    ) -> None:
        """`kinds`: all that a run may meet."""
        self.runs = runs
        self._awaited = set(pool.waiting)
        self._late_ends = turns.late_ends
        self._lengths = lengths_by_kind(turns.past, kinds)
        self._pauses = Pauses(pool, turns, patients)
        self._after_visit = self._pauses.after_visit(runs)
        self.by_kind = {
            kind: self._with_pause(known.parts(runs), 0) for kind, known in self._lengths.items()
        }

    def mean_of(self, kind: Kind) -> float:
        return sum(self.by_kind[kind]) / self.runs

    def rests_of(self, doctor: Doctor, number: int) -> list[list[float] | None]:
        """By slot of the doctor, when it is free: equally likely parts; None: now.

        Of more visits than slots the latest count: the ends of the others were not reported.
        `number`: of the doctor, each has other draws.
        """
        visits = doctor.visits
        if len(visits) > 1:
            visits = tuple(sorted(visits, key=attrgetter("elapsed_seconds"))[: doctor.capacity])
        late_ends = self._late_ends
        awaited = any(map(doctor.serves, self._awaited))
        rests: list[list[float] | None] = []
        for place, visit in enumerate(visits):
            known = self._lengths[visit.plan_id, visit.patient_class]
            rest = known.parts(self.runs, visit.elapsed_seconds)
            if late_ends and doctor.capacity == 1 and not awaited:
                # A visit that looks in progress while no patient waits may be over.
                late = shuffles(self.runs, Draw.LATE_END)[number % DRAWS](
                    late_ends.parts(self.runs)
                )
                rest = [max(0.0, left - part) for left, part in zip(rest, late, strict=True)]
            rest = self._with_pause(rest, place)
            if doctor.paused_seconds > 0:
                rest = list(map(max, reported_pause(doctor, self.runs), rest))
            rests.append(rest)
        free = doctor.capacity - len(visits)
        return rests + [self._pauses.rest(doctor, self.runs) if free else None] * free

    def _with_pause(self, parts: list[float], place: int) -> list[float]:
        """Each part with the pause after it. Each pause comes up once, at a part that chance has
        fixed.
        """
        if self._after_visit is None:
            return parts
        in_order = shuffles(self.runs, Draw.PAUSE)[place % DRAWS]
        return list(map(add, parts, in_order(self._after_visit)))
