"""What an upload says of its content, and what its first bytes say: types, charsets, empty bodies."""

from typing import Any

import pytest

from frontdesk.db import Database
from tests.api.test_files import address, upload, work
from tests.conftest import Api, SetClock
from tests.factories import Customer
from tests.files.loading import csv_of, row

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
CSV = csv_of([row(1, first_name="Zoë")])


def faults(answer: Any) -> list[tuple[str, str]]:
    return [(fault["field"], fault["code"]) for fault in answer.json()["errors"]]


def stored(db: Database) -> int:
    with db.read() as tx:
        return int(tx.exec_driver_sql("SELECT count(*) FROM eligibility_files").scalar_one())


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        ((b"PK\x03\x04", "", "text/csv"), ("text/csv", "an Excel workbook")),
        ((b'{"external_id": "1"}', "", "Text/CSV; charset=utf-8"), ("text/csv", "JSON lines")),
        ((CSV, "", "application/json"), ("application/json", "CSV")),
        ((b'[{"external_id": "1"}]', "", "application/x-ndjson"), ("application/x-ndjson", "a JSON array")),
        ((CSV, "", XLSX), (XLSX, "CSV")),
        ((b"%PDF-1.7", "", "application/pdf"), ("application/pdf", "PDF")),
        ((CSV, "", "image/png"), ("image/png", "CSV")),
        ((b"PK\x03\x04", "?format=csv", "text/csv"), ("format is csv", "an Excel workbook")),
    ],
)
def test_a_type_that_the_content_contradicts_is_415_with_both_named(
    api: Api, db: Database, customer: Customer, sent: tuple[bytes, str, str], named: tuple[str, str]
) -> None:
    refused = upload(api, customer, *sent)
    declared, found = named
    assert refused.status_code == 415
    assert declared in refused.json()["detail"]
    assert f"looks like {found}" in refused.json()["detail"]
    assert stored(db) == 0


def test_an_empty_upload_is_refused_at_once(api: Api, db: Database, customer: Customer) -> None:
    refused = upload(api, customer, b"")
    assert (refused.status_code, faults(refused)) == (422, [("body", "empty")])
    assert stored(db) == 0


def test_an_encoding_that_is_not_read_is_refused_at_once(api: Api, db: Database, customer: Customer) -> None:
    for query, kind in (("", "text/csv; charset=klingon"), ("?encoding=klingon", "text/csv")):
        refused = upload(api, customer, CSV, query, kind)
        assert (refused.status_code, faults(refused)) == (422, [("encoding", "unknown_encoding")])
    assert stored(db) == 0


@pytest.mark.parametrize(
    "sent",
    [
        ("cp1252", "", 'text/csv; header=present; Charset="windows-1252"'),
        ("cp1252", "?encoding=cp1252", "text/csv; charset=utf-8"),
        ("utf-16", "", "text/csv; charset=utf-8"),
        ("utf-16-le", "", "text/csv;charset=UTF-16LE"),
        ("utf-8-sig", "", "application/octet-stream"),
    ],
)
def test_the_declared_charset_is_honoured(
    api: Api, db: Database, customer: Customer, clock: SetClock, sent: tuple[str, str, str]
) -> None:
    codec, query, kind = sent
    taken = upload(api, customer, CSV.decode().encode(codec), query, kind)
    assert taken.status_code == 202
    assert work(db, clock)
    assert api.get(f"{address(customer)}/1").json()["data"]["counts"] == {"created": 1}
    with db.read() as tx:
        assert tx.exec_driver_sql("SELECT first_name FROM members").scalar() == "Zoë"


def test_a_file_in_another_encoding_than_declared_fails_with_a_code(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    content = CSV.decode().encode("utf-16-be")
    assert upload(api, customer, content, "?encoding=utf-16").status_code == 202
    assert work(db, clock)
    data = api.get(f"{address(customer)}/1").json()["data"]
    assert (data["state"], data["problem"]["code"]) == ("failed", "wrong_encoding")


def test_the_header_row_and_the_sheet_of_an_upload_go_before_the_mappings(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    content = b"external_id,a title that looks like a header\n" + CSV
    assert upload(api, customer, content, '?header_row=2&mapping={"header_row":1}').status_code == 202
    assert work(db, clock)
    assert api.get(f"{address(customer)}/1").json()["data"]["counts"] == {"created": 1}
    for query in ("?header_row=0", "?header_row=51", "?header_row=x", "?sheet=", "?sheet=" + "x" * 32):
        assert upload(api, customer, content, query).status_code == 422


def test_an_array_is_loaded_as_rows(api: Api, db: Database, customer: Customer, clock: SetClock) -> None:
    members = [{name: value for name, value in row(n).items() if value} for n in range(3)]
    taken = api.request("POST", address(customer), json=members)
    assert taken.status_code == 202
    assert work(db, clock)
    data = api.get(f"{address(customer)}/1").json()["data"]
    assert (data["format"], data["counts"]) == ("json", {"created": 3})
