"""How patients leave the line before they are seen: the rate by the time waited, and by class."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import attrgetter

from frontdesk.queues.estimate.model import DoctorPool, PastWait

LEAVING_STEPS = 8  # of the rate at which patients leave, at most; each has as many leavers at least
CLASS_LEAVERS = 4.0  # so many leavers at all patients' rate are assumed of a class


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

    def rates_by_class(self, pool: DoctorPool) -> dict[str | None, float]:
        """By class, how fast its patients leave, as a multiple of all patients' rate: the number
        that left by the number that would have left at that rate. Empty where no class is known.
        """
        classes = list(map(attrgetter("patient_class"), pool.past_waits))
        if self.fastest == 0 or not any(classes):
            return {}
        left = dict.fromkeys(classes, CLASS_LEAVERS)
        expected = dict.fromkeys(classes, CLASS_LEAVERS)
        for wait in pool.past_waits:
            left[wait.patient_class] += wait.left
            expected[wait.patient_class] += self.spent_at(wait.seconds)
        for patient_class, waited in zip(pool.classes, pool.waited, strict=False):
            if patient_class in expected:
                expected[patient_class] += self.spent_at(waited)
        return {name: left[name] / expected[name] for name in left}
