"""A person looks for people: by identifier, by address, by birth date and letters; and for those
with the names and the birth date of one. What is found is covered.
"""

from datetime import timedelta
from typing import Any

import pytest

from frontdesk.audit import Requester
from frontdesk.clock import AccountDay
from frontdesk.db import Database
from frontdesk.eligibility import covered, find_members, search
from frontdesk.eligibility.covered import CoveredPerson, LastChange, cover, mask_email
from frontdesk.eligibility.people import call_distinct, lock_pair, merge
from frontdesk.eligibility.search import (
    ByBirthDate,
    ByEmail,
    ByExternalId,
    FindBy,
    FoundPeople,
    Truncation,
    find_similar_to,
    get_covered,
    search_people,
)
from frontdesk.errors import Invalid, NotFound
from frontdesk.privacy.erasure import erase_person, find_persons
from frontdesk.reach import EVERY, Reach
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer, make_customer, member_body

DOB = "1977-01-11"
WHO = Requester("user:1", "request", NOW)


class Desk:
    """Members of a customer, and the searches of its people."""

    def __init__(self, api: Api, db: Database, customer: Customer) -> None:
        self.api = api
        self.db = db
        self.customer = customer
        self.reach = Reach.of(customer.account_id)

    def enrol(self, number: int, *, plan: int = 0, **changes: Any) -> int:
        path = f"/v2/plans/{self.customer.plan_ids[plan]}/eligibility"
        answer = self.api.post(path, member_body(number, **changes))
        assert answer.status_code in (200, 201), answer.text
        return int(answer.json()["id"])

    def found(self, by: FindBy, reach: Reach | None = None) -> FoundPeople:
        return self.db.ask(lambda tx: search_people(tx, reach or self.reach, by, now=NOW))

    def ids(self, by: FindBy, reach: Reach | None = None) -> list[int]:
        return [person.id for person in self.found(by, reach).people]

    def born(self, last_name: str = "", first_name: str = "", dob: str = DOB) -> list[int]:
        return self.ids(ByBirthDate(dob, last_name, first_name))

    def similar(self, member_id: int) -> list[int]:
        found = self.db.ask(lambda tx: find_similar_to(tx, self.reach, member_id, now=NOW))
        return [person.id for person in found.people]

    def merge(self, kept: int, dropped: int) -> None:
        names = (f"AB {kept:06d}", f"AB {dropped:06d}")
        with self.db.write() as tx:
            merge(tx, *lock_pair(tx, self.reach, *names), WHO)


@pytest.fixture
def desk(api: Api, db: Database, customer: Customer) -> Desk:
    return Desk(api, db, customer)


def test_an_identifier_and_an_address_find_one_person(desk: Desk) -> None:
    id_ = desk.enrol(1)
    desk.enrol(2)
    assert desk.ids(ByExternalId(" AB 000001 ")) == [id_]
    assert desk.ids(ByExternalId("ab 000001")) == []
    assert desk.ids(ByEmail("ROBIN.1@Example.com")) == [id_]
    for nothing in ("", " ", "x" * 300, "\0"):
        assert desk.ids(ByExternalId(nothing)) == []
        assert desk.ids(ByEmail(nothing)) == []


def test_a_merged_identifier_finds_the_kept_person(desk: Desk) -> None:
    kept = desk.enrol(1)
    dropped = desk.enrol(2)
    desk.merge(1, 2)
    assert desk.ids(ByExternalId("AB 000002")) == [kept]
    assert desk.born("sample 2") == []
    with desk.db.read() as tx:
        assert get_covered(tx, desk.reach, dropped, now=NOW).id == kept


def test_letters_are_the_first_of_a_name_or_of_its_words(desk: Desk) -> None:
    first = desk.enrol(1, last_name="Müller-Lee", first_name="Robin")
    second = desk.enrol(2, last_name="O'Neil", first_name="Mary Ann", plan=1)
    for letters in ("m", "MUL", "muell", "Mü", "lee", "müller-l", "mullerlee"):
        assert desk.born(letters) == [first], letters
    for letters in ("oneil", "O'N"):
        assert desk.born(letters) == [second], letters
    assert desk.born(first_name="ann") == [second]
    assert desk.born("o", "rob") == []
    assert desk.born("uller") == []
    assert desk.born("m", dob="1977-01-12") == []


@pytest.mark.parametrize(
    ("by", "fields"),
    [
        (ByBirthDate(DOB), {"last_name"}),
        (ByBirthDate(DOB, "-", "'"), {"last_name"}),
        (ByBirthDate("1977-02-30", "m"), {"dob"}),
        (ByBirthDate("11.1.1977"), {"dob", "last_name"}),
    ],
)
def test_a_search_needs_a_birth_date_and_a_letter(
    desk: Desk, by: ByBirthDate, fields: set[str]
) -> None:
    with pytest.raises(Invalid) as refused:
        desk.found(by)
    assert {fault.field for fault in refused.value.faults} == fields


def test_a_search_by_birth_date_needs_an_account(desk: Desk) -> None:
    with pytest.raises(Invalid) as refused:
        desk.found(ByBirthDate(DOB, "m"), EVERY)
    assert [fault.field for fault in refused.value.faults] == ["account"]


