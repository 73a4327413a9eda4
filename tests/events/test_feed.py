"""The feed of events: gapless, of the account only, written with the change itself, and only where
it was asked for.
"""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from frontdesk import events
from frontdesk.access.model import Scope
from frontdesk.audit import Requester
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.eligibility.people import lock_pair, merge
from frontdesk.events.model import FEED_START, AccountEventType, NewEvent
from frontdesk.invitations.delivery_hold import release
from frontdesk.privacy.model import RetentionKind
from frontdesk.privacy.retention import RetentionTurn, retention_days
from frontdesk.reach import EVERY
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer, make_customer, member_body, second_token
from tests.files.loading import Desk, csv_of, row

PATH = "/v2/events"


@pytest.fixture
def reader(api: Api, db: Database, customer: Customer) -> Api:
    return api.as_(second_token(db, customer.account_id, Scope.EVENTS_READ))


def read(reader: Api, query: str = "") -> list[Any]:
    answer = reader.get(PATH + query)
    assert answer.status_code == 200, answer.text
    found: list[Any] = answer.json()["data"]
    return found


def refusal(reader: Api, after: str) -> str:
    """The code of the 410 for this place."""
    answer = reader.get(PATH, params={"page[after]": after})
    problem = answer.json()
    assert (answer.status_code, problem["type"].partition("#")[2]) == (410, "gone")
    [fault] = problem["errors"]
    assert fault["field"] == "page[after]"
    return str(fault["code"])


def test_each_change_of_a_member_is_an_event_without_a_value(
    api: Api, reader: Api, customer: Customer
) -> None:
    paths = [f"/v2/plans/{plan}/eligibility" for plan in customer.plan_ids]
    api.post(paths[0], member_body(9))
    assert read(reader) == []
    made = api.post(paths[0], member_body(1), headers={"X-Request-Id": "own-1"}).json()["id"]
    api.post(paths[0], member_body(1))
    api.post(paths[0], member_body(2, member_id=None))
    api.post(
        paths[0],
        {"external_id": member_body(1)["external_id"], "last_name": "Canary", "city": None},
    )
    api.post(paths[1], {"external_id": member_body(1)["external_id"]})
    found = read(reader)
    assert [event["type"] for event in found] == [
        "member.created",
        "member.updated",
        "member.moved",
    ]
    first, second, third = (event["data"] for event in found)
    assert {event["data"]["eligibility_id"] for event in found} == {made}
    assert (first["request_id"], first["file_id"], "dob" in first["fields"]) == (
        "own-1",
        None,
        True,
    )
    assert second["fields"] == ["last_name", "city"]
    assert (third["from_plan_id"], third["plan_id"]) == tuple(customer.plan_ids)
    assert "Canary" not in str(found)
    assert {event["timestamp"] for event in found} == {"2026-11-20T12:00:00Z"}


