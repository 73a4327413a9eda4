"""A person looks for people: by identifier, by address, by birth date and letters; and for those
with the names and the birth date of one. What is found is covered.
"""

from datetime import timedelta
from typing import Any

import pytest

from frontdesk.clock import AccountDay
from frontdesk.db import Database
from frontdesk.eligibility import covered, find_members, search
from frontdesk.eligibility.covered import CoveredPerson, cover, mask_email
from frontdesk.eligibility.people import call_distinct, lock_pair
from frontdesk.eligibility.search import (
    ByBirthDate,
    ByEmail,
    ByExternalId,
    FoundPeople,
    Truncation,
    find_similar_to,
    get_covered,
)
from frontdesk.errors import Invalid, NotFound
from frontdesk.privacy.erasure import erase_person, find_persons
from frontdesk.reach import EVERY, Reach
from tests.conftest import Api, SetClock
from tests.eligibility.finding import WHO, Finder
from tests.factories import NOW, Customer, make_customer

DOB = "1977-01-11"


@pytest.fixture
def finder(api: Api, db: Database, customer: Customer) -> Finder:
    return Finder(api, db, customer)


def test_an_identifier_and_an_address_find_one_person(finder: Finder) -> None:
    id_ = finder.enrol(1)
    finder.enrol(2)
    assert finder.ids(ByExternalId(" AB 000001 ")) == [id_]
    assert finder.ids(ByExternalId("ab 000001")) == []
    assert finder.ids(ByEmail("ROBIN.1@Example.com")) == [id_]
    for nothing in ("", " ", "x" * 300, "\0"):
        assert finder.ids(ByExternalId(nothing)) == []
        assert finder.ids(ByEmail(nothing)) == []


def test_a_merged_identifier_finds_the_kept_person(finder: Finder) -> None:
    kept = finder.enrol(1)
    dropped = finder.enrol(2)
    finder.merge(1, 2)
    assert finder.ids(ByExternalId("AB 000002")) == [kept]
    assert finder.born("sample 2") == []
    with finder.db.read() as tx:
        assert get_covered(tx, finder.reach, dropped, now=NOW).id == kept


def test_letters_are_the_first_of_a_name_or_of_its_words(finder: Finder) -> None:
    first = finder.enrol(1, last_name="Müller-Lee", first_name="Robin")
    second = finder.enrol(2, last_name="O'Neil", first_name="Mary Ann", plan=1)
    for letters in ("m", "MUL", "muell", "Mü", "lee", "müller-l", "mullerlee"):
        assert finder.born(letters) == [first], letters
    for letters in ("oneil", "O'N"):
        assert finder.born(letters) == [second], letters
    assert finder.born(first_name="ann") == [second]
    assert finder.born("o", "rob") == []
    assert finder.born("uller") == []
    assert finder.born("m", dob="1977-01-12") == []


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
    finder: Finder, by: ByBirthDate, fields: set[str]
) -> None:
    with pytest.raises(Invalid) as refused:
        finder.found(by)
    assert {fault.field for fault in refused.value.faults} == fields


def test_a_search_by_birth_date_needs_an_account(finder: Finder) -> None:
    with pytest.raises(Invalid) as refused:
        finder.found(ByBirthDate(DOB, "m"), EVERY)
    assert [fault.field for fault in refused.value.faults] == ["account"]


def test_nobody_beyond_the_reach_is_found(finder: Finder, db: Database) -> None:
    id_ = finder.enrol(1)
    stranger = Reach.of(make_customer(db, name="Stranger").account_id)
    for by in (ByExternalId("AB 000001"), ByEmail("robin.1@example.com"), ByBirthDate(DOB, "s")):
        assert finder.ids(by) == [id_]
        assert finder.ids(by, stranger) == []
    assert finder.ids(ByExternalId("AB 000001"), EVERY) == [id_]
    for read in (get_covered, find_similar_to):
        with pytest.raises(NotFound), db.read() as tx:
            read(tx, stranger, id_, now=NOW)


