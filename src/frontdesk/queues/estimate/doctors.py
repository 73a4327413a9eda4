"""Learns from a group's past visits: the delay of reported ends, and the pauses of doctors.

`Turns` follows the known visits once, in the order of their starts. A doctor that takes a patient
has ended the previous visit, even if the feed reports its end later: this delay shows where a
patient waited. A pause begins when a doctor has room, and ends when the doctor is ready for the
next one: notes, a short break, a visit that the feed does not report. Times in `Turns` are seconds
before now, negative.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from math import inf
from operator import itemgetter, mul
from typing import NamedTuple

from frontdesk.queues.estimate.arrivals import Kind, RecentPatients
from frontdesk.queues.estimate.distributions import POINTS, Lengths, Point, curve, recency_weights
from frontdesk.queues.estimate.model import (
    KNOWN_VISITS,
    LEAST_SECONDS,
    READY_SECONDS,
    SHORTEST_SECONDS,
    Doctor,
    DoctorPool,
)

MOST_TURNS = 120  # the latest that are followed
IN_TIME_WEIGHT = 2.0  # number of ends reported in time that are assumed before any is known
# Number of pauses of no length that are assumed before any is known; 2 made all of them too short.
READY_WEIGHT = 0.5
LONGEST_SECONDS = 7200.0  # a longer pause counts as this: the end of the duty was forgotten
# A pause unlike all known ones: its share, and its mean from now on. It counts only against a
# doctor that is passed over or lets a patient wait. The mean is at least as long as a patient has
# waited beside the doctor: the longer an absence has lasted, the longer it is expected to last.
RARE_SHARE = 0.01
RARE_SECONDS = 600.0
PAUSE_SPREAD = 0.3  # a reported pause ends up to this share earlier or later than told

# Start, end, doctor, kind of patient, seconds waited, place among the past visits (-1: in progress).
_Visit = tuple[float, float, str, Kind, float | None, int]


class Turn(NamedTuple):
    """A doctor took a patient `ago` seconds ago. `idle_seconds`: for how long the doctor had had
    room since a visit.

    None if that is unknown, as at the start of a shift or after a reported pause. The latter took
    `reported_seconds` at most, from the visit before it; 0 without one.
    """

    ago: float
    kind: Kind
    waited_seconds: float | None
    idle_seconds: float | None
    reported_seconds: float


class _Work:
    """The visits of a doctor, followed in the order of time. `capacity` None: the doctor is off
    duty now.
    """

    def __init__(
        self,
        capacity: int | None = None,
        duty_starts: Sequence[float] = (),
        pause_ends: Sequence[float] = (),
    ) -> None:
        self.capacity = capacity
        self.duty_starts = duty_starts
        self.pause_ends = pause_ends  # of the reported pauses
        self.ends: list[float] = []  # of the visits in progress
        # When a visit last began or ended, or the doctor came on duty or back from a pause.
        self.changed_at = -inf
        self.after_visit = False
        self.reported_seconds = 0.0  # from the last visit to the end of a reported pause after it
        self.last_visit = -1
        self.last_end = -inf

    def follow_until(self, at: float) -> float:
        """Go on to just before `at`: end visits, begin duties, end reported pauses. Returns since
        when the doctor has had room; `at` itself without room.
        """
        if over := [end for end in self.ends if end <= at]:
            self.changed_at = max(over)
            self.ends = [end for end in self.ends if end > at]
        elif len(self.ends) >= (self.capacity or 1):
            return at
        for start in self.duty_starts:
            if self.changed_at < start <= at:
                self.changed_at = start
                self.after_visit = False
        for end in self.pause_ends:
            if self.changed_at < end <= at:
                self.reported_seconds = end - self.changed_at if self.after_visit else 0.0
                self.changed_at = end
                self.after_visit = False
        return self.changed_at


class Turns:
    """The turns of a pool, `taken`, the latest first; and `past`, its visits with corrected ends.

    A visit ends when its doctor takes the next patient, if its own end was reported later. Where no
    patient waited to show that, the visit is shorter by `late_seconds`, the mean delay of ends;
    `late_ends`: the distribution of the delays, None where ends are in time. `idle_seconds`: for
    how long each doctor that has room has had it. `horizon`: for how many seconds back all visits
    are known.
    """

    def __init__(self, pool: DoctorPool) -> None:
        self.past = list(pool.past)
        visits = sorted(_visits(pool), key=itemgetter(0))[-MOST_TURNS:]
        self.horizon = _horizon(pool)
        work = _staff(pool)
        overruns = dict[int, float]()
        if len(visits) == MOST_TURNS:
            self.horizon = min(self.horizon, -visits[0][0])
        taken = []
        for start, end, name, kind, waited, place in visits:
            doctor = work.get(name) or work.setdefault(name, _Work())
            since = doctor.follow_until(start)
            idle = start - since if doctor.after_visit and since >= -self.horizon else None
            pause = (
                doctor.reported_seconds if since - doctor.reported_seconds >= -self.horizon else 0
            )
            taken.append(Turn(-start, kind, waited, idle, pause))
            if doctor.capacity == 1 and doctor.last_visit >= 0:
                late = max(0.0, doctor.last_end - start)
                if waited is not None and waited >= start - doctor.last_end:
                    overruns[doctor.last_visit] = late
                if late:
                    self._end_visit(doctor.last_visit, start)
            doctor.ends = [end] if doctor.capacity == 1 else [*doctor.ends, end]
            doctor.changed_at = start
            doctor.after_visit = True
            doctor.reported_seconds = 0.0
            doctor.last_visit = place
            doctor.last_end = end
        self.taken = taken[::-1]
        self._learn_late_ends(overruns)
        self.idle_seconds = {
            doctor.name: min(self.horizon, -work[doctor.name].follow_until(0.0))
            for doctor in pool.doctors
            if doctor.name in work and looks_free(doctor)
        }

    def _end_visit(self, place: int, at: float) -> None:
        visit = self.past[place]
        start = -visit.ended_seconds_ago - visit.seconds
        self.past[place] = visit._replace(seconds=at - start, ended_seconds_ago=-at)

    def _learn_late_ends(self, overruns: dict[int, float]) -> None:
        """Take the mean delay off the visits without a known delay of their own."""
        self.late_ends = None
        self.late_seconds = 0.0
        if max(overruns.values(), default=0.0) <= LEAST_SECONDS:
            return
        delays = list(overruns.values())[::-1]  # the latest first
        weights = recency_weights(len(delays))
        self.late_ends = Lengths([(0.0, IN_TIME_WEIGHT), *zip(delays, weights, strict=True)])
        self.late_seconds = sum(map(mul, delays, weights)) / (IN_TIME_WEIGHT + sum(weights))
        self.past = [
            visit
            if place in overruns
            else visit._replace(seconds=max(SHORTEST_SECONDS, visit.seconds - self.late_seconds))
            for place, visit in enumerate(self.past)
        ]


def _visits(pool: DoctorPool) -> list[_Visit]:
    visits: list[_Visit] = [
        (-ago - seconds, -ago, doctor, (plan_id, patient_class), waited, place)
        for place, (plan_id, seconds, ago, doctor, waited, patient_class) in enumerate(pool.past)
        if doctor is not None
    ]
    return visits + [
        (-elapsed, inf, doctor.name, (plan_id, patient_class), waited, -1)
        for doctor in pool.doctors
        if doctor.name is not None
        for plan_id, elapsed, waited, patient_class in doctor.visits
    ]


def looks_free(doctor: Doctor) -> bool:
    return len(doctor.visits) < doctor.capacity and doctor.paused_seconds <= 0


def _staff(pool: DoctorPool) -> dict[str, _Work]:
    pause_ends: defaultdict[str, list[float]] = defaultdict(list)
    for name, ago in sorted(pool.resumed, key=itemgetter(1), reverse=True):
        pause_ends[name].append(-ago)
    work = {name: _Work(pause_ends=ends) for name, ends in pause_ends.items()}
    starts: defaultdict[str, list[float]] = defaultdict(list)
    for span in pool.duty:
        starts[span.doctor].append(-span.from_ago)
    for doctor in pool.doctors:
        if doctor.name is not None and doctor.on_duty_seconds is not None:
            duty_starts = [*starts[doctor.name], -doctor.on_duty_seconds]
            work[doctor.name] = _Work(doctor.capacity, duty_starts, pause_ends[doctor.name])
    return work


def _horizon(pool: DoctorPool) -> float:
    """How far back ALL visits are known. Beyond, a doctor that looks idle may have been with a
    patient of another plan.
    """
    ended: defaultdict[int, list[float]] = defaultdict(list)
    for visit in pool.past:
        ended[visit.plan_id].append(visit.ended_seconds_ago)
    return min((max(ago) for ago in ended.values() if len(ago) >= KNOWN_VISITS), default=inf)


class _Evidence(NamedTuple):
    """Signs of a team's patients that its idle doctors pause."""

    waits_now: float  # the longest present wait
    let_wait: Turn | None  # the last patient with a wait that was taken
    chosen_ago: list[float]  # when each idle doctor was chosen for a patient, the latest first
    idle: int  # doctors that look free


