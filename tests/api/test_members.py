"""Members as their account reads them: the record, the search, the list, what is recorded of it,
and what must not be seen.
"""

from typing import Any

import pytest
from sqlalchemy import update

from frontdesk.audit import Requester
from frontdesk.db import Database
from frontdesk.eligibility import reading
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.people import lock_pair, merge
from frontdesk.invitations import set_deliverability, suppress
from frontdesk.invitations.model import InvitationState, InvitationStep, SuppressionReason
from frontdesk.invitations.tables import invitations
from frontdesk.privacy.erasure import erase_person, find_persons
from frontdesk.reach import EVERY
from tests.api.conftest import Trail, codes
from tests.conftest import Api, SetClock
from tests.factories import EVERY_SCOPE, NOW, Customer, make_customer, member_body, second_token
from tests.files.loading import Desk


class Members:
    """The members of a plan of a customer whose client may also read."""

    def __init__(self, api: Api, plan_id: int) -> None:
        self.api = api
        self.plan_id = plan_id
        self.path = f"/v2/plans/{plan_id}/eligibility"

    def enrol(self, number: int = 1, **changes: Any) -> int:
        answer = self.api.post(self.path, member_body(number, **changes))
        assert answer.status_code in (200, 201), answer.text
        return int(answer.json()["id"])

    def read(self, member_id: int, **headers: str) -> Any:
        return self.api.get(f"{self.path}/{member_id}", headers=headers)

    def record(self, member_id: int) -> dict[str, Any]:
        answer = self.read(member_id)
        assert answer.status_code == 200, answer.text
        return dict(answer.json()["data"])

    def changes(self, member_id: int) -> Any:
        return self.api.get(f"{self.path}/{member_id}/history").json()["data"]

    def page(self, query: str = "") -> Any:
        return self.api.get(self.path + query)

    def ids(self, query: str = "") -> list[int]:
        answer = self.page(query)
        assert answer.status_code == 200, answer.text
        return [record["id"] for record in answer.json()["data"]]


@pytest.fixture
def members(api: Api, db: Database, customer: Customer) -> Members:
    token = second_token(db, customer.account_id, *EVERY_SCOPE)
    return Members(api.as_(token), customer.plan_ids[0])


def test_a_member_is_read_with_every_field(members: Members) -> None:
    sent = {name: field.example for name, field in FIELDS.items()} | {"dob": "1977-01-11"}
    id_ = members.enrol(**sent)
    record = members.record(id_)
    del sent["invite_immediately"]
    assert record == sent | {
        "id": id_, "type": "eligibility_members", "plan_id": members.plan_id, "eligible": True,
        "created_at": "2026-11-20T12:00:00Z", "updated_at": "2026-11-20T12:00:00Z",
        "invitation": {"state": "pending", "reason": None, "at": "2026-11-20T12:00:00Z"},
    }  # fmt: skip


def test_a_field_without_a_value_is_null(members: Members) -> None:
    record = members.record(
        members.enrol(1, email=..., phone=..., city=..., state=..., metadata=...)
    )
    empty = {name for name, value in record.items() if value is None}
    assert empty == {name for name, field in FIELDS.items() if not field.required} - {
        "metadata",
        "invite_immediately",
    }
    assert record["metadata"] == {}


@pytest.mark.parametrize(
    ("effective", "expiry", "eligible"),
    [("2026-11-20", "2026-11-20", True), ("2026-11-20", None, True), ("2026-11-21", None, False),
     ("2026-01-01", "2026-11-19", False)],
)  # fmt: skip
def test_both_days_of_an_access_count(
    members: Members, effective: str, expiry: str | None, *, eligible: bool
) -> None:
    id_ = members.enrol(1, effective_date=effective, expiry_date=expiry)
    assert members.record(id_)["eligible"] is eligible


