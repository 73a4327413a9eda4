"""A new member that looks like a stored one is created, with a warning that names that one's id."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from frontdesk import codes
from frontdesk.config import Uniqueness
from frontdesk.db import Database
from frontdesk.eligibility import enrol, find_members, parse_member
from frontdesk.eligibility.model import (
    Enrolled,
    MemberWarning,
    RowContext,
    StatedPerson,
    Submission,
)
from frontdesk.eligibility.store import list_similar_pairs
from frontdesk.reach import EVERY, Reach
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer, make_customer, member_body
from tests.files.loading import COLUMNS, Desk, csv_of, row
from tests.formats.reading import person

ENDS = (*COLUMNS, "expiry_date")
TWIN = {"first_name": "Róbin-Lee", "last_name": "O'Sample", "dob": "1990-05-06"}
WRITTEN_OTHERWISE = {"first_name": "RÓBIN LEE", "last_name": "O Sample", "dob": "1990-05-06"}


def post(api: Api, customer: Customer, number: int, **fields: Any) -> str:
    answer = api.post(
        f"/v2/plans/{customer.plan_ids[0]}/eligibility", member_body(number, **fields)
    )
    assert answer.status_code in (200, 201), answer.text
    return str(answer.headers.get("Eligibility-Warnings", ""))


def id_of(db: Database, number: int) -> int:
    [found] = db.ask(lambda tx: find_members(tx, EVERY, f"AB {number:06d}"))
    return int(found["id"])


def test_a_new_member_that_looks_like_another_is_told(
    api: Api, db: Database, customer: Customer
) -> None:
    assert post(api, customer, 1, **TWIN) == ""
    assert post(api, customer, 2, **WRITTEN_OTHERWISE) == f"similar_member;member={id_of(db, 1)}"
    assert post(api, customer, 2, **TWIN) == ""  # only as it is created
    assert post(api, customer, 3, **TWIN | {"dob": "1990-05-07"}) == ""
    other = make_customer(db, name="Other")
    assert post(api.as_(other.token), other, 4, **TWIN) == ""


def test_a_change_of_the_names_and_its_undo_are_followed(
    api: Api, db: Database, customer: Customer
) -> None:
    post(api, customer, 1, **TWIN)
    post(api, customer, 1, **TWIN | {"last_name": "Married"})
    assert post(api, customer, 2, **TWIN) == ""
    warning = f"similar_member;member={id_of(db, 1)}"
    assert post(api, customer, 3, **TWIN | {"last_name": "MARRIED"}) == warning
    # A member counts while its access lasts.
    for number, (expiry, warned) in enumerate((("2026-11-19", False), ("2026-11-20", True)), 4):
        names = {"first_name": f"Until {number}", "last_name": "Then"}
        post(api, customer, 10 * number, **names, expiry_date=expiry)
        assert bool(post(api, customer, 10 * number + 1, **names)) is warned


def test_a_member_of_the_same_family_and_birth_date_is_similar(
    db: Database, customer: Customer
) -> None:
    """A newborn whose name came later. The digest of a family comes from an 834 only."""
    context = RowContext(person=StatedPerson(family="f" * 32))
    told = []
    for number, dob in ((1, "1980-02-03"), (2, "1980-02-03"), (3, "1980-02-04")):
        record = parse_member(
            member_body(number, first_name=f"One {number}", dob=dob), today="2026-11-20"
        )
        place = (customer.account_id, customer.plan_ids[0])
        submission = Submission(*place, record, "client", "request", file_id=1, context=context)
        with db.write() as tx:
            [result] = enrol(tx, [submission], now=NOW, uniqueness=Uniqueness.SERVICE)
        assert isinstance(result, Enrolled)
        told.append(result.warnings)
    assert told == [
        (),
        (MemberWarning.of(codes.warnings.SIMILAR_MEMBER, member_id=id_of(db, 1)),),
        (),
    ]


def family(desk: Desk, *people: tuple[str, str], dry_run: bool = False) -> list[tuple[str, str]]:
    """Load these people, each with a number of its own, of one REF*0F; what the report says."""
    loops = (
        person(first, born, family="F1", number=f"REF*23*{first}-{born}~", relation="19")
        for first, born in people
    )
    file = desk.load_834(*loops, mapping={"834": {"identify": "REF*23"}}, dry_run=dry_run)
    return desk.codes(file)


CREATED = ("created", "")
SIMILAR = ("warned", "similar_member")


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_member_of_the_same_family_and_first_name_is_similar(
    db: Database, customer: Customer, clock: SetClock, dry_run: bool
) -> None:
    """One child, whose number and birth date were corrected. Placeholders of newborns are no names."""
    desk = Desk(db, customer, clock)
    assert family(desk, ("Zoë", "20190105"), ("Baby Boy", "20260909")) == [CREATED, CREATED]
    rows = [("ZOE", "20191205"), ("Max", "20110203"), ("Baby Boy", "20260808")]
    found = family(desk, *rows, dry_run=dry_run)
    assert found == [CREATED, SIMILAR, CREATED, CREATED]


@pytest.mark.parametrize("dry_run", [True, False])
def test_new_members_of_one_family_and_first_name_are_similar(
    db: Database, customer: Customer, clock: SetClock, dry_run: bool
) -> None:
    """Also over chunks."""
    desk = Desk(db, customer, clock)
    desk.options = replace(desk.options, chunk_rows=1)
    rows = [("Zoë", "20190105"), ("Max", "20110203"), ("Zoe", "20191205")]
    assert family(desk, *rows, dry_run=dry_run) == [CREATED, CREATED, CREATED, SIMILAR]


def test_relatives_with_one_first_name_are_listed_as_a_pair(
    db: Database, customer: Customer, clock: SetClock
) -> None:
    desk = Desk(db, customer, clock)
    family(desk, ("Zoe", "20190105"), ("Max", "20110203"), ("ZOE", "20191205"))
    [pair] = db.ask(
        partial(
            list_similar_pairs,
            reach=Reach.of(customer.account_id),
            after=(0, 0),
            until=2**62,
            today="2026-11-20",
            limit=10,
        )
    )
    assert (pair.external_id, pair.other_external_id) == ("ZOE-20191205", "Zoe-20190105")


def test_a_number_of_a_group_is_no_family_to_look_through(
    db: Database, customer: Customer, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.eligibility.store.MOST_RELATIVES", 2)
    desk = Desk(db, customer, clock)
    family(desk, ("Ana", "19710101"), ("Bela", "19720202"), ("Zoe", "20190105"))
    assert family(desk, ("Ana", "19810101"), ("Zoe", "20191205")) == [CREATED, SIMILAR, CREATED]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_file_is_told_of_stored_people_and_of_its_own(
    db: Database, customer: Customer, clock: SetClock, dry_run: bool
) -> None:
    desk = Desk(db, customer, clock)
    desk.load(csv_of([row(1, **TWIN), row(5, last_name="Gone", expiry_date="2026-12-31")], ENDS))
    clock.advance(timedelta(hours=1).total_seconds())
    rows = [
        row(2, **WRITTEN_OTHERWISE),
        row(3, first_name="New"),
        row(4, first_name="NEW", last_name="Sample 3"),
        row(5, last_name="Gone", expiry_date="2026-01-01"),
        row(6, last_name="Gone"),
    ]
    file = desk.load(csv_of(rows, ENDS), dry_run=dry_run)
    assert [place for place, outcome, code in desk.outcomes(file) if code == "similar_member"] == [
        2,
        4,
    ]
