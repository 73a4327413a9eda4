"""A feed that is late: how late is learnt. What has happened since the last news is played: test_estimate.py."""

from datetime import timedelta

import pytest

from frontdesk import access
from frontdesk.db import Database
from frontdesk.plans.changes import create_plan
from frontdesk.plans.model import NewPlan
from frontdesk.queues.backtest.replay import QueueReplay
from frontdesk.queues.estimate.late_feed import MOST_LATE_SECONDS, usual_lateness
from frontdesk.queues.ingest import ingest
from frontdesk.queues.model import QueueEvent
from frontdesk.queues.queue_state import queue_state
from frontdesk.queues.store.events import list_history
from frontdesk.queues.store.pools import select_pools
from tests.factories import NOW
from tests.queues.feed import ENDED, JOINED, ON, STARTED, event, make_clinic


def test_a_state_that_was_loaded_at_once_is_no_late_feed() -> None:
    too_late = (90.0, MOST_LATE_SECONDS + 1)
    assert usual_lateness([(10.0, 100.0), (50.0, 130.0), (70.0, 120.0), too_late]) == 120.0
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
