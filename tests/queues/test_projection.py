"""What follows from a stream of events, whatever order it came in; and the cases that are defined rather than obvious."""

import random
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontdesk.db import Database
from frontdesk.queues.ingest import ingest
from frontdesk.queues.model import EventOutcome, EventType, PlanQueue
from frontdesk.queues.queue_state import queue_state
from frontdesk.queues.tables import encounters, queue_events
from frontdesk.queues.upkeep import prune, rebuild
from tests.factories import NOW
from tests.faults.callers import LONG
from tests.queues.feed import (
    ENDED,
    HAPPENINGS,
    JOINED,
    LEFT,
    OFF,
    ON,
    STARTED,
    event,
    events_for,
    feed,
    make_clinic,
    projection,
)

_example = count()


def test_replayed_doubled_and_shuffled_streams_give_the_same_state(db: Database) -> None:
    straight, shuffled = make_clinic(db, "Straight"), make_clinic(db, "Shuffled")

    @settings(max_examples=25 if LONG == 1 else 2000, deadline=None, suppress_health_check=list(HealthCheck))
    @given(HAPPENINGS, st.randoms(use_true_random=False))
    def check(happenings: list[Any], chance: random.Random) -> None:
        mark = next(_example)
        with db.write() as tx:
            for one in sorted(events_for(straight, happenings, mark), key=lambda event: event.at):
                ingest(tx, [one], now=NOW)
            stream = events_for(shuffled, happenings, mark)
            stream += chance.choices(stream, k=len(stream) // 2)
            chance.shuffle(stream)
            while stream:
                size = chance.randint(1, len(stream))
                ingest(tx, stream[:size], now=NOW)
                stream = stream[size:]
            both = [
                {name: row for name, row in projection(tx, clinic).items() if f" {mark}-" in name}
                for clinic in (straight, shuffled)
            ]
            assert both[0] == both[1]

    check()
    with db.write() as tx:
        before = projection(tx, shuffled)
        assert rebuild(tx).corrected == 0
        assert projection(tx, shuffled) == before


def test_a_projection_that_was_lost_or_spoilt_is_made_anew(db: Database) -> None:
    clinic = make_clinic(db)
    plan = clinic.plan_ids[0]
    feed(
        db,
        event("1", ON, 0, provider_group_id=clinic.group_id, doctor="dr-1", capacity=2),
        event("2", JOINED, 1, plan_id=plan, visit="v-1"),
        event("3", JOINED, 2, plan_id=plan, visit="v-2"),
        event("4", STARTED, 3, plan_id=plan, visit="v-2", doctor="dr-1"),
    )
    with db.write() as tx:
        whole = projection(tx, clinic)
        tx.exec_driver_sql("DELETE FROM duties")
        tx.exec_driver_sql("DELETE FROM encounters WHERE visit = 'v-1'")
        tx.exec_driver_sql("UPDATE encounters SET visit = 'v-9'")
        done = rebuild(tx)
        assert (done.encounters, done.doctors, done.corrected) == (2, 1, 4)
        assert projection(tx, clinic) == whole


class ScriptedQueue:
    """A clinic's queue after some events, as it is `at` seconds after NOW."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.clinic = make_clinic(db)
        self._numbers = count()
        self.doctor("dr-1")

    def doctor(self, doctor: str, type_: EventType = ON, at: float = 0, **fields: Any) -> None:
        number = f"d-{next(self._numbers)}"
        feed(
            self.db, event(number, type_, at, provider_group_id=self.clinic.group_id, doctor=doctor, **fields)
        )

    def patient(self, type_: EventType, at: float, visit: str = "v-1", plan: int = 0, **fields: Any) -> None:
        number = f"p-{next(self._numbers)}"
        feed(self.db, event(number, type_, at, plan_id=self.clinic.plan_ids[plan], visit=visit, **fields))

    def lengths(self, at: float = 100) -> list[int]:
        return [line.info.queue_length for line in self._lines(at)]

    def busy(self, at: float = 100) -> int:
        return self._lines(at)[0].in_visit

    def on_duty(self, at: float = 100) -> list[int]:
        return [line.doctors for line in self._lines(at)]

    def waits(self, at: float = 100) -> list[int]:
        return [line.info.estimated_wait_seconds for line in self._lines(at)]

    def _lines(self, at: float) -> list[PlanQueue]:
        with self.db.read() as tx:
            return list(queue_state(tx, self.clinic.account_id, NOW + timedelta(seconds=at)).values())


@pytest.fixture
def queue(db: Database) -> ScriptedQueue:
    return ScriptedQueue(db)


def test_a_doctor_who_is_on_duty_twice_is_one_doctor_on_the_latest_terms(queue: ScriptedQueue) -> None:
    queue.doctor("dr-1", at=10, capacity=3, plan_ids=(queue.clinic.plan_ids[1],))
    assert queue.on_duty() == [0, 1]
    queue.doctor("dr-1", OFF, at=20)
    assert queue.on_duty() == [0, 0]
    assert queue.waits() == [-1, -1]


def test_a_shift_that_begins_as_one_ends_is_on_duty(queue: ScriptedQueue) -> None:
    queue.doctor("dr-1", at=50)
    queue.doctor("dr-1", OFF, at=50)
    assert queue.on_duty() == [1, 1]


def test_a_late_off_duty_does_not_end_the_next_shift(queue: ScriptedQueue) -> None:
    queue.doctor("dr-1", at=50)
    queue.doctor("dr-1", OFF, at=40)
    assert queue.on_duty() == [1, 1]


def test_a_patient_who_joins_two_plans_waits_in_the_one_joined_last(queue: ScriptedQueue) -> None:
    queue.patient(JOINED, 1, plan=0)
    queue.patient(JOINED, 2, plan=1)
    assert queue.lengths() == [0, 1]
    queue.patient(LEFT, 3, plan=0)
    assert queue.lengths() == [0, 1]
    queue.patient(LEFT, 4, plan=1)
    assert queue.lengths() == [0, 0]


def test_a_patient_who_joins_twice_keeps_the_place(queue: ScriptedQueue) -> None:
    queue.patient(JOINED, 1)
    queue.patient(JOINED, 5)
    with queue.db.read() as tx:
        assert tx.execute(encounters.select()).one().joined_at == NOW + timedelta(seconds=1)


def test_a_visit_that_ended_twice_ended_the_first_time(queue: ScriptedQueue) -> None:
    queue.patient(STARTED, 10, doctor="dr-1")
    queue.patient(ENDED, 70)
    queue.patient(ENDED, 90)
    with queue.db.read() as tx:
        assert tx.execute(encounters.select()).one().ended_at == NOW + timedelta(seconds=70)


def test_a_visit_that_nobody_joined_for_keeps_its_doctor_busy_and_measures_no_wait(
    queue: ScriptedQueue,
) -> None:
    queue.patient(STARTED, 10, doctor="dr-1")
    assert (queue.busy(), queue.lengths()) == (1, [0, 0])
    with queue.db.read() as tx:
        assert tx.execute(encounters.select()).one().joined_at is None


def test_an_end_without_a_start_ends_the_wait_and_measures_no_visit(queue: ScriptedQueue) -> None:
    queue.patient(JOINED, 1)
    queue.patient(ENDED, 5)
    assert (queue.busy(), queue.lengths()) == (0, [0, 0])
    queue.patient(STARTED, 3, doctor="dr-1")  # it comes late, and makes the visit whole
    with queue.db.read() as tx:
        row = tx.execute(encounters.select()).one()
    assert (row.started_at, row.ended_at) == (NOW + timedelta(seconds=3), NOW + timedelta(seconds=5))


def test_a_visit_can_be_handed_to_another_doctor(queue: ScriptedQueue) -> None:
    queue.doctor("dr-2")
    queue.patient(STARTED, 1, doctor="dr-1")
    queue.patient(STARTED, 9, doctor="dr-2")
    assert queue.busy() == 1
    with queue.db.read() as tx:
        row = tx.execute(encounters.select()).one()
    assert (row.doctor, row.started_at) == ("dr-2", NOW + timedelta(seconds=1))


def test_a_doctor_off_duty_in_a_visit_takes_nobody_after_it(queue: ScriptedQueue) -> None:
    queue.patient(STARTED, 1, doctor="dr-1")
    queue.doctor("dr-1", OFF, at=2)
    assert (queue.waits(), queue.busy()) == ([-1, -1], 0)
    queue.doctor("dr-2", at=3)
    assert queue.waits() == [0, 0]


def test_a_forgotten_visit_hides_no_idle_doctor(queue: ScriptedQueue) -> None:
    queue.patient(STARTED, 1, visit="forgotten", doctor="dr-1")
    assert queue.waits()[0] > 0
    assert queue.waits(at=4 * 3600 + 60)[0] == 0
    queue.patient(STARTED, 50, visit="next", doctor="dr-1")  # one at a time: the one before has ended
    queue.patient(ENDED, 90, visit="next")
    assert queue.busy() == 1
    queue.doctor("dr-2")
    assert queue.waits() == [0, 0]


def test_a_doctor_with_room_for_more_visits_is_free(queue: ScriptedQueue) -> None:
    queue.doctor("dr-1", at=1, capacity=2)
    queue.patient(STARTED, 2, visit="a", doctor="dr-1")
    assert queue.waits() == [0, 0]
    queue.patient(STARTED, 3, visit="b", doctor="dr-1")
    assert min(queue.waits()) > 0


def test_who_never_left_does_not_wait_for_ever(queue: ScriptedQueue) -> None:
    queue.patient(JOINED, 1)
    assert queue.lengths() == [1, 0]
    assert queue.lengths(at=25 * 3600) == [0, 0]


def test_events_of_a_shared_group_count_for_every_account_it_serves(db: Database) -> None:
    clinic = make_clinic(db, plan_count=2)
    feed(
        db,
        event("on", ON, 0, provider_group_id=clinic.group_id, doctor="dr-1"),
        event("v", STARTED, 0, plan_id=clinic.plan_ids[0], visit="v", doctor="dr-1"),
        *(event(f"j{n}", JOINED, n, plan_id=clinic.plan_ids[0], visit=f"w{n}") for n in range(3)),
    )
    with db.read() as tx:
        queues = queue_state(tx, clinic.account_id, NOW + timedelta(seconds=10))
    assert [queues[plan].info.queue_length for plan in clinic.plan_ids] == [3, 0]
    assert (
        queues[clinic.plan_ids[1]].info.estimated_wait_seconds > 3 * 600
    )  # the sibling's patients are ahead


def test_one_visit_of_two_groups_is_two_encounters_and_so_is_an_event_id(db: Database) -> None:
    one, other = make_clinic(db, "One"), make_clinic(db, "Other")
    for clinic in (one, other):
        [taken] = feed(db, event("1", JOINED, 0, plan_id=clinic.plan_ids[0], visit="v-1"))
        assert taken.outcome is EventOutcome.STORED
    [taken] = feed(db, event("1", JOINED, 0, plan_id=one.plan_ids[1], visit="v-2"))
    assert taken.outcome is EventOutcome.DUPLICATE


def test_references_that_lead_nowhere_are_named(db: Database) -> None:
    clinic, other = make_clinic(db), make_clinic(db, "Other")
    group = clinic.group_id
    outcomes = feed(
        db,
        event("1", ON, 0, provider_group_id=999, doctor="dr"),
        event("2", JOINED, 0, plan_id=999, visit="v"),
        event("3", JOINED, 0, plan_id=other.plan_ids[0], provider_group_id=group, visit="v"),
        event("4", ON, 0, provider_group_id=group, doctor="dr", plan_ids=(clinic.plan_ids[0], 999)),
        event("5", ON, 0, provider_group_id=group, doctor="dr", plan_ids=other.plan_ids),
        event("6", JOINED, 0, plan_id=clinic.plan_ids[0], provider_group_id=group, visit="v"),
    )
    queue = [[(fault.field, fault.code) for fault in taken.faults] for taken in outcomes]
    assert queue == [
        [("provider_group_id", "not_found")],
        [("plan_id", "not_found")],
        [("plan_id", "not_of_group")],
        [("plan_ids", "not_found")],
        [("plan_ids", "not_of_group")],
        [],
    ]


def test_pruning_forgets_what_is_over_and_changes_nothing_that_is_not(db: Database) -> None:
    clinic = make_clinic(db)
    plan, day = clinic.plan_ids[0], 86_400
    feed(
        db,
        event("on-1", ON, 0, provider_group_id=clinic.group_id, doctor="dr-1"),
        event("off-1", OFF, 1, provider_group_id=clinic.group_id, doctor="dr-1"),
        event("on-2", ON, 2, provider_group_id=clinic.group_id, doctor="dr-1"),
        event("old-1", JOINED, 0, plan_id=plan, visit="old"),
        event("old-2", STARTED, 9, plan_id=plan, visit="old", doctor="dr-1"),
        event("long-1", JOINED, 0, plan_id=plan, visit="long"),
        event("long-2", STARTED, 89 * day, plan_id=plan, visit="long", doctor="dr-1"),
    )
    with db.write() as tx:
        pruned = prune(tx, now=NOW + timedelta(days=91), age=timedelta(days=90))
        assert (pruned.events, pruned.encounters) == (3, 1)
        assert rebuild(tx).corrected == 0
        left = sorted(row.event_id for row in tx.execute(queue_events.select()))
        assert left == ["long-1", "long-2", "off-1", "on-2"]
        with pytest.raises(ValueError, match="sent again"):
            prune(tx, now=NOW, age=timedelta(days=7))
