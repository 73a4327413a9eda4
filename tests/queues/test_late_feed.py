"""A feed that is late: how late is learnt, and what has happened since the last news is played."""

from dataclasses import replace
from datetime import timedelta

import pytest

from frontdesk import access
from frontdesk.db import Database
from frontdesk.plans.changes import create_plan
from frontdesk.plans.model import NewPlan
from frontdesk.queues.backtest.replay import QueueReplay
from frontdesk.queues.estimate.late_feed import MOST_LATE_SECONDS, usual_lateness
from frontdesk.queues.estimate.model import (
    NOBODY_ON_DUTY,
    Doctor,
    DoctorPool,
    OngoingVisit,
    PastVisit,
    WaitEstimate,
)
from frontdesk.queues.estimate.waits import estimate_waits
from frontdesk.queues.ingest import ingest
from frontdesk.queues.model import QueueEvent
from frontdesk.queues.snapshot import queue_state
from frontdesk.queues.store.events import list_history
from frontdesk.queues.store.pools import select_pools
from tests.factories import NOW
from tests.queues.feed import ENDED, JOINED, ON, STARTED, event, make_clinic

PLAN = 7
LATE = 120.0
TEN_MINUTES = [PastVisit(PLAN, 600.0, i * 60.0) for i in range(49)]


def busy(elapsed: float) -> Doctor:
    return Doctor(None, 1, (OngoingVisit(PLAN, elapsed),))


def estimate_of(pool: DoctorPool, plan_id: int = PLAN) -> WaitEstimate:
    return estimate_waits(pool, [plan_id])[plan_id]


def late(pool: DoctorPool) -> DoctorPool:
    return replace(pool, feed_late_seconds=LATE)


def test_a_feed_in_time_changes_nothing() -> None:
    pool = DoctorPool([busy(100), busy(300)], [PLAN] * 3, TEN_MINUTES, waited=[60.0, 30.0, 9.0])
    assert estimate_of(replace(pool, feed_late_seconds=4.0)) == estimate_of(pool)


def test_patients_that_joined_unseen_take_doctors_that_look_idle() -> None:
    """Sixty patients an hour: in two minutes two of them, for the one doctor that was idle."""
    pool = DoctorPool([Doctor(None, 1, ()), busy(100)], [], TEN_MINUTES)
    assert estimate_of(pool) == WaitEstimate(0, 0, 0)
    unsure = estimate_of(late(pool))
    assert unsure.seconds > 100
    assert unsure.high_seconds is not None
    assert unsure.high_seconds > 300


def test_where_hardly_anybody_joins_an_idle_doctor_is_still_idle() -> None:
    rare = [PastVisit(PLAN, 600.0, i * 3600.0) for i in range(1, 20)]
    assert estimate_of(late(DoctorPool([Doctor(None, 1, ())], [], rare))).seconds == 0


def test_a_visit_that_was_nearly_over_at_the_last_news_is_over_now() -> None:
    quiet = [PastVisit(PLAN, 600.0, 4000.0 + i * 60.0) for i in range(49)]
    pool = DoctorPool([busy(590 + LATE)], [], quiet)
    assert estimate_of(late(pool)).low_seconds == 0
    assert estimate_of(late(pool)).seconds < estimate_of(pool).seconds


def test_nobody_on_duty_is_nobody_on_duty() -> None:
    assert estimate_of(late(DoctorPool([], [PLAN], TEN_MINUTES, waited=[10.0]))).seconds == NOBODY_ON_DUTY
    other = Doctor(frozenset({8}), 1, ())
    assert estimate_of(late(DoctorPool([other], [], TEN_MINUTES))).seconds == NOBODY_ON_DUTY


def test_a_state_that_was_loaded_at_once_is_no_late_feed() -> None:
    assert (
        usual_lateness([(10.0, 100.0), (50.0, 130.0), (70.0, 120.0), (90.0, MOST_LATE_SECONDS + 1)]) == 120.0
    )
    assert usual_lateness([(10.0, 240.0), (10.0, 600.0), (10.0, 480.0)]) == 0.0
    assert usual_lateness([(10.0, 240.0), (10.0, 600.0), (50.0, 1.0)]) == 1.0
    assert usual_lateness([]) == 0.0


def test_the_service_learns_it_from_the_visits_in_progress_and_a_replay_does_the_same(db: Database) -> None:
    clinic = make_clinic(db)
    plan = clinic.plan_ids[0]
    feed_late(db, 0, event("on", ON, 0, provider_group_id=clinic.group_id, doctor="a", capacity=3))
    for n in range(3):
        feed_late(db, 90 + 10 * n, event(f"s{n}", STARTED, n, plan_id=plan, visit=f"v{n}", doctor="a"))
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


def test_each_account_reads_its_queue_while_the_feed_is_late_for_plans_of_another(db: Database) -> None:
    """Two accounts share a provider group. Only the second one's patients were seen so far; the feed is a minute late."""
    first = make_clinic(db, "First", plan_count=1)
    with db.write() as tx:
        account = access.create_account(tx, name="Second", now=NOW)
        second = create_plan(tx, NewPlan(account.id, first.group_id, "second", "Second"), now=NOW)
    (own,) = first.plan_ids
    feed_late(
        db,
        60,
        event("on", ON, 0, provider_group_id=first.group_id, doctor="a", capacity=3),
        *(event(f"s{n}", STARTED, 10 * n, plan_id=second.id, visit=f"{n}", doctor="a") for n in range(1, 21)),
        *(event(f"e{n}", ENDED, 10 * n + 9, plan_id=second.id, visit=f"{n}") for n in range(1, 21)),
        *(event(f"own-{n}", STARTED, 300 + n, plan_id=own, visit=f"v{n}", doctor="a") for n in (10, 20)),
    )
    now = NOW + timedelta(seconds=400)
    with db.read() as tx:
        of_first, of_second, of_all = (
            queue_state(tx, id_, now) for id_ in (first.account_id, account.id, None)
        )
    assert (set(of_first), set(of_second)) == ({own}, {second.id})
    assert of_first | of_second == of_all
    assert of_first[own].info.estimated_wait_seconds >= 0
