"""Where the number of doctors on duty is heading. The service knows no rosters: it expects the number
to return to its recent average, as fast as doctors came and went.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp

from frontdesk.queues.estimate.model import RECENT_SECONDS, DutySpan

LEAST_SHARE = 0.5  # of the doctors on duty now: the correction at most doubles a wait


@dataclass(frozen=True, slots=True)
class StaffingTrend:
    """The number of doctors moves from what it is now to `usual`, two thirds of the way in
    `time_constant` seconds.
    """

    usual: float
    time_constant: float
    arrivals_per_second: float

    def corrected(self, wait_seconds: float, doctors: int, visit: float) -> float:
        """The wait that `wait_seconds`, computed with `doctors` doctors all the time, becomes under
        this trend.

        `visit`: the seconds of a mean visit. A doctor that comes on duty takes a patient at once:
        that is worth one visit's time more than the mere number says.
        """
        gap = (self.usual - doctors) * self.time_constant
        low = 0.0
        high = wait_seconds * max(1.0, doctors / self.usual)
        for _ in range(30):
            middle = (low + high) / 2
            work = middle * (self.usual + self.arrivals_per_second * visit)
            work -= gap * (1 - exp(-middle / self.time_constant))
            low, high = (middle, high) if work < wait_seconds * doctors else (low, middle)
        return high


def staffing_trend(spans: Iterable[DutySpan]) -> StaffingTrend | None:
    """Where the number of doctors is heading, from recent arrivals and departures; None if no
    doctor has left recently.

    The service knows no rosters. It expects the number to return to its recent average, as fast as
    doctors came and went.

    >>> from frontdesk.queues.estimate.model import DutySpan
    >>> stays = DutySpan("a", from_ago=7200, until_ago=0)
    >>> leaves = DutySpan("b", from_ago=7200, until_ago=3600)
    >>> staffing_trend([stays]) is None
    True
    >>> round(staffing_trend([stays, leaves]).usual, 2)
    0.75
    """
    recent = [
        DutySpan(span.doctor, min(span.from_ago, RECENT_SECONDS), span.until_ago)
        for span in spans
        if span.until_ago < RECENT_SECONDS
    ]
    on_duty = sum(span.from_ago - span.until_ago for span in recent)
    departures = sum(span.until_ago > 0 for span in recent)
    by_start = sorted(recent, key=lambda span: -span.from_ago)
    attended = _attended(by_start)
    if not departures or attended <= 0 or on_duty <= 0:
        return None
    away, returns = _absences(by_start)
    now = {span.doctor for span in recent if span.until_ago <= 0}
    away_now = len({span.doctor for span in recent} - now)
    return_rate = returns / away if away > 0 else 0.0
    leaving_rate = departures / on_duty
    # More doctors before than now: they may come back, or the day may be ending. Each possibility
    # counts half.
    balanced = return_rate * (away_now + len(now)) / (leaving_rate + return_rate)
    expected = (on_duty / attended + balanced) / 2
    return StaffingTrend(
        usual=max(expected, LEAST_SHARE * len(now)),
        time_constant=1 / (leaving_rate + return_rate),
        arrivals_per_second=return_rate * away_now,
    )


def _attended(by_start: Sequence[DutySpan]) -> float:
    """For how many seconds at least one doctor was on duty."""
    total = 0.0
    covered_until = float("inf")
    for span in by_start:
        start = min(span.from_ago, covered_until)
        if start > span.until_ago:
            total += start - span.until_ago
            covered_until = span.until_ago
    return total


def _absences(by_start: Sequence[DutySpan]) -> tuple[float, int]:
    """The seconds that doctors were away after leaving, added up, and the number of returns."""
    by_doctor: defaultdict[str, list[DutySpan]] = defaultdict(list)
    for span in by_start:
        by_doctor[span.doctor].append(span)
    away = 0.0
    returns = 0
    for own in by_doctor.values():
        for before, after in pairwise(own):
            away += max(0.0, before.until_ago - after.from_ago)
            returns += 1
        away += own[-1].until_ago
    return away, returns
