"""How long a patient who joins a plan's queue now will wait: pure arithmetic; it knows no database, no clock and no names.

The doctors of a provider group serve all its plans, or some of them, in the order of arrival, so everyone who waits in a
sibling plan that shares doctors is ahead of the newcomer too. The near future is played through a few dozen times with
visit lengths drawn evenly from those that are known; the estimate is the mean. The draws are fixed, so that every
process computes the same number. docs/wait-estimate.md has the formula and the measured error.

For whoever fills a `Pool`: give the newest 50 to 100 past visits of each plan, however old; doctors with their visits in
progress, forgotten ones left out. `left` and `waited_seconds` are optional: of the patients who waited lately (some hours),
how many left unseen, and how long all of them waited together, seen or not.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heapify, heapreplace
from math import ceil, exp, log
from random import Random

from frontdesk.queues.visit_lengths import Lengths, PastVisit, lengths_by_plan

__all__ = [
    "DEFAULT_HANDLE_SECONDS",
    "NOBODY_ON_DUTY",
    "Doctor",
    "PastVisit",
    "Pool",
    "Visit",
    "estimate_waits",
]

NOBODY_ON_DUTY = -1
DEFAULT_HANDLE_SECONDS = 900.0

MOST_PLAYS = 32
WORK = (
    6000  # turns at a doctor that are played in all; more waiting patients than that are counted by the rate
)
ORDERS = 256
BLOCKS = 64


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
class Pool:
    """A provider group now. `waiting`: the plan of each waiting patient, in the order they joined."""

    doctors: Sequence[Doctor]
    waiting: Sequence[int]
    past: Sequence[PastVisit]
    left: int = 0
    waited_seconds: float = 0.0


def estimate_waits(
    pool: Pool, plan_ids: Collection[int], default_handle_seconds: float = DEFAULT_HANDLE_SECONDS
) -> dict[int, int]:
    """By plan: whole seconds, rounded up; 0 if a doctor is free for the newcomer, -1 if none is on duty for the plan.

    >>> estimate_waits(Pool([Doctor(None, 1, ())], waiting=[], past=[]), [7], 900.0)
    {7: 0}
    """
    return _Room(pool, plan_ids, default_handle_seconds).waits(plan_ids)


class _Room:
    """The pool made ready to be played: doctors who serve the same plans are one team, a heap of when each is free."""

    def __init__(self, pool: Pool, plan_ids: Collection[int], default_seconds: float) -> None:
        in_progress = {visit.plan_id for doctor in pool.doctors for visit in doctor.visits}
        lengths = lengths_by_plan(pool.past, {*plan_ids, *pool.waiting, *in_progress}, default_seconds)
        places: dict[frozenset[int] | None, list[Visit | None]] = {}
        for doctor in pool.doctors:
            if doctor.capacity > 0:
                places.setdefault(doctor.plan_ids, []).extend(_places(doctor))
        self._sizes = [len(team) for team in places.values()]
        self._plays = max(4, min(MOST_PLAYS, 20 * MOST_PLAYS // max(1, sum(self._sizes))))
        self._teams = [[self._rests(visit, lengths) for visit in team] for team in places.values()]
        self._teams_of = {
            plan_id: [i for i, served in enumerate(places) if served is None or plan_id in served]
            for plan_id in lengths
        }
        self._lengths = {plan_id: known.parts(self._plays) for plan_id, known in lengths.items()}
        self._line = [plan_id for plan_id in pool.waiting if self._teams_of[plan_id]]
        self._leaving_rate = pool.left / pool.waited_seconds if pool.waited_seconds > 0 else 0.0

    def _rests(self, visit: Visit | None, lengths: dict[int, Lengths]) -> list[float] | None:
        return lengths[visit.plan_id].parts(self._plays, visit.elapsed_seconds) if visit else None

    def waits(self, plan_ids: Collection[int]) -> dict[int, int]:
        played = WORK // self._plays
        near, far = self._line[:played], self._line[played:]
        sums = dict.fromkeys(plan_ids, 0.0)
        levels = [0.0] * len(self._teams)
        for play in range(self._plays):
            teams = self._play(play, near)
            for plan_id in plan_ids:
                sums[plan_id] += min((teams[i][0] for i in self._teams_of[plan_id]), default=0.0)
            levels = [level + team[0] / self._plays for level, team in zip(levels, teams, strict=True)]
        if far:
            self._pour(levels, far)
        return {
            plan_id: self._whole(plan_id, sums[plan_id] / self._plays, levels, far) for plan_id in plan_ids
        }

    def _whole(self, plan_id: int, mean: float, levels: list[float], far: list[int]) -> int:
        teams = self._teams_of[plan_id]
        if not teams:
            return NOBODY_ON_DUTY
        return ceil(max(mean, min(levels[i] for i in teams)) if far else mean)

    def _play(self, play: int, line: list[int]) -> list[list[float]]:
        """One course of events: when each doctor is free after all in the line."""
        orders = _orders(self._plays)
        teams = []
        n = 0
        for places in self._teams:
            free_in = []
            for rests in places:
                free_in.append(rests[orders[n % ORDERS][play]] if rests else 0.0)
                n += 1
            heapify(free_in)
            teams.append(free_in)
        patience = _patience(self._plays) if self._leaving_rate else None
        for i, plan_id in enumerate(line):
            serving = self._teams_of[plan_id]
            team = teams[serving[0]] if len(serving) == 1 else min((teams[j] for j in serving), key=_top)
            at = team[0]
            if patience and patience[-i % ORDERS][play] < at * self._leaving_rate:
                continue
            heapreplace(team, at + self._lengths[plan_id][orders[-i % ORDERS][play]])
        return teams

    def _pour(self, levels: list[float], far: list[int]) -> None:
        """Those far back as a flow: each block's work raises the lowest team that serves it."""
        size = ceil(len(far) / BLOCKS)
        usual = {plan_id: sum(parts) / len(parts) for plan_id, parts in self._lengths.items()}
        for start in range(0, len(far), size):
            block = far[start : start + size]
            for plan_id in sorted(set(block)):
                teams = self._teams_of[plan_id]
                work = block.count(plan_id) * usual[plan_id]
                work *= exp(-self._leaving_rate * min(levels[i] for i in teams))
                _fill(levels, [(i, self._sizes[i]) for i in teams], work)


