"""The metrics of what workers do: each moves when its thing happens, and no counter falls."""

import re
from contextlib import suppress
from datetime import timedelta
from unittest import mock

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from frontdesk.db.engine import database_time
from frontdesk.errors import Unavailable
from frontdesk.files.tables import eligibility_files
from frontdesk.invitations.model import DeliveryReport, ReportEvent
from frontdesk.invitations.reports import receive_report
from frontdesk.invitations.tables import invitations, worker_status
from frontdesk.mail.model import AnswerLost, RelayRefused
from frontdesk.privacy import retention
from frontdesk.privacy.retention import LogEmptier, begin_turn
from frontdesk.privacy.store import note_emptied
from frontdesk.queues.ingest import ingest
from frontdesk.web.stored_metrics import StoredMetrics, work_metrics
from frontdesk.worker.background import SignOfLife
from tests.files.loading import Desk, csv_of, row
from tests.mail.memory import FaultInjector, failing
from tests.queues.feed import JOINED, event
from tests.worker.conftest import Post

Values = dict[str, float]
_SAMPLE = re.compile(r"frontdesk_(\w+?)(?:\{\w+=\"(\w+)\"\})? (\S+)")
_RESULTS = ("sent", "deferred", "failed", "ambiguous", "bounced")


def read(post: Post) -> Values:
    """The samples by name without `frontdesk_`, and the value of the label."""
    registry = CollectorRegistry()
    registry.register(StoredMetrics(post.db, post.clock, work_metrics))
    found = map(_SAMPLE.fullmatch, generate_latest(registry).decode().splitlines())
    return {" ".join(filter(None, each.group(1, 2))): float(each[3]) for each in found if each}


def mail(found: Values) -> Values:
    counts = {
        name.removeprefix("mail_total "): value for name, value in found.items() if "mail_" in name
    }
    assert counts.keys() == {*_RESULTS}
    return {name: value for name, value in counts.items() if value}


REFUSED = RelayRefused("recipient", permanent=True, code=550)
AWAY = RelayRefused("connect", permanent=False)
FOR_NOW = RelayRefused("recipient", permanent=False, code=451)


@pytest.mark.parametrize(
    ("fault", "counted", "relay_up"),
    [
        (None, "sent", 1),
        (failing("offer", FOR_NOW), "deferred", 1),
        (failing("offer", REFUSED), "failed", 1),
        (failing("finish", AnswerLost()), "ambiguous", None),
        (failing("offer", AWAY), None, 0),
    ],
    ids=["sent", "deferred", "failed", "ambiguous", "relay away"],
)
def test_an_attempt_is_counted_and_tells_of_the_relay(
    post: Post, fault: FaultInjector | None, counted: str | None, relay_up: int | None
) -> None:
    before = read(post)
    assert not {"worker_heartbeat_seconds", "relay_up", "delivery_lag_seconds"} & before.keys()
    assert mail(before) == {}
    post.enrol()
    post.clock.advance(30)
    worker = post.worker(connections=1, fault=fault)
    worker.turn()
    for _ in range(2):  # the counts of two workers are added up
        SignOfLife(post.db, worker.status).step()
    found = read(post)
    assert mail(found) == ({} if counted is None else {counted: 2})
    assert (found.get("relay_up"), "worker_heartbeat_seconds" in found) == (relay_up, True)
    assert found.get("delivery_lag_seconds", 0) >= 30 * (fault is None)


def test_a_worker_adds_what_is_new_and_its_silence_shows(post: Post) -> None:
    worker = post.worker()
    sign = SignOfLife(post.db, worker.status)
    for sent in (1, 2):
        post.enrol()
        worker.turn()
        sign.step()
        sign.step()
        assert mail(read(post)) == {"sent": sent}
    SignOfLife(post.db, post.worker().status).step()  # it has asked no relay yet
    assert (read(post)["relay_up"], mail(read(post))) == (1, {"sent": 2})
    with post.db.write() as tx:
        tx.execute(worker_status.update().values(seen_at=database_time(tx) - timedelta(hours=1)))
    assert read(post)["worker_heartbeat_seconds"] >= 3600


def test_what_is_new_is_stored_when_the_worker_ends(post: Post) -> None:
    post.enrol()
    worker = post.worker()
    worker.turn()
    sign = SignOfLife(post.db, worker.status)
    sign.stop()
    sign.run()  # it takes no step
    assert mail(read(post)) == {"sent": 1}


def test_lost_mails_are_counted_and_repeated_bounces_once(post: Post) -> None:
    post.enrol()
    worker = post.worker()
    worker.turn()
    [message] = post.mailer.messages
    for _ in range(2):
        with post.db.write() as tx:
            receive_report(
                tx, DeliveryReport(message.message_id, ReportEvent.BOUNCED), now=post.clock()
            )
    with post.db.write() as tx:
        tx.execute(invitations.update().values(state="offered", due_at=post.clock()))
    worker.turn()
    worker.turn()
    SignOfLife(post.db, worker.status).step()
    assert mail(read(post)) == {"sent": 1, "bounced": 1, "ambiguous": 1}


def test_files_are_counted_and_the_oldest_has_an_age(post: Post) -> None:
    desk = Desk(post.db, post.customer, post.clock)
    desk.load(csv_of(row(number) for number in range(41)))
    desk.load(csv_of([row(0)]), full=True)  # is held: it would end 40 members
    post.clock.advance(60)
    desk.hand_in(csv_of([row(1)]))
    desk.hand_in(csv_of([row(2)]))
    post.clock.advance(5)
    found = read(post)
    states = {
        name.removeprefix("files "): value
        for name, value in found.items()
        if name.startswith("files ")
    }
    assert states.pop("waiting") == 2
    assert {state for state, count in states.items() if count} == {"held"}
    assert (found["files_oldest_seconds waiting"], found["files_oldest_seconds held"]) == (5, 65)
    with post.db.write() as tx:  # a worker has begun them, and given them back
        tx.execute(eligibility_files.update().values(started_at=post.clock()))
    found = read(post)
    assert (found["files waiting"], found.get("files_oldest_seconds waiting")) == (2, None)


def test_the_age_of_a_feed_and_of_the_last_retention_is_told(post: Post) -> None:
    assert "retention_last_run_seconds" not in read(post)
    with post.db.write() as tx:
        assert begin_turn(tx, post.clock())
        joined = event("joined", JOINED, 0, plan_id=post.customer.plan_ids[0], visit="v")
        ingest(tx, [joined], now=post.clock())
    post.clock.advance(90)
    found = read(post)
    ages = (
        found["retention_last_run_seconds"],
        found[f"feed_age_seconds {post.customer.account_id}"],
    )
    assert ages == (90, 90)


def test_removed_values_wait_until_the_log_of_sqlite_is_empty(post: Post) -> None:
    assert read(post)["erasures_waiting"] == 0
    for _ in range(2):
        with post.db.write() as tx:
            note_emptied(tx)
    assert read(post)["erasures_waiting"] == 2 * post.db.is_sqlite
    emptier = LogEmptier(post.db)
    with post.db.read() as tx:  # a reader that needs the log
        tx.exec_driver_sql("SELECT count(*) FROM plans").all()
        emptier.step()
    assert read(post)["erasures_waiting"] == 2 * post.db.is_sqlite
    # The database is away after the log was emptied.
    away = mock.Mock(side_effect=Unavailable("away"))
    with mock.patch.object(retention, "write_alone", away), suppress(Unavailable):
        emptier.step()
    emptier.step()
    assert read(post)["erasures_waiting"] == 0
