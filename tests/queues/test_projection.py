"""What follows from a stream of events, whatever order it came in and how late; and the cases that
are defined rather than obvious.
"""

import random
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontdesk import access
from frontdesk.backtest.replay import QueueReplay
from frontdesk.db import Database
from frontdesk.plans.changes import create_plan
from frontdesk.plans.model import NewPlan
from frontdesk.queues.encounters import event_order
from frontdesk.queues.ingest import ingest, set_waiting
from frontdesk.queues.model import EventOutcome, EventType, QueueEvent
from frontdesk.queues.snapshot import queue_state
from frontdesk.queues.store.events import list_history, list_waiting
from frontdesk.queues.store.pools import select_pools
from frontdesk.queues.tables import encounters, queue_events
from frontdesk.queues.upkeep import prune, rebuild
from frontdesk.reach import EVERY, Reach
from tests.factories import NOW
from tests.faults.callers import times
from tests.queues.feed import (
    ENDED,
    HAPPENINGS,
    JOINED,
    LEFT,
    OFF,
    ON,
    PAUSED,
    STARTED,
    Clinic,
    event,
    events_for,
    feed,
    make_clinic,
    projection,
)

_example = count()


def test_replayed_doubled_and_shuffled_streams_give_the_same_state(db: Database) -> None:
    straight = make_clinic(db, "Straight")
    shuffled = make_clinic(db, "Shuffled")

    @settings(
        max_examples=times(25, long=2000), deadline=None, suppress_health_check=list(HealthCheck)
    )
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
            assert projection(tx, straight, f"{mark}-") == projection(tx, shuffled, f"{mark}-")

    check()
    with db.write() as tx:
        before = projection(tx, shuffled)
        assert rebuild(tx)["mended"] == 0
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
        assert done == {"encounters": 2, "doctors": 1, "mended": 4}
        assert projection(tx, clinic) == whole


Step = tuple[EventType, float, dict[str, Any]]


def duty(type_: EventType, at: float, doctor: str = "dr-1", **terms: Any) -> Step:
    return type_, at, {"doctor": doctor} | terms


def visit(type_: EventType, at: float, name: str = "v-1", *, plan: int = 0, **fields: Any) -> Step:
    return type_, at, {"visit": name, "plan": plan} | fields


def start(at: float, name: str = "v-1", doctor: str = "dr-1") -> Step:
    return visit(STARTED, at, name, doctor=doctor)


