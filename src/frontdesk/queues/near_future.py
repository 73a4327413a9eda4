"""Plays the near future of a pool of doctors a few dozen times, to see when the next doctor is free; pure.

The draws are fixed and even: each place in the line gets every part of the known visit lengths once over all plays, so all
processes compute the same number and few plays are enough. Of a very long line only the front is played; the rest is a flow.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from heapq import heapify, heapreplace
from itertools import cycle
from math import ceil, exp, log
from random import Random

from frontdesk.queues.patience import AbandonmentModel
from frontdesk.queues.pool import Doctor, Pool, Visit
from frontdesk.queues.visit_lengths import lengths_by_plan

MOST_PLAYS = 32
FEWEST_PLAYS = 4
PLACES_PLAYED = 640  # the more doctors, the fewer plays: many doctors even each other out
WORK = 4000  # turns at a doctor that are played in all
CHOICES = 4  # each so many teams to choose from make a turn as much dearer
BLOCKS = 32
LEFT_OUT = (
    8  # one eighth of the plays is left out at either end: between mean and median, nearer to what comes
)
DRAWS = 256  # places in the line before the draws come round again


class NearFuture:
    """A pool made ready. Doctors who serve the same plans are one team; a team is a heap of when each place is free."""

    def __init__(self, pool: Pool, plan_ids: Collection[int], default_seconds: float) -> None:
        visits = [visit for doctor in pool.doctors for visit in doctor.visits]
        plans = {*plan_ids, *pool.waiting, *(visit.plan_id for visit in visits)}
        teams: dict[frozenset[int] | None, list[Visit | None]] = {}
        for doctor in pool.doctors:
            if doctor.capacity > 0:
                teams.setdefault(doctor.plan_ids, []).extend(_places(doctor))
        self._sizes = [len(team) for team in teams.values()]
        self._plays = max(FEWEST_PLAYS, min(MOST_PLAYS, PLACES_PLAYED // max(1, sum(self._sizes))))
        lengths = lengths_by_plan(pool.past, visits, plans, default_seconds)
        self._rests = [
            [
                lengths[visit.plan_id].parts(self._plays, visit.elapsed_seconds) if visit else None
                for visit in team
            ]
            for team in teams.values()
        ]
        self._parts = {plan_id: known.parts(self._plays) for plan_id, known in lengths.items()}
        self._teams_of = {
            plan_id: [i for i, served in enumerate(teams) if served is None or plan_id in served]
            for plan_id in plans
        }
        self._line, self._waited = self._served(pool)
        self._patience = AbandonmentModel(pool.past_waits, pool.waited)

    def usual_seconds(self, plan_id: int) -> float:
        return sum(self._parts[plan_id]) / self._plays

    def waits(self, plan_ids: Collection[int]) -> dict[int, float | None]:
        """When the first doctor is free for a newcomer; None where nobody serves the plan."""
        choices = max((len(teams) for teams in self._teams_of.values()), default=1)
        played = WORK // (self._plays * max(1, choices // CHOICES))
        frees = [self._play(play, played) for play in range(self._plays)]
        if len(self._line) > played:
            levels = [sum(free[i] for free in frees) / self._plays for i in range(len(self._sizes))]
            self._pour(levels, played)
            frees = [levels]
        return {
            plan_id: _middle([min(free[i] for i in teams) for free in frees]) if teams else None
            for plan_id, teams in ((plan_id, self._teams_of[plan_id]) for plan_id in plan_ids)
        }

    def _served(self, pool: Pool) -> tuple[Sequence[int], Sequence[float]]:
        """The line without those whom nobody on duty serves."""
        waited = pool.waited or [0.0] * len(pool.waiting)
        if all(self._teams_of[plan_id] for plan_id in set(pool.waiting)):
            return pool.waiting, waited
        kept = [i for i, plan_id in enumerate(pool.waiting) if self._teams_of[plan_id]]
        return [pool.waiting[i] for i in kept], [waited[i] for i in kept]

    def _play(self, play: int, played: int) -> list[float]:
        """One course of events: when the first doctor of each team is free after all in the line."""
        orders = cycle(_orders(self._plays)[play])
        teams = [
            [rest[order] if rest else 0.0 for rest, order in zip(rests, orders, strict=False)]
            for rests in self._rests
        ]
        for team in teams:
            heapify(team)
        line = self._line[:played]
        if self._patience.anyone_leaves:
            self._serve_who_stay(play, teams, line)
        elif len(teams) == 1:
            team = teams[0]
            for plan_id, order in zip(line, self._line_orders(play), strict=False):
                heapreplace(team, team[0] + self._parts[plan_id][order])
        else:
            serving = {plan_id: [teams[i] for i in of_plan] for plan_id, of_plan in self._teams_of.items()}
            for plan_id, order in zip(line, self._line_orders(play), strict=False):
                team = min(serving[plan_id], key=_first)
                heapreplace(team, team[0] + self._parts[plan_id][order])
        return [team[0] for team in teams]

    def _line_orders(self, play: int) -> Iterator[int]:
        """Backwards, so that those in the line don't draw alike with the visits in progress."""
        return cycle(reversed(_orders(self._plays)[play]))

    def _serve_who_stay(self, play: int, teams: list[list[float]], line: Sequence[int]) -> None:
        serving = {plan_id: [teams[i] for i in of_plan] for plan_id, of_plan in self._teams_of.items()}
        draws = cycle(_exponential(self._plays)[play])
        spent_at = self._patience.spent_at
        for plan_id, waited, order, draw in zip(
            line, self._waited, self._line_orders(play), draws, strict=False
        ):
            team = min(serving[plan_id], key=_first)
            at = team[0]
            if spent_at(waited + at) - spent_at(waited) <= draw:
                heapreplace(team, at + self._parts[plan_id][order])

    def _pour(self, levels: list[float], played: int) -> None:
        """The back of the line as a flow: each block's work raises the lowest teams that serve it, like water."""
        size = ceil((len(self._line) - played) / BLOCKS)
        usual = {plan_id: self.usual_seconds(plan_id) for plan_id in self._parts}
        spent_at = self._patience.spent_at
        for start in range(played, len(self._line), size):
            block = self._waited[start : start + size]
            waited = sum(block) / len(block)
            for plan_id, patients in Counter(self._line[start : start + size]).items():
                teams = self._teams_of[plan_id]
                at = min(levels[i] for i in teams)
                staying = exp(spent_at(waited) - spent_at(waited + at))
                _fill(levels, [(i, self._sizes[i]) for i in teams], patients * usual[plan_id] * staying)


