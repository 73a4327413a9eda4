"""A late feed: the service knows the queue as it was. The runs play it forward to now, with
patients that joined unseen.

The delay is the time between an event and its arrival.
"""

from collections.abc import Iterable
from dataclasses import replace
from math import exp
from random import Random
from statistics import median_low
from typing import NamedTuple

from frontdesk.queues.estimate.arrivals import RATE_SECONDS, Kind, joins
from frontdesk.queues.estimate.model import Doctor, DoctorPool, DutySpan

MOST_UNSEEN = 100  # the joins of one run
KNOWN_STARTS = 20  # the latest starts of visits in progress, which give the delay of the feed
# A start with a larger delay was loaded afterwards, or corrected by hand, and is ignored.
MOST_LATE_SECONDS = 900.0


class UnseenJoin(NamedTuple):
    """A patient that the feed has not reported yet joined `at` seconds after the last news."""

    at: float
    kind: Kind


def usual_lateness(starts: Iterable[tuple[float, float]]) -> float:
    """The delay of the feed: the lower median over the starts of visits; 0 with fewer than two
    arrivals.

    `starts`: when each arrived, on any scale, and how many seconds after its time. Of those that
    arrived together the latest start counts: a state that is loaded at once, as by `frontdesk demo`
    or on going live, is no late feed.

    >>> usual_lateness([(0.0, 30.0), (60.0, 40.0), (120.0, 50.0)])
    40.0
    >>> usual_lateness([(0.0, 30.0)])
    0.0
    """
    arrivals: dict[float, float] = {}
    for arrived_at, late in starts:
        if late <= MOST_LATE_SECONDS:
            arrivals[arrived_at] = min(late, arrivals.get(arrived_at, late))
    return median_low(arrivals.values()) if len(arrivals) > 1 else 0.0


def as_reported(pool: DoctorPool) -> DoctorPool:
    """The pool at the moment of the last news: every time is earlier by the lateness."""

    def earlier(seconds: float) -> float:
        return max(0.0, seconds - pool.feed_late_seconds)

    late = pool.feed_late_seconds
    # The rest, at the last news, of the pauses that have ended since.
    ended = {name: late - ago for name, ago in pool.resumed if ago < late}

    def reported(doctor: Doctor) -> Doctor:
        visits = [
            one._replace(elapsed_seconds=earlier(one.elapsed_seconds)) for one in doctor.visits
        ]
        on_duty = None if doctor.on_duty_seconds is None else earlier(doctor.on_duty_seconds)
        paused = doctor.paused_seconds
        return replace(
            doctor,
            visits=tuple(visits),
            on_duty_seconds=on_duty,
            paused_seconds=paused + late if paused > 0 else ended.get(doctor.name or "", 0.0),
        )

    return replace(
        pool,
        doctors=[reported(doctor) for doctor in pool.doctors],
        past=[one._replace(ended_seconds_ago=earlier(one.ended_seconds_ago)) for one in pool.past],
        waited=[earlier(waited) for waited in pool.waited],
        duty=[DutySpan(name, earlier(start), earlier(end)) for name, start, end in pool.duty],
        resumed=[(name, ago - late) for name, ago in pool.resumed if ago >= late],
    )


def unseen_joins(pool: DoctorPool, runs: int, *, known_for: float) -> list[list[UnseenJoin]]:
    """By run, the patients that joined since the last news: as often, and of the kinds, as before
    it.

    `known_for`: for how many seconds back all joins are known.
    """
    span = min(RATE_SECONDS, known_for)
    late = pool.feed_late_seconds
    recent = sorted([join for join in joins(pool) if join[0] <= span], key=_join_order)
    if not recent or span <= 0:
        return [[] for _ in range(runs)]
    counts = _poisson_parts(round(late * len(recent) / span, 3), runs)
    kinds = [kind for _, kind in recent]
    return [
        [
            UnseenJoin(late * (number + 0.5) / count, kinds[(13 * run + 7 * number) % len(kinds)])
            for number in range(count)
        ]
        for run, count in enumerate(counts)
    ]


def _join_order(join: tuple[float, Kind]) -> tuple[float, int, str]:
    ago, (plan_id, patient_class) = join
    return ago, plan_id, patient_class or ""


def _poisson_parts(mean: float, runs: int) -> list[int]:
    """A count for each run: evenly spread over the Poisson distribution, in an order that chance
    has fixed.
    """
    counts = []
    count = 0
    below = term = exp(-mean)
    for run in range(runs):
        while below < (run + 0.5) / runs and count < MOST_UNSEEN:
            count += 1
            term *= mean / count
            below += term
        counts.append(count)
    Random(20160931).shuffle(counts)  # noqa: S311 - no secret
    return counts
