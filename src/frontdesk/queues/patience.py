"""How many of those who wait leave before their turn, from how long earlier patients waited; pure, no clock."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from frontdesk.queues.pool import PastWait

LEAVERS_PER_STEP = 8
MOST_STEPS = 8
WAITING_PART = 4
FOREVER = 1e9


class AbandonmentModel:
    """The rate of leaving by time waited, a staircase with about as many leavers on each step, added up: `spent_at`.

    Patients stay while what they have spent is below an exponential draw with mean 1.
    """

    def __init__(self, past: Sequence[PastWait], waiting: Sequence[float]) -> None:
        """`waiting`: how long those who wait now have waited; that they have not left tells something, too."""
        leavers = sorted(max(1.0, wait.seconds) for wait in past if wait.left)
        self.anyone_leaves = bool(leavers)
        steps = max(1, min(MOST_STEPS, len(leavers) // LEAVERS_PER_STEP))
        ends = sorted({leavers[len(leavers) * i // steps] for i in range(1, steps)})
        self._starts = [0.0, *ends]
        # Only some of those who wait: the few past waits that are told must not drown in a long line.
        waits = [*(wait.seconds for wait in past), *waiting[: len(past) // WAITING_PART]]
        self._rates = [0.0]
        self._spent = [0.0]
        for start, end in pairwise([*self._starts, FOREVER]):
            waited = sum(min(wait, end) - start for wait in waits if wait > start)
            left = sum(start < wait <= end for wait in leavers)
            # Where nobody has waited yet, they leave as they did just before.
            self._rates.append(left / waited if waited > 0 else self._rates[-1])
            self._spent.append(self._spent[-1] + self._rates[-1] * (end - start))

    def spent_at(self, waited_seconds: float) -> float:
        step = bisect_right(self._starts, waited_seconds)
        return self._spent[step - 1] + self._rates[step] * (waited_seconds - self._starts[step - 1])
