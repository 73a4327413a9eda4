"""`FRONTDESK_UNIQUENESS=account`: unrelated customers may carry the same keys, one customer's records may not."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from frontdesk.clock import system_clock
from frontdesk.config import Config, Uniqueness, read_config
from frontdesk.db import Database
from frontdesk.db.checks import problems
from frontdesk.db.migrate import downgrade, upgrade
from frontdesk.eligibility import enrol, find_members, parse_member
from frontdesk.eligibility.model import Submission
from tests.conftest import Api
from tests.factories import Customer, make_customer, member_body


@pytest.fixture
def config(database_url: str) -> Config:
    shared = read_config(
        {"FRONTDESK_DATABASE_URL": database_url, "FRONTDESK_BASE_URL": "https://api.example.com"}
    )
    return replace(shared, uniqueness=Uniqueness.ACCOUNT)


@pytest.fixture
def other(db: Database) -> Customer:
    return make_customer(db, name="Other")


def installed_uniqueness(db: Database) -> str:
    return str(db.ask(lambda tx: tx.exec_driver_sql("SELECT uniqueness FROM installation").scalar()))


def path_of(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility"


def faults(answer: Any) -> dict[str, str]:
    return {fault["field"]: fault["code"] for fault in answer.json()["errors"]}


def test_two_accounts_carry_the_same_keys_as_two_records(
    api: Api, db: Database, customer: Customer, other: Customer
) -> None:
    ours = api.post(path_of(customer), member_body())
    theirs = api.as_(other.token).post(path_of(other), member_body(last_name="Theirs"))
    assert (ours.status_code, theirs.status_code) == (201, 201)
    assert ours.json()["id"] != theirs.json()["id"]
    again = api.post(path_of(customer), {"external_id": "AB 000001", "last_name": "Ours"})
    assert (again.status_code, again.json()["id"]) == (200, ours.json()["id"])
    assert api.as_(other.token).post(path_of(other), {"external_id": "AB 000001"}).json() == theirs.json()
    found = db.ask(lambda tx: find_members(tx, "AB 000001", None))
    assert {row["account_id"]: row["uniqueness_scope"] for row in found} == {
        customer.account_id: customer.account_id,
        other.account_id: other.account_id,
    }


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"member_id": "M-000001"}, "member_id"), ({"email": "ROBIN.1@Example.com"}, "email")],
)
def test_inside_one_account_a_key_is_carried_once(
    api: Api, customer: Customer, other: Customer, changes: dict[str, str], field: str
) -> None:
    api.post(path_of(customer), member_body(1))
    refused = api.post(path_of(customer), member_body(2, **changes))
    assert (refused.status_code, faults(refused)) == (422, {field: "not_unique"})
    assert api.as_(other.token).post(path_of(other), member_body(2, **changes)).status_code == 201


def test_each_account_invites_its_own_member(api: Api, customer: Customer, other: Customer) -> None:
    for caller, owner in ((api, customer), (api.as_(other.token), other)):
        answer = caller.post(path_of(owner), member_body(invite_immediately=True))
        assert (answer.status_code, answer.headers["Invitation"]) == (201, "immediate")
        again = caller.post(path_of(owner), member_body(invite_immediately=True))
        assert (again.status_code, again.headers["Invitation"]) == (200, "none; reason=not_new")


def test_another_accounts_plan_stays_unknown(api: Api, customer: Customer, other: Customer) -> None:
    api.post(path_of(customer), member_body())
    foreign = api.as_(other.token).post(path_of(customer), member_body())
    absent = api.as_(other.token).post("/v2/plans/999999/eligibility", member_body())
    assert (foreign.status_code, absent.status_code) == (404, 404)
    assert foreign.json()["detail"] == absent.json()["detail"]


def test_one_chunk_with_records_of_both_accounts_keeps_them_apart(
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
    ]
    with db.write() as tx:
        results = enrol(tx, chunk, now=system_clock(), uniqueness=Uniqueness.ACCOUNT)
    outcomes = [str(getattr(result, "outcome", type(result).__name__)) for result in results]
    assert outcomes == ["created", "created", "Invalid", "Invalid", "updated"]


def test_callers_of_two_accounts_at_once_create_a_record_each(
    api: Api, db: Database, customer: Customer, other: Customer
) -> None:
    calls = [(api, customer), (api.as_(other.token), other)] * 4

    def post(call: tuple[Api, Customer]) -> int:
        caller, owner = call
        return int(caller.post(path_of(owner), member_body()).status_code)

    with ThreadPoolExecutor(len(calls)) as threads:
        statuses = sorted(threads.map(post, calls))
    assert statuses == [200] * 6 + [201] * 2
    assert len(db.ask(lambda tx: find_members(tx, "AB 000001", None))) == 2


def test_the_first_migration_writes_the_setting_down_and_another_one_is_refused(
    owner: Database, database_url: str, config: Config
) -> None:
    db = owner
    downgrade(db, "base")
    try:
        upgrade(db, uniqueness="account")
        assert installed_uniqueness(db) == "account"
        assert problems(db, config) == []
        [problem] = problems(db, read_config({"FRONTDESK_DATABASE_URL": database_url}))
        assert "FRONTDESK_UNIQUENESS=account" in problem.remedy
        assert upgrade(db, uniqueness="service") == []
        assert installed_uniqueness(db) == "account"
    finally:
        downgrade(db, "base")
        upgrade(db)
