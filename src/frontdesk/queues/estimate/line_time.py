"""The turns whose pauses began while somebody waited.

A newcomer that waits meets such pauses. Patients that nobody tells of come between two visits then; in quieter times they come
while the doctor is idle anyway.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from frontdesk.queues.estimate.model import DoctorPool
from frontdesk.queues.estimate.turns import Turn

# A turn and how much it counts.
WeightedTurn = tuple[Turn, float]


class _Line(NamedTuple):
    """The patients that waited, in the order of their joining and of their turns; in seconds before now, negative."""

    joined: list[float]
    taken: list[float]


def in_line_time(pool: DoctorPool, turns: Sequence[WeightedTurn]) -> list[WeightedTurn]:
    """Those before which a patient waited that the doctor serves, when the doctor had room. `turns`: the latest first."""
    lines: dict[frozenset[int] | None, _Line] = {}
    found = []
    for one in turns:
        ago, _, _, idle, served = one[0]
        if idle is None:
            continue
        if served not in lines:
            lines[served] = _line(pool, turns, served)
        joined, taken = lines[served]
        began = -ago - idle
        # Of those that were taken from then on, the next had joined first.
        place = bisect_left(taken, began)
        if place < len(taken) and joined[place] < began:
            found.append(one)
    return found


def _line(pool: DoctorPool, turns: Sequence[WeightedTurn], served: frozenset[int] | None) -> _Line:
    """Without patients that others overtook: the end of their wait was told late, or they could not be seen yet."""
    line = _Line([], [])
    latest = last = -float("inf")
    for (ago, plan_id, waited, _, _), _ in reversed(turns):
        if served is not None and plan_id not in served:
            continue
        at = -ago - (waited or 0.0)
        last = max(last, at)
        if waited is not None and at >= latest:
            latest = at
            line.joined.append(at)
            line.taken.append(-ago)
    # Of those that wait now the first to join says it all.
    waiting = [
        waited
        for plan_id, waited in zip(pool.waiting, pool.waited, strict=False)
        if -waited >= last and (served is None or plan_id in served)
    ]
    if waiting:
        line.joined.append(-max(waiting))
        line.taken.append(0.0)
    return line
