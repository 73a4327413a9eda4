"""The same record has the same answer as a POST, in a batch and in a file: ends that stay, members that
a full file ended, e-mails that others have, moves, fields that nobody reads.
"""

from typing import Any

import pytest

from frontdesk.access.accounts import set_reopens_absent
from frontdesk.codes.warnings import STILL_ENDED
from frontdesk.db import Database
from tests.api.conftest import codes
from tests.conftest import Api
from tests.factories import EVERY_SCOPE, Customer, member_body, second_token
from tests.files.loading import Desk, lines_of

ENDED = "2026-11-19"
TODAY = "2026-11-20"


@pytest.fixture
def path(api: Api, db: Database, customer: Customer) -> str:
    api.token = second_token(db, customer.account_id, *EVERY_SCOPE)
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility"


@pytest.fixture
def desk(db: Database, customer: Customer, app: Any) -> Desk:
    return Desk(db, customer, app.clock)


def omitted_by_a_full_file(desk: Desk, number: int = 1) -> None:
    """A member that a full file ended, because it does not list the member."""
    desk.load(lines_of([member_body(number), member_body(number + 1)]))
    file = desk.load(lines_of([member_body(number + 1)]), full=True)
    assert file.counts == {"unchanged": 1, "ended": 1, "lost": 1}


def test_a_rehire_without_an_end_is_warned_of_everywhere(api: Api, path: str, desk: Desk) -> None:
    api.post(path, member_body(1, expiry_date=ENDED))
    again = api.post(path, member_body(1))
    assert again.headers["Eligibility-Outcome"] == "unchanged"
    assert again.headers["Eligibility-Warnings"] == "still_ended"
    [of_batch] = api.post(f"{path}/batch", [member_body(1)]).json()["data"]
    assert of_batch["warnings"] == ["still_ended"]
    file = desk.load(lines_of([member_body(1)]))
    assert file.codes == {"still_ended": 1}
    reopened = api.post(path, member_body(1, expiry_date=None))
    assert reopened.headers["Eligibility-Outcome"] == "updated"
    assert "Eligibility-Warnings" not in reopened.headers
    [member] = api.get(f"{path}?external_id=AB 000001").json()["data"]
    assert member["eligible"] is True


def test_a_member_on_its_last_day_is_warned_that_it_ends_today(api: Api, path: str) -> None:
    api.post(path, member_body(1, expiry_date=TODAY))
    again = api.post(path, member_body(1))
    assert again.headers["Eligibility-Warnings"] == "still_ended"
    [member] = api.get(f"{path}?external_id=AB 000001").json()["data"]
    assert member["eligible"] is True
    assert "or ends today" in STILL_ENDED.sentence


def test_an_end_and_a_new_identifier_are_not_warned_of(api: Api, path: str) -> None:
    id_ = api.post(path, member_body(1, expiry_date=ENDED)).json()["id"]
    renamed = api.post(f"{path}/{id_}/rename", {"external_id": "N-77"})
    ended = api.post(f"{path}/{id_}/end", {"on": "2026-11-18"})
    assert renamed.headers["Eligibility-Outcome"] == "updated"
    assert ended.headers["Eligibility-Outcome"] == "ended"
    for answer in (renamed, ended):
        assert "Eligibility-Warnings" not in answer.headers


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_record_reopens_a_member_that_a_full_file_ended(
    api: Api, path: str, desk: Desk, *, is_batch: bool
) -> None:
    omitted_by_a_full_file(desk)
    record = {"external_id": "AB 000001", "city": "Salem"}
    if is_batch:
        answer = api.post(f"{path}/batch", [record]).json()
        assert answer["counts"]["reopened"] == 1
        assert [each["outcome"] for each in answer["data"]] == ["reopened"]
    else:
        assert api.post(path, record).headers["Eligibility-Outcome"] == "reopened"
    assert desk.ends()["AB 000001"] is None
    entries = api.get(f"{path}?external_id=AB 000001").json()["data"]
    history = api.get(f"{path}/{entries[0]['id']}/history").json()["data"]
    assert history[-1]["outcome"] == "reopened"
    assert history[-1]["changed"]["expiry_date"] == ["2026-11-20", None]


def test_a_new_identifier_reopens_nobody(api: Api, path: str, desk: Desk) -> None:
    omitted_by_a_full_file(desk)
    [member] = api.get(f"{path}?external_id=AB 000001").json()["data"]
    api.post(f"{path}/{member['id']}/rename", {"external_id": "N-77"})
    assert desk.ends()["N-77"] == "2026-11-20"


