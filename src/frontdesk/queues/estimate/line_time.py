"""The turns whose pauses began while somebody waited.

A newcomer that waits meets such pauses. Patients that nobody tells of come between two visits then; in quieter times they come
while the doctor is idle anyway.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
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
    lines = {served: _line(pool, turns, served) for served in {turn.served for turn, _ in turns}}
    found = []
    for one in turns:
        ago, _, _, idle, served = one[0]
        if idle is not None:
            joined, taken = lines[served]
            began = -ago - idle
            # Of those that were taken from then on, the next had joined first.
            place = bisect_left(taken, began)
            if place < len(taken) and joined[place] < began:
                found.append(one)
    return found


def _line(pool: DoctorPool, turns: Sequence[WeightedTurn], served: frozenset[int] | None) -> _Line:
    """Without patients that others overtook: the end of their wait was told late, or they could not be seen yet."""
    own = [turn for turn, _ in reversed(turns) if served is None or turn.plan_id in served]
    known = [(-ago - waited, -ago) for ago, _, waited, _, _ in own if waited is not None]
    latest = list(accumulate([joined for joined, _ in known], max))
    line = [one for one, last in zip(known, latest, strict=True) if one[0] == last]
    if pool.waiting:
        # Of those that wait now the first to join says it all.
        last = max([-turn.ago - (turn.waited_seconds or 0.0) for turn in own], default=-float("inf"))
        waiting = [
            waited
            for plan_id, waited in zip(pool.waiting, pool.waited, strict=False)
            if -waited >= last and (served is None or plan_id in served)
        ]
        line += [(-max(waiting), 0.0)] if waiting else []
    return _Line([joined for joined, _ in line], [taken for _, taken in line])
