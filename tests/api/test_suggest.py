"""A suggested mapping over HTTP: it is accepted once its questions are answered, and nothing is
stored. It is made in a process of its own, with limits.
"""

import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore
from typing import Any
from urllib.parse import quote

import pytest

from frontdesk.api.eligibility_files import SAMPLE_BYTES
from frontdesk.app import App
from frontdesk.db import Database
from frontdesk.errors import Unavailable
from frontdesk.formats.model import Unreadable
from frontdesk.mapping.suggest import apart
from frontdesk.mapping.suggest.apart import suggest_apart
from tests.api.conftest import Files, Trail, codes
from tests.api.mappings import put
from tests.factories import make_customer
from tests.files.exports import hr_export, synthea, written
from tests.files.loading import COLUMNS
from tests.formats.workbooks import workbook

ON_ONE_DATABASE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def suggestion(files: Files, content: bytes, query: str = "", kind: str = "text/csv") -> Any:
    answer = files.upload(content, f"?suggest_mapping=true{query}", kind)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def test_a_suggestion_is_stored_as_it_is_and_loads_the_workbook(
    files: Files, trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [line.split(",") for line in hr_export().decode().splitlines()]
    content = workbook([], sheets={"Notes": [["A list"]], "People": rows})
    found = suggestion(files, content, "&sheet=People", WORKBOOK)
    assert (found["format"], found["mapping"]["sheet"]) == ("xlsx", "People")
    [reason] = found["reasons"]
    assert "1 more have rows: `sheet` of the mapping or of the upload" in reason
    assert "sheets" not in found
    assert (files.count(), trail("file")) == (0, [])
    stored = put(files.api, "hr", found["mapping"])
    assert (stored.status_code, stored.json()["data"]["mapping"]) == (201, found["mapping"])
    assert files.load(content, "?mapping=hr", WORKBOOK)["counts"] == {"created": 40, "skipped": 1}
    monkeypatch.setattr("frontdesk.api.eligibility_files.WORKBOOK_BYTES", 1000)
    refused = files.upload(content, "?suggest_mapping=true", WORKBOOK)
    assert (refused.status_code, "first 1,000 rows" in refused.text) == (400, True)


def test_a_suggestion_with_an_open_question_is_not_stored_until_it_is_answered(
    files: Files,
) -> None:
    person = "Robin,Sample,1980-02-03,male,02134,2026-01-01"
    header = ",".join((*COLUMNS[:-1], "Employment Status"))
    content = f"{header}\n1,1,{person},Active\n2,2,{person},Terminated\n".encode()
    found = suggestion(files, content)
    assert codes(put(files.api, "hr", found["mapping"])) == {
        "questions.Employment%20Status": "not_allowed"
    }
    answered = found["mapping"] | found["questions"][0]["choices"][0]["mapping"]
    assert put(files.api, "hr", answered).status_code == 201
    assert files.load(content, "?mapping=hr")["counts"] == {"created": 1, "skipped": 1, "warned": 1}


def test_an_account_gets_one_suggestion_at_a_time(app: App, files: Files, db: Database) -> None:
    at_end = app.suggestions.begin(files.customer.account_id)
    refused = files.upload(hr_export(), "?suggest_mapping=true")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
    assert [*codes(refused).values()] == ["suggestion_open"]
    assert suggestion(files.of(make_customer(db, name="Another")), hr_export())["rows"] == 41
    at_end()
    assert suggestion(files, hr_export())["rows"] == 41
    # Without a header, nothing of the file is shown.
    headless = files.upload(b"7,Canary,Sample,1977-01-31\n", "?suggest_mapping=true")
    assert (headless.status_code, "Canary" in headless.text) == (400, False)
    assert suggestion(files, hr_export())["rows"] == 41


@ON_ONE_DATABASE
def test_writes_wait_for_no_suggestion(
    files: Files, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = Semaphore(0)
    goes_on = Event()

    def slow(_file: Any, **_options: Any) -> dict[str, Any]:
        begun.release()
        assert goes_on.wait(60)
        return {}

    monkeypatch.setattr("frontdesk.api.eligibility_files.suggest_apart", slow)
    others = [files.of(make_customer(db, name=f"Other {number}")) for number in range(8)]
    with ThreadPoolExecutor(len(others)) as pool:
        try:
            answers = [pool.submit(suggestion, each, hr_export()) for each in others]
            assert begun.acquire(timeout=60)
            assert begun.acquire(timeout=60)
            assert put(files.api, "hr", {}).status_code == 201
        finally:
            goes_on.set()
        assert [answer.result() for answer in answers] == [{}] * len(others)


@ON_ONE_DATABASE
def test_a_suggestion_reads_the_beginning_and_says_what_is_missing(files: Files) -> None:
    [refused] = suggestion(files, synthea())["refused"]
    assert '{"fields": {"effective_date": {"constant": "2026-01-01"}}}' in refused.pop("advice")
    assert refused == {"field": "effective_date", "code": "required", "rows": 40}
    rows = [
        ["Employee ID", "First Name"],
        *([str(n), "Robin" * 20] for n in range(SAMPLE_BYTES // 80)),
    ]
    content = written(rows)
    assert len(content) > SAMPLE_BYTES
    assert suggestion(files, content)["rows"] == 1000


@ON_ONE_DATABASE
def test_what_only_a_load_takes_is_refused(files: Files) -> None:
    for query in (
        "mode=full",
        "dry_run=true",
        "mapping=hr",
        "mapping=" + quote("{}"),
        "header_row=2",
    ):
        answer = files.upload(hr_export(), f"?suggest_mapping=true&{query}")
        assert (answer.status_code, [*codes(answer)]) == (422, [query.partition("=")[0]])
    assert files.upload(b"x", "?suggest_mapping=yes").status_code == 422


def asked(content: bytes, **options: Any) -> dict[str, Any]:
    told = {"format": None, "encoding": "utf-8", "sheet": None, "is_cut": False} | options
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        return suggest_apart(file, today="2026-11-22", **told)


def test_a_file_that_cannot_be_read_or_takes_too_long_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unreadable = {b"": "empty", b"1,Robin\n2,Lee\n": "no_header", b"PK\x03\x04rest": "bad_workbook"}
    for content, code in (*unreadable.items(), (hr_export(), "too_large")):
        if code == "too_large":
            monkeypatch.setattr(apart, "SECONDS", 0.01)
        with pytest.raises(Unreadable) as caught:
            asked(content)
        assert caught.value.code == code
        assert (code == "too_large") is ("first 100 rows" in caught.value.detail)


@pytest.mark.parametrize(
    ("name", "error"),
    [("XCPU", Unreadable), ("ABRT", Unreadable), ("KILL", Unavailable), ("TERM", Unavailable)],
)
def test_a_limit_that_is_met_refuses_the_file(
    name: str, error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = subprocess.Popen

    def start(_command: Any, **options: Any) -> Any:
        return started(["/bin/sh", "-c", f"kill -s {name} $$"], **options)

    monkeypatch.setattr("subprocess.Popen", start)
    with pytest.raises(error):
        asked(b"x")


LARGE = f"""
from frontdesk.mapping.suggest import apart
apart.suggest_mapping = lambda *_, **__: bytearray({4 * apart.MEMORY_BYTES})
apart.main()
"""


def test_the_process_gets_no_more_memory_than_its_limit() -> None:
    command = [sys.executable, "-c", LARGE, json.dumps({"format": None})]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    assert json.loads(ended.stdout)[0] == "too_large"
