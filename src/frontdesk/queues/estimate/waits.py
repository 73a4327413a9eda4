"""The wait estimate itself: the simulated wait, corrected for the doctors that are expected to come
or go, and its interval, as wide as its position in the line needs and as its record says.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, exp

from frontdesk.queues.estimate.model import (
    NOBODY_ON_DUTY,
    RECENT_SECONDS,
    DoctorPool,
    DutySpan,
    IntervalRecord,
    Newcomer,
    WaitEstimate,
)
from frontdesk.queues.estimate.simulation import QueueSimulation

# By the number of patients ahead, at least: what the lower and the upper half of the runs' interval
# are multiplied by.
WIDTHS = (
    (0, 1.0, 1.2),
    (1, 1.05, 1.2),
    (2, 1.05, 1.3),
    (4, 1.15, 1.25),
    (8, 1.45, 1.15),
    (16, 1.7, 1.3),
)
LEAST_SHARE = 0.5  # of the doctors on duty now: the correction at most doubles a wait


def estimate_waits(
    pool: DoctorPool, plan_ids: Collection[int], records: Mapping[int, IntervalRecord] | None = None
) -> dict[int, WaitEstimate]:
    """By plan: whole seconds, rounded up; 0 if a doctor is ready for the newcomer, -1 if none is on
    duty for the plan.

    The doctors of a provider group serve all its plans, or some of them, in the order of arrival.
    So the patients of sibling plans that share doctors are served before the newcomer. `records`:
    by plan, how its intervals have held.

    >>> from frontdesk.queues.estimate.model import Doctor
    >>> estimate_waits(DoctorPool([Doctor(None, 1, ())], waiting=[], past=[]), [7])
    {7: WaitEstimate(seconds=0, low_seconds=0, high_seconds=0)}
    """
    simulation = QueueSimulation(pool, plan_ids)
    doctors = sum(doctor.capacity > 0 for doctor in pool.doctors)
    trend = staffing_trend(pool.duty) if doctors else None
    known = records or {}
    estimates = {}
    newcomers = [Newcomer(plan_id) for plan_id in plan_ids]
    for (plan_id, _), simulated in simulation.waits(newcomers).items():
        if simulated is None:
            estimates[plan_id] = WaitEstimate(NOBODY_ON_DUTY, None, None)
            continue
        seconds, low, high, ahead = simulated
        if trend and high:
            visit = simulation.mean_seconds(plan_id)
            parts = (seconds, low, high)
            seconds, low, high = (
                trend.corrected(part, doctors, visit) if part else 0.0 for part in parts
            )
        record = known.get(plan_id, IntervalRecord())
        estimates[plan_id] = with_interval(seconds, low, high, ahead=ahead, record=record)
    return estimates


def with_interval(
    seconds: float, low: float, high: float, *, ahead: int, record: IntervalRecord
) -> WaitEstimate:
    """The wait in whole seconds, rounded up, with its interval. `low`, `high`: the tenth and
    ninetieth percentile of the runs; `ahead`: the number of patients ahead.

    >>> with_interval(300.0, 200.0, 500.0, ahead=3, record=IntervalRecord())
    WaitEstimate(seconds=300, low_seconds=195, high_seconds=560)
    """
    _, below, above = WIDTHS[bisect_right(WIDTHS, ahead, key=lambda row: row[0]) - 1]
    corrected = record.factors()
    rounded = ceil(seconds)
    low = seconds - below * corrected[0] * max(0.0, seconds - low)
    high = seconds + above * corrected[1] * max(0.0, high - seconds)
    return WaitEstimate(rounded, max(0, min(rounded, int(low))), max(rounded, ceil(high)))


@dataclass(frozen=True, slots=True)
class StaffingTrend:
    """The number of doctors moves from what it is now to `usual`, two thirds of the way in
    `time_constant` seconds.
    """

    usual: float
    time_constant: float
    arrivals_per_second: float

    def corrected(self, wait_seconds: float, doctors: int, visit_seconds: float) -> float:
        """The wait that `wait_seconds`, computed with `doctors` doctors all the time, becomes under
        this trend.

        A doctor that comes on duty takes a patient at once: that is worth one visit's time more
        than the mere number says.
        """
        gap = (self.usual - doctors) * self.time_constant
        low = 0.0
        high = wait_seconds * max(1.0, doctors / self.usual)
        for _ in range(30):
            middle = (low + high) / 2
            work = middle * (self.usual + self.arrivals_per_second * visit_seconds)
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
