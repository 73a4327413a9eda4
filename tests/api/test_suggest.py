"""A suggested mapping over HTTP: it is accepted as it is, and nothing is stored."""

from typing import Any
from urllib.parse import quote

import pytest

from frontdesk.api.suggestions import SAMPLE_BYTES
from frontdesk.audit import list_entries
from frontdesk.db import Database
from tests.api.test_files import address, upload, work
from tests.api.test_mappings import counts, put
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_customer
from tests.files.exports import hr_export, synthea, written
from tests.files.readers.workbooks import workbook

WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def suggestion(api: Api, customer: Customer, content: bytes, query: str = "", kind: str = "text/csv") -> Any:
    answer = upload(api, customer, content, f"?suggest_mapping=true{query}", kind)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def test_a_suggestion_is_stored_as_it_is_and_loads_the_file(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    found = suggestion(api, customer, hr_export())
    with db.read() as tx:
        assert tx.exec_driver_sql("SELECT count(*) FROM eligibility_files").scalar() == 0
        assert [entry for entry in list_entries(tx, limit=10) if "file" in entry["action"]] == []
    stored = put(api, "hr", found["mapping"])
    assert (stored.status_code, stored.json()["data"]["mapping"]) == (201, found["mapping"])
    taken = upload(api, customer, hr_export(), "?mapping=hr")
    assert work(db, clock)
    assert counts(api, customer, taken) == {"created": 40, "skipped": 1}


def test_a_workbook_gets_a_suggestion_too(
    api: Api, db: Database, customer: Customer, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [line.split(",") for line in hr_export().decode().splitlines()]
    content = workbook([], sheets={"Notes": [["A list"]], "People": rows})
    found = suggestion(api, customer, content, "&sheet=People", WORKBOOK)
    assert (found["format"], found["mapping"]["sheet"]) == ("xlsx", "People")
    assert put(api, "hr", found["mapping"]).status_code == 201
    taken = upload(api, customer, content, "?mapping=hr", WORKBOOK)
    assert work(db, clock)
    assert counts(api, customer, taken) == {"created": 40, "skipped": 1}
    monkeypatch.setattr("frontdesk.api.suggestions.WORKBOOK_BYTES", 1000)
    refused = upload(api, customer, content, "?suggest_mapping=true", WORKBOOK)
    assert (refused.status_code, "first 1,000 rows" in refused.text) == (400, True)


def test_a_suggestion_says_what_is_missing(api: Api, db: Database, customer: Customer) -> None:
    found = suggestion(api, customer, synthea())
    [refused] = found["refused"]
    assert '{"fields": {"effective_date": {"constant": "2026-01-01"}}}' in refused.pop("advice")
    assert refused == {"field": "effective_date", "code": "required", "rows": 40}


def test_a_large_file_is_looked_at_where_it_begins(api: Api, customer: Customer) -> None:
    rows = [["Employee ID", "First Name"], *([str(n), "Robin" * 20] for n in range(SAMPLE_BYTES // 80))]
    content = written(rows)
    assert len(content) > SAMPLE_BYTES
    assert suggestion(api, customer, content)["rows"] == 1000


@pytest.mark.parametrize(
    "name", ["mode=full", "dry_run=true", "mapping=hr", "mapping=" + quote("{}"), "header_row=2"]
)
def test_what_only_a_load_takes_is_refused(api: Api, customer: Customer, name: str) -> None:
    answer = upload(api, customer, hr_export(), f"?suggest_mapping=true&{name}")
    assert answer.status_code == 422
    assert [fault["field"] for fault in answer.json()["errors"]] == [name.partition("=")[0]]


def test_another_accounts_plan_is_not_there(api: Api, db: Database, customer: Customer) -> None:
    stranger = api.as_(make_customer(db, name="Stranger").token)
    answer = stranger.request("POST", f"{address(customer)}?suggest_mapping=true", content=hr_export())
    assert answer.status_code == 404


def test_a_file_without_a_header_shows_nothing_of_itself(api: Api, customer: Customer) -> None:
    answer = upload(api, customer, b"7,Canary,Sample,1977-01-31\n", "?suggest_mapping=true")
    assert (answer.status_code, "Canary" in answer.text) == (400, False)
    assert upload(api, customer, b"x", "?suggest_mapping=yes").status_code == 422
