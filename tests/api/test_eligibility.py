"""POST of an eligible member, as a customer sees it."""

import json
from typing import Any

import pytest

from frontdesk.db import Database
from tests.conftest import Api
from tests.factories import Customer, close_plan, make_customer, member_body

NINE_FIELDS = {
    "id", "external_id", "dob", "first_name", "last_name", "gender", "member_id", "zipcode", "metadata",
}  # fmt: skip


@pytest.fixture
def path(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility"


def faults(answer: Any) -> dict[str, str]:
    return {fault["field"]: fault["code"] for fault in answer.json()["errors"]}


def test_an_unknown_external_id_creates_a_member_and_answers_exactly_nine_fields(api: Api, path: str) -> None:
    answer = api.post(path, member_body(external_id=" AB 123356 "))
    assert answer.status_code == 201
    assert set(answer.json()) == NINE_FIELDS
    assert answer.json()["external_id"] == "AB 123356"
    assert answer.json()["dob"] == "1977-01-11"
    assert answer.headers["Eligibility-Outcome"] == "created"


def test_a_known_external_id_updates_and_sends_no_invitation(api: Api, path: str) -> None:
    first = api.post(path, member_body(invite_immediately=True))
    second = api.post(path, {"external_id": "AB 000001", "last_name": "Changed", "invite_immediately": True})
    assert first.headers["Invitation"] == "immediate"
    assert second.status_code == 200
    assert second.json() == first.json() | {"last_name": "Changed"}
    assert second.headers["Eligibility-Outcome"] == "updated"
    assert second.headers["Eligibility-Changed"] == "last_name"
    assert second.headers["Invitation"] == "none; reason=not_new"


def test_the_same_record_again_changes_nothing(api: Api, path: str) -> None:
    api.post(path, member_body())
    again = api.post(path, member_body())
    assert (again.status_code, again.headers["Eligibility-Outcome"]) == (200, "unchanged")
    assert "Eligibility-Changed" not in again.headers


def test_a_member_moves_to_another_plan_of_the_account_and_keeps_the_id(
    api: Api, customer: Customer, path: str
) -> None:
    first = api.post(path, member_body())
    moved = api.post(f"/v2/plans/{customer.plan_ids[1]}/eligibility", {"external_id": "AB 000001"})
    assert (moved.status_code, moved.headers["Eligibility-Outcome"]) == (200, "moved")
    assert moved.json()["id"] == first.json()["id"]
    left = api.get(path.removesuffix("/eligibility")).json()["data"][0]["external_id"]
    assert moved.headers["Eligibility-Left-Plan"] == left
    assert "Eligibility-Left-Plan" not in first.headers


def test_a_member_that_is_sent_to_a_plan_that_is_not_active_is_stored_with_a_warning(
    api: Api, db: Database, customer: Customer, path: str
) -> None:
    close_plan(db, customer.plan_ids[0])
    sent = [api.post(path, member_body(zipcode=code)) for code in ("02134", "02134", "02135")]
    assert [answer.headers["Eligibility-Outcome"] for answer in sent] == ["created", "unchanged", "updated"]
    assert [answer.headers["Eligibility-Warnings"] for answer in sent] == ["plan_inactive"] * 3
    moved = api.post(f"/v2/plans/{customer.plan_ids[1]}/eligibility", {"external_id": "AB 000001"})
    assert "Eligibility-Warnings" not in moved.headers
    back = api.post(path, {"external_id": "AB 000001"})
    assert (back.headers["Eligibility-Outcome"], back.headers["Eligibility-Warnings"]) == (
        "moved",
        "plan_inactive",
    )


def test_null_clears_an_optional_field_and_is_a_fault_on_a_required_one(api: Api, path: str) -> None:
    api.post(path, member_body())
    assert api.post(path, {"external_id": "AB 000001", "phone": None, "city": ""}).status_code == 200
    refused = api.post(path, {"external_id": "AB 000001", "last_name": None, "zipcode": " "})
    assert faults(refused) == {"last_name": "required", "zipcode": "required"}


def test_a_refused_update_changes_nothing_at_all(api: Api, path: str) -> None:
    created = api.post(path, member_body())
    api.post(path, {"external_id": "AB 000001", "last_name": "Other", "gender": "maybe"})
    assert api.post(path, {"external_id": "AB 000001"}).json() == created.json()


def test_metadata_is_replaced_as_a_whole_and_null_empties_it(api: Api, path: str) -> None:
    api.post(path, member_body(metadata={"b": "1", "a": "2"}))
    assert api.post(path, {"external_id": "AB 000001", "metadata": {"c": "3"}}).json()["metadata"] == {
        "c": "3"
    }
    assert api.post(path, {"external_id": "AB 000001", "last_name": "Other"}).json()["metadata"] == {"c": "3"}
    assert api.post(path, {"external_id": "AB 000001", "metadata": None}).json()["metadata"] == {}


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"member_id": "M-000001"}, "member_id"), ({"email": "ROBIN.1@EXAMPLE.com"}, "email")],
)
def test_a_value_that_another_record_carries_is_not_unique(
    api: Api, path: str, changes: dict[str, str], field: str
) -> None:
    api.post(path, member_body(1))
    answer = api.post(path, member_body(2, **changes))
    assert (answer.status_code, faults(answer)) == (422, {field: "not_unique"})