# Of each plan: doctors on duty, the length of the line, the wait; visits in progress; the row of
# the only encounter.
DEFINED: dict[str, tuple[list[Step], dict[str, Any]]] = {
    "a doctor on duty twice is one on the latest terms": (
        [duty(ON, 10, capacity=3, plans=[1])], {"doctors": [0, 1]}),
    "and is off duty at once": (
        [duty(ON, 10, capacity=3, plans=[1]), duty(OFF, 20)], {"doctors": [0, 0], "waits": [-1, -1]}),
    "a shift that begins as one ends is on duty": ([duty(ON, 50), duty(OFF, 50)], {"doctors": [1, 1]}),
    "a late off duty does not end the next shift": ([duty(ON, 50), duty(OFF, 40)], {"doctors": [1, 1]}),
    "of two plans a patient waits in the one joined last": (
        [visit(JOINED, 1), visit(JOINED, 2, plan=1)], {"line": [0, 1]}),
    "leaving the other one is no leaving": (
        [visit(JOINED, 1), visit(JOINED, 2, plan=1), visit(LEFT, 3)], {"line": [0, 1]}),
    "leaving the last one is": (
        [visit(JOINED, 1), visit(JOINED, 2, plan=1), visit(LEFT, 4, plan=1)], {"line": [0, 0]}),
    "joining twice keeps the place": ([visit(JOINED, 1), visit(JOINED, 5)], {"line": [1, 0], "joined_at": 1}),
    "a visit that ended twice ended the first time": (
        [start(10), visit(ENDED, 70), visit(ENDED, 90)], {"ended_at": 70}),
    "a visit that nobody joined for keeps its doctor busy and measures no wait": (
        [start(10)], {"busy": 1, "line": [0, 0], "joined_at": None}),
    "an end without a start ends the wait": (
        [visit(JOINED, 1), visit(ENDED, 5)], {"busy": 0, "line": [0, 0], "started_at": None}),
    "a start that comes late makes the visit whole": (
        [visit(JOINED, 1), visit(ENDED, 5), start(3)], {"started_at": 3, "ended_at": 5}),
    "a visit can be handed to another doctor": (
        [duty(ON, 0, "dr-2"), start(1), start(9, doctor="dr-2")],
        {"busy": 1, "doctor": "dr-2", "started_at": 1}),
    "a doctor off duty in a visit takes nobody after it": (
        [start(1), duty(OFF, 2)], {"waits": [-1, -1], "busy": 0}),
    "a doctor with room for more visits is free": ([duty(ON, 1, capacity=2), start(2)], {"waits": [0, 0]}),
    "a doctor whose places are all taken is not": (
        [duty(ON, 1, capacity=2), start(2), start(3, "v-2")], {"is_busy": True}),
    "a visit that was forgotten for hours hides no idle doctor": ([start(1 - 4 * 3600)], {"waits": [0, 0]}),
    "one at a time: a visit before the next one has ended": (
        [start(1), start(50, "v-2"), visit(ENDED, 90, "v-2")], {"busy": 1}),
    "who never left does not wait for ever": ([visit(JOINED, -25 * 3600)], {"line": [0, 0]}),
    "a patient has the class and priority of the joining": (
        [visit(JOINED, 1, patient_class="urgent", priority=5)], {"terms": ("urgent", 5)}),
    "a patient without them has none": ([visit(JOINED, 1)], {"terms": (None, 0)}),
    "joining twice keeps the place and changes class and priority": (
        [visit(JOINED, 5, patient_class="new", priority=0),
         visit(JOINED, 1, patient_class="urgent", priority=5)],
        {"line": [1, 0], "joined_at": 1, "terms": ("new", 0)}),
    "joining again without one of them keeps it": (
        [visit(JOINED, 5, patient_class="new"), visit(JOINED, 1, patient_class="urgent", priority=5)],
        {"terms": ("new", 5)}),
    "and so does the check-in of a booked patient": (
        [visit(JOINED, 1, patient_class="urgent", priority=5, not_before=200), visit(JOINED, 9)],
        {"line": [1, 0], "joined_at": 9, "terms": ("urgent", 5)}),
    "and the joining of another plan": (
        [visit(JOINED, 1, patient_class="urgent", priority=5), visit(JOINED, 9, plan=1)],
        {"line": [0, 1], "terms": ("urgent", 5)}),
    "a patient that left has none of its last wait": (
        [visit(JOINED, 1, patient_class="urgent", priority=5), visit(LEFT, 5), visit(JOINED, 9)],
        {"line": [1, 0], "terms": (None, 0)}),
    "nor has one that is seen after all": (
        [visit(JOINED, 1, patient_class="urgent", priority=5), visit(LEFT, 5), start(9)],
        {"terms": (None, 0)}),
    "a joining during a visit changes neither": (
        [visit(JOINED, 1, patient_class="new"), start(3), visit(JOINED, 5, patient_class="urgent")],
        {"terms": ("new", 0)}),
    "a booked patient is in no line before its time": (
        [visit(JOINED, 1, not_before=101)], {"line": [0, 0], "listed": 0, "joined_at": 101}),
    "and in the line from then on": (
        [visit(JOINED, 1, not_before=100)], {"line": [1, 0], "listed": 1, "joined_at": 100}),
    "a time before the joining is none": (
        [visit(JOINED, 1, not_before=-90)], {"line": [1, 0], "joined_at": 1}),
    "a clock that is ahead books no patient": ([visit(JOINED, 200)], {"line": [1, 0], "listed": 1}),
    "a booking can be moved": (
        [visit(JOINED, 1, not_before=50), visit(JOINED, 2, not_before=200)],
        {"line": [0, 0], "joined_at": 200}),
    "a booked patient that joins without a time is there": (
        [visit(JOINED, 1, not_before=200), visit(JOINED, 9)], {"line": [1, 0], "joined_at": 9}),
    "who is in the line leaves it with a booking for later": (
        [visit(JOINED, 1, not_before=5), visit(JOINED, 9, not_before=200)],
        {"line": [0, 0], "listed": 0, "joined_at": 200}),
    "also if the first joining comes last": (
        [visit(JOINED, 9, not_before=200), visit(JOINED, 1)], {"line": [0, 0], "joined_at": 200}),
    "and is back at the booked time": (
        [visit(JOINED, 1), visit(JOINED, 9, not_before=100)], {"line": [1, 0], "joined_at": 100}),
    "or when it joins again without a time": (
        [visit(JOINED, 1), visit(JOINED, 9, not_before=200), visit(JOINED, 20)],
        {"line": [1, 0], "joined_at": 20}),
    "the wait before the booking is no wait": (
        [visit(JOINED, 1), visit(JOINED, 9, not_before=50), start(70)],
        {"joined_at": 50, "waited": [20]}),
    "a booking for a time that is past keeps the place": (
        [visit(JOINED, 1), visit(JOINED, 9, not_before=5)], {"line": [1, 0], "joined_at": 1}),
    "a booked patient that joins another plan moves": (
        [visit(JOINED, 1, not_before=200), visit(JOINED, 9, plan=1)], {"line": [0, 1], "joined_at": 9}),
    "a booking that is cancelled was no wait": (
        [visit(JOINED, 1, not_before=50), visit(LEFT, 9)], {"joined_at": None, "waited": []}),
    "who leaves after its time has waited since then": (
        [visit(JOINED, 1, not_before=50), visit(LEFT, 60)], {"joined_at": 50, "waited": [10]}),
    "a booked patient that is seen early has no wait": (
        [visit(JOINED, 1, not_before=50), start(9)],
        {"joined_at": None, "started_at": 9, "waited": []}),
    "an end without a start before the time was no wait": (
        [visit(JOINED, 1, not_before=50), visit(ENDED, 9)], {"joined_at": None}),
    "a doctor that pauses is on duty and not ready": (
        [duty(PAUSED, 40, until=160)], {"doctors": [1, 1], "paused": 60, "resumed": []}),
    "until the expected end": ([duty(PAUSED, 40, until=90)], {"paused": 0, "resumed": [10]}),
    "or until the doctor is on duty again": (
        [duty(PAUSED, 40, until=160), duty(ON, 70)], {"paused": 0, "resumed": [30]}),
    "or until the doctor starts a visit": (
        [start(70), duty(PAUSED, 40, until=160)], {"paused": 0, "resumed": [30], "busy": 1}),
    "also one that has ended": (
        [start(70), visit(ENDED, 80), duty(PAUSED, 40, until=160)], {"paused": 0, "resumed": [30]}),
    "a visit that goes on ends no pause": (
        [start(30), duty(PAUSED, 40, until=160)], {"paused": 60, "resumed": [], "busy": 1}),
    "also if its start is told again": (
        [start(30), duty(PAUSED, 40, until=160), start(70)], {"paused": 60, "resumed": [], "busy": 1}),
    "a visit that begins anew ends it": (
        [start(30), visit(ENDED, 35), duty(PAUSED, 40, until=160), start(70)],
        {"paused": 0, "resumed": [30], "busy": 1}),
    "and so does one that is handed to the doctor": (
        [start(30, doctor="dr-2"), duty(PAUSED, 40, until=160), start(70)],
        {"paused": 0, "resumed": [30]}),
    "and one that comes back from another doctor": (
        [start(30), duty(PAUSED, 40, until=160), start(60, doctor="dr-2"), start(70)],
        {"paused": 0, "resumed": [30]}),
    "nor does the visit of another doctor": (
        [duty(PAUSED, 40, until=160), start(70, doctor="dr-2")], {"paused": 60}),
    "a pause goes on in the next one": (
        [duty(PAUSED, 40, until=80), duty(PAUSED, 70, until=160)], {"paused": 60, "resumed": []}),
    "of two that begin at once the longer counts": (
        [duty(PAUSED, 40, until=80), duty(PAUSED, 40, until=160), duty(PAUSED, 40, until=90)],
        {"paused": 60, "resumed": []}),
    "a pause that was over before the next one has ended": (
        [duty(PAUSED, 40, until=50), duty(PAUSED, 70, until=160)], {"paused": 60, "resumed": [50]}),
    "on duty and a pause at one instant is a pause": (
        [duty(PAUSED, 40, until=160), duty(ON, 40)], {"paused": 60}),
    "a shift that ends in a pause has no end of a pause": (
        [duty(PAUSED, 40, until=60), duty(OFF, 50)], {"doctors": [0, 0], "resumed": []}),
    "a pause of the last shift is none of this one": (
        [duty(PAUSED, 40, until=160), duty(OFF, 50), duty(ON, 60)], {"paused": 0, "resumed": []}),
    "a pause ahead of our clock counts from its time": (
        [duty(PAUSED, 150, until=160)], {"paused": 0, "resumed": []}),
    "and ends no pause before that": (
        [duty(PAUSED, 40, until=90), duty(PAUSED, 150, until=160)], {"paused": 0, "resumed": [10]}),
    "a pause that began hours ago may go on": (
        [duty(PAUSED, 1 - 4 * 3600, until=160)], {"paused": 60, "resumed": []}),
}  # fmt: skip


