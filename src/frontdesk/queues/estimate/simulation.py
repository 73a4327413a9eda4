"""Simulates the near future of a pool of doctors a few dozen times, to see when the next doctor is
free.

The draws are fixed and even: over all runs, each place in the line gets every part of the known
visit lengths once. So every process computes the same number, and few runs are enough; the more so
with many doctors or a long line.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import heapify, heapreplace
from itertools import cycle, islice, pairwise, repeat
from operator import itemgetter
from typing import NamedTuple, TypeVar

from frontdesk.queues.estimate.abandonment import AbandonmentModel
from frontdesk.queues.estimate.arrivals import Kind, RecentPatients, visit_rates
from frontdesk.queues.estimate.distributions import Lengths, Point
from frontdesk.queues.estimate.doctors import Turns
from frontdesk.queues.estimate.draws import DRAWS, Draw, exponential, orders, shuffles
from frontdesk.queues.estimate.late_feed import UnseenJoin, as_reported, unseen_joins
from frontdesk.queues.estimate.model import (
    LEAST_SECONDS,
    READY_SECONDS,
    Doctor,
    DoctorPool,
    Newcomer,
)
from frontdesk.queues.estimate.overtakers import Overtakers
from frontdesk.queues.estimate.visits import VisitParts

MIN_RUNS = 4
MAX_RUNS = 32
SLOTS_SIMULATED = (
    640  # the more doctors, the fewer runs: the random parts of many doctors average out
)
TURNS_SIMULATED = 4000  # the longer the line, the fewer runs: so do those of many turns
# Of the doctors' time, that all patients take: where it was more, more of them came by chance, and
# no line grows for ever.
MOST_LOAD = 0.9
TRIMMED_PART = (
    8  # an eighth of the runs is left out at either end: a value between mean and median fits best
)

Item = TypeVar("Item")
Team = list[float]  # a heap: when each slot of the team's doctors is free
Choice = tuple[int, ...]  # the teams that serve a plan
# The teams that serve the patient, the length of the turn, the seconds waited, the patience that
# these have spent, and all of it.
_Patient = tuple[Choice, float, float, float, float]

_first = itemgetter(0)


class SimulatedWait(NamedTuple):
    """The wait in seconds, its tenth and ninetieth percentile, and the number of patients ahead."""

    seconds: float
    low: float
    high: float
    ahead: int

    def changed(self, change: Callable[[float], float]) -> "SimulatedWait":
        """With another wait and other ends; what is 0 stays 0."""
        seconds, low, high = (change(part) if part else 0.0 for part in self[:3])
        return self._replace(seconds=seconds, low=low, high=high)


class _WaitingLine(NamedTuple):
    """The patients that wait for a plan that a doctor on duty serves, in order of arrival.

    `order`: their places in the order in which they are served; None: in order of arrival.
    `rates`: how fast each patient's class leaves, as a multiple of all patients' rate; None where
    no class is known. `counts`: the patients by plan and priority.
    """

    kinds: list[Kind]
    waited: list[float]
    order: list[int] | None
    rates: list[float] | None
    counts: Counter[tuple[int, int]]

    def in_turn(self, column: list[Item]) -> list[Item]:
        """What is in order of arrival, in the order in which the line is served."""
        return column if self.order is None else [column[place] for place in self.order]

    def ahead_of(self, priority: int) -> int:
        """How many are served before a newcomer with this priority; they come first in `order`."""
        return sum(count for (_, own), count in self.counts.items() if own >= priority)


class _Teams(NamedTuple):
    """Doctors with the same plans are a team. `serving`: by plan, the teams that serve it; `slots`:
    how many each has; `starts`: by run and team, when each slot is free for the first patient.
    """

    serving: dict[int, Choice]
    slots: list[int]
    starts: list[list[tuple[float, ...]]]


class _Place(NamedTuple):
    """A place in the line, for one priority: the waits of a newcomer by run, and the patients ahead."""

    waits: list[float]
    ahead: int


class QueueSimulation:
    """A prepared pool. Doctors with the same plans form one team; a doctor has a slot per parallel
    visit.

    The estimates of newcomers to `plan_ids` can be asked for.
    """

    def __init__(self, pool: DoctorPool, plan_ids: Collection[int]) -> None:
        self._late = pool.feed_late_seconds if pool.feed_late_seconds > LEAST_SECONDS else 0.0
        if self._late:
            pool = as_reported(pool)
        staff = [doctor for doctor in pool.doctors if doctor.capacity > 0]
        self._runs = _runs_for(staff, len(pool.waiting))
        turns = Turns(pool)
        self.known_seconds = turns.horizon
        self._unseen: list[list[UnseenJoin]] = []
        if self._late:
            self._unseen = unseen_joins(pool, self._runs, known_for=turns.horizon)
        self._patients = RecentPatients(pool)
        self._visit_rates: dict[int, float] = {}
        if self._patients.has_priorities:
            self._visit_rates = visit_rates(pool, known_for=turns.horizon)
        kinds = _all_kinds(
            pool, plan_ids, self._unseen, patients=self._patients, visited=self._visit_rates
        )
        self._visits = VisitParts(
            pool, turns, patients=self._patients, kinds=kinds, runs=self._runs
        )
        self._teams = _teams_of(staff, self._visits, {plan_id for plan_id, _ in kinds})
        self._abandonment = AbandonmentModel(pool.past_waits, pool.waited)
        self._line = _line_of(pool, self._teams, self._abandonment)

    def mean_seconds(self, plan_id: int) -> float:
        return self._visits.mean_of((plan_id, None))

    def waits(self, newcomers: Collection[Newcomer]) -> dict[Newcomer, SimulatedWait | None]:
        """When the first doctor is ready for each newcomer; None where no doctor serves the plan."""
        priorities = {one: self._patients.priorities(one, self._runs) for one in newcomers}
        levels = sorted({level for own in priorities.values() for level in own}, reverse=True)
        free_at = self._play(levels)
        places: dict[tuple[Choice, int], _Place] = {}
        known: dict[tuple[Choice, tuple[int, ...]], SimulatedWait] = {}
        waits: dict[Newcomer, SimulatedWait | None] = {}
        for newcomer, own in priorities.items():
            teams = self._teams.serving[newcomer.plan_id]
            if not teams:
                waits[newcomer] = None
                continue
            for priority in {*own}:
                if (teams, priority) not in places:
                    places[teams, priority] = self._place_of(teams, priority, free_at[priority])
            if (teams, own) not in known:
                known[teams, own] = _mixed([places[teams, priority] for priority in own])
            waits[newcomer] = known[teams, own]
        return waits

    def _place_of(self, teams: Choice, priority: int, free_at: list[list[float]]) -> _Place:
        """`free_at`: by run, when the first slot of each team is free for this priority."""
        in_time = [self._from_now(min([times[i] for i in teams])) for times in free_at]
        overtakers = self._overtakers(teams, priority)
        waits = overtakers.delay(in_time) if overtakers else in_time
        return _Place(waits, self._ahead(teams, priority))

    def _ahead(self, teams: Choice, priority: int) -> int:
        """The patients that wait for a plan that shares a doctor, and are served before a newcomer
        with this priority.
        """
        shared = set(teams)
        return sum(
            count
            for (plan_id, own), count in self._line.counts.items()
            if own >= priority and not shared.isdisjoint(self._teams.serving[plan_id])
        )

    def _overtakers(self, teams: Choice, priority: int) -> Overtakers | None:
        """The patients of a higher priority that are expected to join; None if there are none.

        Their share and rate are those of the patients that were seen: the line says nothing of
        them, so that one more patient in it never shortens a wait.
        """
        works: list[Point] = []
        slots = sum(self._teams.slots[i] for i in teams)
        load = 0.0  # of all patients, as a share of the doctors' time
        for plan_id, per_second in self._visit_rates.items():
            served_by = self._teams.serving[plan_id]
            shared = sum(self._teams.slots[i] for i in served_by if i in teams)
            if shared:
                to_teams = per_second * shared / sum(self._teams.slots[i] for i in served_by)
                load += to_teams * self._visits.mean_of((plan_id, None)) / slots
                for kind, share in self._patients.shares_above(plan_id, priority).items():
                    rate = to_teams * share / self._runs
                    works += [(length / slots, rate) for length in self._visits.by_kind[kind]]
        if not works:
            return None
        bound = min(1.0, MOST_LOAD / load)
        parts = [bound * work for work in Lengths(works).parts(self._runs)]
        return Overtakers(sum(rate for _, rate in works), parts)

    def _from_now(self, free_at: float) -> float:
        """The runs begin at the last news."""
        return free_at - self._late if free_at > self._late else 0.0

    def _play(self, levels: Sequence[int]) -> dict[int, list[list[float]]]:
        """By priority of a newcomer and run, when the first slot of each team is free after the
        patients that are served before it. `levels`: these priorities, the highest first.

        The draws belong to the places in order of arrival, so that one more patient at the end of
        the line leaves those of the others alone.
        """
        line = self._line
        # Backwards, so that the draws of the line differ from those of the visits in progress.
        draws = cycle(reversed(shuffles(self._runs, Draw.LENGTH)))
        by_kind = self._visits.by_kind
        columns = [draw(by_kind[kind]) for kind, draw in zip(line.kinds, draws, strict=False)]
        serving = self._teams.serving
        choices = line.in_turn([serving[plan_id] for plan_id, _ in line.kinds])
        waited = line.in_turn(line.waited)
        spent = line.in_turn(list(map(self._abandonment.spent_at, line.waited)))
        lengths = list(zip(*line.in_turn(columns), strict=True)) or [()] * self._runs
        served_before = [0, *map(line.ahead_of, levels)]
        counts = [after - before for before, after in pairwise(served_before)]
        steps = list(zip(levels, counts, strict=True))
        free_at: dict[int, list[list[float]]] = {level: [] for level in levels}
        for run, patience in enumerate(self._patience()):
            teams = [list(slots) for slots in self._teams.starts[run]]
            for team in teams:
                heapify(team)
            patients = zip(choices, lengths[run], waited, spent, cycle(patience), strict=False)
            for level, count in steps:
                _serve(teams, islice(patients, count), self._abandonment)
                after = self._after_unseen(run, teams, level) if self._unseen else teams
                free_at[level].append([team[0] for team in after])
        return free_at

    def _patience(self) -> Sequence[Sequence[float]]:
        """By run, the patience of the line's patients in the order in which they are served."""
        by_run = exponential(self._runs, Draw.PATIENCE)
        line = self._line
        if line.order is None and line.rates is None:
            return by_run
        size = len(line.kinds)
        rates = line.rates or [1.0] * size
        return [
            line.in_turn([patience[place % DRAWS] / rates[place] for place in range(size)])
            for patience in by_run
        ]

    def _after_unseen(self, run: int, teams: list[Team], priority: int) -> list[Team]:
        """The teams after the patients that joined between the last news and now, and are served
        before a newcomer with this priority; their lengths are drawn after those of the line.
        """
        after = [list(team) for team in teams]
        draws = orders(self._runs, Draw.LENGTH)
        for place, (joined_at, kind) in enumerate(self._unseen[run], start=len(self._line.kinds)):
            choice = self._teams.serving[kind[0]]
            if choice and self._patients.usual_priority(kind) >= priority:
                team = min([after[i] for i in choice], key=_first)
                length = self._visits.by_kind[kind][draws[-1 - place % DRAWS][run]]
                heapreplace(team, max(team[0], joined_at) + length)
        return after