def test_nobody_beyond_the_reach_is_found(desk: Desk, db: Database) -> None:
    id_ = desk.enrol(1)
    stranger = Reach.of(make_customer(db, name="Stranger").account_id)
    for by in (ByExternalId("AB 000001"), ByEmail("robin.1@example.com"), ByBirthDate(DOB, "s")):
        assert desk.ids(by) == [id_]
        assert desk.ids(by, stranger) == []
    assert desk.ids(ByExternalId("AB 000001"), EVERY) == [id_]
    for read in (get_covered, find_similar_to):
        with pytest.raises(NotFound), db.read() as tx:
            read(tx, stranger, id_, now=NOW)


def test_more_than_fifty_are_said_to_be_more(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_FOUND", 2)
    ids = [desk.enrol(number) for number in (1, 2)]
    assert desk.found(ByBirthDate(DOB, "sample")).truncated is None
    desk.enrol(3)
    found = desk.found(ByBirthDate(DOB, "sample"))
    assert [person.id for person in found.people] == ids
    assert found.truncated is Truncation.MORE_FIT


def test_of_a_birth_date_with_too_many_people_exact_names_are_found(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MOST_BORN", 2)
    ids = [desk.enrol(number) for number in (1, 2)]
    assert desk.found(ByBirthDate(DOB, "sample")) == desk.found(ByBirthDate(DOB, "s"))
    assert desk.born("s") == ids
    desk.enrol(3)
    assert desk.found(ByBirthDate(DOB, "s")) == FoundPeople((), Truncation.TOO_MANY_BORN)
    found = desk.found(ByBirthDate(DOB, "SAMPLE 2", "robin"))
    assert [person.id for person in found.people] == ids[1:]
    assert found.truncated is Truncation.TOO_MANY_BORN


def test_the_people_similar_to_one_have_its_names_and_birth_date(
    desk: Desk, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = desk.enrol(1, last_name="O'Sample")
    other = desk.enrol(2, last_name="o sample", plan=1, expiry_date="2026-01-31")
    third = desk.enrol(3, last_name="OSAMPLE")
    desk.enrol(4, last_name="OSAMPLE", dob="1977-01-12")
    desk.enrol(5, last_name="Other")
    assert desk.similar(one) == [other, third]
    assert desk.similar(other) == [one, third]
    monkeypatch.setattr(search, "MOST_SIMILAR", 1)
    found = db.ask(lambda tx: find_similar_to(tx, desk.reach, one, now=NOW))
    assert found.truncated is Truncation.MORE_FIT
    monkeypatch.undo()
    with db.write() as tx:
        pair = lock_pair(tx, desk.reach, "AB 000002", "AB 000001")
        call_distinct(tx, *pair, WHO)
    assert (desk.similar(one), desk.similar(other)) == ([third], [third])
    desk.merge(1, 3)
    assert desk.similar(other) == []


def test_similar_people_are_read_up_to_a_bound(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [desk.enrol(number, last_name="Same") for number in range(1, 5)]
    monkeypatch.setattr(search, "MOST_NAMESAKES", 2)
    assert len(desk.similar(ids[0])) < 3


def test_a_covered_person_shows_no_name_and_no_birth_date(desk: Desk, db: Database) -> None:
    marker = "Qzx"
    marked = ("first_name", "last_name", "middle_name", "city", "county")
    values: dict[str, Any] = {name: f"{marker}{name}" for name in marked}
    values |= {"email": f"{marker}@{marker}.{marker}.com", "metadata": {marker: marker}}
    id_ = desk.enrol(7, **values)
    shown = db.ask(lambda tx: get_covered(tx, desk.reach, id_, now=NOW))
    assert shown == CoveredPerson(
        id=id_,
        account_id=desk.customer.account_id,
        plan_id=desk.customer.plan_ids[0],
        external_id="AB 000007",
        initials="Q. Q.",
        birth_year=1977,
        masked_email="Q…@Q….com",
        is_eligible=True,
        first_day="2026-01-01",
        last_day=None,
        last_change=LastChange(NOW, desk.customer.client_id),
    )
    for hidden in (marker, "01-11", "02134", "9999999999", "M-000007"):
        assert hidden.lower() not in str(shown).lower()


def test_a_covered_person_is_eligible_by_the_day(desk: Desk, db: Database) -> None:
    id_ = desk.enrol(1, expiry_date="2026-12-31")
    for days, eligible in ((0, True), (60, False), (-400, False)):
        then = NOW + timedelta(days=days)
        with db.read() as tx:
            shown = get_covered(tx, desk.reach, id_, now=then)
        assert (shown.is_eligible, shown.last_day) == (eligible, "2026-12-31")


def test_an_erased_person_is_not_found_and_covers_nothing(
    desk: Desk, db: Database, clock: SetClock
) -> None:
    id_ = desk.enrol(1)
    erase_person(db, db.ask(lambda tx: find_persons(tx, EVERY, "AB 000001")), WHO, clock)
    with pytest.raises(NotFound):
        db.ask(lambda tx: get_covered(tx, desk.reach, id_, now=NOW))
    [values] = db.ask(lambda tx: find_members(tx, EVERY, id_, withdrawn=True, column="id"))
    shown = cover(values, AccountDay("2026-11-20", "2026-11-20"))
    assert (shown.initials, shown.birth_year, shown.masked_email) == ("", None, None)
    assert (shown.external_id, shown.is_eligible) == ("", False)


def test_masks_name_no_mailbox_and_no_domain() -> None:
    assert mask_email("robin@example") == "r…@…"
    assert mask_email("r@e.co.uk") == "r…@e….uk"
    assert covered.initials_of("", "-") == ""