AT = NOW + timedelta(seconds=100)


def feed_steps(db: Database, clinic: Clinic, steps: list[Step]) -> None:
    """A doctor has been on duty for five hours, then the steps, each as a batch of its own."""
    for number, (type_, at, fields) in enumerate([duty(ON, -5 * 3600), *steps]):
        given = dict(fields)
        if "visit" in given:
            given["plan_id"] = clinic.plan_ids[given.pop("plan")]
        else:
            given["provider_group_id"] = clinic.group_id
        for name in {"until", "not_before"} & given.keys():
            given[name] = NOW + timedelta(seconds=given[name])
        if "plans" in given:
            given["plan_ids"] = tuple(clinic.plan_ids[n] for n in given.pop("plans"))
        feed(db, event(f"e-{number}", type_, at, **given))


@pytest.mark.parametrize("case", DEFINED)
def test_what_is_defined_rather_than_obvious(db: Database, case: str) -> None:
    steps, expected = DEFINED[case]
    clinic = make_clinic(db)
    feed_steps(db, clinic, steps)
    with db.read() as tx:
        lines = list(queue_state(tx, Reach.of(clinic.account_id), AT).values())
        pool = select_pools(tx, [clinic.group_id], AT)[clinic.group_id]
        listed = list_waiting(tx, AT)
        row = tx.execute(encounters.select()).first()
    found = {
        "listed": len(listed),
        "terms": row and (row.patient_class, row.priority),
        "waited": [wait.seconds for wait in pool.past_waits],
        "paused": sum(doctor.paused_seconds for doctor in pool.doctors),
        "resumed": [ago for _, ago in pool.resumed],
        "doctors": [line.doctors for line in lines],
        "line": [line.info.queue_length for line in lines],
        "waits": [line.info.estimated_wait_seconds for line in lines],
        "is_busy": min(line.info.estimated_wait_seconds for line in lines) > 0,
        "busy": lines[0].in_visit,
        "doctor": row and row.doctor,
    }
    for name in ("joined_at", "started_at", "ended_at"):
        at_ = getattr(row, name, None)
        found[name] = at_ and (at_ - NOW).total_seconds()
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    "case", [name for name, (_, found) in DEFINED.items() if "paused" in found]
)
def test_a_replay_has_the_same_pauses(db: Database, case: str) -> None:
    expected = DEFINED[case][1]
    clinic = make_clinic(db)
    feed_steps(db, clinic, DEFINED[case][0])
    with db.read() as tx:
        past = list_history(tx, NOW)
        known = [one for one in sorted(past, key=event_order) if one.at <= AT.timestamp()]
    replay = QueueReplay()
    for one in known:
        replay.apply(one)
    pool = replay.pool(AT.timestamp())
    found = {
        "paused": sum(doctor.paused_seconds for doctor in pool.doctors),
        "resumed": [ago for _, ago in pool.resumed],
    }
    assert found == {name: expected.get(name, found[name]) for name in found}