def _runs_for(staff: Iterable[Doctor], waiting: int) -> int:
    slots = sum(doctor.capacity for doctor in staff)
    enough = min(SLOTS_SIMULATED // max(1, slots), TURNS_SIMULATED // max(1, waiting))
    return max(MIN_RUNS, min(MAX_RUNS, enough))


def _all_kinds(
    pool: DoctorPool,
    plan_ids: Iterable[int],
    unseen: Iterable[Iterable[UnseenJoin]],
    *,
    patients: RecentPatients,
    visited: Collection[int],
) -> set[Kind]:
    """Of all patients that a run may meet. `visited`: plans whose patients may go before others."""
    kinds: set[Kind] = {(plan_id, None) for plan_id in plan_ids}
    kinds.update(zip(pool.waiting, pool.classes or repeat(None), strict=False))
    for doctor in pool.doctors:
        kinds.update([(visit.plan_id, visit.patient_class) for visit in doctor.visits])
    # Unseen patients may join any plan of the group, also of another account.
    kinds.update(join.kind for joins in unseen for join in joins)
    if visited:
        kinds.update(patients.kinds)
        kinds.update((plan_id, None) for plan_id in visited)
    return kinds


def _teams_of(staff: Iterable[Doctor], visits: VisitParts, plan_ids: Iterable[int]) -> _Teams:
    by_plans: dict[frozenset[int] | None, list[list[float] | None]] = {}
    for number, doctor in enumerate(staff):
        by_plans.setdefault(doctor.plan_ids, []).extend(visits.rests_of(doctor, number))
    return _Teams(
        serving={
            plan_id: tuple(
                [i for i, served in enumerate(by_plans) if served is None or plan_id in served]
            )
            for plan_id in plan_ids
        },
        slots=[len(rests) for rests in by_plans.values()],
        starts=_starts_of(by_plans.values(), visits.runs),
    )


def _starts_of(
    teams: Iterable[Sequence[list[float] | None]], runs: int
) -> list[list[tuple[float, ...]]]:
    """By run and team, when each slot is free for the first patient in the line."""
    in_order = cycle(shuffles(runs, Draw.LENGTH))
    now = (0.0,) * runs
    by_team = []
    for rests in teams:
        slots = [draw(rest) if rest else now for rest, draw in zip(rests, in_order, strict=False)]
        by_team.append(list(zip(*slots, strict=True)))
    return [list(starts) for starts in zip(*by_team, strict=True)] or [[]] * runs


def _line_of(pool: DoctorPool, teams: _Teams, leaving: AbandonmentModel) -> _WaitingLine:
    size = len(pool.waiting)
    everyone = zip(
        pool.waiting,
        pool.classes or [None] * size,
        pool.waited or [0.0] * size,
        pool.priorities or [0] * size,
        strict=True,
    )
    serving = teams.serving
    # Patients that no doctor on duty serves take no turn.
    line = [one for one in everyone if serving[one[0]]]
    priorities = [priority for *_, priority in line]
    order = None
    if len(set(priorities)) > 1:
        order = sorted(range(len(line)), key=lambda place: -priorities[place])
    by_class = leaving.rates_by_class(pool)
    return _WaitingLine(
        kinds=[(plan_id, patient_class) for plan_id, patient_class, _, _ in line],
        waited=[seconds for _, _, seconds, _ in line],
        order=order,
        rates=[by_class.get(one[1], 1.0) for one in line] if by_class else None,
        counts=Counter((plan_id, priority) for plan_id, *_, priority in line),
    )


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


def _mixed(places: Sequence[_Place]) -> SimulatedWait:
    """The wait of a newcomer that has another place in each run: `places`, by run."""
    waits = sorted([place.waits[run] for run, place in enumerate(places)])
    return SimulatedWait(
        seconds=_middle(waits),
        low=_quantile(waits, 0.1),
        high=_quantile(waits, 0.9),
        ahead=round(sum([place.ahead for place in places]) / len(places)),
    )


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
