"""A suggested mapping over HTTP: it is accepted once its questions are answered, and nothing is stored."""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore
from typing import Any
from urllib.parse import quote

import pytest

from frontdesk.api.eligibility_files import SAMPLE_BYTES
from frontdesk.app import App
from frontdesk.audit import list_entries
from frontdesk.db import Database
from tests.api.test_files import address, upload, work
from tests.api.test_mappings import counts, put
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_customer
from tests.files.exports import hr_export, synthea, written
from tests.formats.workbooks import workbook

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
    monkeypatch.setattr("frontdesk.api.eligibility_files.WORKBOOK_BYTES", 1000)
    refused = upload(api, customer, content, "?suggest_mapping=true", WORKBOOK)
    assert (refused.status_code, "first 1,000 rows" in refused.text) == (400, True)


def test_a_suggestion_with_an_open_question_is_neither_stored_nor_used(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    head = [
        "external_id",
        "member_id",
        "first_name",
        "last_name",
        "dob",
        "gender",
        "zipcode",
        "effective_date",
    ]
    rows = [
        [f"E{n}", f"M{n}", "Robin", "Sample", "1980-02-03", "male", "02134", "2026-01-01", word]
        for n, word in enumerate(("Active", "Terminated"))
    ]
    content = written([[*head, "Employment Status"], *rows])
    found = suggestion(api, customer, content)
    mapping = found["mapping"]
    sent = upload(api, customer, content, "?mapping=" + quote(json.dumps(mapping)))
    for answer in (put(api, "hr", mapping), sent):
        assert answer.status_code == 422
        [fault] = answer.json()["errors"]
        assert fault["field"] == "questions.Employment%20Status"
        assert "whose access has ended" in fault["message"]
    leave_out = found["questions"][0]["choices"][0]["mapping"]
    assert put(api, "hr", mapping | leave_out).status_code == 201
    taken = upload(api, customer, content, "?mapping=hr")
    assert work(db, clock)
    assert counts(api, customer, taken) == {"created": 1, "skipped": 1, "warned": 1}


def test_an_account_gets_one_suggestion_at_a_time(
    app: App, api: Api, db: Database, customer: Customer
) -> None:
    at_end = app.suggestions.begin(customer.account_id)
    refused = upload(api, customer, hr_export(), "?suggest_mapping=true")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
    assert [fault["code"] for fault in refused.json()["errors"]] == ["suggestion_open"]
    other = make_customer(db, name="Another")
    assert suggestion(api.as_(other.token), other, hr_export())["rows"] == 41
    at_end()
    for _ in range(2):
        assert suggestion(api, customer, hr_export())["rows"] == 41
    assert upload(api, customer, b"1,Robin\n", "?suggest_mapping=true").status_code == 400
    assert suggestion(api, customer, hr_export())["rows"] == 41


def test_writes_do_not_wait_for_the_suggestions_of_other_accounts(
    api: Api, db: Database, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on = Semaphore(0), Event()

    def slow(_file: Any, **_options: Any) -> dict[str, Any]:
        begun.release()
        assert goes_on.wait(60)
        return {}

    monkeypatch.setattr("frontdesk.api.eligibility_files.suggest_apart", slow)
    others = [make_customer(db, name=f"Other {number}") for number in range(8)]
    with ThreadPoolExecutor(len(others)) as pool:
        try:
            answers = [pool.submit(suggestion, api.as_(each.token), each, hr_export()) for each in others]
            assert begun.acquire(timeout=60)
            assert begun.acquire(timeout=60)
            assert put(api, "hr", {}).status_code == 201
        finally:
            goes_on.set()
        assert [answer.result() for answer in answers] == [{}] * len(others)


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