def test_more_than_fifty_are_said_to_be_more(
    finder: Finder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MOST_FOUND", 2)
    ids = [finder.enrol(number) for number in (1, 2)]
    assert finder.found(ByBirthDate(DOB, "sample")).truncated is None
    finder.enrol(3)
    found = finder.found(ByBirthDate(DOB, "sample"))
    assert [person.id for person in found.people] == ids
    assert found.truncated is Truncation.MORE_FIT


def test_of_a_birth_date_with_too_many_people_exact_names_are_found(
    finder: Finder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MOST_BORN", 2)
    ids = [finder.enrol(number) for number in (1, 2)]
    assert finder.found(ByBirthDate(DOB, "sample")) == finder.found(ByBirthDate(DOB, "s"))
    assert finder.born("s") == ids
    finder.enrol(3)
    assert finder.found(ByBirthDate(DOB, "s")) == FoundPeople(
        people=(), truncated=Truncation.TOO_MANY_BORN
    )
    found = finder.found(ByBirthDate(DOB, "SAMPLE 2", "robin"))
    assert [person.id for person in found.people] == ids[1:]
    assert found.truncated is Truncation.TOO_MANY_BORN


def test_the_people_similar_to_one_have_its_names_and_birth_date(
    finder: Finder, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = finder.enrol(1, last_name="O'Sample")
    other = finder.enrol(2, last_name="o sample", plan=1, expiry_date="2026-01-31")
    third = finder.enrol(3, last_name="OSAMPLE")
    finder.enrol(4, last_name="OSAMPLE", dob="1977-01-12")
    finder.enrol(5, last_name="Other")
    assert finder.similar(one) == [other, third]
    assert finder.similar(other) == [one, third]
    monkeypatch.setattr(search, "MOST_SIMILAR", 1)
    found = db.ask(lambda tx: find_similar_to(tx, finder.reach, one, now=NOW))
    assert found.truncated is Truncation.MORE_FIT
    monkeypatch.undo()
    with db.write() as tx:
        pair = lock_pair(tx, finder.reach, "AB 000002", "AB 000001")
        call_distinct(tx, *pair, WHO)
    assert (finder.similar(one), finder.similar(other)) == ([third], [third])
    finder.merge(1, 3)
    assert finder.similar(other) == []


def test_similar_people_are_read_up_to_a_bound(
    finder: Finder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [finder.enrol(number, last_name="Same") for number in range(1, 5)]
    monkeypatch.setattr(search, "MOST_NAMESAKES", 2)
    assert len(finder.similar(ids[0])) < 3


def test_a_covered_person_shows_no_name_and_no_birth_date(finder: Finder, db: Database) -> None:
    marker = "Qzx"
    marked = ("first_name", "last_name", "middle_name", "city", "county")
    values: dict[str, Any] = {name: f"{marker}{name}" for name in marked}
    values |= {"email": f"{marker}@{marker}.{marker}.com", "metadata": {marker: marker}}
    id_ = finder.enrol(7, **values)
    shown = db.ask(lambda tx: get_covered(tx, finder.reach, id_, now=NOW))
    assert shown == CoveredPerson(
        id=id_,
        account_id=finder.customer.account_id,
        plan_id=finder.customer.plan_ids[0],
        external_id="AB 000007",
        initials="Q. Q.",
        birth_year=1977,
        masked_email="Q…@Q….com",
        is_eligible=True,
        first_day="2026-01-01",
        last_day=None,
        last_change=shown.last_change,
    )
    change = shown.last_change
    assert change is not None
    assert (change.at, change.client) == (NOW, finder.customer.client_id)
    assert (change.outcome, "last_name" in change.fields) == ("created", True)
    for hidden in (marker, "01-11", "02134", "9999999999", "M-000007"):
        assert hidden.lower() not in str(shown).lower()


def test_a_covered_person_is_eligible_by_the_day(finder: Finder, db: Database) -> None:
    id_ = finder.enrol(1, expiry_date="2026-12-31")
    for days, eligible in ((0, True), (60, False), (-400, False)):
        then = NOW + timedelta(days=days)
        with db.read() as tx:
            shown = get_covered(tx, finder.reach, id_, now=then)
        assert (shown.is_eligible, shown.last_day) == (eligible, "2026-12-31")


def test_an_erased_person_is_not_found_and_covers_nothing(
    finder: Finder, db: Database, clock: SetClock
) -> None:
    id_ = finder.enrol(1)
    erase_person(db, db.ask(lambda tx: find_persons(tx, EVERY, "AB 000001")), WHO, clock)
    with pytest.raises(NotFound):
        db.ask(lambda tx: get_covered(tx, finder.reach, id_, now=NOW))
    [values] = db.ask(lambda tx: find_members(tx, EVERY, id_, withdrawn=True, column="id"))
    shown = cover(values, AccountDay("2026-11-20", "2026-11-20"))
    assert (shown.initials, shown.birth_year, shown.masked_email) == ("", None, None)
    assert (shown.external_id, shown.is_eligible) == ("", False)


def test_masks_name_no_mailbox_and_no_domain() -> None:
    assert mask_email("robin@example") == "r…@…"
    assert mask_email("r@e.co.uk") == "r…@e….uk"
    assert covered.initials_of("", "-") == ""
