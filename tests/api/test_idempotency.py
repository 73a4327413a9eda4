"""A retry with an Idempotency-Key gets the first answer again, and nothing is written twice."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from frontdesk.app import App
from frontdesk.db import Database
from tests.api.conftest import Trail, codes
from tests.conftest import Api
from tests.factories import Customer, make_customer
from tests.patience import wait_until

# Of each answer these are its own, whatever was stored.
FRESH = {"x-request-id", "idempotency-replayed"}


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