def _top(team: list[float]) -> float:
    return team[0]


def _fill(levels: list[float], teams: list[tuple[int, int]], work: float) -> None:
    """Raise the lowest levels together by the work, like water."""
    teams = sorted(teams, key=lambda team: levels[team[0]])
    size = 0
    for n, (i, doctors) in enumerate(teams):
        size += doctors
        ceiling = levels[teams[n + 1][0]] if n + 1 < len(teams) else float("inf")
        rise = min(work / size, ceiling - levels[i])
        work -= rise * size
        for j, _ in teams[: n + 1]:
            levels[j] += rise
        if work <= 0:
            return


def _places(doctor: Doctor) -> list[Visit | None]:
    """One place per parallel visit. Of more visits than places the latest count: the others were not ended in the record."""
    visits: list[Visit | None] = [*sorted(doctor.visits, key=lambda visit: visit.elapsed_seconds)]
    return visits[: doctor.capacity] + [None] * (doctor.capacity - len(visits))


@cache
def _orders(plays: int) -> list[list[int]]:
    """For each place in the line, in which order its equally likely lengths come up: fixed, different for neighbours."""
    draw = Random(20160928)  # noqa: S311 - no secret
    return [draw.sample(range(plays), plays) for _ in range(ORDERS)]


@cache
def _patience(plays: int) -> list[list[float]]:
    """For each place in the line, how long they stay in each play, in mean patiences."""
    draw = Random(20160929)  # noqa: S311
    return [[-log((part + 0.5) / plays) for part in draw.sample(range(plays), plays)] for _ in range(ORDERS)]