def _first(team: list[float]) -> float:
    return team[0]


def _middle(waits: list[float]) -> float:
    out = len(waits) // LEFT_OUT
    kept = sorted(waits)[out : len(waits) - out]
    return sum(kept) / len(kept)


def _fill(levels: list[float], teams: list[tuple[int, int]], work: float) -> None:
    """Raise the lowest levels to one that takes the work. `teams`: which level, how many places."""
    ordered = sorted(teams, key=lambda team: levels[team[0]])
    size, held, raised = 0, work, 0
    level = levels[ordered[0][0]]
    for i, places in ordered:
        if raised and levels[i] >= level:
            break
        size += places
        held += places * levels[i]
        level = held / size
        raised += 1
    for i, _ in ordered[:raised]:
        levels[i] = level


def _places(doctor: Doctor) -> list[Visit | None]:
    """One place per parallel visit. Of more visits than places the latest count: the others' end was not told."""
    visits: list[Visit | None] = [*sorted(doctor.visits, key=lambda visit: visit.elapsed_seconds)]
    return visits[: doctor.capacity] + [None] * (doctor.capacity - len(visits))


@cache
def _orders(plays: int) -> list[list[int]]:
    """By play, for each place in the line: which of the equally likely lengths it is. Over all plays each comes up once."""
    draw = Random(20160928)  # noqa: S311 - no secret
    rows = [draw.sample(range(plays), plays) for _ in range(DRAWS)]
    return [list(column) for column in zip(*rows, strict=True)]


@cache
def _exponential(plays: int) -> list[list[float]]:
    """By play, for each place in the line: an exponential draw with mean 1."""
    draw = Random(20160929)  # noqa: S311 - no secret
    parts = [-log((part + 0.5) / plays) for part in range(plays)]
    rows = [draw.sample(parts, plays) for _ in range(DRAWS)]
    return [list(column) for column in zip(*rows, strict=True)]