def test_a_visit_of_the_same_name_in_another_group_ends_no_pause(db: Database) -> None:
    one = make_clinic(db, "One")
    other = make_clinic(db, "Other")
    until = NOW + timedelta(seconds=160)
    for clinic in (one, other):
        group = {"provider_group_id": clinic.group_id, "doctor": "dr-1"}
        feed(db, event("on", ON, 0, **group), event("pause", PAUSED, 40, until=until, **group))
    feed(db, event("start", STARTED, 50, plan_id=other.plan_ids[0], visit="v", doctor="dr-1"))
    groups = [one.group_id, other.group_id]
    with db.read() as tx:
        pools = select_pools(tx, groups, NOW + timedelta(seconds=100))
    assert [pools[group].doctors[0].paused_seconds for group in groups] == [60.0, 0.0]
    assert [pools[group].resumed for group in groups] == [[], [("dr-1", 50.0)]]


def test_a_booked_patient_can_join_and_leave_by_hand(db: Database) -> None:
    clinic = make_clinic(db)
    plan = clinic.plan_ids[0]
    later = NOW + timedelta(hours=1)
    for visit in ("comes", "cancels"):
        feed(db, event(visit, JOINED, 0, plan_id=plan, visit=visit, not_before=later))
    now = NOW + timedelta(seconds=9)
    with db.write() as tx:
        assert set_waiting(tx, plan, "comes", waiting=True, now=now)
        assert not set_waiting(tx, plan, "comes", waiting=True, now=now)
        assert set_waiting(tx, plan, "cancels", waiting=False, now=now)
        assert [row.patient for row in list_waiting(tx, now)] == ["comes"]
        assert [row.patient for row in list_waiting(tx, later)] == ["comes"]


