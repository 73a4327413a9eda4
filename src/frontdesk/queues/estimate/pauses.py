"""Doctors that are on duty, have nobody, and take nobody: notes, short breaks, visits that the feed does not tell of.

A pause begins when a doctor has room for a patient, and is over when the doctor is ready for the next one. It shows only while
somebody waits: a doctor that takes a new patient at once may have been ready for long. So most pauses are known as "not longer
than this". The product-limit estimator for such data (Lynden-Bell 1971), from the longest pause down, takes them as they are.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import NamedTuple

from frontdesk.queues.estimate.distributions import (
    CURVE_POINTS,
    Lengths,
    Point,
    curve,
    recency_weights,
)
from frontdesk.queues.estimate.line_time import WeightedTurn, in_line_time
from frontdesk.queues.estimate.model import READY_SECONDS, Doctor, DoctorPool
from frontdesk.queues.estimate.turns import Turn, Turns

# Number of pauses of no length that are assumed before any is known; 2 made all of them too short.
READY_WEIGHT = 0.5
ANY_WEIGHT = 2.0  # number of pauses in a line's time that all pauses together count as
SHORTEST_SECONDS = 5.0  # where no pause is longer, none is played
LONGEST_SECONDS = 7200.0  # a longer one counts as this: somebody forgot to go off duty
POINTS = 16
# A pause that is unlike all that are known: as likely as this, and of this mean from now on. It counts only against a doctor that
# is passed over or lets others wait.
RARE_SHARE = 0.01
RARE_SECONDS = 600.0


class _Evidence(NamedTuple):
    """What the patients that a team serves tell of its idle doctors."""

    waits_now: float  # for how long somebody has been waiting now
    let_wait_ago: float | None  # when the last patient with a wait was taken
    chosen_ago: list[float]  # when each idle doctor was chosen for a patient, the latest first
    idle: int  # doctors that look free


class Pauses:
    """The pauses of a pool: those that follow a visit, and those that idle doctors may be in."""

    def __init__(self, pool: DoctorPool, turns: Turns) -> None:
        self._pool = pool
        self._turns = turns
        self._weighted = list(zip(turns.taken, recency_weights(len(turns.taken)), strict=False))
        self._points = _points(self._weighted)
        self._rare = [(RARE_SECONDS * part, RARE_SHARE / CURVE_POINTS) for part in curve()]
        self._evidence: dict[frozenset[int] | None, _Evidence] = {}

    def after_visit(self, count: int) -> list[float] | None:
        """`count` equally likely parts, in order; None where doctors take the next patient at once."""
        if self._points[-1][0] <= SHORTEST_SECONDS:
            return None
        # A newcomer that waits meets pauses that begin while somebody waits. Hidden patients make these longer than others.
        turns = in_line_time(self._pool, self._weighted)
        weight = sum(weight for _, weight in turns)
        points = [(seconds, weight * share) for seconds, share in _points(turns)]
        return Lengths(points + [(seconds, ANY_WEIGHT * share) for seconds, share in self._points]).parts(
            count
        )

    def rest(self, doctor: Doctor, count: int) -> list[float] | None:
        """How long an idle doctor is not ready yet, as `count` equally likely parts; None: is ready."""
        idle = self._turns.idle_seconds.get(doctor.name or "")
        if idle is None:
            return None
        seen = self._evidence_of(doctor.plan_ids)
        away = 0.0  # how long the doctor has been away for sure: somebody waited
        if min(idle, seen.waits_now) > READY_SECONDS:
            away = idle
        elif seen.let_wait_ago is not None and idle - seen.let_wait_ago > READY_SECONDS:
            away = idle - seen.let_wait_ago
        passed = 0 if doctor.visits else bisect_left(seen.chosen_ago, idle)
        if not (away or passed or self._points[-1][0] > idle):
            return None
        ready = (1 - 1 / (seen.idle + 1)) ** passed
        points = [
            (max(0.0, seconds - idle), weight if seconds > idle else weight * ready)
            for seconds, weight in self._points
            if seconds > away or not away
        ]
        return Lengths(points + self._rare).parts(count)

    def _evidence_of(self, plan_ids: frozenset[int] | None) -> _Evidence:
        found = self._evidence.get(plan_ids)
        if found is None:
            found = self._evidence[plan_ids] = _evidence(self._pool, self._turns.taken, plan_ids)
        return found


def _evidence(pool: DoctorPool, turns: Sequence[Turn], plan_ids: Collection[int] | None) -> _Evidence:
    own = [turn for turn in turns if plan_ids is None or turn.plan_id in plan_ids]
    # A patient that joined before one that was taken has been overtaken: the end of its wait was not told, or its turn is later.
    overtaken = min((turn.ago + (turn.waited_seconds or 0.0) for turn in own), default=float("inf"))
    waits = (
        waited
        for plan_id, waited in zip(pool.waiting, pool.waited, strict=False)
        if waited < overtaken and (plan_ids is None or plan_id in plan_ids)
    )
    let_wait = (turn.ago for turn in own if (turn.waited_seconds or 0.0) > READY_SECONDS)
    idle = sum(len(one.visits) < one.capacity for one in pool.doctors if one.plan_ids == plan_ids)
    return _Evidence(
        next(waits, 0.0), next(let_wait, None), [turn.ago for turn in own if turn.idle_seconds], idle
    )


def _points(turns: Sequence[WeightedTurn]) -> list[Point]:
    """The lengths of pauses with their shares, in order; none longer than 0 if no pause is known."""
    known, total = [], READY_WEIGHT
    for (_, _, waited, idle, _), weight in turns:
        if idle is None or waited is None:
            continue
        total += weight
        if not idle:
            continue  # no pause
        # Somebody waited already when the doctor had room, or waited long: the pause ended when the patient was taken.
        if waited > idle or waited > READY_SECONDS:
            known.append((idle, True, weight))
        else:
            known.append((idle - waited, False, weight))
    known.sort(reverse=True)
    left, points = 1.0, []
    for seconds, exact, weight in known:
        if exact:
            share = left * weight / total
            points.append((min(LONGEST_SECONDS, seconds), share))
            left -= share
        total -= weight
    return [(0.0, left), *_compressed(points)]


def _compressed(points: list[Point]) -> list[Point]:
    if len(points) <= POINTS:
        return points[::-1]
    weight = sum(weight for _, weight in points) / POINTS
    return [(seconds, weight) for seconds in Lengths(points).parts(POINTS)]
