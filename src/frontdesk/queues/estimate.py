"""How long a patient who joins a plan's queue now will wait: pure arithmetic; it knows no database, no clock and no names.

The doctors of a provider group serve all its plans, or some of them, in the order of arrival, so everyone who waits in a
sibling plan that shares doctors is ahead of the newcomer too. The near future is played through a few dozen times with
visit lengths drawn evenly from those that are known. The draws are fixed, so that every process computes the same number.
docs/wait-estimate.md has the formula and the measured error.

For whoever fills a `Pool`: `past` are the newest 50 to 100 visits of each plan, however old; `doctors` have their visits in
progress. Optional, each makes the estimate better where it matters: `waited` (how long each of `waiting` has waited, same
order) with `past_waits` (the last 200 or so waits that are over), and `duty` (who was on duty when, in the last 4 hours,
those on duty now included).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heapify, heapreplace
from math import ceil, exp, log
from random import Random

from frontdesk.queues.patience import PastWait, Patience
from frontdesk.queues.staffing import DutySpan, staffing
from frontdesk.queues.visit_lengths import Lengths, PastVisit, Visit, lengths_by_plan

__all__ = [
    "DEFAULT_HANDLE_SECONDS",
    "NOBODY_ON_DUTY",
    "Doctor",
    "DutySpan",
    "PastVisit",
    "PastWait",
    "Pool",
    "Visit",
    "estimate_waits",
]

NOBODY_ON_DUTY = -1
DEFAULT_HANDLE_SECONDS = 900.0

MOST_PLAYS = 32
FEWEST_PLAYS = 4
WORK = 4000  # turns at a doctor that are played in all; more waiting patients than that are counted as a flow
ORDERS = 256
BLOCKS = 32
MIDDLE = 0.125  # this share of the plays is left out at either end


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
    waited: Sequence[float] = ()
    past_waits: Sequence[PastWait] = ()
    duty: Sequence[DutySpan] = ()


def estimate_waits(
    pool: Pool, plan_ids: Collection[int], default_handle_seconds: float = DEFAULT_HANDLE_SECONDS
) -> dict[int, int]:
    """By plan: whole seconds, rounded up; 0 if a doctor is free for the newcomer, -1 if none is on duty for the plan.

    >>> estimate_waits(Pool([Doctor(None, 1, ())], waiting=[], past=[]), [7], 900.0)
    {7: 0}
    """
    room = _Room(pool, plan_ids, default_handle_seconds)
    change = staffing(pool.duty)
    waits = room.waits(plan_ids)
    if change and room.doctors:
        waits = {
            plan_id: wait and change.stretched(wait, room.doctors, room.usual_seconds(plan_id))
            for plan_id, wait in waits.items()
        }
    return {plan_id: NOBODY_ON_DUTY if wait is None else ceil(wait) for plan_id, wait in waits.items()}


class _Room:
    """The pool made ready to be played: doctors who serve the same plans are one team, a heap of when each is free."""

    def __init__(self, pool: Pool, plan_ids: Collection[int], default_seconds: float) -> None:
        self.doctors = sum(doctor.capacity > 0 for doctor in pool.doctors)
        in_progress = [visit for doctor in pool.doctors for visit in doctor.visits]
        known_plans = {*plan_ids, *pool.waiting, *(visit.plan_id for visit in in_progress)}
        lengths = lengths_by_plan(pool.past, in_progress, known_plans, default_seconds)
        teams: dict[frozenset[int] | None, list[Visit | None]] = {}
        for doctor in pool.doctors:
            if doctor.capacity > 0:
                teams.setdefault(doctor.plan_ids, []).extend(_places(doctor))
        self._sizes = [len(team) for team in teams.values()]
        self._plays = max(FEWEST_PLAYS, min(MOST_PLAYS, 20 * MOST_PLAYS // max(1, sum(self._sizes))))
        self._rests = [[self._rest(visit, lengths) for visit in team] for team in teams.values()]
        self._teams_of = {
            plan_id: [i for i, served in enumerate(teams) if served is None or plan_id in served]
            for plan_id in lengths
        }
        self._lengths = {plan_id: known.parts(self._plays) for plan_id, known in lengths.items()}
        waited = pool.waited or [0.0] * len(pool.waiting)
        self._line = [(p, at) for p, at in zip(pool.waiting, waited, strict=True) if self._teams_of[p]]
        self._patience = Patience(pool.past_waits, pool.waited)

    def _rest(self, visit: Visit | None, lengths: dict[int, Lengths]) -> list[float] | None:
        return lengths[visit.plan_id].parts(self._plays, visit.elapsed_seconds) if visit else None

    def usual_seconds(self, plan_id: int) -> float:
        return sum(self._lengths[plan_id]) / self._plays

    def waits(self, plan_ids: Collection[int]) -> dict[int, float | None]:
        """None where nobody serves the plan."""
        near, far = self._line[: WORK // self._plays], self._line[WORK // self._plays :]
        frees = [self._play(play, near) for play in range(self._plays)]
        levels = [sum(free[i] for free in frees) / self._plays for i in range(len(self._sizes))]
        if far:
            self._pour(levels, far)
        waits: dict[int, float | None] = {}
        for plan_id in plan_ids:
            teams = self._teams_of[plan_id]
            if not teams:
                waits[plan_id] = None
            elif far:
                waits[plan_id] = min(levels[i] for i in teams)
            else:
                waits[plan_id] = _middle([min(free[i] for i in teams) for free in frees])
        return waits

    def _play(self, play: int, line: Sequence[tuple[int, float]]) -> list[float]:
        """One course of events: when the first doctor of each team is free after all in the line."""
        orders, n = _orders(self._plays), 0
        teams: list[list[float]] = []
        for rests in self._rests:
            team = [rest[orders[(n + i) % ORDERS][play]] if rest else 0.0 for i, rest in enumerate(rests)]
            n += len(team)
            heapify(team)
            teams.append(team)
        patience = self._patience if self._patience.anyone_leaves else None
        draws = _exponential(self._plays)
        for i, (plan_id, waited) in enumerate(line):
            serving = self._teams_of[plan_id]
            team = teams[serving[0]] if len(serving) == 1 else min((teams[j] for j in serving), key=_first)
            at = team[0]
            if patience:
                spent = patience.spent_at(waited + at) - patience.spent_at(waited)
                if spent > draws[-i % ORDERS][play]:
                    continue
            heapreplace(team, at + self._lengths[plan_id][orders[-i % ORDERS][play]])
        return [team[0] for team in teams]

    def _pour(self, levels: list[float], far: Sequence[tuple[int, float]]) -> None:
        """Those far back as a flow: each block's work raises the lowest teams that serve it, like water."""
        size = ceil(len(far) / BLOCKS)
        usual = {plan_id: self.usual_seconds(plan_id) for plan_id in self._lengths}
        spent_at = self._patience.spent_at
        for start in range(0, len(far), size):
            waited: dict[int, list[float]] = {}
            for plan_id, seconds in far[start : start + size]:
                waited.setdefault(plan_id, []).append(seconds)
            for plan_id, block in waited.items():
                teams = self._teams_of[plan_id]
                at, mean = min(levels[i] for i in teams), sum(block) / len(block)
                staying = exp(spent_at(mean) - spent_at(mean + at))
                _fill(levels, [(i, self._sizes[i]) for i in teams], len(block) * usual[plan_id] * staying)


def _first(team: list[float]) -> float:
    return team[0]


def _middle(waits: list[float]) -> float:
    out = int(MIDDLE * len(waits))
    kept = sorted(waits)[out : len(waits) - out]
    return sum(kept) / len(kept)


def _fill(levels: list[float], teams: list[tuple[int, int]], work: float) -> None:
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
    """One place per parallel visit. Of more visits than places the latest count: the others' end was not told."""
    visits: list[Visit | None] = [*sorted(doctor.visits, key=lambda visit: visit.elapsed_seconds)]
    return visits[: doctor.capacity] + [None] * (doctor.capacity - len(visits))


@cache
def _orders(plays: int) -> list[list[int]]:
    """For each place in the line, in which order its equally likely lengths come up: fixed, and no two alike."""
    draw = Random(20160928)  # noqa: S311 - no secret
    return [draw.sample(range(plays), plays) for _ in range(ORDERS)]


@cache
def _exponential(plays: int) -> list[list[float]]:
    """For each place in the line, an exponential draw with mean 1 for each play."""
    draw = Random(20160929)  # noqa: S311 - no secret
    return [[-log((part + 0.5) / plays) for part in draw.sample(range(plays), plays)] for _ in range(ORDERS)]
