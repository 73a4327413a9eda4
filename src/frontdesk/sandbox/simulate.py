"""Moves the queues of a sandbox with the events of invented practices."""

import secrets
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

from frontdesk.clock import Clock
from frontdesk.db import Database, Tx
from frontdesk.db.engine import write_together
from frontdesk.errors import Unavailable
from frontdesk.plans import list_plans
from frontdesk.queues import list_in_visit, list_on_duty, list_waiting
from frontdesk.queues.events import parse_event
from frontdesk.queues.ingest import ingest
from frontdesk.reach import Reach
from frontdesk.sandbox.practice import Practice

BATCH = 500
LEAST_DOCTORS = 2  # of each practice; the missing ones come on duty at once


def open_practices(tx: Tx, reach: Reach, chance: Random, now: datetime) -> list[Practice]:
    """A practice for each provider group that serves the plans within reach, with its present doctors and
    patients.
    """
    plans: defaultdict[int, list[int]] = defaultdict(list)
    for plan in list_plans(tx, reach):
        if plan.accepting_patients:
            plans[plan.provider_group.id].append(plan.id)
    waiting = list_waiting(tx, now)
    seen = list_in_visit(tx)
    on_duty = list_on_duty(tx, now)
    practices = []
    for group, ids in plans.items():
        line = sorted(
            (one.joined_at, one.patient, one.plan_id) for one in waiting if one.plan_id in ids
        )
        doctors = [one.doctor for one in on_duty if one.provider_group_id == group]
        arriving = [f"sim-dr-{n}" for n in range(len(doctors) + 1, LEAST_DOCTORS + 1)]
        practice = Practice(
            group,
            ids,
            [*doctors, *arriving],
            arriving=arriving,
            mark=f"sim-{secrets.token_hex(4)}",
            chance=Random(chance.random()),  # noqa: S311 - invented patients
            waiting=deque((patient, plan_id) for _, patient, plan_id in line),
        )
        with_doctor = {one.doctor: (one.visit, one.plan_id) for one in seen if one.plan_id in ids}
        practice.begin(
            [(*with_doctor[doctor], doctor) for doctor in doctors if doctor in with_doctor]
        )
        practices.append(practice)
    return practices


class EventFeeder:
    """Stores the events of the practices; their clocks run `speed` times as fast. `counts`: stored
    events by type.
    """

    def __init__(
        self, db: Database, practices: Sequence[Practice], *, speed: float, clock: Clock
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._db = db
        self._practices = practices
        self._speed = speed
        self._clock = clock
        self._began = clock()
        self._mark = secrets.token_hex(6)
        self._pending: deque[dict[str, Any]] = deque()
        self._number = 0

    def feed(self) -> None:
        """Store the events since the last call. Events that can't be stored now are stored by the
        next call.
        """
        passed = (self._clock() - self._began).total_seconds() * self._speed
        for practice in self._practices:
            for second, event in practice.until(passed):
                self._number += 1
                at = self._began + timedelta(seconds=second / self._speed)
                self._pending.append(
                    {"id": f"sim-{self._mark}-{self._number}", "at": at.isoformat(), **event}
                )
        while self._pending:
            batch = [self._pending[n] for n in range(min(BATCH, len(self._pending)))]
            try:
                self._ingest(batch, self._clock())
            except Unavailable:
                return
            for event in batch:
                self._pending.popleft()
                self.counts[event["type"]] += 1

    def _ingest(self, batch: Sequence[dict[str, Any]], now: datetime) -> None:
        """Parsed and stored as a clinical system's events are."""
        events = [
            parsed.event
            for parsed in (parse_event(sent, now=now) for sent in batch)
            if parsed.event
        ]
        work: Callable[..., Any] = lambda tx, items: ingest(tx, items, now=now)  # noqa: E731 - typed for `write_together`
        write_together(self._db, events, work)
