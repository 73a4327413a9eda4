"""An interval that learns from its own misses: where more than a tenth of the waits fell outside at one end, that end moves out.

Each miss is judged by the interval that was told, corrections included, so the correction settles where a tenth is outside: the
adaptive conformal inference of Gibbs and Candès (2021), over a record of the last waits. Few waits move it little. While few are
known, the upper end is further out: the first visits that end are the short ones.
"""

from math import ceil, exp
from typing import NamedTuple

from frontdesk.queues.estimate.model import WaitEstimate

ALLOWED = 0.1  # the share of the waits at either side of the interval
# A half width is multiplied by e to the power of GAIN times the share that is too much. It was chosen on 36 simulated days.
GAIN = 20.0
FEW_WAITS = 300.0  # a record of so many waits counts half
UNKNOWN_ABOVE = 0.2  # without any, the upper half width is multiplied by e to the power of this
NARROWEST, WIDEST = 0.5, 3.0
MOST_WAITS = 2000.0  # of a record: beyond, older waits count less


class IntervalRecord(NamedTuple):
    """Of a plan: how many waits were compared with the interval told before, and how many of them were shorter or longer.

    Older ones count less, so these are no whole numbers.
    """

    waits: float = 0.0
    shorter: float = 0.0
    longer: float = 0.0

    def with_wait(self, seconds: float, low_seconds: int, high_seconds: int) -> "IntervalRecord":
        """`low_seconds`, `high_seconds`: the interval that was told, both inclusive; `seconds`: the wait that came."""
        kept = min(1.0, MOST_WAITS / (self.waits + 1))
        return IntervalRecord(
            (self.waits + 1) * kept,
            (self.shorter + (seconds < low_seconds)) * kept,
            (self.longer + (seconds >= high_seconds + 1)) * kept,
        )

    def corrected(self, estimate: WaitEstimate) -> WaitEstimate:
        """The same estimate with ends that would have missed as often as allowed."""
        told, low, high = estimate
        if low is None or high is None:
            return estimate
        below, above = self._factor(self.shorter, 0.0), self._factor(self.longer, UNKNOWN_ABOVE)
        return WaitEstimate(
            told, max(0, int(told - below * (told - low))), told + ceil(above * (high - told))
        )

    def _factor(self, missed: float, unknown: float) -> float:
        surplus = missed - ALLOWED * self.waits
        exponent = (GAIN * surplus + unknown * FEW_WAITS) / (self.waits + FEW_WAITS)
        return min(WIDEST, max(NARROWEST, exp(exponent)))


NO_RECORD = IntervalRecord()


def note_wait(
    records: dict[int, IntervalRecord], plan_id: int, seconds: float, low: int | None, high: int | None
) -> None:
    """Compare a wait of the plan with the ends of the interval that was told, if one was."""
    if low is not None and high is not None:
        records[plan_id] = records.get(plan_id, NO_RECORD).with_wait(seconds, low, high)