def test_an_etag_follows_the_member_and_the_day(
    members: Members, db: Database, customer: Customer, clock: SetClock
) -> None:
    id_ = members.enrol(1, expiry_date="2026-11-20")
    first = members.read(id_)
    assert first.headers["Cache-Control"] == "private, no-cache"
    known = {"If-None-Match": first.headers["ETag"]}
    again = members.read(id_, **known)
    assert (again.status_code, again.content, again.headers["ETag"]) == (
        304,
        b"",
        first.headers["ETag"],
    )
    members.enrol(2)
    assert members.read(id_, **known).status_code == 304
    members.enrol(1, expiry_date="2026-11-20", city="Salem")
    changed = members.read(id_, **known)
    assert changed.json()["data"]["city"] == "Salem"
    clock.advance(22 * 3600)  # the next day in Honolulu, too: the access has ended
    members.api.token = second_token(db, customer.account_id, *EVERY_SCOPE, now=clock())
    ended = members.read(id_, **{"If-None-Match": changed.headers["ETag"]})
    assert ended.json()["data"]["eligible"] is False


def test_one_identifier_finds_one_member(
    members: Members, db: Database, customer: Customer
) -> None:
    id_ = members.enrol(1, external_id="é 1", email="Robin@Bücher.example")
    members.enrol(2)
    other_plan = f"/v2/plans/{customer.plan_ids[1]}/eligibility"
    for query in (
        "?external_id=%20e%CC%81%201%20",  # as a POST takes it: trimmed and composed
        "?member_id=M-000001",
        "?email=ROBIN@xn--bcher-kva.example",
    ):
        assert members.ids(query) == [id_]
        assert [
            each["id"] for each in members.api.get("/v2/eligibility" + query).json()["data"]
        ] == [id_]
        assert members.api.get(other_plan + query).json()["data"] == []
    for query in (
        "?external_id=E%CC%81%201",
        "?member_id=M",
        "?email=nobody",
        "?email=%00",
        "?external_id=%ff",
    ):
        assert members.ids(query) == []


def test_identifiers_stand_alone(members: Members) -> None:
    answer = members.page("?external_id=1&email=a@example.com&updated_since=2026-01-01T00:00:00Z")
    assert codes(answer) == {"email": "not_allowed", "updated_since": "not_allowed"}
    assert codes(members.api.get("/v2/eligibility")) == {"external_id": "required"}
    wrong = (
        "?updated_since=2026-02-30T00:00:00Z",
        "?eligible_on=2026-02-30",
        "?eligible_on=0000-01-01",
    )
    assert [codes(members.page(query)) for query in wrong] == [
        {"updated_since": "not_a_date"}, {"eligible_on": "not_a_date"}, {"eligible_on": "not_a_date"}
    ]  # fmt: skip
    refused = "?updated_since=2026-11-20", "?page[size]=1001", "?page[size]=0", "?email="
    assert {*map(str, (codes(members.page(query)).values() for query in refused))} == {
        "dict_values(['not_allowed'])"
    }


def test_a_last_name_and_a_birth_date_find_people_of_every_plan(
    members: Members, customer: Customer
) -> None:
    twins = [members.enrol(n, last_name="Müller-Lee", first_name=f"Robin{n}") for n in (1, 2)]
    elsewhere = Members(members.api, customer.plan_ids[1]).enrol(3, last_name="MÜLLER-LEE")
    members.enrol(4, last_name="Müller-Lee", dob="1977-01-12")
    members.enrol(5, last_name="Müller")
    found = ("mu%CC%88ller-lee", "M%C3%9CLLER-LEE", "%20M%C3%BCller-Lee")
    assert [people(members, name) for name in found] == [[*twins, elsewhere]] * 3
    for name in ("M%C3%BCller", "M%C3%BCller-Lee%00", "Lee", "%25"):
        assert set(people(members, name)) & {*twins, elsewhere} == set()


def people(members: Members, name: str, more: str = "") -> list[int]:
    query = f"?last_name={name}&dob=1977-01-11{more}"
    answer = members.api.get("/v2/eligibility" + query)
    assert answer.status_code == 200, answer.text
    return [record["id"] for record in answer.json()["data"]]


@pytest.mark.parametrize(
    ("query", "refused"),
    [
        ("last_name=Sample", {"dob": "required"}),
        ("dob=1977-01-11", {"last_name": "required"}),
        ("dob=1977-02-30&last_name=Sample", {"dob": "not_a_date"}),
        ("dob=11.1.1977&last_name=Sample", {"dob": "not_allowed"}),
        ("dob=1977-01-11&last_name=", {"last_name": "not_allowed"}),
        ("dob=1977-01-11&email=a@b.example", {"dob": "not_allowed"}),
        ("page[after]=1", {"external_id": "required"}),
    ],
)
def test_a_search_for_people_needs_name_and_birth_date(
    members: Members, query: str, refused: dict[str, str]
) -> None:
    assert codes(members.api.get(f"/v2/eligibility?{query}")) == refused


