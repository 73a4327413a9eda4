"""A caller's words are compared with the record as the service compares; each check is recorded
without the words, and limited by person.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from frontdesk.db import Database
from frontdesk.disclosures import check_answer
from frontdesk.disclosures.model import CHECKS_AN_HOUR, CallersWords, CheckAnswer, CheckedField
from frontdesk.disclosures.tables import disclosures
from frontdesk.errors import Invalid, NotFound, RateLimited
from frontdesk.reach import EVERY, Reach
from tests.disclosures.conftest import Trail
from tests.eligibility.finding import WHO, Finder
from tests.factories import NOW, make_customer

NAMES: dict[str, Any] = {"first_name": "Zoë Ann", "last_name": "O'Müller Jr."}


def agrees(finder: Finder, member_id: int, field: str, text: str, *, minutes: float = 0) -> bool:
    requester = WHO._replace(now=NOW + timedelta(minutes=minutes))
    with finder.db.write() as tx:
        said = CallersWords(member_id, 1, CheckedField(field), text)
        result = check_answer(tx, requester, finder.reach, said)
    return result is CheckAnswer.MATCHES


@pytest.mark.parametrize(
    ("field", "right", "wrong"),
    [
        ("dob", ("1977-01-11", "01/11/1977", "1/11/1977"), ("1977-11-01", "11/1/1977")),
        ("last_name", ("o muller", "OMUELLER", "O'Müller"), ("Mueller", "O", "Omullers")),
        ("first_name", ("zoe ann", "ZOEANN", " Zoë-Ann "), ("Zoe", "Ann Zoe", "-")),
        ("zipcode", ("02134", "02134-9999", "02134 9999"), ("02135", "2134", "0213")),
        ("email", ("Robin.1@EXAMPLE.com",), ("robin.1@example.org", "robin.1")),
        ("phone", ("(999) 999-9999", "+1 999.999.9999"), ("999 999 9998", "9999999")),
        ("external_id", ("AB 000001",), ("ab 000001", "AB000001")),
    ],
)
def test_words_agree_as_the_service_compares(
    finder: Finder, field: str, right: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    id_ = finder.enrol(1, **NAMES)
    assert [agrees(finder, id_, field, text) for text in right] == [True] * len(right)
    assert [agrees(finder, id_, field, text) for text in wrong] == [False] * len(wrong)


def test_nine_digits_of_a_zip_code_are_compared_with_nine(finder: Finder) -> None:
    id_ = finder.enrol(1, zipcode="02134-5678")
    said = ("02134", "02134-5678", "021345678", "02134-5679")
    assert [agrees(finder, id_, "zipcode", text) for text in said] == [True, True, True, False]


def test_an_absent_value_differs(finder: Finder) -> None:
    id_ = finder.enrol(1, email=..., phone=...)
    assert not agrees(finder, id_, "email", "none@example.com")
    assert not agrees(finder, id_, "phone", "0")


def test_the_trail_tells_the_field_and_the_result_and_not_the_words(
    finder: Finder, trail: Trail
) -> None:
    id_ = finder.enrol(1)
    agrees(finder, id_, "zipcode", "02134")
    agrees(finder, id_, "last_name", "Qzxmarker")
    entries = trail("member.checked")
    assert [entry["detail"] for entry in entries] == [
        {"field": "zipcode", "result": "matches"},
        {"field": "last_name", "result": "differs"},
    ]
    account_id = finder.customer.account_id
    place = {(entry["account_id"], entry["subject_id"], entry["actor"]) for entry in entries}
    assert place == {(account_id, id_, "user:1")}
    assert "Qzxmarker" not in str(entries)


@pytest.mark.parametrize(
    ("field", "text", "code"),
    [
        ("last_name", "x" * 255, "too_long"),
        ("last_name", " ", "required"),
        ("last_name", "\0", "control_character"),
        ("dob", "1977-02-30", "not_a_date"),
        ("dob", "January", "not_a_date"),
    ],
)
def test_words_that_can_not_be_read_are_refused_and_not_counted(
    finder: Finder, trail: Trail, field: str, text: str, code: str
) -> None:
    id_ = finder.enrol(1)
    for _ in range(CHECKS_AN_HOUR + 1):
        with pytest.raises(Invalid) as refused:
            agrees(finder, id_, field, text)
        assert [fault.code for fault in refused.value.faults] == [code]
    assert trail("member.checked") == []
    assert agrees(finder, id_, "last_name", "x" * 254) is False


def test_a_person_is_checked_ten_times_an_hour_by_whomever(finder: Finder, trail: Trail) -> None:
    id_ = finder.enrol(1)
    other = finder.enrol(2)
    for minute in range(CHECKS_AN_HOUR):
        agrees(finder, id_, "zipcode", "02134", minutes=minute)
    stranger = WHO._replace(actor="user:2", now=NOW + timedelta(minutes=30))
    with pytest.raises(RateLimited) as refused, finder.db.write() as tx:
        check_answer(tx, stranger, EVERY, CallersWords(id_, 1, CheckedField.ZIPCODE, "02134"))
    assert refused.value.retry_after_seconds == 30 * 60
    assert agrees(finder, other, "zipcode", "02134", minutes=30)
    assert agrees(finder, id_, "zipcode", "02134", minutes=60.5)
    with pytest.raises(RateLimited):
        agrees(finder, id_, "zipcode", "02134", minutes=60.6)
    assert len(trail("member.checked")) == CHECKS_AN_HOUR + 2


def test_checks_at_once_don_t_pass_the_limit(finder: Finder) -> None:
    id_ = finder.enrol(1)

    def check(_: int) -> bool:
        try:
            return agrees(finder, id_, "zipcode", "02134")
        except RateLimited:
            return False

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(check, range(24))) == CHECKS_AN_HOUR


def test_old_disclosures_are_deleted_by_new_ones(finder: Finder, db: Database) -> None:
    id_ = finder.enrol(1)
    for minute in (0, 1, 90):
        agrees(finder, id_, "zipcode", "02134", minutes=minute)
    with db.read() as tx:
        assert len(tx.execute(disclosures.select()).all()) == 1


def test_nobody_beyond_the_reach_is_checked(finder: Finder, db: Database) -> None:
    id_ = finder.enrol(1)
    stranger = Reach.of(make_customer(db, name="Stranger").account_id)
    with pytest.raises(NotFound), db.write() as tx:
        check_answer(tx, WHO, stranger, CallersWords(id_, 1, CheckedField.DOB, "1977-01-11"))