def test_a_file_its_undo_and_a_merge_are_told(
    api: Api, reader: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    desk = Desk(db, customer, clock)
    assert read(reader) == []
    rows = [row(number) for number in range(3)]
    desk.load(csv_of(rows), full=True)
    ending = desk.load(csv_of(rows[1:]), full=True)
    desk.load(csv_of(rows), full=True)
    more = desk.load(csv_of([row(9)]))
    desk.undo(more)
    of_members = (event for event in read(reader) if event["type"].startswith("member."))
    found = [(event["type"].partition(".")[2], event["data"]["file_id"]) for event in of_members]
    kinds = [kind for kind, _ in found]
    assert kinds == ["created"] * 3 + ["ended", "reopened", "created", "withdrawn"]
    assert found[3] == ("ended", ending.id)
    assert len({file for _, file in found}) == 5
    with db.write() as tx:
        kept, gone = lock_pair(tx, EVERY, rows[0]["external_id"], rows[1]["external_id"])
        merge(tx, kept, gone, Requester("cli:x", "merging", NOW))
    last = read(reader)[-1]
    assert (last["type"], last["data"]["eligibility_id"]) == ("member.merged", gone["id"])
    assert last["data"]["kept_id"] == kept["id"]


def test_an_undo_that_restores_a_member_is_told(
    reader: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    desk = Desk(db, customer, clock)
    assert read(reader) == []
    desk.load(csv_of([row(1)]))
    changed = desk.load(csv_of([row(1, first_name="Sam")]))
    desk.undo(changed)
    found = [
        (event["type"], event["data"]["fields"])
        for event in read(reader)
        if "fields" in event["data"]
    ]
    assert found[1:] == [("member.updated", ["first_name"])] * 2


def test_pages_follow_each_other(api: Api, reader: Api, customer: Customer) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    assert read(reader) == []
    for number in range(5):
        api.post(path, member_body(number))
    api.post(path, {"external_id": member_body(0)["external_id"], "city": "Salem"})
    whole = read(reader)
    paged = []
    query = "?page[size]=4"
    while query:
        answer = reader.get(PATH + query).json()
        paged += answer["data"]
        query = answer["links"].get("next", "").partition(PATH)[2]
    assert paged == whole
    assert len({event["id"] for event in whole}) == 6
    assert read(reader, f"?page[after]={whole[-1]['id']}") == []


@pytest.mark.parametrize(
    "after", ["", "1", "evt_1", "evt_01_1", "evt_1_0", f"evt_1_{10**18}", "evt_1_1' OR 1", "ä"]
)
def test_a_place_that_is_none_is_refused(reader: Api, after: str) -> None:
    answer = reader.get(PATH, params={"page[after]": after})
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (422, "not_allowed")


def test_an_account_reads_its_own_events_only(
    api: Api, reader: Api, db: Database, customer: Customer
) -> None:
    stranger = make_customer(
        db, name="Stranger", scopes=frozenset({Scope.CUSTOMER, Scope.EVENTS_READ})
    )
    other = api.as_(stranger.token)
    assert read(reader) == read(other) == []
    other.post(f"/v2/plans/{stranger.plan_ids[0]}/eligibility", member_body(1))
    [theirs] = read(other)
    assert read(reader) == []
    assert refusal(reader, theirs["id"]) == "cursor_unknown"
    assert api.get(PATH).status_code == 403  # `customer` alone does not read events


def test_nothing_is_written_for_an_account_that_did_not_ask(
    api: Api, db: Database, customer: Customer
) -> None:
    api.post(f"/v2/plans/{customer.plan_ids[0]}/eligibility", member_body(1))
    assert db.ask(lambda tx: tx.execute(text("SELECT count(*) FROM events")).scalar_one()) == 0


def new(customer: Customer, number: int) -> NewEvent:
    return NewEvent(
        customer.account_id, AccountEventType.MEMBER_UPDATED, {"eligibility_id": number}
    )


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_an_event_that_commits_late_is_not_passed_over(db: Database, customer: Customer) -> None:
    """The first transaction takes the lower id and commits last: a reader must not go beyond it
    meanwhile.
    """

    def numbers() -> list[int]:
        found = db.ask(
            lambda tx: events.list_events(tx, customer.account_id, after=FEED_START, limit=10)
        )
        return [event.data["eligibility_id"] for event in found]

    with db.write() as tx:
        events.begin_feed(tx, customer.account_id, NOW)
    with db.write() as slow:
        events.publish(slow, [new(customer, 1)], now=NOW)
        with db.write() as fast:
            events.publish(fast, [new(customer, 2)], now=NOW)
        with db.write() as other:
            other.execute(text("SELECT pg_current_xact_id()"))
        assert numbers() == []
        events.publish(slow, [new(customer, 3)], now=NOW)  # a later id in the earlier transaction
    assert numbers() == [1, 3, 2]


def prune(db: Database, clock: SetClock, config: Config) -> int:
    """Delete what is older than thirty days; returns how many events that were."""
    turn = RetentionTurn(db, clock, retention_days(config), Requester("retention", "r", clock()))
    return turn.run().get(RetentionKind.EVENTS, 0)


def publish(db: Database, customer: Customer, *days: int) -> None:
    """An event of each of the days before today, numbered by them."""
    with db.write() as tx:
        for day in days:
            events.publish(tx, [new(customer, day)], now=NOW - timedelta(days=day))


def test_events_go_after_thirty_days(
    reader: Api, db: Database, customer: Customer, clock: SetClock, config: Config
) -> None:
    assert read(reader) == []
    publish(db, customer, 40, 35, 31, 2)
    assert prune(db, clock, config) == 2
    assert [event["data"]["eligibility_id"] for event in read(reader)] == [31, 2]
    assert prune(db, clock, config) == 0


def test_a_reader_of_a_quiet_feed_goes_on_after_months(
    reader: Api, db: Database, customer: Customer, clock: SetClock, config: Config
) -> None:
    """It has read the last event, which is old by now: nothing was missed."""
    assert read(reader) == []
    publish(db, customer, 90, 80)
    last = read(reader)[-1]["id"]
    prune(db, clock, config)
    assert read(reader, f"?page[after]={last}") == []
    publish(db, customer, 1)
    prune(db, clock, config)
    later = read(reader, f"?page[after]={last}")
    assert [event["data"]["eligibility_id"] for event in later] == [1]


def test_a_place_before_deleted_events_is_too_old(
    reader: Api, db: Database, customer: Customer, clock: SetClock, config: Config
) -> None:
    """Its reader would miss them without a sign."""
    assert read(reader) == []
    publish(db, customer, 50, 40, 35, 1)
    first = read(reader)[0]["id"]
    assert len(read(reader, f"?page[after]={first}")) == 3
    prune(db, clock, config)
    assert refusal(reader, first) == "cursor_too_old"


def test_a_place_that_never_was_is_unknown(reader: Api, db: Database, customer: Customer) -> None:
    assert read(reader) == []
    publish(db, customer, 1)
    assert refusal(reader, "evt_999999999999_999999999999") == "cursor_unknown"


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_after_a_restored_backup_no_event_is_lost(
    api: Api, reader: Api, db: Database, customer: Customer, superuser: Database
) -> None:
    """Another server numbers its transactions anew: the restored ones are of a far future."""
    assert read(reader) == []
    with db.write() as tx:
        events.publish(tx, [new(customer, 1), new(customer, 2)], now=NOW)
    with superuser.write() as tx:
        tx.execute(text("UPDATE events SET xid = xid + 1000000000"))
        [(xid, id_)] = tx.execute(text("SELECT xid, min(id) FROM events GROUP BY xid")).all()
    assert read(reader) == []
    with db.write() as tx:
        release(tx)
        events.publish(tx, [new(customer, 3)], now=NOW)
    assert [event["data"]["eligibility_id"] for event in read(reader)] == [1, 2, 3]
    later = read(reader, f"?page[after]=evt_{xid}_{id_}")  # a place of before the restore
    assert [event["data"]["eligibility_id"] for event in later] == [2, 3]
