"""`FRONTDESK_UNIQUENESS=account`: unrelated customers may carry the same keys, one customer's
records may not.
"""

from typing import Any

import pytest

from frontdesk.clock import system_clock
from frontdesk.config import Config, Uniqueness, read_config
from frontdesk.db import Database
from frontdesk.db.checks import problems
from frontdesk.db.migrate import downgrade, upgrade
from frontdesk.eligibility import enrol, find_members, parse_member
from frontdesk.eligibility.model import Submission
from frontdesk.reach import EVERY
from tests.conftest import Api
from tests.factories import Customer, make_customer, member_body


@pytest.fixture
def config(database_url: str) -> Config:
    names = {
        "DATABASE_URL": database_url,
        "BASE_URL": "https://api.example.com",
        "UNIQUENESS": "account",
    }
    return read_config({f"FRONTDESK_{name}": value for name, value in names.items()})


@pytest.fixture
def other(db: Database) -> Customer:
    return make_customer(db, name="Other")


def path_of(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility"


def test_two_accounts_carry_the_same_keys(
    api: Api, db: Database, customer: Customer, other: Customer
) -> None:
    invited = member_body(invite_immediately=True)
    ours = api.post(path_of(customer), invited)
    theirs = api.as_(other.token).post(path_of(other), invited | {"last_name": "Theirs"})
    assert (ours.status_code, theirs.status_code) == (201, 201)
    assert (ours.headers["Invitation"], theirs.headers["Invitation"]) == ("immediate", "immediate")
    assert ours.json()["id"] != theirs.json()["id"]
    again = api.post(path_of(customer), {"external_id": "AB 000001", "last_name": "Ours"})
    assert (again.status_code, again.json()["id"]) == (200, ours.json()["id"])
    assert (
        api.as_(other.token).post(path_of(other), {"external_id": "AB 000001"}).json()
        == theirs.json()
    )
    foreign = api.as_(other.token).post(path_of(customer), invited)
    absent = api.as_(other.token).post("/v2/plans/999999/eligibility", invited)
    assert (foreign.status_code, foreign.json()["detail"]) == (404, absent.json()["detail"])
    found = db.ask(lambda tx: find_members(tx, EVERY, "AB 000001"))
    assert {row["account_id"]: row["uniqueness_scope"] for row in found} == {
        customer.account_id: customer.account_id,
        other.account_id: other.account_id,
    }


def test_one_chunk_keeps_both_accounts_apart(
    db: Database, customer: Customer, other: Customer
) -> None:
    def submitted(owner: Customer, number: int, **changes: Any) -> Submission:
        record = parse_member(member_body(number, **changes), today="2026-11-20")
        return Submission(owner.account_id, owner.plan_ids[0], record, "client", "request")

    chunk = [
        submitted(customer, 1),
        submitted(other, 1),
        submitted(customer, 2, email="robin.1@example.com"),
        submitted(other, 2, member_id="M-000001"),
        submitted(customer, 1, last_name="Changed"),
        submitted(other, 3, member_id="M-000002"),
    ]
    with db.write() as tx:
        results = [*enrol(tx, chunk, now=system_clock(), uniqueness=Uniqueness.ACCOUNT)]
    refused = [
        [(fault.field, fault.code) for fault in getattr(each, "faults", ())] for each in results
    ]
    assert refused == [[], [], [("email", "not_unique")], [("member_id", "not_unique")], [], []]
    outcomes = [getattr(each, "outcome", None) for each in results]
    assert outcomes == ["created", "created", None, None, "updated", "created"]


def test_the_first_migration_decides_the_setting(
    owner: Database, database_url: str, config: Config
) -> None:
    downgrade(owner, "base")
    try:
        upgrade(owner, uniqueness="account")
        assert problems(owner, config) == []
        assert upgrade(owner, uniqueness="service") == []  # changes nothing
        [problem] = problems(owner, read_config({"FRONTDESK_DATABASE_URL": database_url}))
        assert "FRONTDESK_UNIQUENESS=account" in problem.remedy
    finally:
        downgrade(owner, "base")
        upgrade(owner)
