"""Eligibility files over HTTP: upload, progress, report; whose they are."""

import gzip
from collections.abc import Iterator
from typing import Any

from frontdesk.access.scopes import Scope
from frontdesk.config import Uniqueness
from frontdesk.db import Database
from frontdesk.files import Turn, run_next
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_customer
from tests.files.loading import csv_of, lines_of, row


def address(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility-files"


def upload(api: Api, customer: Customer, content: Any, query: str = "", kind: str = "text/csv") -> Any:
    return api.request("POST", address(customer) + query, content=content, headers={"Content-Type": kind})


def work(db: Database, clock: SetClock) -> bool:
    return run_next(db, clock, Turn(Uniqueness.SERVICE))


def test_an_uploaded_file_waits_is_loaded_and_reported(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    taken = upload(api, customer, csv_of([row(1), row(2, dob="never")]))
    assert taken.status_code == 202
    assert taken.headers["Location"] == taken.json()["links"]["self"]
    assert taken.json()["data"]["state"] == "waiting"
    path = taken.headers["Location"].removeprefix("https://api.example.com")
    assert work(db, clock)
    data = api.get(path).json()["data"]
    assert (data["state"], data["counts"], data["rows_done"]) == ("done", {"created": 1, "refused": 1}, 2)
    lines = api.get(path + "/report").text.splitlines()
    assert lines[0] == '{"row":2,"external_id":"E00001","outcome":"created","code":"","field":"","hint":""}'
    table = api.get(path + "/report?format=csv")
    assert table.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert table.text.splitlines()[2].startswith("3,E00002,refused,not_a_date,dob,")


def test_a_large_upload_streams_in_and_out(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    def pieces() -> Iterator[bytes]:
        content = csv_of(row(n, email="x" * 4000) for n in range(700))
        for start in range(0, len(content), 70_000):
            yield content[start : start + 70_000]

    taken = upload(api, customer, pieces())
    assert taken.json()["data"]["size_bytes"] > 2_500_000
    assert work(db, clock)
    report = api.get(f"{address(customer)}/1/report").text.splitlines()
    assert sum('"outcome":"created"' in line for line in report) == 700
    assert sum('"code":"email_dropped"' in line for line in report) == 700


def test_gzip_and_other_formats_are_recognised(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    upload(api, customer, gzip.compress(lines_of([row(1)])), kind="application/octet-stream")
    upload(api, customer, csv_of([row(2)]), "?format=csv&dry_run=true", "application/json")
    assert work(db, clock)
    assert work(db, clock)
    assert not work(db, clock)
    assert api.get(f"{address(customer)}/1").json()["data"]["counts"] == {"created": 1}
    dry = api.get(f"{address(customer)}/2").json()["data"]
    assert (dry["dry_run"], dry["counts"]) == (True, {"created": 1})


def test_another_accounts_file_and_one_that_never_was_answer_the_same_bytes(
    api: Api, db: Database, customer: Customer
) -> None:
    upload(api, customer, csv_of([row(1)]))
    stranger = api.as_(make_customer(db, name="Stranger").token)
    for path in ("/1", "/1/report", "/99", "/99/report", "/x", "/x/report"):
        answer = stranger.get(address(customer) + path, headers={"X-Request-Id": "same"})
        assert answer.status_code == 404
        assert answer.json()["detail"] == "There is no such eligibility file."
    refused = stranger.request("POST", address(customer), content=b"x")
    absent = stranger.request("POST", "/v2/plans/999/eligibility-files", content=b"x")
    assert (refused.status_code, refused.json()["detail"]) == (404, absent.json()["detail"])
    assert api.get(f"/v2/plans/{customer.plan_ids[1]}/eligibility-files/1").status_code == 404


def test_the_scope_to_write_eligibility_is_needed(api: Api, db: Database) -> None:
    reader = make_customer(db, name="Reader", scopes=frozenset({Scope.PLANS_READ}))
    assert api.as_(reader.token).get(address(reader) + "/1").status_code == 403


def test_parameters_that_mean_nothing_are_refused(api: Api, customer: Customer) -> None:
    for query in ("?mode=all", "?format=xls", "?dry_run=1", "?encoding=%C3%A9", "?mode=full&mode=full"):
        assert upload(api, customer, b"x", query).status_code == 422
    assert api.get(address(customer) + "/1/report?format=pdf").status_code == 422


def test_an_upload_above_the_limit_is_refused_and_leaves_nothing(
    api: Api, db: Database, customer: Customer
) -> None:
    declared = api.request("POST", address(customer), content=b"x", headers={"Content-Length": str(2**31)})
    assert declared.status_code == 413
    with db.read() as tx:
        assert tx.exec_driver_sql("SELECT count(*) FROM eligibility_files").scalar() == 0
        assert tx.exec_driver_sql("SELECT count(*) FROM file_parts").scalar() == 0
