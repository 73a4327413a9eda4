"""Which columns an update of members names: those that it changes and, where it is small, those of earlier updates."""

import re
import sys
from typing import Any

import pytest

from frontdesk.config import Uniqueness
from frontdesk.db import Database
from frontdesk.eligibility import parse_member
from frontdesk.eligibility.enrol import MANY, enrol
from frontdesk.eligibility.model import Outcome, Submission
from frontdesk.eligibility.store import find_members
from tests.db.statements import statements
from tests.factories import NOW, Customer, member_body

FOLLOW = {"row_digest", "person_digest", "updated_at"}  # from other columns


def _enrol(db: Database, customer: Customer, *bodies: dict[str, Any], plan: int = 0) -> list[set[str]]:
    """The columns that each update of members named."""
    place = (customer.account_id, customer.plan_ids[plan])
    chunk = [
        Submission(*place, parse_member(body, today="2026-11-20"), "client", "request") for body in bodies
    ]
    with statements(db, "UPDATE members ") as sent, db.write() as tx:
        results = enrol(tx, chunk, now=NOW, uniqueness=Uniqueness.SERVICE)
    expected = {Outcome.CREATED} if not sent else {Outcome.MOVED if plan else Outcome.UPDATED}
    assert {getattr(result, "outcome", None) for result in results} == expected
    found = (
        re.search(r"UPDATE members (?:t )?SET (.+?) (?:FROM|WHERE) ", statement) for statement, _ in sent
    )
    return [set(re.findall(r"(\w+) = ", update[1])) - FOLLOW for update in found if update]


def _member(db: Database, number: int) -> dict[str, Any]:
    [found] = db.ask(lambda tx: find_members(tx, f"AB {number:06}", None))
    return {name: value for name, value in found.items() if name != "updated_at"}


def test_an_update_names_what_changes_and_where_it_is_small_what_changed_before(
    db: Database, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["frontdesk.eligibility.enrol"], "changed_before", set())
    numbers = range(1, MANY + 1)
    assert _enrol(db, customer, *map(member_body, numbers)) == []
    last_name, email = {"last_name"}, {"email", "email_folded"}
    assert _enrol(db, customer, member_body(1, last_name="Second")) == [last_name]
    assert _enrol(db, customer, member_body(2, email="new@example.com")) == [last_name | email]
    assert _enrol(db, customer, member_body(1, last_name="Third")) == [last_name | email]
    moved = [member_body(number, email=..., last_name=..., city="Salem") for number in numbers]
    assert _enrol(db, customer, *moved, plan=1) == [{"plan_id", "city"}]
    assert _member(db, MANY)["plan_id"] == customer.plan_ids[1]


def test_records_that_change_different_columns_keep_all_others(db: Database, customer: Customer) -> None:
    _enrol(db, customer, *(member_body(number) for number in (1, 2, 3)))
    before = {number: _member(db, number) for number in (1, 2, 3)}
    changes: dict[int, dict[str, Any]] = {
        1: {"last_name": "Changed"},
        2: {"email": "Other@Example.com"},
        3: {"metadata": {"department": "South"}, "city": None},
    }
    _enrol(db, customer, *(member_body(number, **changed) for number, changed in changes.items()))
    derived = {2: {"email_folded": "other@example.com"}}
    for number, changed in changes.items():
        assert _member(db, number) == before[number] | changed | derived.get(number, {})
