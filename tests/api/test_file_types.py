"""What an upload says of its content, and what its first bytes say: types, charsets, empty bodies."""

from typing import Any

import pytest

from frontdesk.db import Database
from tests.api.conftest import Files, codes
from tests.files.loading import csv_of, row

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
CSV = csv_of([row(1, first_name="Zoë")])


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
def test_a_type_that_the_content_contradicts_is_415(files: Files, sent: Any, named: tuple[str, str]) -> None:
    refused = files.upload(*sent)
    declared, found = named
    assert refused.status_code == 415
    assert declared in refused.json()["detail"]
    assert f"looks like {found}" in refused.json()["detail"]
    assert files.count() == 0


@pytest.mark.parametrize(
    ("sent", "faults"),
    [
        ((b"",), {"body": "empty"}),
        ((CSV, "", "text/csv; charset=klingon"), {"encoding": "unknown_encoding"}),
        ((CSV, "?encoding=klingon"), {"encoding": "unknown_encoding"}),
    ],
)
def test_no_content_or_a_strange_encoding_is_refused(files: Files, sent: Any, faults: dict[str, str]) -> None:
    refused = files.upload(*sent)
    assert (refused.status_code, codes(refused)) == (422, faults)
    assert files.count() == 0


@pytest.mark.parametrize(
    ("codec", "query", "kind"),
    [
        ("cp1252", "", 'text/csv; header=present; Charset="windows-1252"'),
        ("cp1252", "?encoding=cp1252", "text/csv; charset=utf-8"),
        ("utf-16", "", "text/csv; charset=utf-8"),
        ("utf-16-le", "", "text/csv;charset=UTF-16LE"),
        ("utf-8-sig", "", "application/octet-stream"),
    ],
)
def test_a_declared_charset_is_read(files: Files, db: Database, codec: str, query: str, kind: str) -> None:
    assert files.load(CSV.decode().encode(codec), query, kind)["counts"] == {"created": 1}
    with db.read() as tx:
        assert tx.exec_driver_sql("SELECT first_name FROM members").scalar() == "Zoë"


def test_the_header_row_and_the_sheet_of_an_upload_go_before_the_mappings(files: Files) -> None:
    content = b"external_id,a title that looks like a header\n" + CSV
    assert files.load(content, '?header_row=2&mapping={"header_row":1}')["counts"] == {"created": 1}
    for query in ("?header_row=0", "?header_row=51", "?header_row=x", "?sheet=", "?sheet=" + "x" * 32):
        assert files.upload(content, query).status_code == 422