def reported_pause(doctor: Doctor, count: int) -> list[float]:
    """The rest of a reported pause as `count` equally likely parts around its expected end: doctors
    come back earlier and later than they say.
    """
    spread = [PAUSE_SPREAD * (2 * (part + 0.5) / count - 1) for part in range(count)]
    return [doctor.paused_seconds * (1 + share) for share in spread]


class Pauses:
    """The pauses of a pool: those that follow a visit, and those that idle doctors may be in.

    A pause can be measured only while a patient waits: a doctor that takes a new patient at once
    may have been ready for long. So most pauses have only an upper bound. The product-limit
    estimator for such data (Lynden-Bell 1971) uses them directly, from the longest pause down.
    """

    def __init__(self, pool: DoctorPool, turns: Turns, patients: RecentPatients) -> None:
        self._pool = pool
        self._turns = turns
        self._patients = patients
        self._points = _points(turns.taken)
        self._evidence: dict[frozenset[int] | None, _Evidence] = {}

    def after_visit(self, count: int) -> list[float] | None:
        """`count` equally likely parts, in order; None where doctors take the next patient at once."""
        reported = _reported_points(self._turns.taken)
        if self._points[-1][0] <= LEAST_SECONDS and not reported:
            return None
        share = sum(weight for _, weight in reported)
        others = [(seconds, weight * (1 - share)) for seconds, weight in self._points]
        return Lengths(others + reported).parts(count)

    def rest(self, doctor: Doctor, count: int) -> list[float] | None:
        """The time until a doctor with room is ready, as `count` equally likely parts; None: the
        doctor is ready.
        """
        if doctor.paused_seconds > 0:
            return reported_pause(doctor, count)
        idle = self._turns.idle_seconds.get(doctor.name or "")
        if idle is None:
            return None
        seen = self._evidence_of(doctor.plan_ids)
        away = 0.0  # the least time that the doctor has been away for, because a patient waited
        beside = min(idle, seen.waits_now)  # for how long a patient has waited beside the doctor
        if beside > READY_SECONDS:
            away = idle
        elif seen.let_wait is not None and idle - seen.let_wait.ago > READY_SECONDS:
            away = idle - seen.let_wait.ago
            beside = min(away, seen.let_wait.waited_seconds or 0.0)
        passed = 0 if doctor.visits else bisect_left(seen.chosen_ago, idle)
        if not (away or passed or self._points[-1][0] > idle):
            return None
        ready = (1 - 1 / (seen.idle + 1)) ** passed
        points = [
            (max(0.0, seconds - idle), weight if seconds > idle else weight * ready)
            for seconds, weight in self._points
            if seconds > away or not away
        ]
        rare = max(RARE_SECONDS, beside)
        points += [(rare * part, RARE_SHARE / POINTS) for part in curve()]
        return Lengths(points).parts(count)

    def _evidence_of(self, plan_ids: frozenset[int] | None) -> _Evidence:
        found = self._evidence.get(plan_ids)
        if found is None:
            found = self._evidence[plan_ids] = self._find_evidence(plan_ids)
        return found

    def _find_evidence(self, plan_ids: frozenset[int] | None) -> _Evidence:
        own = [turn for turn in self._turns.taken if plan_ids is None or turn.kind[0] in plan_ids]
        let_wait = (turn for turn in own if (turn.waited_seconds or 0.0) > READY_SECONDS)
        free = [doctor for doctor in self._pool.doctors if looks_free(doctor)]
        return _Evidence(
            self._longest_wait(own, plan_ids),
            next(let_wait, None),
            [turn.ago for turn in own if turn.idle_seconds],
            sum(doctor.plan_ids == plan_ids for doctor in free),
        )

    def _longest_wait(self, own: Sequence[Turn], plan_ids: frozenset[int] | None) -> float:
        """The longest present wait for these plans. A patient that joined before one of its own or
        of a lower priority that was taken has been overtaken: the end of its wait was not reported,
        or its turn is later.
        """
        pool = self._pool
        priorities = pool.priorities or [0] * len(pool.waiting)
        usual = {kind: self._patients.usual_priority(kind) for kind in {turn.kind for turn in own}}
        joined = [(turn.ago + (turn.waited_seconds or 0.0), usual[turn.kind]) for turn in own]
        overtaken = {
            priority: min((ago for ago, level in joined if level <= priority), default=inf)
            for priority in set(priorities)
        }
        line = zip(pool.waiting, pool.waited, priorities, strict=False)
        for plan_id, waited, priority in line:
            if waited < overtaken[priority] and (plan_ids is None or plan_id in plan_ids):
                return waited
        return 0.0