def test_the_line_is_listed_in_the_order_in_which_it_is_served(db: Database) -> None:
    clinic = make_clinic(db)
    plan = clinic.plan_ids[0]
    joined = [
        event(f"j{visit}", JOINED, number, plan_id=plan, visit=visit)._replace(
            patient_class=patient_class, priority=priority
        )
        for number, (visit, patient_class, priority) in enumerate(
            [("a", "new", None), ("b", "urgent", 5), ("c", None, None), ("d", "urgent", 5)]
        )
    ]
    feed(db, *joined)
    listed = db.ask(lambda tx: list_waiting(tx, NOW + timedelta(minutes=1)))
    assert [row.patient for row in listed] == ["b", "d", "a", "c"]
    assert [row.patient_class for row in listed] == ["urgent", "urgent", "new", None]


def test_one_visit_of_two_groups_is_two_encounters_and_so_is_an_event_id(db: Database) -> None:
    one = make_clinic(db, "One")
    other = make_clinic(db, "Other")
    places = (one.plan_ids[0], "v-1"), (other.plan_ids[0], "v-1"), (one.plan_ids[1], "v-2")
    taken = [
        feed(db, event("1", JOINED, 0, plan_id=plan, visit=visit))[0].outcome
        for plan, visit in places
    ]
    assert taken == [EventOutcome.STORED, EventOutcome.STORED, EventOutcome.DUPLICATE]


def test_references_that_lead_nowhere_are_named(db: Database) -> None:
    clinic = make_clinic(db)
    other = make_clinic(db, "Other")
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
    told = [[f"{fault.field} {fault.code}" for fault in taken.faults] for taken in outcomes]
    assert told[:2] == [["provider_group_id not_found"], ["plan_id not_found"]]
    assert told[2:] == [
        ["plan_id not_of_group"],
        ["plan_ids not_found"],
        ["plan_ids not_of_group"],
        [],
    ]


def test_pruning_forgets_what_is_over_and_changes_nothing_that_is_not(db: Database) -> None:
    clinic = make_clinic(db)
    plan = clinic.plan_ids[0]
    day = 86_400

    def pause(id_: str, at: float, until: float) -> QueueEvent:
        end = NOW + timedelta(seconds=until)
        group = clinic.group_id
        return event(id_, PAUSED, at, provider_group_id=group, doctor="dr-1", until=end)

    feed(
        db,
        event("on-1", ON, 0, provider_group_id=clinic.group_id, doctor="dr-1"),
        event("off-1", OFF, 1, provider_group_id=clinic.group_id, doctor="dr-1"),
        event("on-2", ON, 2, provider_group_id=clinic.group_id, doctor="dr-1"),
        pause("pause-1", 3, 60),
        pause("pause-2", 4, 60),
        event("old-1", JOINED, 0, plan_id=plan, visit="old"),
        event("old-2", STARTED, 9, plan_id=plan, visit="old", doctor="dr-1"),
        event("long-1", JOINED, 0, plan_id=plan, visit="long"),
        event("long-2", STARTED, 89 * day, plan_id=plan, visit="long", doctor="dr-1"),
    )
    with db.write() as tx:
        pruned = prune(tx, now=NOW + timedelta(days=91), age=timedelta(days=90))
        assert (pruned["events"], pruned["encounters"]) == (4, 1)
        assert rebuild(tx)["mended"] == 0
        left = sorted(row.event_id for row in tx.execute(queue_events.select()))
        assert left == ["long-1", "long-2", "off-1", "on-2", "pause-2"]
        with pytest.raises(ValueError, match="sent again"):
            prune(tx, now=NOW, age=timedelta(days=7))


