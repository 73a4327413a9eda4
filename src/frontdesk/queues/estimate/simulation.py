"""Simulates the near future of a pool of doctors a few dozen times, to see when the next doctor is free.

The draws are fixed and even: over all runs, each place in the line gets every part of the known visit lengths once. So every
process computes the same number, and few runs are enough. Of a very long line only the front is simulated; the rest is a flow.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import cycle
from math import ceil, exp, sqrt
from operator import add, attrgetter

from frontdesk.queues.estimate.abandonment import AbandonmentModel
from frontdesk.queues.estimate.distributions import lengths_by_plan
from frontdesk.queues.estimate.draws import DRAWS, shuffles
from frontdesk.queues.estimate.late_feed import LEAST_SECONDS, UnseenJoin, as_told, unseen_joins
from frontdesk.queues.estimate.model import Doctor, DoctorPool
from frontdesk.queues.estimate.pauses import Pauses
from frontdesk.queues.estimate.runs import LENGTHS_SEED, ByRun, Runs
from frontdesk.queues.estimate.telling import SimulatedWait, left_out, moved, wait_to_tell
from frontdesk.queues.estimate.turns import Turns

MAX_RUNS = 32
MIN_RUNS = 4
SLOTS_SIMULATED = 640  # the more doctors, the fewer runs: many doctors even each other out
MAX_TURNS = 4000  # turns at a doctor that are simulated over all runs
TEAMS_PER_COST = 4  # a turn with this many teams to choose from counts double
BLOCKS = 32
PAUSES_SEED, LATE_ENDS_SEED = 20160930, 20160931


class QueueSimulation:
    """A pool made ready to run. Doctors with the same plans form one team; a doctor has a slot per parallel visit."""

    def __init__(self, pool: DoctorPool, plan_ids: Collection[int], default_seconds: float) -> None:
        self._late = pool.feed_late_seconds if pool.feed_late_seconds > LEAST_SECONDS else 0.0
        if self._late:
            pool = as_told(pool)
        visits = [visit for doctor in pool.doctors for visit in doctor.visits]
        staff = [doctor for doctor in pool.doctors if doctor.capacity > 0]
        slots = sum(doctor.capacity for doctor in staff)
        self._runs = max(MIN_RUNS, min(MAX_RUNS, SLOTS_SIMULATED // max(1, slots)))
        turns = Turns(pool)
        self._unseen: list[list[UnseenJoin]] = [[]] * self._runs
        if self._late:
            self._unseen = unseen_joins(pool, self._runs, known_for=turns.horizon)
        plans = {*plan_ids, *pool.waiting, *(visit.plan_id for visit in visits)}
        # Patients join unseen for any plan of the group, whosever it is.
        plans.update(join.plan_id for joins in self._unseen for join in joins)
        self._late_ends, self._awaited = turns.late_ends, set(pool.waiting)
        self._lengths = lengths_by_plan(turns.past, visits, plans, default_seconds)
        self._pauses = Pauses(pool, turns)
        self._paused = self._pauses.after_visit(self._runs)
        teams: dict[frozenset[int] | None, list[list[float] | None]] = {}
        for number, doctor in enumerate(staff):
            teams.setdefault(doctor.plan_ids, []).extend(self._rests_of(doctor, number))
        self._sizes = [len(team) for team in teams.values()]
        self._starts = self._starts_of(teams.values())
        self._parts = {
            plan_id: self._with_pause(known.parts(self._runs), plan_id)
            for plan_id, known in self._lengths.items()
        }
        self._teams_of = {
            plan_id: tuple([i for i, served in enumerate(teams) if served is None or plan_id in served])
            for plan_id in plans
        }
        self._take_line(pool)
        self._past_waits = pool.past_waits
        leaving = any(left for _, left in pool.past_waits)
        self._abandonment = AbandonmentModel(pool.past_waits, pool.waited) if leaving else None

    def _take_line(self, pool: DoctorPool) -> None:
        """The line's plans and seconds waited. Patients that no doctor on duty serves take no turn."""
        self._plans: Sequence[int] = pool.waiting
        self._waited: Sequence[float] = pool.waited or [0.0] * len(pool.waiting)
        unserved = {plan_id for plan_id, teams in self._teams_of.items() if not teams}
        if not unserved.isdisjoint(pool.waiting):
            line = zip(self._plans, self._waited, strict=True)
            served = [one for one in line if one[0] not in unserved]
            self._plans, self._waited = [one[0] for one in served], [one[1] for one in served]

    def mean_seconds(self, plan_id: int) -> float:
        """The mean length of a visit of the plan."""
        return sum(self._parts[plan_id]) / self._runs

    def waits(self, plan_ids: Collection[int], *, changing: bool = False) -> dict[int, SimulatedWait | None]:
        """When the first doctor is ready for a newcomer; None where no doctor serves the plan.

        `changing`: doctors come and go.
        """
        choices = max((len(teams) for teams in self._teams_of.values()), default=1)
        simulated = MAX_TURNS // (self._runs * max(1, choices // TEAMS_PER_COST))
        length = len(self._plans)
        leaving = self._abandonment is not None
        out = left_out(self._past_waits, leaving=leaving, changing=changing, pauses=self._paused)
        whole = length <= simulated
        runs = Runs(self._starts, self._parts, self._teams_of, self._abandonment)
        free_at = runs.play(self._plans[:simulated], self._waited[:simulated], self._unseen if whole else [])
        levels = [] if whole else [sum(times) / self._runs for times in zip(*free_at, strict=True)]
        if not whole:
            self._add_flow(levels, simulated)
        by_teams: dict[tuple[int, ...], list[float]] = {}  # the waits in order
        found: dict[int, SimulatedWait | None] = {}
        for plan_id in plan_ids:
            teams = self._teams_of[plan_id]
            if not teams:
                found[plan_id] = None
                continue
            if teams not in by_teams:
                by_teams[teams] = sorted(
                    [self._from_now(min([times[i] for i in teams])) for times in free_at]
                )
            waits = by_teams[teams]
            if whole:
                found[plan_id] = wait_to_tell(waits, self._lengths[plan_id].doubt, out)
            else:
                # The spread of a sum grows with the root of its length.
                level = self._from_now(min(levels[i] for i in teams))
                found[plan_id] = moved(waits, level, sqrt(length / simulated), out)
        return found

    def _from_now(self, free_at: float) -> float:
        """The runs begin at the last news."""
        return free_at - self._late if free_at > self._late else 0.0

    def _rests_of(self, doctor: Doctor, number: int) -> list[list[float] | None]:
        """By slot of the doctor, when it is free: equally likely parts; None: now.

        Of more visits than slots the latest count: the ends of the others were not reported.
        """
        visits = doctor.visits
        if len(visits) > 1:
            visits = tuple(sorted(visits, key=attrgetter("elapsed_seconds"))[: doctor.capacity])
        rests: list[list[float] | None] = []
        for place, visit in enumerate(visits):
            rest = self._lengths[visit.plan_id].parts(self._runs, visit.elapsed_seconds)
            if self._late_ends.known and doctor.capacity == 1 and not any(map(doctor.serves, self._awaited)):
                rest = self._without_late_end(rest, number)
            rests.append(self._with_pause(rest, place))
        free = doctor.capacity - len(visits)
        return rests + [self._pauses.rest(doctor, self._runs) if free else None] * free

    def _without_late_end(self, rest: list[float], number: int) -> list[float]:
        """A visit that looks in progress while nobody waits may be over. `number`: of the doctor, each has other draws."""
        late = shuffles(self._runs, LATE_ENDS_SEED)[number % DRAWS](self._late_ends.parts(self._runs))
        return [max(0.0, left - part) for left, part in zip(rest, late, strict=True)]

    def _with_pause(self, parts: list[float], place: int) -> list[float]:
        """Each part with the pause after it. Each pause comes up once, at a part that chance has fixed."""
        if self._paused is None:
            return parts
        return list(map(add, parts, shuffles(self._runs, PAUSES_SEED)[place % DRAWS](self._paused)))

    def _starts_of(self, teams: Iterable[Sequence[list[float] | None]]) -> list[list[ByRun]]:
        """By run and team, when each slot is free for the first patient in the line."""
        in_order, now = cycle(shuffles(self._runs, LENGTHS_SEED)), (0.0,) * self._runs
        by_team = []
        for rests in teams:
            slots = [draw(rest) if rest else now for rest, draw in zip(rests, in_order, strict=False)]
            by_team.append(list(zip(*slots, strict=True)))
        return [list(starts) for starts in zip(*by_team, strict=True)] or [[]] * self._runs

    def _add_flow(self, levels: list[float], simulated: int) -> None:
        """The back of the line as a flow: each block's work raises the lowest of the teams that serve it, like water."""
        length = len(self._plans)
        size = ceil((length - simulated) / BLOCKS)
        mean = {plan_id: self.mean_seconds(plan_id) for plan_id in self._parts}
        spent_at = self._abandonment.spent_at if self._abandonment else None
        for start in range(simulated, length, size):
            block = self._waited[start : start + size]
            waited = sum(block) / len(block)
            for plan_id, patients in Counter(self._plans[start : start + size]).items():
                teams = self._teams_of[plan_id]
                at = min([levels[i] for i in teams])
                staying = exp(spent_at(waited) - spent_at(waited + at)) if spent_at else 1.0
                work = patients * mean[plan_id] * staying
                _raise_lowest(levels, [(i, self._sizes[i]) for i in teams], work)


def _raise_lowest(levels: list[float], teams: list[tuple[int, int]], work: float) -> None:
    """Raise the lowest levels to a common one that takes the work. `teams`: index of the level, number of slots."""
    ordered = sorted(teams, key=lambda team: levels[team[0]])
    size, held, raised = 0, work, 0
    level = levels[ordered[0][0]]
    for i, slots in ordered:
        if raised and levels[i] >= level:
            break
        size += slots
        held += slots * levels[i]
        level = held / size
        raised += 1
    for i, _ in ordered[:raised]:
        levels[i] = level
