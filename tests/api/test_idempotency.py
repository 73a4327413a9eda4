"""A retry with an Idempotency-Key gets the first answer again, and nothing is written twice."""

import io
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from frontdesk.app import App
from frontdesk.asgi import build_asgi
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.web.telemetry import Telemetry
from tests.api.conftest import Trail, codes
from tests.conftest import Api, SetClock, open_for_test
from tests.factories import Customer, make_customer, member_body
from tests.patience import wait_until

# Of each answer these are its own, whatever was stored.
FRESH = {"x-request-id", "idempotency-replayed", "ratelimit"}


def same(first: Any, again: Any) -> None:
    """The second answer is the first one, and says that it is stored."""
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert (again.status_code, again.content) == (first.status_code, first.content)
    headers = [
        {name: value for name, value in each.headers.items() if name not in FRESH} for each in (first, again)
    ]
    assert headers[0] == headers[1]


def stored(db: Database) -> int:
    with db.read() as tx:
        return int(tx.exec_driver_sql("SELECT count(*) FROM stored_answers").scalar_one())


@pytest.fixture
def plan(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}"


def test_a_patch_is_applied_once_and_its_retry_gets_the_first_answer(
    api: Api, plan: str, db: Database, trail: Trail
) -> None:
    tag = api.get(plan).headers["ETag"]
    headers = {"Idempotency-Key": "patch-1", "If-Match": tag}
    body = {"name": "Gold Plus", "colour": "red"}
    first = api.patch(plan, body, headers=headers)
    api.patch(plan, {"name": "Newer"})
    same(first, api.patch(plan, body, headers=headers))  # although If-Match is out of date
    assert first.headers["Ignored-Fields"] == "colour"
    assert api.get(plan).json()["data"][0]["name"] == "Newer"
    assert (len(trail("plan.changed")), len(trail("answer.replayed")), stored(db)) == (2, 1, 1)


def test_a_key_is_for_one_request_of_one_account(
    api: Api, plan: str, customer: Customer, db: Database
) -> None:
    headers, body = {"Idempotency-Key": "one"}, {"name": "Gold Plus"}
    assert api.patch(plan, body, headers=headers).status_code == 200
    other_plan = f"/v2/plans/{customer.plan_ids[1]}"
    for path, sent, more in (
        (plan, {"name": "Other"}, {}),
        (other_plan, body, {}),
        (plan + "?a=b", body, {}),
        (plan, body, {"Content-Type": "application/merge-patch+json"}),
    ):
        answer = api.patch(path, sent, headers=headers | more)
        assert (answer.status_code, codes(answer)) == (422, {"Idempotency-Key": "idempotency_key_reused"})
    for odd in ("", "a b", "x" * 256, "\x7f", "é"):
        answer = api.patch(plan, body, headers={"Idempotency-Key": odd.encode("latin-1")})
        assert (answer.status_code, codes(answer)) == (422, {"Idempotency-Key": "not_allowed"})
    theirs = make_customer(db, name="Other")
    answer = api.as_(theirs.token).patch(f"/v2/plans/{theirs.plan_ids[0]}", body, headers=headers)
    assert "Idempotency-Replayed" not in answer.headers
    assert api.as_(theirs.token).patch(plan, body, headers={"Idempotency-Key": "new"}).status_code == 404
    assert stored(db) == 2


def test_a_refused_request_leaves_its_key_free(api: Api, plan: str, db: Database) -> None:
    headers = {"Idempotency-Key": "corrected"}
    for status, path, body in ((422, plan, {"name": ""}), (404, "/v2/plans/0", {"name": "Plus"})):
        assert api.patch(path, body, headers=headers).status_code == status
    assert api.patch(plan, content=b"{", headers=headers).status_code == 400
    assert api.patch(plan, {"name": "Plus"}, headers=headers | {"If-Match": '"v99"'}).status_code == 412
    assert stored(db) == 0
    assert api.patch(plan, {"name": "Plus"}, headers=headers).status_code == 200


def test_a_key_in_flight_is_a_conflict_until_its_request_is_answered(api: Api, plan: str, app: App) -> None:
    """A lock holds the first request up while the second comes."""
    headers, body = {"Idempotency-Key": "slow"}, {"name": "Gold Plus"}
    with ThreadPoolExecutor(1) as thread:
        with app.db.write() as tx:
            tx.exec_driver_sql("UPDATE plans SET name = name")
            first = thread.submit(api.patch, plan, body, headers=headers)
            wait_until(lambda: bool(app.keys_in_flight), "the first request")
            second = api.patch(plan, body, headers=headers)
        assert (second.status_code, codes(second)) == (409, {"Idempotency-Key": "idempotency_in_flight"})
        assert second.headers["Retry-After"] == "1"
        assert first.result().status_code == 200
    assert app.keys_in_flight == set()
    same(first.result(), api.patch(plan, body, headers=headers))