def test_a_booking_is_pruned_only_when_its_time_is_old(db: Database) -> None:
    clinic = make_clinic(db)
    booked = {"plan_id": clinic.plan_ids[0], "visit": "v"}
    feed(db, event("1", JOINED, 0, not_before=NOW + timedelta(days=25), **booked))
    age = timedelta(days=8)
    with db.write() as tx:
        for days in (9, 26, 33):
            assert prune(tx, now=NOW + timedelta(days=days), age=age) == {}
        assert [row.patient for row in list_waiting(tx, NOW + timedelta(days=26))] == ["v"]
        over = prune(tx, now=NOW + timedelta(days=33, seconds=1), age=age)
        assert over == {"events": 1, "encounters": 1}


def test_a_late_feed_is_learnt_from_visits_in_progress_and_a_replay_does_the_same(
    db: Database,
) -> None:
    clinic = make_clinic(db)
    plan = clinic.plan_ids[0]
    feed_late(db, 0, event("on", ON, 0, provider_group_id=clinic.group_id, doctor="a", capacity=3))
    for n in range(3):
        feed_late(
            db, 90 + 10 * n, event(f"s{n}", STARTED, n, plan_id=plan, visit=f"v{n}", doctor="a")
        )
    feed_late(db, 500, event("j", JOINED, 100, plan_id=plan, visit="waits"))
    now = NOW + timedelta(seconds=600)
    with db.read() as tx:
        pool = select_pools(tx, [clinic.group_id], now)[clinic.group_id]
        stored = sorted(list_history(tx, NOW), key=lambda one: one.at)
    replay = QueueReplay()
    for known in stored:
        replay.apply(known)
    for each in (pool, replay.pool(now.timestamp())):
        assert each.feed_late_seconds == pytest.approx(100.0)


def feed_late(db: Database, seconds: float, *events: QueueEvent) -> None:
    for one in events:
        with db.write() as tx:
            ingest(tx, [one], now=one.at + timedelta(seconds=seconds))


def test_each_account_reads_its_queue_while_the_feed_is_late_for_plans_of_another(
    db: Database,
) -> None:
    """Two accounts share a provider group. Only the second one's patients were seen so far; the
    feed is a minute late.
    """
    first = make_clinic(db, "First", plan_count=1)
    with db.write() as tx:
        account = access.create_account(tx, name="Second", now=NOW)
        second = create_plan(tx, NewPlan(account.id, first.group_id, "second", "Second"), now=NOW)
    (own,) = first.plan_ids
    feed_late(
        db,
        60,
        event("on", ON, 0, provider_group_id=first.group_id, doctor="a", capacity=3),
        *(
            event(f"s{n}", STARTED, 10 * n, plan_id=second.id, visit=f"{n}", doctor="a")
            for n in range(1, 21)
        ),
        *(event(f"e{n}", ENDED, 10 * n + 9, plan_id=second.id, visit=f"{n}") for n in range(1, 21)),
        *(
            event(f"own-{n}", STARTED, 300 + n, plan_id=own, visit=f"v{n}", doctor="a")
            for n in (10, 20)
        ),
    )
    now = NOW + timedelta(seconds=400)
    with db.read() as tx:
        of_first, of_second, of_all = (
            queue_state(tx, reach, now)
            for reach in (Reach.of(first.account_id), Reach.of(account.id), EVERY)
        )
    assert (set(of_first), set(of_second)) == ({own}, {second.id})
    assert of_first | of_second == of_all
    assert of_first[own].info.estimated_wait_seconds >= 0