def _points(latest_first: Sequence[Turn]) -> list[Point]:
    """The lengths of pauses with their shares, in order; none longer than 0 if no pause is known."""
    known = []
    total = READY_WEIGHT
    for turn, weight in zip(latest_first, recency_weights(len(latest_first)), strict=True):
        idle = turn.idle_seconds
        waited = turn.waited_seconds
        if idle is None or waited is None:
            continue
        total += weight
        # The patient waited already when the doctor had room, or waited long: the pause ended when
        # the patient was taken.
        if idle and (waited > idle or waited > READY_SECONDS):
            known.append((idle, True, weight))
        elif idle:
            known.append((idle - waited, False, weight))
    known.sort(reverse=True)
    left = 1.0
    points = []
    for seconds, exact, weight in known:
        if exact:
            share = left * weight / total
            points.append((min(LONGEST_SECONDS, seconds), share))
            left -= share
        total -= weight
    if len(points) > POINTS:
        points = [(seconds, (1.0 - left) / POINTS) for seconds in Lengths(points).parts(POINTS)][
            ::-1
        ]
    return [(0.0, left), *points[::-1]]


def _reported_points(latest_first: Sequence[Turn]) -> list[Point]:
    """The lengths of reported pauses with their shares of all visits, after which a doctor may take
    one; none if no pause was reported.
    """
    total = READY_WEIGHT
    points = []
    for turn, weight in zip(latest_first, recency_weights(len(latest_first)), strict=True):
        if turn.reported_seconds:
            points.append((min(LONGEST_SECONDS, turn.reported_seconds), weight))
        if turn.reported_seconds or turn.idle_seconds is not None:
            total += weight
    return [(seconds, weight / total) for seconds, weight in points]
