"""The interval beside the estimate: as wide as its position in the line needs, and corrected by its own misses.

Where more than a tenth of a plan's waits fell outside at one end, that end moves out. Each miss is judged by the interval that
was given, corrections included, so the correction settles where a tenth is outside: the adaptive conformal inference of Gibbs
and Candès (2021), over a record of the last waits. Few waits move it little.
"""

from bisect import bisect_right
from math import ceil, exp
from typing import NamedTuple

from frontdesk.queues.estimate.model import WaitEstimate

# By the number of patients ahead, at least: what the lower and the upper half of the runs' interval are multiplied by.
WIDTHS = ((0, 1.0, 1.2), (1, 1.05, 1.2), (2, 1.05, 1.3), (4, 1.15, 1.25), (8, 1.45, 1.15), (16, 1.7, 1.3))
ALLOWED = 0.1  # the share of the waits at either side of the interval
# A half width is multiplied by e to the power of GAIN times the share that is too much. It was chosen on 36 simulated days.
GAIN = 20.0
FEW_WAITS = 300.0  # a record of so many waits counts half
NARROWEST, WIDEST = 0.5, 3.0
MOST_WAITS = 2000.0  # of a record: beyond, older waits count less


class IntervalRecord(NamedTuple):
    """Of a plan: how many waits were compared with the interval given before, and how many of them were shorter or longer.

    Older waits count less, so these are no whole numbers.
    """

    waits: float = 0.0
    shorter: float = 0.0
    longer: float = 0.0

    def with_wait(self, seconds: float, low_seconds: int, high_seconds: int) -> "IntervalRecord":
        """`low_seconds`, `high_seconds`: the interval that was given, both inclusive; `seconds`: the wait that came."""
        kept = min(1.0, MOST_WAITS / (self.waits + 1))
        return IntervalRecord(
            (self.waits + 1) * kept,
            (self.shorter + (seconds < low_seconds)) * kept,
            (self.longer + (seconds >= high_seconds + 1)) * kept,
        )

    def factors(self) -> tuple[float, float]:
        """What the lower and the upper half of an interval are multiplied by, to miss as often as allowed."""
        below, above = (
            exp(GAIN * (missed - ALLOWED * self.waits) / (self.waits + FEW_WAITS))
            for missed in (self.shorter, self.longer)
        )
        return min(WIDEST, max(NARROWEST, below)), min(WIDEST, max(NARROWEST, above))


def with_interval(
    seconds: float, low: float, high: float, *, ahead: int, record: IntervalRecord
) -> WaitEstimate:
    """The wait in whole seconds, rounded up, with its interval. `low`, `high`: the tenth and ninetieth percentile of the runs;
    `ahead`: the number of patients ahead."""
    _, below, above = WIDTHS[bisect_right(WIDTHS, ahead, key=lambda row: row[0]) - 1]
    corrected = record.factors()
    told = ceil(seconds)
    low = seconds - below * corrected[0] * max(0.0, seconds - low)
    high = seconds + above * corrected[1] * max(0.0, high - seconds)
    return WaitEstimate(told, max(0, min(told, int(low))), max(told, ceil(high)))


def note_wait(
    records: dict[int, IntervalRecord], plan_id: int, seconds: float, low: int | None, high: int | None
) -> None:
    """Compare a wait of the plan with the interval that was given. 0 to 0 is none: a doctor was ready."""
    if low is not None and high:
        records[plan_id] = records.get(plan_id, IntervalRecord()).with_wait(seconds, low, high)
