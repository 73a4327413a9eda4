"""Mappings of an account over HTTP: stored by name, one as default, used by uploads; whose they are."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest

from frontdesk.audit import list_entries
from frontdesk.db import Database
from frontdesk.files.actions import MOST_MAPPINGS
from tests.api.test_files import address, upload, work
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_customer
from tests.files.loading import csv_of, row
from tests.formats.workbooks import workbook
from tests.patience import wait_until

MAPPINGS = "/v2/eligibility-mappings"
HR = {
    "columns": {"Employee No": "external_id", "First": "first_name", "Last": "last_name"},
    "fields": {
        "member_id": {"column": "Employee No"},
        "gender": {"column": "Sex", "values": {"M": "male", "F": "female", "": "unknown"}},
        "dob": {"column": "Born", "dates": ["MM/DD/YYYY"]},
        "zipcode": {"column": "ZIP", "pad": 5},
        "expiry_date": {"column": "Until", "dates": ["MM/DD/YYYY"], "open": "9999-12-31"},
        "effective_date": {"constant": "2026-01-01"},
    },
    "skip": [{"column": "Employee No", "equals": ["", "Total"]}],
}
EXPORT = (
    b"Employee No;First;Last;Sex;Born;ZIP;Until\n"
    b"7;Robin;Sample;F;1/31/1977;2134;12/31/9999\n"
    b"8;Lee;Sample;;12/1/2001;02134;12/31/2026\n"
    b"Total;2\n"
)


def put(api: Api, name: str, mapping: Any, query: str = "") -> Any:
    return api.request("PUT", f"{MAPPINGS}/{name}{query}", json=mapping)


def counts(api: Api, customer: Customer, taken: Any) -> Any:
    assert taken.status_code == 202, taken.text
    return api.get(f"{address(customer)}/{taken.json()['data']['id']}").json()["data"]["counts"]


def test_a_customer_stores_reads_lists_replaces_and_deletes_a_mapping(api: Api, db: Database) -> None:
    assert api.get(MAPPINGS).json()["data"] == []
    made = put(api, "hr-export", HR)
    assert (made.status_code, made.json()["data"]["mapping"]) == (201, HR)
    assert (made.json()["data"]["name"], made.json()["data"]["is_default"]) == ("hr-export", False)
    assert put(api, "hr-export", HR).status_code == 200
    assert put(api, "b", {}).status_code == 201
    assert api.get(f"{MAPPINGS}/hr-export").json()["data"] == made.json()["data"]
    assert [each["name"] for each in api.get(MAPPINGS).json()["data"]] == ["b", "hr-export"]
    assert api.request("DELETE", f"{MAPPINGS}/hr-export").status_code == 204
    assert api.request("DELETE", f"{MAPPINGS}/hr-export").status_code == 404
    assert api.get(f"{MAPPINGS}/hr-export").status_code == 404
    with db.read() as tx:
        actions = [entry["action"] for entry in list_entries(tx, limit=10) if "mapping" in entry["action"]]
    assert sorted(actions) == ["mapping.deleted", *["mapping.saved"] * 3]


def test_one_mapping_is_the_default(api: Api) -> None:
    def defaults() -> list[str]:
        return [each["name"] for each in api.get(MAPPINGS).json()["data"] if each["is_default"]]

    put(api, "a", {}, "?default=true")
    put(api, "b", {})
    assert defaults() == ["a"]
    put(api, "b", {}, "?default=true")
    put(api, "b", HR)
    assert defaults() == ["b"]
    put(api, "b", HR, "?default=false")
    assert defaults() == []


def test_an_hr_export_is_loaded_by_a_mapping_of_the_account(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    put(api, "hr-export", HR)
    by_name = upload(api, customer, EXPORT, "?mapping=hr-export")
    own = upload(api, customer, EXPORT, "?dry_run=true&mapping=" + quote(json.dumps(HR)))
    assert work(db, clock)
    assert work(db, clock)
    assert counts(api, customer, by_name) == {"created": 2, "skipped": 1}
    assert counts(api, customer, own) == {"unchanged": 2, "skipped": 1}
    with db.read() as tx:
        stored = tx.exec_driver_sql(
            "SELECT member_id, gender, zipcode, expiry_date FROM members ORDER BY member_id"
        ).all()
    assert [(each[0], each[1], each[2], each[3] and str(each[3])) for each in stored] == [
        ("7", "female", "02134", None),
        ("8", "unknown", "02134", "2026-12-31"),
    ]


def test_a_file_keeps_the_mapping_that_it_came_with(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    put(api, "usual", HR, "?default=true")
    taken = upload(api, customer, EXPORT)
    put(api, "usual", {"columns": {}})
    api.request("DELETE", f"{MAPPINGS}/usual")
    assert work(db, clock)
    assert counts(api, customer, taken) == {"created": 2, "skipped": 1}


def test_an_empty_mapping_goes_before_the_default(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    put(api, "usual", {"columns": {"external_id": "city", "city": "external_id"}}, "?default=true")
    taken = upload(api, customer, csv_of([row(1)]), "?mapping={}")
    assert work(db, clock)
    assert counts(api, customer, taken) == {"created": 1}


def test_another_accounts_mapping_is_not_there(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    put(api, "hr-export", HR, "?default=true")
    other = make_customer(db, name="Stranger")
    stranger = api.as_(other.token)
    assert stranger.get(MAPPINGS).json()["data"] == []
    for method in ("GET", "DELETE"):
        for name in ("hr-export", "never-was", "a%00b", "a" * 65, "%C3%A9"):
            answer = stranger.request(method, f"{MAPPINGS}/{name}", headers={"X-Request-Id": "same"})
            assert (answer.status_code, answer.json()["detail"]) == (
                404,
                "There is no such eligibility mapping.",
            )
    refused = upload(stranger, other, EXPORT, "?mapping=hr-export")
    assert (refused.status_code, refused.json()["detail"]) == (404, "There is no such eligibility mapping.")
    # Its own files are not read by the other account's default either.
    put(stranger, "hr-export", {"columns": {"Sex": "city"}})
    assert api.get(f"{MAPPINGS}/hr-export").json()["data"]["mapping"] == HR
    taken = upload(stranger, other, EXPORT)
    assert work(db, clock)
    path = taken.headers["Location"].removeprefix("https://api.example.com")
    assert stranger.get(path).json()["data"]["state"] == "failed"


def test_an_upload_with_a_mapping_that_cannot_be_used_leaves_nothing(
    api: Api, db: Database, customer: Customer
) -> None:
    for mapping, status in (
        ('{"columns": {"a": "shoe"}}', 422),
        ('{"columns"', 400),
        ('{"columns": {}, "columns": {}}', 400),
        ("", 404),
        ("[]", 404),
        ("hr export", 404),
    ):
        assert upload(api, customer, EXPORT, "?mapping=" + quote(mapping)).status_code == status
    with db.read() as tx:
        assert tx.exec_driver_sql("SELECT count(*) FROM eligibility_files").scalar() == 0


@pytest.mark.parametrize("name", ["a%20b", "%C3%A9", "a" * 65, "a%0Ab"])
def test_a_name_that_cannot_be_one_is_refused(api: Api, name: str) -> None:
    answer = put(api, name, {})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "name")


def test_a_body_that_is_no_mapping_is_refused_with_every_fault(api: Api) -> None:
    faults = put(api, "a", {"colums": {}, "delimiter": "#", "fields": {"dob": {"dates": ["(a+)+$"]}}})
    assert faults.status_code == 422
    assert {each["field"] for each in faults.json()["errors"]} == {"colums", "delimiter", "fields.dob.dates"}
    assert put(api, "a", []).status_code == 400
    assert put(api, "a", {"columns": {"x" * 65_536: "city"}}).status_code == 413
    assert put(api, "a", {}, "?default=yes").status_code == 422
    assert put(api, "a", {}, "?defualt=true").status_code == 422
    assert api.get(MAPPINGS).json()["data"] == []


def test_an_account_has_so_many_mappings_at_most(api: Api) -> None:
    for number in range(MOST_MAPPINGS):
        assert put(api, f"m{number}", {}).status_code == 201
    assert put(api, "one-more", {}).status_code == 422
    assert put(api, "m0", HR).status_code == 200


def test_callers_that_store_at_once_leave_one_default(api: Api) -> None:
    with ThreadPoolExecutor(8) as pool:
        stored = list(pool.map(lambda number: put(api, f"m{number % 4}", {}, "?default=true"), range(24)))
    assert {answer.status_code for answer in stored} <= {200, 201, 503}
    found = api.get(MAPPINGS).json()["data"]
    assert sorted(each["name"] for each in found) == ["m0", "m1", "m2", "m3"]
    assert sum(each["is_default"] for each in found) == 1


def test_words_of_a_mapping_stand_in_no_log_and_no_report(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    fields = {"gender": {"column": "Sex", "values": {"canaryword": "canaryvalue"}}}
    taken = upload(
        api, customer, b"external_id,Sex\n1,canaryword\n", "?mapping=" + quote(json.dumps({"fields": fields}))
    )
    assert work(db, clock)
    assert counts(api, customer, taken) == {"refused": 1}
    path = taken.headers["Location"].removeprefix("https://api.example.com")
    refused = put(api, "a", {"fields": {"city": {"values": {"canaryword": 7}}}})
    answers = [refused.text, api.get(path).text, api.get(path + "/report").text]
    wait_until(lambda: "/report" in api.log.getvalue(), "the last line, which leaves by a thread")
    log = api.log.getvalue()
    assert '"PUT"' in log
    for text in (log, *answers):
        assert "canary" not in text


Failed = Callable[..., dict[str, Any]]


@pytest.fixture
def failed(api: Api, db: Database, customer: Customer, clock: SetClock) -> Failed:
    """Loads a file; the problem that it fails with."""

    def load(content: bytes, query: str = "") -> dict[str, Any]:
        taken = upload(api, customer, content, query, "application/octet-stream")
        assert work(db, clock)
        file = api.get(f"{address(customer)}/{taken.json()['data']['id']}").json()["data"]
        assert file["state"] == "failed"
        return dict(file["problem"])

    return load


SHEETS = workbook([], sheets={"People": [["external_id"], ["E1"]]})
BROKEN: list[tuple[dict[str, Any], bytes, str]] = [
    ({"fields": {"dob": {"column": "Born"}}}, csv_of([row(1)]), "missing_column"),
    ({"columns": {"Number": "external_id"}}, b"No,City\n1,Boston\n", "no_key_column"),
    ({"header_row": 9, "delimiter": ","}, csv_of([row(1)]), "no_header"),
    ({"skip": [{"column": "city", "equals": ""}]}, b"external_id,city\n1,\n", "no_rows"),
]


@pytest.mark.parametrize(("mapping", "content", "code"), BROKEN)
def test_a_default_mapping_that_does_not_fit_is_named_with_what_to_do(
    api: Api, failed: Failed, mapping: Any, content: bytes, code: str
) -> None:
    put(api, "another", {"clear": "-"})
    put(api, "usual", mapping, "?default=true")
    problem = failed(content)
    assert problem["code"] == code
    assert "the account's mapping usual." in problem["message"]
    assert "orrect it" in problem["message"]


def test_a_stored_mapping_that_can_no_longer_be_used_is_named(api: Api, db: Database, failed: Failed) -> None:
    put(api, "usual", {}, "?default=true")
    with db.write() as tx:
        tx.exec_driver_sql("""UPDATE eligibility_mappings SET mapping = '{"colour": 1}'""")
    problem = failed(csv_of([row(1)]))
    assert problem["code"] == "bad_mapping"
    assert "mapping usual" in problem["message"]


def test_what_the_upload_says_itself_is_not_put_down_to_the_default_mapping(api: Api, failed: Failed) -> None:
    put(api, "usual", {"sheet": "People"}, "?default=true")
    problem = failed(SHEETS, "?sheet=Members")
    assert (problem["code"], "usual" in problem["message"]) == ("no_sheet", False)
    own = quote(json.dumps({"fields": {"dob": {"column": "Born"}}}))
    problem = failed(csv_of([row(1)]), f"?mapping={own}")
    assert (problem["code"], "usual" in problem["message"]) == ("missing_column", False)
