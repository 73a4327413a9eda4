"""What was known of queues before there were events goes on being so, up and down."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import column, insert, select, table

from frontdesk.db import Database, migrate
from frontdesk.db.checks import HEAD
from frontdesk.db.schema import UtcTime
from frontdesk.plans.tables import plans
from frontdesk.queues import list_in_visit, list_on_duty, list_waiting
from frontdesk.queues.queue_state import queue_state
from frontdesk.queues.upkeep import rebuild
from tests.factories import NOW, Customer

OLD = "0001"
# The tables as they were.
WAITING = table("waiting_patients", column("plan_id"), column("patient"), column("joined_at", UtcTime))
VISITS = table(
    "visits",
    *(column(name) for name in ("plan_id", "provider_group_id", "doctor")),
    *(column(name, UtcTime) for name in ("started_at", "ended_at")),
)


@pytest.fixture
def db(owner: Database) -> Database:
    """Migrations run as the owner of the tables."""
    return owner


def test_doctors_patients_and_visits_move_up_and_down(db: Database, customer: Customer) -> None:
    migrate.downgrade(db, OLD)
    first, second = customer.plan_ids
    later = NOW + timedelta(minutes=20)
    with db.write() as tx:
        group = tx.execute(select(plans.c.provider_group_id).where(plans.c.id == first)).scalar_one()
        waits = [(first, "p-1", NOW), (first, "p-2", later), (second, "p-1", later)]
        tx.execute(insert(WAITING), [dict(zip(WAITING.c.keys(), wait, strict=True)) for wait in waits])
        for plan, ended_at in ((first, None), (second, later)):
            visit = (plan, group, "doctor-1", NOW, ended_at)
            tx.execute(insert(VISITS), [dict(zip(VISITS.c.keys(), visit, strict=True))])
    assert migrate.upgrade(db)[-1] == HEAD
    with db.write() as tx:
        before = picture(tx, customer)
        assert before["on_duty"] == ["doctor-1"]
        assert before["waiting"] == [(first, "p-2"), (second, "p-1")]
        assert before["in_visit"] == [(first, "doctor-1")]
        assert rebuild(tx).corrected == 0
        assert picture(tx, customer) == before
    migrate.downgrade(db, OLD)
    with db.read() as tx:
        assert len(tx.execute(select(WAITING)).all()) == 2
        assert len(tx.execute(select(VISITS)).all()) == 2
    migrate.upgrade(db)


def picture(tx: Any, customer: Customer) -> dict[str, Any]:
    return {
        "on_duty": [doctor.doctor for doctor in list_on_duty(tx)],
        "waiting": [(patient.plan_id, patient.patient) for patient in list_waiting(tx)],
        "in_visit": [(visit.plan_id, visit.doctor) for visit in list_in_visit(tx)],
        "queues": queue_state(tx, customer.account_id, NOW),
    }