def test_an_account_that_reopens_nobody_is_warned_instead(api: Api, path: str, desk: Desk) -> None:
    omitted_by_a_full_file(desk)
    with desk.db.write() as tx:
        set_reopens_absent(tx, desk.customer.account_id, reopens_absent=False)
    answer = api.post(path, member_body(1))
    assert answer.headers["Eligibility-Outcome"] == "unchanged"
    assert answer.headers["Eligibility-Warnings"] == "still_ended"


def test_a_family_with_one_address_is_enrolled_without_it_if_asked(
    api: Api, path: str, desk: Desk
) -> None:
    address = "family@example.com"
    api.post(path, member_body(1, email=address))
    refused = api.post(path, member_body(2, email=address))
    assert codes(refused) == {"email": "not_unique"}
    taken = api.post(f"{path}?email_taken=drop", member_body(2, email=address))
    assert taken.status_code == 201
    assert taken.headers["Eligibility-Warnings"] == "email_taken"
    assert taken.headers["Invitation"] == "none; reason=no_email"
    batch = [member_body(3, email=address), member_body(4, email="own@example.com")]
    results = api.post(f"{path}/batch?email_taken=drop", batch).json()["data"]
    assert [each["warnings"] for each in results] == [["email_taken"], []]
    assert desk.members()["AB 000003"]["email"] is None
    assert desk.members()["AB 000001"]["email"] == address
    wrong = api.post(f"{path}?email_taken=keep", member_body(5))
    assert codes(wrong) == {"email_taken": "not_allowed"}


def test_a_stored_member_keeps_its_address_if_the_sent_one_is_taken(
    api: Api, path: str, desk: Desk
) -> None:
    api.post(path, member_body(1, email="one@example.com"))
    api.post(path, member_body(2, email="two@example.com"))
    answer = api.post(f"{path}?email_taken=drop", member_body(2, email="one@example.com", city="X"))
    assert answer.headers["Eligibility-Changed"] == "city"
    assert desk.members()["AB 000002"]["email"] == "two@example.com"


def test_a_batch_moves_members_only_if_it_says_so(api: Api, path: str, customer: Customer) -> None:
    elsewhere = f"/v2/plans/{customer.plan_ids[1]}/eligibility"
    api.post(elsewhere, member_body(1))
    [kept] = api.post(f"{path}/batch", [member_body(1)]).json()["data"]
    assert (kept["status"], kept["errors"][0]["code"]) == (409, "other_plan")
    [moved] = api.post(f"{path}/batch?move=true", [member_body(1)]).json()["data"]
    assert (moved["outcome"], moved["left_plan"]) == ("moved", "plan-1")
    assert api.post(elsewhere, member_body(1)).headers["Eligibility-Outcome"] == "moved"


def test_each_record_of_a_batch_names_its_unknown_fields(api: Api, path: str) -> None:
    many = {f"unknown_{'x' * 40}_{n}": n for n in range(30)}
    records = [
        member_body(1, colour="blue"),
        member_body(2),
        {"external_id": "AB 000003", "size": 1},
        member_body(4, **many),
    ]
    answer = api.post(f"{path}/batch", records)
    first, second, third, fourth = answer.json()["data"]
    assert (first["status"], first["ignored_fields"]) == (201, ["colour"])
    assert "ignored_fields" not in second
    assert (third["status"], third["ignored_fields"]) == (422, ["size"])
    assert [len(name) for name in fourth["ignored_fields"]] == [40] * 20
    strict = api.post(f"{path}/batch", records[:1], headers={"Prefer": "handling=strict"})
    [refused] = strict.json()["data"]
    assert refused["errors"][0]["code"] == "unknown_field"
    assert "ignored_fields" not in refused


@pytest.mark.parametrize("field", ["effective_date", "expiry_date"])
def test_a_day_with_a_time_that_is_no_midnight_is_warned_of(
    api: Api, path: str, field: str
) -> None:
    first, second = (
        api.post(path, member_body(number, **{field: f"2027-01-01T{time}Z"}))
        for number, time in ((1, "00:00:00"), (2, "05:00:00"))
    )
    assert "Eligibility-Warnings" not in first.headers
    assert second.headers["Eligibility-Warnings"] == f"{field}_not_midnight"
