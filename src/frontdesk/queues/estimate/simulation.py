"""Simulates the near future of a pool of doctors a few dozen times, to see when the next doctor is
free.

The draws are fixed and even: over all runs, each place in the line gets every part of the known
visit lengths once. So every process computes the same number, and few runs are enough; the more so
with many doctors or a long line.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import IntEnum
from functools import cache
from heapq import heapify, heapreplace
from itertools import accumulate, cycle, pairwise
from math import log
from operator import add, attrgetter, itemgetter
from random import Random
from typing import NamedTuple

from frontdesk.queues.estimate.distributions import lengths_by_plan
from frontdesk.queues.estimate.doctors import Pauses, Turns
from frontdesk.queues.estimate.late_feed import UnseenJoin, as_reported, unseen_joins
from frontdesk.queues.estimate.model import (
    LEAST_SECONDS,
    READY_SECONDS,
    Doctor,
    DoctorPool,
    PastWait,
)

MIN_RUNS = 4
MAX_RUNS = 32
SLOTS_SIMULATED = (
    640  # the more doctors, the fewer runs: the random parts of many doctors average out
)
TURNS_SIMULATED = 4000  # the longer the line, the fewer runs: so do those of many turns
DRAWS = 256  # places in the line before the draws repeat
LEAVING_STEPS = 8  # of the rate at which patients leave, at most; each has as many leavers at least
TRIMMED_PART = (
    8  # an eighth of the runs is left out at either end: a value between mean and median fits best
)

Team = list[float]  # a heap: when each slot of the team's doctors is free
Choice = tuple[int, ...]  # the teams that serve a plan
# The teams that serve the patient, the length of the turn, the seconds waited, the patience that
# these have spent, and all of it.
_Patient = tuple[Choice, float, float, float, float]

_first = itemgetter(0)


class Draw(IntEnum):
    LENGTH = 20160928
    PATIENCE = 20160929
    PAUSE = 20160930
    LATE_END = 20160931


class SimulatedWait(NamedTuple):
    """The wait in seconds, its tenth and ninetieth percentile, and the number of patients ahead."""

    seconds: float
    low: float
    high: float
    ahead: int


@cache
def _orders(runs: int, draw: Draw) -> list[list[int]]:
    """By place in the line, the numbers below `runs` in an order that chance has fixed."""
    chance = Random(draw)  # noqa: S311 - no secret
    return [chance.sample(range(runs), runs) for _ in range(DRAWS)]


@cache
def _shuffles(runs: int, draw: Draw) -> list[Callable[[Sequence[float]], tuple[float, ...]]]:
    """By place in the line, a function that puts equally likely parts in the order of the runs.
    Each run gets another part.
    """
    return [itemgetter(*order) for order in _orders(runs, draw)]


@cache
def _patiences(runs: int) -> list[tuple[float, ...]]:
    """By run, a value for each place in the line: evenly spread over an exponential distribution
    with mean 1.
    """
    values = [-log((part + 0.5) / runs) for part in range(runs)]
    return list(
        zip(*[in_order(values) for in_order in _shuffles(runs, Draw.PATIENCE)], strict=True)
    )


class AbandonmentModel:
    """The rate at which patients leave, by seconds waited: a staircase with about as many leavers
    on each step.

    `spent_at` is its integral, `fastest` its largest value. A patient stays while it is below an
    exponential draw with mean 1.
    """

    def __init__(self, past: Sequence[PastWait], waiting: Sequence[float]) -> None:
        """`waiting`: the seconds that the patients in the line have waited so far without leaving,
        which count too.
        """
        leavers = sorted([max(1.0, wait.seconds) for wait in past if wait.left])
        steps = max(1, min(LEAVING_STEPS, len(leavers) // LEAVING_STEPS))
        ends = sorted({leavers[len(leavers) * i // steps] for i in range(1, steps)})
        self._starts = [0.0, *ends]
        waits = sorted([*(wait.seconds for wait in past), *waiting])
        sums = [0.0, *accumulate(waits)]
        self._rates = [0.0]
        self._spent = [0.0]
        for start, end in pairwise([*self._starts, 1e9]):
            first = bisect_right(waits, start)
            last = bisect_right(waits, end)
            waited = (
                sums[last] - sums[first] + end * (len(waits) - last) - start * (len(waits) - first)
            )
            left = bisect_right(leavers, end) - bisect_right(leavers, start)
            # Where no patient has waited yet, the rate of the step before holds.
            self._rates.append(left / waited if waited > 0 else self._rates[-1])
            self._spent.append(self._spent[-1] + self._rates[-1] * (end - start))
        self.fastest = max(self._rates)

    def spent_at(self, waited_seconds: float) -> float:
        step = bisect_right(self._starts, waited_seconds)
        return self._spent[step - 1] + self._rates[step] * (waited_seconds - self._starts[step - 1])


class QueueSimulation:
    """A prepared pool. Doctors with the same plans form one team; a doctor has a slot per parallel
    visit.
    """

    def __init__(self, pool: DoctorPool, plan_ids: Collection[int]) -> None:
        self._late = pool.feed_late_seconds if pool.feed_late_seconds > LEAST_SECONDS else 0.0
        if self._late:
            pool = as_reported(pool)
        visits = [visit for doctor in pool.doctors for visit in doctor.visits]
        staff = [doctor for doctor in pool.doctors if doctor.capacity > 0]
        slots = sum(doctor.capacity for doctor in staff)
        enough = min(SLOTS_SIMULATED // max(1, slots), TURNS_SIMULATED // max(1, len(pool.waiting)))
        self._runs = max(MIN_RUNS, min(MAX_RUNS, enough))
        self._turns = Turns(pool)
        self._unseen: list[list[UnseenJoin]] = []
        if self._late:
            self._unseen = unseen_joins(pool, self._runs, known_for=self._turns.horizon)
        plans = {*plan_ids, *pool.waiting, *(visit.plan_id for visit in visits)}
        # Unseen patients may join any plan of the group, also of another account.
        plans.update(join.plan_id for joins in self._unseen for join in joins)
        self._awaited = set(pool.waiting)
        self._lengths = lengths_by_plan(self._turns.past, plans)
        self._pauses = Pauses(pool, self._turns)
        self._paused = self._pauses.after_visit(self._runs)
        teams: dict[frozenset[int] | None, list[list[float] | None]] = {}
        for number, doctor in enumerate(staff):
            teams.setdefault(doctor.plan_ids, []).extend(self._rests_of(doctor, number))
        self._starts = self._starts_of(teams.values())
        self._parts = {
            plan_id: self._with_pause(known.parts(self._runs), 0)
            for plan_id, known in self._lengths.items()
        }
        self._teams_of = {
            plan_id: tuple(
                [i for i, served in enumerate(teams) if served is None or plan_id in served]
            )
            for plan_id in plans
        }
        # Patients that no doctor on duty serves take no turn.
        waited = pool.waited or [0.0] * len(pool.waiting)
        line = [one for one in zip(pool.waiting, waited, strict=True) if self._teams_of[one[0]]]
        self._plans = [plan_id for plan_id, _ in line]
        self._waited = [seconds for _, seconds in line]
        self._abandonment = AbandonmentModel(pool.past_waits, pool.waited)

    def mean_seconds(self, plan_id: int) -> float:
        return sum(self._parts[plan_id]) / self._runs

    def waits(self, plan_ids: Collection[int]) -> dict[int, SimulatedWait | None]:
        """When the first doctor is ready for a newcomer; None where no doctor serves the plan."""
        free_at = self._play()
        found: dict[Choice, SimulatedWait | None] = {(): None}
        for teams in {self._teams_of[plan_id] for plan_id in plan_ids} - {()}:
            waits = sorted([self._from_now(min([times[i] for i in teams])) for times in free_at])
            low = _quantile(waits, 0.1)
            high = _quantile(waits, 0.9)
            found[teams] = SimulatedWait(_middle(waits), low, high, self._ahead(teams))
        return {plan_id: found[self._teams_of[plan_id]] for plan_id in plan_ids}

    def _ahead(self, teams: Choice) -> int:
        """The patients that wait for a plan that shares a doctor."""
        shared = set(teams)
        counts = Counter(self._plans).items()
        return sum(
            count for plan_id, count in counts if not shared.isdisjoint(self._teams_of[plan_id])
        )

    def _from_now(self, free_at: float) -> float:
        """The runs begin at the last news."""
        return free_at - self._late if free_at > self._late else 0.0

    def _rests_of(self, doctor: Doctor, number: int) -> list[list[float] | None]:
        """By slot of the doctor, when it is free: equally likely parts; None: now.

        Of more visits than slots the latest count: the ends of the others were not reported.
        `number`: of the doctor, each has other draws.
        """
        visits = doctor.visits
        if len(visits) > 1:
            visits = tuple(sorted(visits, key=attrgetter("elapsed_seconds"))[: doctor.capacity])
        late_ends = self._turns.late_ends
        awaited = any(map(doctor.serves, self._awaited))
        rests: list[list[float] | None] = []
        for place, visit in enumerate(visits):
            rest = self._lengths[visit.plan_id].parts(self._runs, visit.elapsed_seconds)
            if late_ends and doctor.capacity == 1 and not awaited:
                # A visit that looks in progress while no patient waits may be over.
                late = _shuffles(self._runs, Draw.LATE_END)[number % DRAWS](
                    late_ends.parts(self._runs)
                )
                rest = [max(0.0, left - part) for left, part in zip(rest, late, strict=True)]
            rests.append(self._with_pause(rest, place))
        free = doctor.capacity - len(visits)
        return rests + [self._pauses.rest(doctor, self._runs) if free else None] * free

    def _with_pause(self, parts: list[float], place: int) -> list[float]:
        """Each part with the pause after it. Each pause comes up once, at a part that chance has
        fixed.
        """
        if self._paused is None:
            return parts
        return list(map(add, parts, _shuffles(self._runs, Draw.PAUSE)[place % DRAWS](self._paused)))

    def _starts_of(
        self, teams: Iterable[Sequence[list[float] | None]]
    ) -> list[list[tuple[float, ...]]]:
        """By run and team, when each slot is free for the first patient in the line."""
        in_order = cycle(_shuffles(self._runs, Draw.LENGTH))
        now = (0.0,) * self._runs
        by_team = []
        for rests in teams:
            slots = [
                draw(rest) if rest else now for rest, draw in zip(rests, in_order, strict=False)
            ]
            by_team.append(list(zip(*slots, strict=True)))
        return [list(starts) for starts in zip(*by_team, strict=True)] or [[]] * self._runs

    def _play(self) -> list[list[float]]:
        """By run, when the first slot of each team is free after the line and the unseen patients."""
        plans = self._plans
        waited = self._waited
        # Backwards, so that the draws of the line differ from those of the visits in progress.
        draws = cycle(reversed(_shuffles(self._runs, Draw.LENGTH)))
        columns = [draw(self._parts[plan_id]) for plan_id, draw in zip(plans, draws, strict=False)]
        lengths = list(zip(*columns, strict=True)) or [()] * self._runs
        choices = [self._teams_of[plan_id] for plan_id in plans]
        spent = list(map(self._abandonment.spent_at, waited))
        free_at = []
        for run, starts in enumerate(self._starts):
            teams = [list(slots) for slots in starts]
            for team in teams:
                heapify(team)
            patience = cycle(_patiences(self._runs)[run])
            line = zip(choices, lengths[run], waited, spent, patience, strict=False)
            _serve(teams, line, self._abandonment)
            if self._unseen:
                self._serve_unseen(run, teams)
            free_at.append([team[0] for team in teams])
        return free_at

    def _serve_unseen(self, run: int, teams: list[Team]) -> None:
        """The patients that join between the last news and now; their lengths are drawn after those
        of the line.
        """
        draws = _orders(self._runs, Draw.LENGTH)
        for place, (joined_at, plan_id) in enumerate(self._unseen[run], start=len(self._plans)):
            if choice := self._teams_of[plan_id]:
                team = min([teams[i] for i in choice], key=_first)
                length = self._parts[plan_id][draws[-1 - place % DRAWS][run]]
                heapreplace(team, max(team[0], joined_at) + length)


def _serve(teams: list[Team], line: Iterable[_Patient], model: AbandonmentModel) -> None:
    """Each patient takes the first slot that is free, or has left by then."""
    fastest = model.fastest
    spent_at = model.spent_at
    for choice, length, waited, spent, patience in line:
        team = teams[choice[0]] if len(choice) == 1 else min([teams[i] for i in choice], key=_first)
        at = team[0]
        # Nearly always the patient stays even at the fastest rate of leaving.
        if at * fastest <= patience or spent_at(waited + at) - spent <= patience:
            heapreplace(team, at + length)


def _middle(ordered: list[float]) -> float:
    """The mean of the middle three quarters; at least what the long waits add to the mean while
    more than one is in doubt.
    """
    out = len(ordered) // TRIMMED_PART
    trimmed = ordered[out : len(ordered) - out]
    middle = sum(trimmed) / len(trimmed)
    # The estimate is not 0 while one of sixteen runs has a wait.
    in_doubt = ordered[-max(1, len(ordered) // 16)] > READY_SECONDS
    return max(middle, sum(ordered[len(ordered) - out :]) / len(ordered)) if in_doubt else middle


def _quantile(ordered: list[float], share: float) -> float:
    place = share * len(ordered) - 0.5
    at = min(max(0, int(place)), len(ordered) - 2)
    # Beyond the outermost of few runs the line goes on.
    return max(0.0, ordered[at] + (place - at) * (ordered[at + 1] - ordered[at]))
