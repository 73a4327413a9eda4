"""kill -9 of workers between a webhook and its commit: no event is lost, and each keeps its place
and its id.
"""

import random
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from sqlalchemy import text

from frontdesk import events
from frontdesk.access.model import Scope
from frontdesk.clock import system_clock
from frontdesk.db import Database
from frontdesk.events.model import AccountEventType, NewEvent
from tests.conftest import Api
from tests.events.receiver import Delivered, Receiver, receiving, set_verified
from tests.factories import make_customer, second_token
from tests.faults.callers import times
from tests.faults.workers import send_webhooks, workers

KILLS = times(8, long=100)
EVENTS = 40 * KILLS


@pytest.fixture
def base_address() -> str:
    """On this machine, as the receiver is."""
    return "http://127.0.0.1:8000"


def test_a_killed_worker_is_followed_by_another_that_sends_every_event_in_order(
    api: Api, db: Database, database_url: str
) -> None:
    now = system_clock()
    account_id = make_customer(db, now=now).account_id
    manager = api.as_(second_token(db, account_id, Scope.WEBHOOKS_MANAGE))
    chance = random.Random(9)
    with receiving() as receiver, workers(send_webhooks, database_url) as start:
        receiver.answer = slowly
        made = manager.post("/v2/webhook-endpoints", {"url": receiver.url})
        assert made.status_code == 201
        set_verified(db, made.json()["data"]["id"])
        kind = AccountEventType.MEMBER_UPDATED
        told = [NewEvent(account_id, kind, {"eligibility_id": n}) for n in range(EVENTS)]
        with db.write() as tx:
            events.publish(tx, told, now=now)
        for _ in range(KILLS):
            before = len(receiver.received)
            worker = start()
            # Not at a multiple of COMMIT_EVENTS: some of these are delivered and not committed.
            receiver.wait_for(before + chance.choice((1, 7, 25, 33)), 60)
            worker.kill()
            worker.join()
            lapse(db)
        start()
        wait_for_the_last(receiver)
    assert_in_order(receiver)


def slowly(_: Delivered) -> int:
    time.sleep(0.002)
    return 204


def lapse(db: Database) -> None:
    """The lease of a killed worker ends; a test does not wait for it."""
    with db.write() as tx:
        tx.execute(text("UPDATE webhook_endpoints SET lease_until = NULL"))


def wait_for_the_last(receiver: Receiver) -> None:
    receiver.wait_for(EVENTS, 60)
    until = time.monotonic() + 60
    while len(set(receiver.ids)) < EVENTS and time.monotonic() < until:
        time.sleep(0.01)


def assert_in_order(receiver: Receiver) -> None:
    """Each event came; what came again is a run from an earlier place, with the same ids and
    bodies.
    """
    bodies = {each.headers["webhook-id"]: each.body for each in receiver.received}
    assert len(bodies) == EVENTS
    assert all(bodies[each.headers["webhook-id"]] == each.body for each in receiver.received)
    order = [*dict.fromkeys(receiver.ids)]
    places = [*map({id_: n for n, id_ in enumerate(order)}.__getitem__, receiver.ids)]
    numbers = [int(id_.rpartition("_")[2]) for id_ in order]
    assert numbers == sorted(numbers)
    again = [*backward_steps(places)]
    assert again, "no worker was killed between a delivery and its commit"
    assert all(0 <= step <= 21 for step in again)  # a commit's events, and one on its way
    assert len(again) <= KILLS


def backward_steps(places: list[int]) -> Iterator[int]:
    """How far each run goes back from the one before; runs have no gap."""
    for before, after in pairwise(places):
        assert after <= before + 1
        if after != before + 1:
            yield before - after
