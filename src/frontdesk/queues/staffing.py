"""How many doctors there will be soon, from who came and went lately: few on duty become more, many become fewer; pure.

It knows no rosters: what it expects is that the number returns to what was usual lately, as fast as doctors came and went.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp

from frontdesk.queues.pool import DutySpan

LATELY_SECONDS = 4 * 3600.0
HALVINGS = 30
LEAST_SHARE = 0.5  # of those on duty now: a wait is never told as more than twice what it is with them


@dataclass(frozen=True, slots=True)
class Staffing:
    """The number of doctors goes from what it is now to `usual`, two thirds of the way in `settles_seconds`."""

    usual: float
    settles_seconds: float
    comings_per_second: float

    def stretched(self, wait_seconds: float, doctors: int, visit_seconds: float) -> float:
        """The wait, computed for so many doctors all the time, when their number changes meanwhile.

        Who comes on duty takes a patient at once, which is worth a visit's time of one doctor more than their mere number.
        """
        gap = (self.usual - doctors) * self.settles_seconds
        low, high = 0.0, wait_seconds * max(1.0, doctors / self.usual)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            work = middle * (self.usual + self.comings_per_second * visit_seconds)
            work -= gap * (1 - exp(-middle / self.settles_seconds))
            low, high = (middle, high) if work < wait_seconds * doctors else (low, middle)
        return high


def staffing(spans: Iterable[DutySpan]) -> Staffing | None:
    """None while nobody has gone off duty lately: nothing is known of changes then."""
    recent = [
        DutySpan(span.doctor, min(span.from_ago, LATELY_SECONDS), span.until_ago)
        for span in spans
        if span.until_ago < LATELY_SECONDS
    ]
    on_duty = sum(span.from_ago - span.until_ago for span in recent)
    gone = sum(span.until_ago > 0 for span in recent)
    attended = _attended(recent)
    if not gone or attended <= 0 or on_duty <= 0:
        return None
    away, back = _away(recent)
    now = {span.doctor for span in recent if span.until_ago <= 0}
    away_now = len({span.doctor for span in recent} - now)
    return_rate, leaving_rate = back / away if away > 0 else 0.0, gone / on_duty
    # Lately more than now may mean that they come back, or that the day ends: half of the one, half of the other.
    balanced = return_rate * (away_now + len(now)) / (leaving_rate + return_rate)
    expected = (on_duty / attended + balanced) / 2
    return Staffing(
        usual=max(expected, LEAST_SHARE * len(now)),
        settles_seconds=1 / (leaving_rate + return_rate),
        comings_per_second=return_rate * away_now,
    )


def _attended(spans: Sequence[DutySpan]) -> float:
    """For how long at least one doctor was on duty."""
    total, covered_until = 0.0, float("inf")
    for span in sorted(spans, key=lambda span: -span.from_ago):
        start = min(span.from_ago, covered_until)
        if start > span.until_ago:
            total += start - span.until_ago
            covered_until = span.until_ago
    return total


def _away(spans: Sequence[DutySpan]) -> tuple[float, int]:
    """For how long doctors who had gone were away, all together, and how many came back."""
    by_doctor: defaultdict[str, list[DutySpan]] = defaultdict(list)
    for span in sorted(spans, key=lambda span: -span.from_ago):
        by_doctor[span.doctor].append(span)
    away, back = 0.0, 0
    for own in by_doctor.values():
        for before, after in pairwise(own):
            away += max(0.0, before.until_ago - after.from_ago)
            back += 1
        away += own[-1].until_ago
    return away, back