def test_another_accounts_record_is_told_like_any_other_collision(api: Api, db: Database, path: str) -> None:
    other = make_customer(db, name="Other")
    theirs = api.as_(other.token).post(f"/v2/plans/{other.plan_ids[0]}/eligibility", member_body())
    assert theirs.status_code == 201
    answer = api.post(path, member_body(member_id="M-9", email=None))
    assert (answer.status_code, faults(answer)) == (422, {"external_id": "not_unique"})


def test_every_wrong_field_is_named_in_one_answer(api: Api, path: str) -> None:
    body = {name: [1] for name in member_body() if name != "metadata"} | {
        "metadata": 7, "middle_name": 1, "county": 1, "expiry_date": 1, "invite_immediately": "true",
        "medical_eligibility": "yes", "medical_enrollment": 2, "medical_plan_description": 3, "payor_name": 4,
        "payor_plan_name": 5, "relationship_code": 6, "relationship_code_hipaa": 1.5,
    }  # fmt: skip
    answer = api.post(path, body)
    assert answer.status_code == 422
    assert len(answer.json()["errors"]) == len(body) == 24


def test_missing_required_fields_and_wrong_ones_are_told_together(api: Api, path: str) -> None:
    answer = api.post(path, {"external_id": "X", "gender": "none of these"})
    assert faults(answer) == {
        "member_id": "required", "first_name": "required", "last_name": "required", "dob": "required",
        "gender": "not_allowed", "zipcode": "required", "effective_date": "required",
    }  # fmt: skip


def test_expiry_is_compared_on_the_merged_record(api: Api, path: str) -> None:
    api.post(path, member_body(effective_date="2026-05-01"))
    answer = api.post(path, {"external_id": "AB 000001", "expiry_date": "2026-04-30"})
    assert faults(answer) == {"expiry_date": "expiry_before_effective"}
    assert api.post(path, {"external_id": "AB 000001", "expiry_date": "2026-05-01"}).status_code == 200


def test_unknown_fields_are_ignored_and_named_or_refused_when_the_caller_is_strict(
    api: Api, path: str
) -> None:
    answer = api.post(path, member_body(shoe_size="44", **{"odd\r\nname": 1}))
    assert (answer.status_code, answer.headers["Ignored-Fields"]) == (201, "shoe_size,odd%0D%0Aname")
    strict = api.post(path, member_body(shoe_size="44"), headers={"Prefer": "handling=strict"})
    assert faults(strict) == {"shoe_size": "unknown_field"}


def test_warnings_tell_of_likely_mistakes_that_are_no_faults(api: Api, path: str) -> None:
    created = api.post(path, member_body(dob="1977-01-11T18:00:00-05:00", state="Atlantis"))
    assert created.headers["Eligibility-Warnings"] == "dob_not_midnight,state_not_recognised"
    shifted = api.post(path, {"external_id": "AB 000001", "dob": "1977-01-12", "first_name": "Sam"})
    assert shifted.headers["Eligibility-Warnings"] == "dob_shifted_one_day,identity_changed"


def test_no_value_that_was_sent_comes_back_in_an_error(api: Api, path: str) -> None:
    answer = api.post(path, member_body(gender="canary-value", zipcode="canary-value", phone="canary-value"))
    assert answer.status_code == 422
    assert "canary-value" not in answer.text


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"", 400), (b"{", 400), (b"[1]", 400), (b'"x"', 400), (b'{"a":1,"a":2}', 400), (b'{"a":NaN}', 400),
        (b'{"a":1e400}', 400), (b"\xef\xbb\xbf{}", 400), ("{}".encode("utf-16"), 400), (b"\xff", 400),
        (b'{"external_id":"\\ud800"}', 400), (b"[" * 10_000, 400), (b'{"a":' * 10_000, 400),
        (b'{"external_id":"a\\u0000b"}', 422), (b'{"external_id":18446744073709551616}', 422), (b"{}", 422),
        (b'{"external_id":1' + b"0" * 5000 + b"}", 400), (b" " * 70_000, 413),
    ],
)  # fmt: skip
def test_hostile_bodies_are_refused_with_the_right_status(
    api: Api, path: str, raw: bytes, status: int
) -> None:
    answer = api.request("POST", path, content=raw, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert json.loads(answer.content)["request_id"] == answer.headers["X-Request-Id"]


def test_metadata_in_another_order_of_keys_is_unchanged_and_told_as_it_was_sent(
    api: Api, customer: Customer
) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    api.post(path, member_body(metadata={"a": "1", "b": "2"}))
    again = api.post(path, member_body(metadata={"b": "2", "a": "1"}))
    assert again.headers["Eligibility-Outcome"] == "unchanged"
    assert list(again.json()["metadata"]) == ["b", "a"]
