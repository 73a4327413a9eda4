"""Mappings of an account over HTTP: stored by name, one as default, used by uploads; whose they
are.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest

from frontdesk.db import Database
from frontdesk.files.actions import MOST_MAPPINGS
from tests.api.conftest import Files, Trail, codes
from tests.api.mappings import HR, MAPPINGS, put
from tests.conftest import Api
from tests.factories import make_customer
from tests.files.loading import csv_of, row
from tests.formats.workbooks import workbook
from tests.patience import wait_until

EXPORT = (
    b"Employee No;First;Last;Sex;Born;ZIP;Until\n"
    b"7;Robin;Sample;F;1/31/1977;2134;12/31/9999\n"
    b"8;Lee;Sample;;12/1/2001;02134;12/31/2026\n"
    b"Total;2\n"
)


def test_a_customer_stores_reads_lists_replaces_and_deletes_a_mapping(
    api: Api, trail: Trail
) -> None:
    assert api.get(MAPPINGS).json()["data"] == []
    made = put(api, "hr-export", HR)
    assert (made.status_code, made.json()["data"]["mapping"]) == (201, HR)
    assert (made.json()["data"]["name"], made.json()["data"]["is_default"]) == ("hr-export", False)
    assert put(api, "hr-export", HR).status_code == 200
    assert put(api, "b", {}).status_code == 201
    assert api.get(f"{MAPPINGS}/hr-export").json()["data"] == made.json()["data"]
    assert [each["name"] for each in api.get(MAPPINGS).json()["data"]] == ["b", "hr-export"]
    ended = [
        api.request(way, f"{MAPPINGS}/hr-export").status_code for way in ("DELETE", "DELETE", "GET")
    ]
    assert ended == [204, 404, 404]
    assert [entry["action"] for entry in trail("mapping")] == ["mapping.saved"] * 3 + [
        "mapping.deleted"
    ]


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


def test_a_file_keeps_its_mapping_and_an_empty_one_goes_before_the_default(files: Files) -> None:
    put(files.api, "usual", HR, "?default=true")
    by_default = files.upload(EXPORT)
    plain = files.upload(csv_of([row(1)]), "?mapping={}")
    put(files.api, "usual", {"columns": {}})
    files.api.request("DELETE", f"{MAPPINGS}/usual")
    assert [files.work(), files.work()] == [True, True]
    assert files.file(by_default)["counts"] == {"created": 2, "skipped": 1}
    assert files.file(plain)["counts"] == {"created": 1}
    put(files.api, "hr-export", HR)
    for mapping in ("hr-export", quote(json.dumps(HR))):
        assert files.load(EXPORT, f"?mapping={mapping}")["counts"] == {"unchanged": 2, "skipped": 1}


def test_another_accounts_mapping_is_not_there(files: Files, api: Api, db: Database) -> None:
    put(api, "hr-export", HR, "?default=true")
    theirs = files.of(make_customer(db, name="Stranger"))
    stranger = theirs.api
    assert stranger.get(MAPPINGS).json()["data"] == []
    names = ("hr-export", "never-was", "a%00b", "a" * 65, "%C3%A9")
    asked = [
        stranger.request(way, f"{MAPPINGS}/{name}") for way in ("GET", "DELETE") for name in names
    ]
    for answer in (*asked, theirs.upload(EXPORT, "?mapping=hr-export")):
        told = (answer.status_code, answer.json()["detail"])
        assert told == (404, "There is no such eligibility mapping.")
    # Its own files are not read by the other account's default either.
    put(stranger, "hr-export", {"columns": {"Sex": "city"}})
    assert api.get(f"{MAPPINGS}/hr-export").json()["data"]["mapping"] == HR
    assert theirs.load(EXPORT)["state"] == "failed"


@pytest.mark.parametrize(
    ("mapping", "status"),
    [
        ('{"columns": {"a": "shoe"}}', 422),
        ('{"columns"', 400),
        ('{"columns": {}, "columns": {}}', 400),
        *(("", 404), ("[]", 404), ("hr export", 404)),
    ],
)
def test_an_upload_with_an_unusable_mapping_leaves_nothing(
    files: Files, mapping: str, status: int
) -> None:
    assert files.upload(EXPORT, "?mapping=" + quote(mapping)).status_code == status
    assert files.count() == 0


def test_a_mapping_is_refused_with_every_fault(api: Api) -> None:
    for name in ("a%20b", "%C3%A9", "a" * 65, "a%0Ab"):
        assert (put(api, name, {}).status_code, [*codes(put(api, name, {}))]) == (422, ["name"])
    faults = put(
        api, "a", {"colums": {}, "delimiter": "#", "fields": {"dob": {"dates": ["(a+)+$"]}}}
    )
    assert (faults.status_code, set(codes(faults))) == (
        422,
        {"colums", "delimiter", "fields.dob.dates"},
    )
    assert put(api, "a", {"columns": {"x" * 65_536: "city"}}).status_code == 413
    assert put(api, "a", {}, "?default=yes").status_code == 422
    assert api.get(MAPPINGS).json()["data"] == []


def test_an_account_has_so_many_mappings_at_most(api: Api) -> None:
    for number in range(MOST_MAPPINGS):
        assert put(api, f"m{number}", {}).status_code == 201
    assert put(api, "one-more", {}).status_code == 422
    assert put(api, "m0", HR).status_code == 200


def test_callers_that_store_at_once_leave_one_default(api: Api) -> None:
    with ThreadPoolExecutor(8) as pool:
        stored = list(
            pool.map(lambda number: put(api, f"m{number % 4}", {}, "?default=true"), range(24))
        )
    assert {answer.status_code for answer in stored} <= {200, 201, 503}
    found = api.get(MAPPINGS).json()["data"]
    assert sorted(each["name"] for each in found) == ["m0", "m1", "m2", "m3"]
    assert sum(each["is_default"] for each in found) == 1


def test_words_of_a_mapping_stand_in_no_log_and_no_report(files: Files, api: Api) -> None:
    fields = {"gender": {"column": "Sex", "values": {"canaryword": "canaryvalue"}}}
    query = "?mapping=" + quote(json.dumps({"fields": fields}))
    file = files.load(b"external_id,Sex\n1,canaryword\n", query)
    assert file["counts"] == {"refused": 1}
    refused = put(api, "a", {"fields": {"city": {"values": {"canaryword": 7}}}})
    texts = [refused.text, str(file), *files.report(file)]
    wait_until(lambda: "/report" in api.log.getvalue(), "the last line, which leaves by a thread")
    assert '"PUT"' in api.log.getvalue()
    for text in (api.log.getvalue(), *texts):
        assert "canary" not in text


@pytest.mark.parametrize(
    ("mapping", "content", "code"),
    [
        ({"fields": {"dob": {"column": "Born"}}}, csv_of([row(1)]), "missing_column"),
        ({"columns": {"Number": "external_id"}}, b"No,City\n1,Boston\n", "no_key_column"),
        ({"header_row": 9, "delimiter": ","}, csv_of([row(1)]), "no_header"),
        ({"skip": [{"column": "city", "equals": ""}]}, b"external_id,city\n1,\n", "no_rows"),
    ],
)
def test_an_unfit_default_mapping_is_named(
    files: Files, mapping: Any, content: bytes, code: str
) -> None:
    put(files.api, "another", {"clear": "-"})
    put(files.api, "usual", mapping, "?default=true")
    problem = files.load(content)["problem"]
    assert problem["code"] == code
    assert "the account's mapping usual." in problem["message"]
    assert "orrect it" in problem["message"]


def test_only_what_the_default_mapping_says_is_put_down_to_it(files: Files, db: Database) -> None:
    put(files.api, "usual", {"sheet": "People"}, "?default=true")
    sheets = workbook([], sheets={"People": [["external_id"], ["E1"]]})
    own = quote(json.dumps({"fields": {"dob": {"column": "Born"}}}))
    for content, query, code in (
        (sheets, "?sheet=Members", "no_sheet"),
        (csv_of([row(1)]), f"?mapping={own}", "missing_column"),
    ):
        problem = files.load(content, query, "application/octet-stream")["problem"]
        assert (problem["code"], "usual" in problem["message"]) == (code, False)
    with db.write() as tx:
        tx.exec_driver_sql("""UPDATE eligibility_mappings SET mapping = '{"colour": 1}'""")
    problem = files.load(csv_of([row(1)]))["problem"]
    assert (problem["code"], "mapping usual" in problem["message"]) == ("bad_mapping", True)
