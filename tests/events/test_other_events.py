"""Files, invitations and queues are told as members are: ids only, once, in the transaction of the
change.
"""

from datetime import timedelta
from typing import Any

import pytest

from frontdesk import events
from frontdesk.access.model import Scope
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.invitations.model import DeliveryReport, ReportEvent
from frontdesk.invitations.reports import receive_report
from frontdesk.plans import get_plan
from frontdesk.queues.ingest import set_duty
from frontdesk.queues.lapses import end_lapsed_duties, take_back_lapses
from frontdesk.reach import EVERY
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer, make_operator, second_token
from tests.files.loading import Desk, csv_of, row
from tests.worker.conftest import Post

PATH = "/v2/events"


@pytest.fixture
def reader(api: Api, db: Database, customer: Customer) -> Api:
    with db.write() as tx:
        events.begin_feed(tx, customer.account_id, NOW)
    return api.as_(second_token(db, customer.account_id, Scope.EVENTS_READ))


def told(reader: Api, noun: str) -> list[tuple[str, Any]]:
    found = reader.get(PATH).json()["data"]
    return [(event["type"], event["data"]) for event in found if event["type"].startswith(noun)]


def test_the_end_of_a_file_is_told(
    reader: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    desk = Desk(db, customer, clock)
    done = desk.load(csv_of([row(number) for number in range(40)]))
    held = desk.load(csv_of([row(1)]), full=True)
    failed = desk.load(b"Name,Born on\nRobin Sample,1977-01-11\n")
    assert [(type_, data["file_id"]) for type_, data in told(reader, "file.")] == [
        ("file.done", done.id), ("file.held", held.id), ("file.failed", failed.id),
    ]  # fmt: skip
    assert {data["plan_id"] for _, data in told(reader, "file.")} == {customer.plan_ids[0]}


def test_a_sent_invitation_its_bounce_and_its_suppression_are_told(
    reader: Api, api: Api, db: Database, customer: Customer, clock: SetClock, config: Config
) -> None:
    post = Post(config, db, clock, customer)
    post.enrol(1)
    worker = post.worker()
    while worker.turn():
        pass
    worker.close()
    [message] = post.mailer.messages
    report = DeliveryReport(message.message_id, ReportEvent.BOUNCED, "5.1.1")
    for _ in range(2):  # the second is not new
        with db.write() as tx:
            receive_report(tx, report, now=clock())
    found = told(reader, "invitation.")
    types = [type_ for type_, _ in found]
    assert types == ["invitation.sent", "invitation.bounced", "invitation.suppressed"]
    assert len({str(data) for _, data in found}) == 1
    assert set(found[0][1]) == {"invitation_id", "eligibility_id", "plan_id", "request_id"}
    assert "example.com" not in str(found)


def test_a_queue_opens_with_its_first_doctor_and_closes_with_the_last(
    reader: Api, api: Api, db: Database, customer: Customer
) -> None:
    first, second = customer.plan_ids
    group = db.ask(lambda tx: get_plan(tx, EVERY, first)).provider_group.id

    def duty(doctor: str, *, on_duty: bool) -> None:
        with db.write() as tx:
            set_duty(tx, group, doctor, on_duty=on_duty, now=NOW)

    duty("doctor-2", on_duty=True)  # doctor-1 is there
    duty("doctor-1", on_duty=False)
    assert told(reader, "plan.") == []
    duty("doctor-2", on_duty=False)
    operator = api.as_(make_operator(db).token)
    come = {
        "id": "e-1",
        "type": "doctor.on_duty",
        "doctor": "doctor-3",
        "at": "2026-11-20T12:00:00Z",
    }
    batch = {"events": [come | {"provider_group_id": group, "plan_ids": [second]}]}
    assert operator.post("/operator/v1/queue-events", batch).json()["stored"] == 1
    assert operator.post("/operator/v1/queue-events", batch).json()["stored"] == 0
    found = [(type_, data["plan_id"]) for type_, data in told(reader, "plan.")]
    assert found == [
        ("plan.queue.closed", first), ("plan.queue.closed", second), ("plan.queue.opened", second),
    ]  # fmt: skip
    with db.write() as tx:
        end_lapsed_duties(tx, NOW + timedelta(hours=13))
    found = [(type_, data["plan_id"]) for type_, data in told(reader, "plan.")]
    assert found[3:] == [("plan.queue.closed", second)]
    late = {"id": "e-2", "type": "visit.started", "at": "2026-11-20T12:01:00Z", "visit": "v"}
    batch = {"events": [late | {"plan_id": second, "doctor": "doctor-3"}]}
    assert operator.post("/operator/v1/queue-events", batch).json()["stored"] == 1
    with db.write() as tx:
        take_back_lapses(tx, NOW + timedelta(hours=13))
    found = [(type_, data["plan_id"]) for type_, data in told(reader, "plan.")]
    assert found[4:] == [("plan.queue.opened", second)]
