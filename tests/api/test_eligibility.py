"""POST of an eligible member, as a customer sees it."""

from typing import Any

import pytest

from frontdesk.db import Database
from frontdesk.eligibility.fields import REQUIRED
from tests.api.conftest import codes
from tests.conftest import Api
from tests.factories import Customer, close_plan, member_body


@pytest.fixture
def path(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility"


def test_an_unknown_external_id_creates_a_member_and_a_known_one_updates_it(
    api: Api, path: str
) -> None:
    first = api.post(path, member_body(external_id=" AB 000001 ", invite_immediately=True))
    assert (first.status_code, first.headers["Eligibility-Outcome"]) == (201, "created")
    assert (first.json()["external_id"], first.json()["dob"]) == ("AB 000001", "1977-01-11")
    assert first.headers["Invitation"] == "immediate"
    second = api.post(
        path, {"external_id": "AB 000001", "last_name": "Changed", "invite_immediately": True}
    )
    assert (second.status_code, second.json()) == (200, first.json() | {"last_name": "Changed"})
    told = [
        second.headers[name]
        for name in ("Eligibility-Outcome", "Eligibility-Changed", "Invitation")
    ]
    assert told == ["updated", "last_name", "none; reason=not_new"]


def test_a_placeholder_is_left_out_and_the_warning_names_its_field(api: Api, path: str) -> None:
    api.post(path, member_body(email="robin@example.com", phone="6175550100"))
    sent = {"external_id": "AB 000001", "email": "none@none.com", "phone": "0000000000"}
    answer = api.post(path, sent)
    told = answer.headers["Eligibility-Outcome"], answer.headers["Eligibility-Warnings"]
    assert told == ("unchanged", "placeholder;field=email,placeholder;field=phone")
    [result] = api.post(f"{path}/batch", [sent]).json()["data"]
    assert result["warnings"] == ["placeholder;field=email", "placeholder;field=phone"]


def test_an_identifier_that_looks_like_another_makes_no_second_member(api: Api, path: str) -> None:
    api.post(path, member_body(external_id="AB-1", email=None))
    for hidden in ("AB\u20131", "AB\u00ad-1", "AB-\u200b1", "AB\u00a0-1"):
        refused = api.post(path, member_body(external_id=hidden, member_id=hidden))
        assert codes(refused) == {
            "external_id": "lookalike_character",
            "member_id": "lookalike_character",
        }
        assert "send it with plain ones" in refused.json()["errors"][0]["message"]
    assert api.post(path, member_body(external_id="AB-1\u200b")).status_code == 200


@pytest.mark.parametrize("number", ["123-45-6789", "123456789"])
def test_a_social_security_number_as_identifier_is_warned(api: Api, path: str, number: str) -> None:
    first = api.post(path, member_body(external_id=number))
    assert (first.status_code, first.headers["Eligibility-Warnings"]) == (201, "looks_like_ssn")
    again = api.post(path, {"external_id": number, "city": "Boston"})
    assert "Eligibility-Warnings" not in again.headers, "it is there already"
    other = api.post(path, member_body(external_id="912345678", member_id="M2", email=None))
    assert "looks_like_ssn" not in other.headers.get("Eligibility-Warnings", "")


def test_a_member_moves_to_another_plan_and_keeps_the_id(
    api: Api, customer: Customer, path: str
) -> None:
    first = api.post(path, member_body())
    moved = api.post(f"/v2/plans/{customer.plan_ids[1]}/eligibility", {"external_id": "AB 000001"})
    assert (moved.status_code, moved.headers["Eligibility-Outcome"]) == (200, "moved")
    assert moved.json()["id"] == first.json()["id"]
    left = api.get(path.removesuffix("/eligibility")).json()["data"][0]["external_id"]
    assert moved.headers["Eligibility-Left-Plan"] == left
    assert "Eligibility-Left-Plan" not in first.headers


def test_an_inactive_plan_is_warned_about(
    api: Api, db: Database, customer: Customer, path: str
) -> None:
    close_plan(db, customer.plan_ids[0])
    sent = [api.post(path, member_body(zipcode=code)) for code in ("02134", "02134", "02135")]
    assert [answer.headers["Eligibility-Outcome"] for answer in sent] == [
        "created",
        "unchanged",
        "updated",
    ]
    assert [answer.headers["Eligibility-Warnings"] for answer in sent] == ["plan_inactive"] * 3
    moved = api.post(f"/v2/plans/{customer.plan_ids[1]}/eligibility", {"external_id": "AB 000001"})
    assert "Eligibility-Warnings" not in moved.headers
    back = api.post(path, {"external_id": "AB 000001"})
    told = [back.headers[f"Eligibility-{name}"] for name in ("Outcome", "Warnings")]
    assert told == ["moved", "plan_inactive"]


def test_warnings_tell_of_likely_mistakes_that_are_no_faults(api: Api, path: str) -> None:
    created = api.post(path, member_body(dob="1977-01-11T18:00:00-05:00", state="Atlantis"))
    assert created.headers["Eligibility-Warnings"] == "dob_not_midnight,state_not_recognised"
    shifted = api.post(path, {"external_id": "AB 000001", "dob": "1977-01-12", "first_name": "Sam"})
    assert shifted.headers["Eligibility-Warnings"] == "dob_shifted_one_day,identity_changed"


def test_the_same_record_changes_nothing_and_its_metadata_comes_back_as_sent(
    api: Api, path: str
) -> None:
    api.post(path, member_body(metadata={"a": "1", "b": "2"}))
    again = api.post(path, member_body(metadata={"b": "2", "a": "1"}))
    assert (again.status_code, again.headers["Eligibility-Outcome"]) == (200, "unchanged")
    assert "Eligibility-Changed" not in again.headers
    assert list(again.json()["metadata"]) == ["b", "a"]


def test_null_clears_optional_fields_and_is_a_fault_on_required_ones(api: Api, path: str) -> None:
    def change(**fields: object) -> Any:
        return api.post(path, {"external_id": "AB 000001"} | fields)

    api.post(path, member_body(metadata={"b": "1", "a": "2"}))
    assert change(phone=None, city="").headers["Eligibility-Changed"] == "phone,city"
    assert change(metadata={"c": "3"}).json()["metadata"] == {"c": "3"}
    before = change(last_name="Other").json()
    assert before["metadata"] == {"c": "3"}
    refused = change(first_name="New", last_name=None, zipcode=" ")
    assert codes(refused) == {"last_name": "required", "zipcode": "required"}
    too_early = change(first_name="New", expiry_date="2025-12-31")  # compared on the merged record
    assert codes(too_early) == {"expiry_date": "expiry_before_effective"}
    assert change().json() == before
    assert change(expiry_date="2026-01-01").status_code == 200
    assert change(metadata=None).json()["metadata"] == {}
    missing = api.post(path, {"external_id": "X", "gender": "none of these"})
    required = dict.fromkeys(set(REQUIRED) - {"external_id"}, "required")
    assert codes(missing) == required | {"gender": "not_allowed"}
