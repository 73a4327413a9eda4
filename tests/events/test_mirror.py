"""Events that a program can keep a copy by: each way in which a member's access ends, or the member
goes, is an event of its own.
"""

from datetime import timedelta
from typing import Any

import pytest

from frontdesk.access.model import Scope
from frontdesk.audit import Requester
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.eligibility.people import lock_pair, merge, unmerge
from frontdesk.events import list_events
from frontdesk.events.model import FEED_START, AccountEventType
from frontdesk.privacy.erasure import erase_person, find_persons
from frontdesk.privacy.retention import RetentionTurn, retention_days
from frontdesk.reach import EVERY
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer, member_body, second_token
from tests.files.loading import COLUMNS, Desk, csv_of, row

ME = Requester("cli:x", "by-hand", NOW)
DATED = (*COLUMNS, "expiry_date")
NAME = member_body(1)["external_id"]


class Feed:
    """The events of members since the last look."""

    def __init__(self, api: Api, reader: Api, customer: Customer) -> None:
        self._api = api
        self._reader = reader
        self.paths = [f"/v2/plans/{plan}/eligibility" for plan in customer.plan_ids]
        self._count = 0
        self.news()

    def news(self) -> list[tuple[str, Any]]:
        found = self._reader.get("/v2/events").json()["data"]
        of_members = [event for event in found if event["type"].startswith("member.")]
        news = of_members[self._count :]
        self._count = len(of_members)
        return [(event["type"].partition(".")[2], event["data"]) for event in news]

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.news()]

    def post(self, *, plan: int = 0, **fields: Any) -> int:
        answer = self._api.post(self.paths[plan], {"external_id": NAME} | fields)
        assert answer.status_code in (200, 201), answer.text
        return int(answer.json()["id"])


@pytest.fixture
def feed(api: Api, db: Database, customer: Customer) -> Feed:
    reader = api.as_(second_token(db, customer.account_id, Scope.EVENTS_READ))
    return Feed(api, reader, customer)


def test_a_last_day_that_comes_nearer_is_an_end_whatever_the_way(feed: Feed) -> None:
    feed.post(**member_body(1))
    assert feed.kinds() == ["created"]
    feed.post(expiry_date="2027-12-31", city="Salem")
    [(kind, data)] = feed.news()
    assert (kind, data["fields"]) == ("ended", ["expiry_date", "city"])
    for day, expected in (("2028-12-31", "updated"), ("2026-12-31", "ended"), (None, "updated")):
        feed.post(expiry_date=day)
        assert feed.kinds() == [expected], day


def test_a_request_that_ends_a_member_is_an_end(api: Api, feed: Feed) -> None:
    id_ = feed.post(**member_body(1))
    feed.news()
    ended = api.post(f"{feed.paths[0]}/{id_}/end", {"on": "2026-11-30"})
    assert ended.status_code == 200, ended.text
    assert feed.kinds() == ["ended"]


def test_a_move_with_a_nearer_last_day_is_both(feed: Feed) -> None:
    feed.post(**member_body(1))
    feed.news()
    feed.post(plan=1, expiry_date="2026-12-31")
    assert feed.kinds() == ["moved", "ended"]
    feed.post(plan=0)
    assert feed.kinds() == ["moved"]


def test_a_file_and_its_undo_say_whether_the_last_day_came_nearer(
    feed: Feed, db: Database, customer: Customer, clock: SetClock
) -> None:
    desk = Desk(db, customer, clock)
    desk.load(csv_of([row(1, expiry_date="2026-12-31")], DATED))
    assert feed.kinds() == ["created"]
    later = desk.load(csv_of([row(1, expiry_date="2027-12-31")], DATED))
    assert feed.kinds() == ["updated"]
    desk.undo(later)
    assert feed.kinds() == ["ended"]


def test_a_merge_names_the_member_that_stays_and_its_undo_brings_the_other_back(
    feed: Feed, db: Database, config: Config
) -> None:
    kept_id = feed.post(**member_body(1))
    gone_id = feed.post(**member_body(2))
    feed.news()
    other = member_body(2)["external_id"]
    with db.write() as tx:
        merge(tx, *lock_pair(tx, EVERY, NAME, other), ME)
    [(kind, data)] = feed.news()
    assert (kind, data["eligibility_id"], data["kept_id"]) == ("merged", gone_id, kept_id)
    with db.write() as tx:
        unmerge(tx, *lock_pair(tx, EVERY, NAME, other), ME, uniqueness=config.uniqueness)
    [(kind, data)] = feed.news()
    assert (kind, data["eligibility_id"]) == ("updated", gone_id)


def test_an_erasure_is_told_with_the_id_only(feed: Feed, db: Database, clock: SetClock) -> None:
    id_ = feed.post(**member_body(1))
    feed.news()
    persons = db.ask(lambda tx: find_persons(tx, EVERY, NAME))
    for _ in range(2):  # a member that is erased already is no news
        erase_person(db, persons, ME, clock=clock)
    assert feed.news() == [("erased", {"eligibility_id": id_, "request_id": "by-hand"})]


def test_an_erasure_by_retention_is_told(
    feed: Feed, db: Database, customer: Customer, clock: SetClock, config: Config
) -> None:
    desk = Desk(db, customer, clock)
    desk.undo(desk.load(csv_of([row(1)])))
    clock.advance(timedelta(days=config.keep_withdrawn_days + 1).total_seconds())
    RetentionTurn(db, clock, retention_days(config), Requester("retention", "r", clock())).run()
    left = db.ask(lambda tx: list_events(tx, customer.account_id, after=FEED_START, limit=9))
    assert left[-1].type is AccountEventType.MEMBER_ERASED
