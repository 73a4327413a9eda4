"""A worker forgets old queue events by itself, so that nothing grows without end where nobody runs
a command.
"""

from collections import Counter
from datetime import timedelta
from functools import partial

from frontdesk.db import Database
from frontdesk.queues.ingest import ingest
from frontdesk.queues.store.events import PAGE
from frontdesk.queues.tables import estimate_log, queue_events
from frontdesk.queues.upkeep import MIN_AGE, prune
from frontdesk.worker.background import QueuePruner
from tests.conftest import SetClock
from tests.factories import NOW
from tests.queues.feed import JOINED, LEFT, OFF, ON, event, feed, make_clinic


def test_a_worker_forgets_what_is_over_and_old_and_keeps_the_rest(
    db: Database, clock: SetClock
) -> None:
    clinic = make_clinic(db)
    plan = clinic.plan_ids[0]
    pruner = QueuePruner(db, clock=clock)
    for days in (0, 60):
        seen = {"plan_id": plan, "visit": f"v-{days}"}
        feed(db, event(f"j-{days}", JOINED, days * 86_400, **seen))
        feed(db, event(f"l-{days}", LEFT, days * 86_400 + 9, **seen))
    clock.advance(timedelta(days=89).total_seconds())
    assert pruner.prune() == Counter()
    clock.advance(timedelta(days=2).total_seconds())
    assert pruner.prune() == Counter(events=2, encounters=1)
    assert pruner.prune() == Counter()
    with db.read() as tx:
        assert sorted(row.event_id for row in tx.execute(queue_events.select())) == ["j-60", "l-60"]


def test_however_much_is_old_one_transaction_forgets_a_page_of_it(db: Database) -> None:
    clinic = make_clinic(db)
    plan = clinic.plan_ids[0]
    log = {"plan_id": plan, "taken_at": NOW, "expires_at": NOW, "estimate_seconds": 60}
    doctor = partial(event, provider_group_id=clinic.group_id, doctor="dr-1")
    shifts = [doctor(f"{type_}-{n}", type_, n) for n in range(PAGE // 2 + 5) for type_ in (ON, OFF)]
    with db.write() as tx:
        tx.execute(estimate_log.insert(), [log] * (PAGE + 5))
        ingest(tx, shifts, now=NOW)
    later = NOW + MIN_AGE + timedelta(days=1)
    pages = []
    for _ in range(3):
        with db.write() as tx:
            pages.append(prune(tx, now=later, age=MIN_AGE))
    assert pages == [
        Counter(events=PAGE, estimates=PAGE),
        Counter(events=8, estimates=5),
        Counter(),
    ]
    with db.read() as tx:
        assert tx.execute(estimate_log.select()).all() == []