def test_a_search_for_people_is_answered_in_bounded_pages(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [members.enrol(n, last_name="Sample" if n % 2 else f"Other {n}") for n in range(1, 8)]
    searched = "/v2/eligibility?last_name=sample&dob=1977-01-11"
    monkeypatch.setattr(reading, "FOUND_TOGETHER", 3)
    plan = Members(members.api, members.plan_id)
    plan.path = ""
    assert pages(plan, "", searched) == [[ids[0], ids[2], ids[4]], [ids[6]]]
    monkeypatch.setattr(reading, "BORN_ON_A_DAY", 2)
    assert pages(plan, "", searched) == [ids[:1], ids[2:3], ids[4:5], ids[6:]]


def test_a_search_for_people_is_recorded(members: Members, trail: Trail) -> None:
    first = members.enrol(1)
    assert people(members, "Sample") == [first]
    assert [each["subject_id"] for each in trail("member.read")] == [first]
    members.enrol(2, last_name="Sample", first_name="Alex")
    assert len(people(members, "Sample")) == 2
    [listed] = trail("members.read")
    assert (listed["subject_id"], listed["detail"]["count"]) == (None, 2)
    assert people(members, "Nobody") == []
    assert len(trail("members.read")) == 1


def test_pages_cover_the_plan(members: Members, customer: Customer) -> None:
    ids = [members.enrol(number) for number in range(5)]
    Members(members.api, customer.plan_ids[1]).enrol(9)
    assert members.ids() == ids
    assert pages(members, "?page[size]=2") == [ids[:2], ids[2:4], ids[4:]]
    assert pages(members, "?page[size]=5") == [ids]
    assert members.ids(f"?page[after]={ids[3]}") == ids[4:]


def pages(members: Members, query: str, path: str = "") -> list[list[int]]:
    """The ids of each page, by following `links.next`."""
    found = []
    address = members.path + path + query
    while address:
        answer = members.api.get(address).json()
        found.append([record["id"] for record in answer["data"]])
        address = answer["links"].get("next", "").removeprefix("https://api.example.com")
    return found


def test_filters_may_be_combined(members: Members, clock: SetClock) -> None:
    early = [members.enrol(number, effective_date="2026-01-01") for number in range(2)]
    ended = members.enrol(5, expiry_date="2026-10-31")
    clock.advance(60)
    late = members.enrol(6, effective_date="2027-01-01")
    members.enrol(0, city="Salem")
    for time in ("12:01:00Z", "12:01:00.999Z"):
        assert members.ids(f"?updated_since=2026-11-20T{time}") == [early[0], late]
    assert members.ids("?eligible_on=2026-10-31") == [*early, ended]
    assert members.ids("?eligible_on=2026-11-01") == early
    assert members.ids("?eligible_on=2027-01-01") == [*early, late]
    both = "?eligible_on=2026-11-01&updated_since=2026-11-20T12:00:01Z"
    assert members.ids(both) == [early[0]]


def test_a_page_looks_at_a_bounded_number_of_rows(
    members: Members, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [members.enrol(number) for number in range(7)]
    clock.advance(60)
    members.enrol(6, city="Salem")
    monkeypatch.setattr(reading, "MOST_ROWS", 3)
    since = "?updated_since=2026-11-20T12:01:00Z&page[size]=2"
    assert pages(members, since) == [[], [], [ids[6]]]
    assert pages(members, "?page[size]=2") == [ids[:2], ids[2:4], ids[4:6], ids[6:]]


def test_each_reading_is_recorded_once(members: Members, trail: Trail, customer: Customer) -> None:
    first = members.enrol(1)
    _ = members.enrol(2)
    tag = members.read(first).headers["ETag"]
    members.read(first, **{"If-None-Match": tag})
    members.page("?member_id=M-000001")
    members.api.get("/v2/eligibility?member_id=M-000001")
    read = trail("member.read")
    assert [(each["account_id"], each["subject_id"]) for each in read] == [
        (customer.account_id, first)
    ] * 4
    members.page()
    [listed] = trail("members.read")
    assert (listed["subject_id"], listed["detail"]["count"]) == (members.plan_id, 2)
    assert listed["actor"] == read[0]["actor"]
    for query in ("?email=nobody@example.com", "?eligible_on=2020-01-01"):
        members.page(query)
    members.read(first + 100)
    assert (len(trail("member.read")), len(trail("members.read"))) == (4, 1)


def test_what_can_not_be_recorded_is_not_shown(members: Members, owner: Database) -> None:
    id_ = members.enrol(1)
    paths = f"{members.path}/{id_}", members.path, "/v2/eligibility?member_id=M-000001"
    with owner.write() as tx:
        tx.exec_driver_sql("ALTER TABLE audit_entries RENAME TO elsewhere")
    answers = [members.api.get(path) for path in paths]
    with owner.write() as tx:
        tx.exec_driver_sql("ALTER TABLE elsewhere RENAME TO audit_entries")
    assert all(answer.status_code >= 500 and "Robin" not in answer.text for answer in answers)


def test_merged_withdrawn_and_erased_members_are_not_there(
    members: Members, db: Database, clock: SetClock
) -> None:
    kept = members.enrol(1)
    dropped = members.enrol(2)
    erased = members.enrol(3)
    requester = Requester("cli:test", "r", clock())
    with db.write() as tx:
        merge(tx, *lock_pair(tx, EVERY, "AB 000001", "AB 000002"), requester)
    persons = db.ask(lambda tx: find_persons(tx, EVERY, "AB 000003"))
    erase_person(db, persons, requester, clock)
    assert members.ids() == [kept]
    assert people(members, "Sample") == [kept]
    assert people(members, "Sample%202") == []
    assert people(members, "Sample%203") == []
    absent = members.read(10**18 - 1).json()["detail"]
    for id_ in (dropped, erased):
        assert (members.read(id_).status_code, members.read(id_).json()["detail"]) == (404, absent)
    [found] = members.page("?external_id=AB%20000002").json()["data"]
    assert found == members.record(kept)
    for query in (
        "?member_id=M-000002",
        "?email=robin.2@example.com",
        "?external_id=AB%20000003",
        "?email=robin.3@example.com",
    ):
        assert members.ids(query) == []


def test_a_member_without_an_invitation_has_the_reason(
    members: Members, db: Database, customer: Customer
) -> None:
    with db.write() as tx:
        for address, account in (
            ("own@example.com", customer.account_id),
            ("other@example.com", None),
        ):
            suppress(tx, address, SuppressionReason.HARD_BOUNCE, now=NOW, account_id=account)
    sent: dict[str, dict[str, Any]] = {
        "no_email": {"email": None},
        "suppressed": {"email": "own@example.com"},
        "expired": {"expiry_date": "2026-11-19"},
        "not_requested": {},
    }
    ids = {reason: members.enrol(n, **fields) for n, (reason, fields) in enumerate(sent.items())}
    assert {reason: members.record(id_)["invitation"] for reason, id_ in ids.items()} == {
        reason: {"state": None, "reason": reason, "at": None} for reason in sent
    }
    with db.write() as tx:
        set_deliverability(tx, customer.account_id, enabled=False)
    assert members.record(ids["not_requested"])["invitation"]["reason"] == "disabled"
    with db.write() as tx:
        set_deliverability(tx, customer.account_id, enabled=True)
    assert members.record(ids["not_requested"])["invitation"]["reason"] == "not_new"


def test_another_accounts_suppression_is_not_told(
    members: Members, db: Database, customer: Customer, clock: SetClock
) -> None:
    other = make_customer(db, name="Other")
    ids = [members.enrol(number, invite_immediately=True) for number in range(3)]
    clock.advance(60)
    with db.write() as tx:
        for number, account in enumerate((customer.account_id, other.account_id)):
            address = f"robin.{number}@example.com"
            suppress(tx, address, SuppressionReason.COMPLAINT, now=clock(), account_id=account)
        reasons = [InvitationStep.SUPPRESSED, InvitationStep.SUPPRESSED, InvitationStep.BY_OPERATOR]
        for id_, reason in zip(ids, reasons, strict=True):
            values = {"state": InvitationState.CANCELLED, "reason": reason, "updated_at": clock()}
            tx.execute(update(invitations).where(invitations.c.member_id == id_).values(values))
    told = [members.record(id_)["invitation"] for id_ in ids]
    assert [each["reason"] for each in told] == ["suppressed", "by_operator", "by_operator"]
    assert (
        told[1]
        == told[2]
        == {"state": "cancelled", "reason": "by_operator", "at": "2026-11-20T12:01:00Z"}
    )


def test_the_scope_customer_reads_no_member(api: Api, customer: Customer, members: Members) -> None:
    id_ = members.enrol(1)
    for path in (members.path, f"{members.path}/{id_}", "/v2/eligibility?member_id=1"):
        answer = api.get(path)
        assert answer.status_code == 403
        assert answer.headers["WWW-Authenticate"] == (
            'Bearer error="insufficient_scope", scope="eligibility:read"'
        )


def test_a_history_has_each_change_with_its_cause(
    members: Members, db: Database, customer: Customer, clock: SetClock
) -> None:
    id_ = members.enrol(1, metadata={"department": "North"})
    clock.advance(60)
    body = {"external_id": "AB 000001", "city": "Salem", "metadata": {}}
    members.api.post(members.path, body, headers={"X-Request-Id": "change-1"})
    file = Desk(db, customer, clock).load(b"external_id,city\nAB 000001,Lynn\n")
    created, changed, loaded = members.changes(id_)
    assert (created["outcome"], created["at"]) == ("created", "2026-11-20T12:00:00Z")
    assert created["changed"]["last_name"] == [None, "Sample"]
    assert set(created["changed"]) <= set(FIELDS)
    assert changed["changed"] == {
        "city": ["Boston", "Salem"],
        "metadata": [{"department": "North"}, {}],
    }
    assert (changed["request_id"], changed["file_id"], changed["type"]) == (
        "change-1",
        None,
        "eligibility_changes",
    )
    assert (loaded["changed"], loaded["file_id"]) == ({"city": ["Salem", "Lynn"]}, file.id)
    assert {each["client"] for each in (created, changed)} != {loaded["client"]}


def test_a_history_comes_by_the_page_and_stays_under_its_plan(
    members: Members, customer: Customer, trail: Trail
) -> None:
    id_ = members.enrol(1)
    members.enrol(2)
    for city in ("Salem", "Lynn", "Salem", "Lynn"):
        members.enrol(1, city=city)
    moved = Members(members.api, customer.plan_ids[1])
    moved.enrol(1, city="Salem")
    found = moved.changes(id_)
    assert [each["outcome"] for each in found] == ["created", *["updated"] * 4, "moved"]
    assert [each["plan_id"] for each in found] == [members.plan_id] * 5 + [moved.plan_id]
    assert pages(moved, "?page[size]=4", f"/{id_}/history") == [
        [each["id"] for each in found[:4]], [each["id"] for each in found[4:]]
    ]  # fmt: skip
    assert members.api.get(f"{members.path}/{id_}/history").status_code == 404
    assert {each["subject_id"] for each in trail("member.history_read")} == {id_}
    assert len(trail("member.history_read")) == 3


def test_a_history_does_not_tell_of_a_merge(
    members: Members, db: Database, clock: SetClock
) -> None:
    kept = members.enrol(1)
    dropped = members.enrol(2)
    with db.write() as tx:
        merge(
            tx, *lock_pair(tx, EVERY, "AB 000001", "AB 000002"), Requester("cli:test", "r", clock())
        )
    [created] = members.changes(kept)
    assert created["outcome"] == "created"
    assert members.api.get(f"{members.path}/{dropped}/history").status_code == 404


def test_another_accounts_member_is_found_by_nothing(
    members: Members, db: Database, api: Api
) -> None:
    stranger = make_customer(db, name="Stranger", scopes=EVERY_SCOPE)
    foreign = Members(api.as_(stranger.token), stranger.plan_ids[0])
    foreign.enrol(7)
    for query in ("?external_id=AB%20000007", "?member_id=M-000007", "?email=robin.7@example.com"):
        assert len(foreign.ids(query)) == 1
        assert members.ids(query) == []
        assert members.api.get("/v2/eligibility" + query).json()["data"] == []
        assert members.api.get(foreign.path + query).status_code == 404
    assert (len(people(foreign, "Sample%207")), people(members, "Sample%207")) == (1, [])
    assert members.api.get(foreign.path).status_code == 404
