"""Which columns an update of members names: those that it changes and, where it is small, those of earlier updates."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import event

from frontdesk.clock import system_clock
from frontdesk.config import Uniqueness
from frontdesk.db import Database
from frontdesk.eligibility import parse_member
from frontdesk.eligibility.enrol import MANY, changed_before, enrol
from frontdesk.eligibility.model import Enrolled, Outcome, Submission
from frontdesk.eligibility.store import find_members
from tests.factories import Customer, member_body


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """As in a process that has updated nothing yet."""
    before = set(changed_before)
    changed_before.clear()
    yield
    changed_before.clear()
    changed_before.update(before)


@pytest.fixture
def named(db: Database) -> list[set[str]]:
    """The columns that each update of members named, without those that follow from others."""
    found: list[set[str]] = []

    def look(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if update := re.search(r"UPDATE members (?:t )?SET (.+?) (?:FROM|WHERE) ", statement):
            found.append(
                set(re.findall(r"(\w+) = ", update[1])) - {"row_digest", "person_digest", "updated_at"}
            )

    event.listen(db.engine, "before_cursor_execute", look)
    return found


def _enrol(db: Database, customer: Customer, *bodies: dict[str, Any], plan: int = 0) -> list[Outcome]:
    place, today = (customer.account_id, customer.plan_ids[plan]), "2026-11-20"
    chunk = [Submission(*place, parse_member(body, today=today), "client", "request") for body in bodies]
    with db.write() as tx:
        results = enrol(tx, chunk, now=system_clock(), uniqueness=Uniqueness.SERVICE)
    return [result.outcome for result in results if isinstance(result, Enrolled)]


def _member(db: Database, number: int) -> dict[str, Any]:
    [found] = db.ask(lambda tx: find_members(tx, f"AB {number:06}", None))
    return {name: value for name, value in found.items() if name != "updated_at"}


def test_an_update_names_what_changes_and_what_changed_before(
    db: Database, customer: Customer, named: list[set[str]]
) -> None:
    _enrol(db, customer, member_body(1), member_body(2))
    assert _enrol(db, customer, member_body(1, last_name="Second")) == [Outcome.UPDATED]
    assert _enrol(db, customer, member_body(2, email="new@example.com")) == [Outcome.UPDATED]
    assert _enrol(db, customer, member_body(1, last_name="Third")) == [Outcome.UPDATED]
    last_name, email = {"last_name"}, {"email", "email_folded"}
    assert named == [last_name, last_name | email, last_name | email]
    # Where it is large, only what changes.
    numbers = range(1, MANY + 1)
    _enrol(db, customer, *map(member_body, numbers))
    moved = [member_body(number, city="Salem") for number in numbers]
    assert _enrol(db, customer, *moved, plan=1) == [Outcome.MOVED] * MANY
    assert {number for number in (1, MANY) if _member(db, number)["plan_id"] == customer.plan_ids[1]} == {
        1,
        MANY,
    }
    assert named[-1] == {"plan_id", "city"}


def test_records_that_change_different_columns_keep_all_others(
    db: Database, customer: Customer, named: list[set[str]]
) -> None:
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
    assert named == [{"last_name", "email", "email_folded", "metadata", "city"}]
