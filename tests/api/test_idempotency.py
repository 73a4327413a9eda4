"""A retry with an Idempotency-Key gets the first answer again, and nothing is written twice."""

import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient

from frontdesk.access.model import Scope
from frontdesk.app import App
from frontdesk.config import Config, Uniqueness
from frontdesk.db import Database
from frontdesk.eligibility.enrolments import Enrolments
from frontdesk.eligibility.model import Enrolled, Submission
from frontdesk.errors import Unavailable
from frontdesk.files.claims import RunOptions
from frontdesk.files.run import run_next
from frontdesk.installation import build_asgi
from frontdesk.web.telemetry import Telemetry
from tests.api.conftest import Trail, codes
from tests.conftest import Api, SetClock, open_for_test
from tests.factories import Customer, make_customer, member_body, second_token
from tests.files.loading import csv_of, row
from tests.patience import wait_until

# Of each answer these are its own, whatever was stored.
FRESH = {"x-request-id", "idempotency-replayed", "ratelimit"}


def same(first: Any, again: Any) -> None:
    """The second answer is the first one, and says that it is stored."""
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert (again.status_code, again.content) == (first.status_code, first.content)
    headers = [
        {name: value for name, value in each.headers.items() if name not in FRESH}
        for each in (first, again)
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
    headers = {"Idempotency-Key": "one"}
    body = {"name": "Gold Plus"}
    assert api.patch(plan, body, headers=headers).status_code == 200
    other_plan = f"/v2/plans/{customer.plan_ids[1]}"
    for path, sent, more in (
        (plan, {"name": "Other"}, {}),
        (other_plan, body, {}),
        (plan + "?a=b", body, {}),
        (plan, body, {"Content-Type": "application/merge-patch+json"}),
        (plan, body, {"If-Match": "*"}),
        (plan, body, {"If-None-Match": "*"}),
        (plan, body, {"Prefer": "handling=strict"}),
    ):
        answer = api.patch(path, sent, headers=headers | more)
        assert (answer.status_code, codes(answer)) == (
            422,
            {"Idempotency-Key": "idempotency_key_reused"},
        )
    for odd in ("", "a b", "x" * 256, "\x7f", "é"):
        answer = api.patch(plan, body, headers={"Idempotency-Key": odd.encode("latin-1")})
        assert (answer.status_code, codes(answer)) == (422, {"Idempotency-Key": "not_allowed"})
    theirs = make_customer(db, name="Other")
    answer = api.as_(theirs.token).patch(f"/v2/plans/{theirs.plan_ids[0]}", body, headers=headers)
    assert "Idempotency-Replayed" not in answer.headers
    assert (
        api.as_(theirs.token).patch(plan, body, headers={"Idempotency-Key": "new"}).status_code
        == 404
    )
    assert stored(db) == 2


def test_a_refused_request_leaves_its_key_free(api: Api, plan: str, db: Database) -> None:
    headers = {"Idempotency-Key": "corrected"}
    for status, path, body in ((422, plan, {"name": ""}), (404, "/v2/plans/0", {"name": "Plus"})):
        assert api.patch(path, body, headers=headers).status_code == status
    assert api.patch(plan, content=b"{", headers=headers).status_code == 400
    assert (
        api.patch(plan, {"name": "Plus"}, headers=headers | {"If-Match": '"v99"'}).status_code
        == 412
    )
    assert stored(db) == 0
    assert api.patch(plan, {"name": "Plus"}, headers=headers).status_code == 200


def test_a_key_in_flight_is_a_conflict_until_its_request_is_answered(
    api: Api, plan: str, app: App
) -> None:
    """A lock holds the first request up while the second comes."""
    headers = {"Idempotency-Key": "slow"}
    body = {"name": "Gold Plus"}
    with ThreadPoolExecutor(1) as thread:
        with app.db.write() as tx:
            tx.exec_driver_sql("UPDATE plans SET name = name")
            first = thread.submit(api.patch, plan, body, headers=headers)
            wait_until(lambda: bool(app.keys_in_flight), "the first request")
            second = api.patch(plan, body, headers=headers)
        assert (second.status_code, codes(second)) == (
            409,
            {"Idempotency-Key": "idempotency_in_flight"},
        )
        assert second.headers["Retry-After"] == "1"
        assert first.result().status_code == 200
    assert app.keys_in_flight == set()
    same(first.result(), api.patch(plan, body, headers=headers))


def test_a_record_is_enrolled_once_and_its_retry_gets_the_first_answer(
    api: Api, plan: str, customer: Customer, trail: Trail, db: Database
) -> None:
    """Created with a similar member, updated and moved: the answers have their own headers."""
    path = f"{plan}/eligibility"
    other = f"/v2/plans/{customer.plan_ids[1]}/eligibility"
    people = {"first_name": "Alex", "last_name": "Twin", "dob": "1980-02-03"}
    assert api.post(path, member_body(9, **people)).status_code == 201
    requests = [
        ("created", path, member_body(1, **people, colour="red")),
        ("updated", path, {"external_id": "AB 000001", "zipcode": "02150"}),
        ("moved", other, {"external_id": "AB 000001"}),
    ]
    firsts = [
        api.post(to, body, headers={"Idempotency-Key": outcome}) for outcome, to, body in requests
    ]
    assert [first.headers["Eligibility-Outcome"] for first in firsts] == [
        "created",
        "updated",
        "moved",
    ]
    assert firsts[0].headers["Eligibility-Warnings"].startswith("similar_member;member=")
    assert (firsts[0].headers["Ignored-Fields"], "Eligibility-Left-Plan" in firsts[2].headers) == (
        "colour",
        True,
    )
    api.post(other, {"external_id": "AB 000001", "last_name": "Newer", "zipcode": "02199"})
    written = len(trail("eligibility.updated")), len(trail("eligibility.unchanged"))
    for first, (outcome, to, body) in zip(firsts, requests, strict=True):
        same(first, api.post(to, body, headers={"Idempotency-Key": outcome}))
    assert (
        written
        == (len(trail("eligibility.updated")), len(trail("eligibility.unchanged")))
        == (2, 0)
    )
    assert api.post(other, {"external_id": "AB 000001"}).json()["last_name"] == "Newer"
    assert (len(trail("answer.replayed")), stored(db)) == (3, 3)
    reused = api.post(other, {"external_id": "AB 000001"}, headers={"Idempotency-Key": "created"})
    assert (reused.status_code, codes(reused)) == (
        422,
        {"Idempotency-Key": "idempotency_key_reused"},
    )


def test_a_refused_record_leaves_its_key_free(api: Api, plan: str) -> None:
    headers = {"Idempotency-Key": "corrected"}
    assert (
        api.post(
            f"{plan}/eligibility", member_body(1, dob="1977-02-30"), headers=headers
        ).status_code
        == 422
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
    with (
        TestClient(build_asgi(app, Telemetry(io.StringIO()))) as http,
        ThreadPoolExecutor(12) as threads,
    ):
        doors = (api, Api(http, api.token, io.StringIO()))

        def send(turn: int) -> Any:
            headers = {"Idempotency-Key": f"race-{turn // 4}"} if turn % 2 else {}
            number = turn // 4 if turn % 2 else 100 + turn
            return doors[turn // 2 % 2].post(
                f"{plan}/eligibility", member_body(number), headers=headers
            )

        answers = list(threads.map(send, range(80)))
    keyed = [answers[turn] for turn in range(80) if turn % 2]
    assert {answer.status_code for answer in answers} <= {201}
    for first, second in zip(keyed[::2], keyed[1::2], strict=True):
        assert first.content == second.content
        assert ("Idempotency-Replayed" in first.headers) != (
            "Idempotency-Replayed" in second.headers
        )
    assert stored(db) == 20
    assert (len(trail("eligibility.created")), len(trail("answer.replayed"))) == (60, 20)


KEYED = {"Idempotency-Key": "batch-1"}


def test_a_batch_is_written_once_and_its_retry_gets_the_first_results(
    api: Api, plan: str, trail: Trail, db: Database
) -> None:
    """More records than a group has, and a refused one, which is tried again."""
    path = f"{plan}/eligibility/batch"
    bad = member_body(777, dob="?", colour="red")
    records = [
        *(member_body(n) for n in range(60)),
        bad,
        {"external_id": "AB 000001", "zipcode": "02150"},
    ]
    first = api.post(path, records, headers=KEYED)
    assert (
        first.json()["counts"] | {"created": 60, "updated": 1, "refused": 1}
        == first.json()["counts"]
    )
    api.post(path, [{"external_id": "AB 000001", "last_name": "Newer", "zipcode": "02199"}])
    written = stored(db), len(trail("eligibility.updated"))
    same(first, api.post(path, records, headers=KEYED))
    # the key, and two groups
    assert written == (stored(db), len(trail("eligibility.updated"))) == (3, 2)
    assert len(trail("answer.replayed")) == 1
    assert trail("eligibility.unchanged") == []


def test_stored_answers_of_unchanged_records_are_no_larger_than_the_batch(
    api: Api, plan: str, db: Database
) -> None:
    """A row for each answer took 30 times the bytes of a record with an identifier alone."""
    path = f"{plan}/eligibility/batch"
    api.post(path, [member_body(n) for n in range(200)])
    records = [{"external_id": f"AB {n:06d}"} for n in range(200)]
    first = api.post(path, records, headers=KEYED)
    assert first.json()["counts"]["unchanged"] == 200
    with db.read() as tx:
        query = (
            "SELECT sum(length(key_hash) + length(fingerprint) + length(body)) FROM stored_answers"
        )
        kept = tx.exec_driver_sql(query).scalar_one()
    assert kept < len(orjson.dumps(records))
    api.post(path, [{"external_id": f"AB {n:06d}", "last_name": "Newer"} for n in range(200)])
    same(first, api.post(path, records, headers=KEYED))


def test_a_record_that_was_refused_before_gets_an_answer_beside_those_of_its_group(
    api: Api, plan: str, db: Database
) -> None:
    """The retry of a batch writes the refused record, and a third request gets every first result."""
    path = f"{plan}/eligibility/batch"
    missing = member_body(3)
    known = {"external_id": missing["external_id"], "zipcode": "02150"}
    records = [member_body(1), known, member_body(2)]
    first = api.post(path, records, headers=KEYED).json()["data"]
    assert [each["status"] for each in first] == [201, 422, 201]
    assert api.post(f"{plan}/eligibility", missing).status_code == 201
    second = api.post(path, records, headers=KEYED)
    assert [each["status"] for each in second.json()["data"]] == [201, 200, 201]
    third = api.post(path, records, headers=KEYED)
    assert (third.content, third.headers["Idempotency-Replayed"]) == (second.content, "true")
    assert stored(db) == 3


def test_a_key_of_a_batch_is_for_one_body(api: Api, plan: str, db: Database) -> None:
    path = f"{plan}/eligibility/batch"
    assert api.post(path, [{}, member_body(1)], headers=KEYED).json()["counts"]["created"] == 1
    for other in ([member_body(2)], [{}, member_body(2)], [{}, member_body(1), member_body(2)]):
        answer = api.post(path, other, headers=KEYED)
        assert (answer.status_code, codes(answer)) == (
            422,
            {"Idempotency-Key": "idempotency_key_reused"},
        )
    # so no batch has written it
    assert api.post(f"{plan}/eligibility", member_body(2)).status_code == 201
    for odd in ([], [member_body(3)] * 1001):
        assert api.post(path, odd, headers={"Idempotency-Key": "corrected"}).status_code == 422
    assert api.post(path, content=b"[", headers={"Idempotency-Key": "corrected"}).status_code == 400
    other_plan = api.post(
        "/v2/plans/0/eligibility/batch", [{}], headers={"Idempotency-Key": "corrected"}
    )
    assert other_plan.status_code == 404
    assert (
        api.post(path, [member_body(3)], headers={"Idempotency-Key": "corrected"}).status_code
        == 207
    )


def test_a_retry_of_a_batch_writes_the_records_that_were_not_written(
    api: Api, plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{plan}/eligibility/batch"
    commit = Enrolments.commit_group
    sizes = []

    async def commit_group(
        self: Enrolments, items: Sequence[Submission]
    ) -> Sequence[Enrolled | Exception]:
        sizes.append(len(items))
        if len(sizes) > 1:
            raise Unavailable("The database is busy.")
        return await commit(self, items)

    monkeypatch.setattr(Enrolments, "commit_group", commit_group)
    records = [member_body(n) for n in range(100)]
    first = api.post(path, records, headers=KEYED).json()["data"]
    assert [each["status"] for each in first] == [201] * sizes[0] + [503] * (100 - sizes[0])
    monkeypatch.undo()
    api.post(f"{plan}/eligibility", {"external_id": "AB 000000", "last_name": "Newer"})
    again = api.post(path, records, headers=KEYED)
    assert "Idempotency-Replayed" not in again.headers  # it has written something
    assert again.json()["data"][: sizes[0]] == first[: sizes[0]]
    assert again.json()["counts"]["created"] == 100
    third = api.post(path, records, headers=KEYED)
    assert (third.content, third.headers["Idempotency-Replayed"]) == (again.content, "true")
    assert (
        api.post(f"{plan}/eligibility", {"external_id": "AB 000000"}).json()["last_name"] == "Newer"
    )


def test_an_end_and_a_new_identifier_are_written_once(
    api: Api, plan: str, customer: Customer, trail: Trail
) -> None:
    """Although the member is under another plan by the time of the retry."""
    path = f"{plan}/eligibility"
    other = f"/v2/plans/{customer.plan_ids[1]}/eligibility"
    member = f"{path}/{api.post(path, member_body(1)).json()['id']}"
    requests: Sequence[tuple[str, dict[str, Any]]] = (
        ("end", {"on": "2026-12-31", "colour": "red"}),
        ("rename", {"external_id": "N-1"}),
    )
    firsts = [
        api.post(f"{member}/{verb}", body, headers={"Idempotency-Key": verb + "!"})
        for verb, body in requests
    ]
    assert [first.headers["Eligibility-Outcome"] for first in firsts] == ["ended", "updated"]
    moved = api.post(other, {"external_id": "N-1", "expiry_date": "2027-01-31"})
    assert moved.headers["Eligibility-Outcome"] == "moved"
    written = len(trail("eligibility.ended")), len(trail("eligibility.updated"))
    for first, (verb, body) in zip(firsts, requests, strict=True):
        same(first, api.post(f"{member}/{verb}", body, headers={"Idempotency-Key": verb + "!"}))
        changed = api.post(
            f"{member}/{verb}", body | {"x": 1}, headers={"Idempotency-Key": verb + "!"}
        )
        assert codes(changed) == {"Idempotency-Key": "idempotency_key_reused"}
        assert api.post(f"{member}/{verb}", body).status_code == 404
    assert written == (len(trail("eligibility.ended")), len(trail("eligibility.updated")))


def test_a_decision_about_a_file_is_made_once(
    api: Api, plan: str, db: Database, clock: SetClock, trail: Trail
) -> None:
    sent = api.post(
        f"{plan}/eligibility-files", content=csv_of([row(1)]), headers={"Content-Type": "text/csv"}
    )
    file = f"{plan}/eligibility-files/{sent.json()['data']['id']}"
    assert run_next(db, clock, RunOptions(Uniqueness.SERVICE))
    first = api.post(file + "/undo", headers={"Idempotency-Key": "undo"})
    assert first.status_code == 202
    same(first, api.post(file + "/undo", headers={"Idempotency-Key": "undo"}))
    assert api.post(file + "/undo").status_code == 409
    waiting = first.headers["Location"].removeprefix("https://api.example.com")
    stopped = api.post(waiting + "/cancel", headers={"Idempotency-Key": "cancel"})
    assert stopped.json()["data"]["state"] == "cancelled"
    same(stopped, api.post(waiting + "/cancel", headers={"Idempotency-Key": "cancel"}))
    assert (len(trail("file.cancelled")), len(api.get("/v2/eligibility-files").json()["data"])) == (
        1,
        2,
    )


def test_a_webhook_endpoint_is_made_once_and_its_secret_is_not_stored(
    api: Api, customer: Customer, db: Database, trail: Trail
) -> None:
    """A retry shows the secret of its answer, although there is a newer one."""
    manager = api.as_(second_token(db, customer.account_id, Scope.WEBHOOKS_MANAGE))
    path = "/v2/webhook-endpoints"
    body = {"url": "https://hooks.example.com/a"}
    first = manager.post(path, body, headers={"Idempotency-Key": "make"})
    assert (first.status_code, first.json()["data"]["secret"][:6]) == (201, "whsec_")
    address = f"{path}/{first.json()['data']['id']}"
    calls: list[tuple[Any, str, str, Any]] = [(first, "make", path, body)]
    for key in ("one", "two"):
        rotated = manager.post(address + "/rotate", headers={"Idempotency-Key": key})
        calls.append((rotated, key, address + "/rotate", None))
    tested = manager.post(address + "/test", headers={"Idempotency-Key": "test"})
    calls.append((tested, "test", address + "/test", None))
    assert len({call[0].json()["data"].get("secret") for call in calls}) == 4
    for answer, key, to, sent in calls:
        same(answer, manager.post(to, sent, headers={"Idempotency-Key": key}))
    patched = manager.patch(address, {"state": "paused"}, headers={"Idempotency-Key": "patch"})
    same(patched, manager.patch(address, {"state": "paused"}, headers={"Idempotency-Key": "patch"}))
    assert len(manager.get(path).json()["data"]) == 1
    assert len(trail("webhook.rotated")) == 2
    with db.read() as tx:
        bodies = " ".join(tx.exec_driver_sql("SELECT body FROM stored_answers").scalars())
    assert ("hooks.example.com" in bodies, "whsec_" in bodies) == (True, False)