def test_a_record_is_enrolled_once_and_its_retry_gets_the_first_answer(
    api: Api, plan: str, customer: Customer, trail: Trail, db: Database
) -> None:
    """Created with a similar member, updated and moved: the answers have their own headers."""
    path, other = f"{plan}/eligibility", f"/v2/plans/{customer.plan_ids[1]}/eligibility"
    people = {"first_name": "Alex", "last_name": "Twin", "dob": "1980-02-03"}
    assert api.post(path, member_body(9, **people)).status_code == 201
    requests = [
        ("created", path, member_body(1, **people, colour="red")),
        ("updated", path, {"external_id": "AB 000001", "zipcode": "02150"}),
        ("moved", other, {"external_id": "AB 000001"}),
    ]
    firsts = [api.post(to, body, headers={"Idempotency-Key": outcome}) for outcome, to, body in requests]
    assert [first.headers["Eligibility-Outcome"] for first in firsts] == ["created", "updated", "moved"]
    assert firsts[0].headers["Eligibility-Warnings"].startswith("similar_member;member=")
    assert (firsts[0].headers["Ignored-Fields"], "Eligibility-Left-Plan" in firsts[2].headers) == (
        "colour",
        True,
    )
    api.post(other, {"external_id": "AB 000001", "last_name": "Newer", "zipcode": "02199"})
    written = len(trail("eligibility.updated")), len(trail("eligibility.unchanged"))
    for first, (outcome, to, body) in zip(firsts, requests, strict=True):
        same(first, api.post(to, body, headers={"Idempotency-Key": outcome}))
    assert written == (len(trail("eligibility.updated")), len(trail("eligibility.unchanged"))) == (2, 0)
    assert api.post(other, {"external_id": "AB 000001"}).json()["last_name"] == "Newer"
    assert (len(trail("answer.replayed")), stored(db)) == (3, 3)
    reused = api.post(other, {"external_id": "AB 000001"}, headers={"Idempotency-Key": "created"})
    assert (reused.status_code, codes(reused)) == (422, {"Idempotency-Key": "idempotency_key_reused"})


def test_a_refused_record_leaves_its_key_free(api: Api, plan: str) -> None:
    headers = {"Idempotency-Key": "corrected"}
    assert (
        api.post(f"{plan}/eligibility", member_body(1, dob="1977-02-30"), headers=headers).status_code == 422
    )
    assert api.post("/v2/plans/0/eligibility", member_body(1), headers=headers).status_code == 404
    first = api.post(f"{plan}/eligibility", member_body(1), headers=headers)
    assert first.status_code == 201
    same(first, api.post(f"{plan}/eligibility", member_body(1), headers=headers))


def test_of_two_processes_with_one_key_one_writes_and_both_answer_alike(
    api: Api, config: Config, clock: SetClock, plan: str, db: Database, trail: Trail
) -> None:
    """Two services on one database; records with the key are in one chunk with records without."""
    app = App(config, open_for_test(config.database_url, "service"), clock)
    with TestClient(build_asgi(app, Telemetry(io.StringIO()))) as http, ThreadPoolExecutor(12) as threads:
        doors = (api, Api(http, api.token, io.StringIO()))

        def send(turn: int) -> Any:
            headers = {"Idempotency-Key": f"race-{turn // 4}"} if turn % 2 else {}
            number = turn // 4 if turn % 2 else 100 + turn
            return doors[turn // 2 % 2].post(f"{plan}/eligibility", member_body(number), headers=headers)

        answers = list(threads.map(send, range(80)))
    keyed = [answers[turn] for turn in range(80) if turn % 2]
    assert {answer.status_code for answer in answers} <= {201}
    for first, second in zip(keyed[::2], keyed[1::2], strict=True):
        assert first.content == second.content
        assert ("Idempotency-Replayed" in first.headers) != ("Idempotency-Replayed" in second.headers)
    assert stored(db) == 20
    assert (len(trail("eligibility.created")), len(trail("answer.replayed"))) == (60, 20)
