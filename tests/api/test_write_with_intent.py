"""A POST that may only create, only update, or move nobody: decided with the write, before the
faults of fields.
"""

import asyncio
from typing import Any

import pytest

from frontdesk.app import App
from frontdesk.db import Database
from frontdesk.eligibility import parse_member
from frontdesk.eligibility.model import Enrolled, Intent, Submission
from frontdesk.errors import PreconditionFailed
from tests.api.conftest import codes
from tests.conftest import Api
from tests.factories import Customer, make_customer, member_body

CREATE = {"If-None-Match": "*"}
UPDATE = {"If-Match": "*"}
WAYS_TO_UPDATE: list[tuple[str, dict[str, str]]] = [
    ("?only=update", {}),
    ("", UPDATE),
    ("?only=update", UPDATE),
]


@pytest.fixture
def path(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility"


def told(answer: Any) -> tuple[int, str, dict[str, str]]:
    """Status, kind and codes of a refusal."""
    return answer.status_code, answer.json()["type"].partition("#")[2], codes(answer)


def test_create_only_refuses_a_stored_member_and_changes_nothing(
    api: Api, customer: Customer, path: str
) -> None:
    first = api.post(path, member_body(), headers=CREATE)
    assert (first.status_code, first.headers["Eligibility-Outcome"]) == (201, "created")
    refused = (412, "precondition_failed", {"external_id": "member_exists"})
    other_plan = f"/v2/plans/{customer.plan_ids[1]}/eligibility"
    for address, body in (
        (path, member_body(last_name="Other")),
        (path, member_body(dob="?")),
        (other_plan, member_body()),
    ):
        assert told(api.post(address, body, headers=CREATE)) == refused
    assert api.post(path, {"external_id": "AB 000001"}).json() == first.json()
    assert codes(api.post(path, member_body(2, dob="?"), headers=CREATE)) == {"dob": "not_a_date"}
    assert codes(api.post(path, {"external_id": None}, headers=CREATE))["external_id"] == "required"


@pytest.mark.parametrize(("query", "headers"), WAYS_TO_UPDATE)
def test_update_only_creates_nobody(
    api: Api, path: str, query: str, headers: dict[str, str]
) -> None:
    unknown = (404, "not_found", {"external_id": "no_such_member"})
    for body in (
        member_body(),
        {"external_id": "AB 000001"},
        {"external_id": "AB 000001", "dob": "?"},
    ):
        assert told(api.post(path + query, body, headers=headers)) == unknown
    assert api.post(path, member_body()).status_code == 201
    updated = api.post(
        path + query, {"external_id": "AB 000001", "last_name": "Other"}, headers=headers
    )
    assert (updated.status_code, updated.json()["last_name"]) == (200, "Other")
    assert codes(api.post(path + query, {"external_id": " "}, headers=headers)) == {
        "external_id": "required"
    }


def test_no_move_leaves_a_member_under_its_plan(api: Api, customer: Customer, path: str) -> None:
    first = api.post(path + "?move=false", member_body())
    assert first.status_code == 201
    other = f"/v2/plans/{customer.plan_ids[1]}/eligibility"
    for body in (
        {"external_id": "AB 000001", "city": "Salem"},
        {"external_id": "AB 000001", "dob": "?"},
    ):
        refused = api.post(other + "?move=false", body)
        assert told(refused) == (409, "conflict", {"external_id": "other_plan"})
    here = api.post(path + "?move=false", {"external_id": "AB 000001"})
    assert (here.headers["Eligibility-Outcome"], here.json()) == ("unchanged", first.json())
    moved = api.post(other + "?move=true", {"external_id": "AB 000001"})
    assert moved.headers["Eligibility-Outcome"] == "moved"


def test_a_member_of_another_account_is_no_member(api: Api, db: Database, path: str) -> None:
    stranger = make_customer(db, name="Stranger")
    theirs = api.as_(stranger.token)
    assert (
        theirs.post(f"/v2/plans/{stranger.plan_ids[0]}/eligibility", member_body()).status_code
        == 201
    )
    body = member_body(member_id="M-2", email=None)
    assert told(api.post(path + "?only=update&move=false", body))[2] == {
        "external_id": "no_such_member"
    }
    assert codes(api.post(path + "?move=false", body, headers=CREATE)) == {
        "external_id": "not_unique"
    }


@pytest.mark.parametrize("headers", [
    {"If-Match": '"8c6c1d7f0a3b2e19"'}, {"If-None-Match": '"8c6c1d7f0a3b2e19"'}, {"If-Match": '*, "a"'},
    {"If-Match": "*", "If-None-Match": "*"}, {"If-None-Match": "*", "Only": "update"},
])  # fmt: skip
def test_conditions_that_make_no_sense_are_refused(
    api: Api, path: str, headers: dict[str, str]
) -> None:
    query = "?only=update" if "Only" in headers else ""
    answer = api.post(path + query, member_body(), headers=headers)
    assert (answer.status_code, answer.json()["type"].partition("#")[2]) == (400, "malformed")
    assert api.post(path, member_body(), headers=CREATE).status_code == 201


def test_a_misspelt_value_is_refused_and_an_unknown_parameter_is_named(api: Api, path: str) -> None:
    wrong = {"?only=create": "only", "?only=": "only", "?move=no": "move"}
    for query, field in wrong.items():
        assert codes(api.post(path + query, member_body())) == {field: "not_allowed"}
    assert codes(api.post(path + "?move=true&move=false", member_body())) == {"move": "repeated"}
    empty = api.post(
        path + "?mov=false", member_body(), headers={"If-Match": "", "If-None-Match": " "}
    )
    assert (
        empty.status_code,
        empty.headers["Ignored-Parameters"],
        empty.headers["Did-You-Mean"],
    ) == (201, "mov", "mov=move")


def test_of_many_that_create_the_same_member_one_does(app: App, customer: Customer) -> None:
    def one(number: int) -> Submission:
        record = parse_member(member_body(city=f"City {number}"), today="2026-11-20")
        place = (customer.account_id, customer.plan_ids[number % 2])
        return Submission(*place, record, "client", f"r-{number}", intent=Intent(updates=False))

    async def all_at_once() -> list[Enrolled | BaseException]:
        waiting = [app.enrolments.submit(one(number)) for number in range(20)]
        results = await asyncio.gather(*waiting, return_exceptions=True)
        await app.enrolments.close()
        return results

    results = asyncio.run(all_at_once())
    assert sum(isinstance(each, Enrolled) for each in results) == 1
    assert sum(isinstance(each, PreconditionFailed) for each in results) == 19
