"""The patients of a group's last hours: of which class and priority, and how often they come.

The priority of a newcomer is that of the recent patients of its plan and class. Where these differ,
each run of the simulation gets another one of them.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate, repeat
from operator import attrgetter
from random import Random

from frontdesk.queues.estimate.model import MOST_CLASSES, RECENT_SECONDS, DoctorPool, Newcomer

RATE_SECONDS = 3600.0  # the rate of joining is that of this time

LEAST_KNOWN = 10  # of a plan; with fewer ended waits the line tells of its patients, too

Kind = tuple[int, str | None]  # a plan and a class of its patients
# Of a plan: how many patients of each class and priority.
_Counts = Counter[tuple[str | None, int]]


class RecentPatients:
    """The patients of the last hours, counted by plan, class and priority.

    Those in the line count where little else is known: otherwise one more patient in the line would
    make a newcomer another one. `has_priorities` false: all have the same priority, 0, and nothing
    is counted.
    """

    def __init__(self, pool: DoctorPool) -> None:
        past_priorities = map(attrgetter("priority"), pool.past_waits)
        self.has_priorities = any(pool.priorities) or any(past_priorities)
        self._counts: dict[int, _Counts] = {}
        self._in_line: dict[int, _Counts] = {}
        if self.has_priorities:
            self._counts = _ended(pool)
            self._in_line = _waiting(pool)
        for plan_id, waiting in self._in_line.items():
            ended = self._counts.setdefault(plan_id, Counter())
            if ended.total() < LEAST_KNOWN:
                self._counts[plan_id] = ended + waiting

    @property
    def kinds(self) -> set[Kind]:
        return {
            (plan_id, patient_class)
            for plan_id, counts in self._counts.items()
            for patient_class, _ in counts
        }

    def usual_priority(self, kind: Kind) -> int:
        """The most frequent priority of the kind, the highest of several; 0 of an unknown one."""
        if not self.has_priorities:
            return 0
        counts = self._priorities(kind)
        return max(counts, key=lambda priority: (counts[priority], priority), default=0)

    def priorities(self, newcomer: Newcomer, runs: int) -> tuple[int, ...]:
        """By run, the newcomer's priority: evenly spread over those of the recent patients of its
        class, in an order that chance has fixed. Without a class, or where no patient had it: over
        those of the plan.
        """
        counts = self._priorities(newcomer) if self.has_priorities else {}
        if len(counts) < 2:
            only = next(iter(counts), 0)
            return (only,) * runs
        ordered = sorted(counts, reverse=True)
        upto = list(accumulate(counts[priority] for priority in ordered))
        step = upto[-1] / runs
        spread = [ordered[bisect_right(upto, (run + 0.5) * step)] for run in range(runs)]
        Random(20160932).shuffle(spread)  # noqa: S311 - no secret
        return tuple(spread)

    def shares_above(self, plan_id: int, priority: int) -> dict[Kind, float]:
        """The share of each kind among the plan's patients, counted with a higher priority only."""
        counts = self._counts.get(plan_id, Counter())
        total = counts.total()
        shares = defaultdict[Kind, float](float)
        for (patient_class, own), count in counts.items():
            if own > priority:
                shares[plan_id, patient_class] += count / total
        return shares

    def _priorities(self, kind: Kind) -> Counter[int]:
        """How many patients of the kind had each priority: of its class, else of its plan."""
        plan_id, patient_class = kind
        of_plan = self._counts.get(plan_id, Counter())
        if patient_class is not None:
            for counts in (of_plan, self._in_line.get(plan_id, Counter())):
                if of_class := _by_priority(counts, patient_class):
                    return of_class
        return _by_priority(of_plan)


def _by_priority(counts: _Counts, patient_class: str | None = None) -> Counter[int]:
    """`patient_class` None: of any class."""
    found = Counter[int]()
    for (own, priority), count in counts.items():
        if patient_class in (None, own):
            found[priority] += count
    return found


def _ended(pool: DoctorPool) -> dict[int, _Counts]:
    counts = defaultdict[int, _Counts](Counter)
    for wait in pool.past_waits:
        if wait.plan_id is not None:
            counts[wait.plan_id][wait.patient_class, wait.priority] += 1
    return counts


def _waiting(pool: DoctorPool) -> dict[int, _Counts]:
    counts = defaultdict[int, _Counts](Counter)
    classes = pool.classes or repeat(None)
    priorities = pool.priorities or repeat(0)
    for plan_id, patient_class, priority in zip(pool.waiting, classes, priorities, strict=False):
        counts[plan_id][patient_class, priority] += 1
    return counts


def recent_classes(pool: DoctorPool) -> dict[int, list[str]]:
    """By plan, the classes of its patients of the last hours: the most frequent first, at most
    MOST_CLASSES.

    >>> classes = ["new", "urgent", "urgent", None]
    >>> recent_classes(DoctorPool([], waiting=[7, 7, 7, 8], past=[], classes=classes))
    {7: ['urgent', 'new']}
    """
    if not any(pool.classes) and not any(wait.patient_class for wait in pool.past_waits):
        return {}  # as in most groups: a long line need not be counted
    by_plan = defaultdict[int, Counter[str]](Counter)
    for counts in (_ended(pool), _waiting(pool)):
        for plan_id, of_plan in counts.items():
            for (patient_class, _), count in of_plan.items():
                if patient_class is not None:
                    by_plan[plan_id][patient_class] += count
    return {
        plan_id: sorted(counts, key=lambda name: (-counts[name], name))[:MOST_CLASSES]
        for plan_id, counts in by_plan.items()
    }


def joins(pool: DoctorPool) -> Iterator[tuple[float, Kind]]:
    """How many seconds ago patients joined, with their kinds; not those that left."""
    classes = pool.classes or repeat(None)
    for waited, plan_id, patient_class in zip(pool.waited, pool.waiting, classes, strict=False):
        yield waited, (plan_id, patient_class)
    for doctor in pool.doctors:
        for visit in doctor.visits:
            kind = (visit.plan_id, visit.patient_class)
            yield visit.elapsed_seconds + (visit.waited_seconds or 0.0), kind
    for past in pool.past:
        kind = (past.plan_id, past.patient_class)
        yield past.ended_seconds_ago + past.seconds + (past.waited_seconds or 0.0), kind


def visit_rates(pool: DoctorPool, *, known_for: float) -> dict[int, float]:
    """By plan, how many of its patients are seen in a second. `known_for`: for how many seconds back
    all visits are known.
    """
    span = min(RECENT_SECONDS, known_for)
    if span <= 0:
        return {}
    started = [(past.ended_seconds_ago + past.seconds, past.plan_id) for past in pool.past]
    for doctor in pool.doctors:
        started += [(visit.elapsed_seconds, visit.plan_id) for visit in doctor.visits]
    counts = Counter(plan_id for ago, plan_id in started if ago <= span)
    return {plan_id: count / span for plan_id, count in counts.items()}
