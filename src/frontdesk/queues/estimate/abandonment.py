"""What the past tells of patients that leave before their turn."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from frontdesk.queues.estimate.model import PastWait

LEAVERS_PER_STEP = 8
MAX_STEPS = 8
WAITING_PART = 4
FOREVER = 1e9


class AbandonmentModel:
    """The rate at which patients leave, by seconds waited: a staircase with about as many leavers on each step.

    `spent_at` is its integral, `fastest` its largest value. A patient stays while it is below an exponential draw with mean 1.
    """

    def __init__(self, past: Sequence[PastWait], waiting: Sequence[float]) -> None:
        """`waiting`: how long the patients in the line have waited so far; that they have not left counts too."""
        leavers = sorted([max(1.0, seconds) for seconds, left in past if left])
        steps = max(1, min(MAX_STEPS, len(leavers) // LEAVERS_PER_STEP))
        ends = sorted({leavers[len(leavers) * i // steps] for i in range(1, steps)})
        self._starts = [0.0, *ends]
        # Only a part of the line: a long one must not outweigh the few past waits.
        waits = sorted([*(wait.seconds for wait in past), *waiting[: len(past) // WAITING_PART]])
        sums = [0.0, *accumulate(waits)]
        self._rates = [0.0]
        self._spent = [0.0]
        for start, end in pairwise([*self._starts, FOREVER]):
            first, last = bisect_right(waits, start), bisect_right(waits, end)
            waited = sums[last] - sums[first] + end * (len(waits) - last) - start * (len(waits) - first)
            left = bisect_right(leavers, end) - bisect_right(leavers, start)
            # Where nobody has waited yet, the rate of the step before holds.
            self._rates.append(left / waited if waited > 0 else self._rates[-1])
            self._spent.append(self._spent[-1] + self._rates[-1] * (end - start))
        self.fastest = max(self._rates)

    def spent_at(self, waited_seconds: float) -> float:
        step = bisect_right(self._starts, waited_seconds)
        return self._spent[step - 1] + self._rates[step] * (waited_seconds - self._starts[step - 1])
