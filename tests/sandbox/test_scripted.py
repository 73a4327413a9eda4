"""Members and files of a sandbox that fail in a told way; in production they are like any other."""

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from frontdesk import codes
from frontdesk.app import App
from frontdesk.codes import Code, Where
from frontdesk.config import Config, Environment
from frontdesk.db import Database
from frontdesk.files.run import run_next
from frontdesk.installation import build_asgi, run_options
from frontdesk.mailbox.catcher import SCRIPTED
from frontdesk.sandbox.scripted import HELD_CODES, LOST
from frontdesk.web.telemetry import Telemetry
from tests.conftest import Api, SetClock, open_for_test
from tests.factories import Customer, member_body
from tests.files.loading import csv_of, row


@pytest.fixture
def production(config: Config, clock: SetClock, customer: Customer) -> Iterator[Api]:
    config = replace(config, environment=Environment.PRODUCTION)
    app = App(config, open_for_test(config.database_url, "service"), clock)
    with TestClient(build_asgi(app, Telemetry(io.StringIO()))) as http:
        yield Api(http, customer.token, io.StringIO())


def enrol(api: Api, customer: Customer, external_id: str, **fields: Any) -> Any:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    return api.post(path, member_body(1, external_id=external_id, member_id=external_id, **fields))


@pytest.mark.parametrize(
    ("external_id", "status", "kind", "more"),
    [("sandbox-fails-422", 422, "invalid", "not_unique"),
     ("sandbox-fails-422-not_a_date", 422, "invalid", "not_a_date"),
     ("sandbox-fails-422-too_long+any thing", 422, "invalid", "too_long"),
     ("sandbox-fails-409", 409, "conflict", None), ("sandbox-fails-500", 500, "internal", None),
     ("sandbox-fails-429", 429, "rate_limited", "1"), ("sandbox-fails-503+1", 503, "unavailable", "1")],
)  # fmt: skip
def test_some_members_always_fail_beside_others_that_do_not(
    api: Api, customer: Customer, *, external_id: str, status: int, kind: str, more: str | None
) -> None:
    """`more`: the code of the fault, else the header Retry-After."""
    for answer in [enrol(api, customer, external_id) for _ in range(2)]:
        assert (answer.status_code, answer.json()["type"].partition("#")[2]) == (status, kind)
        codes = [fault["code"] for fault in answer.json().get("errors", ())]
        assert [*codes, answer.headers.get("Retry-After")] == (
            [more, None] if status == 422 else [more]
        )
        assert external_id not in answer.text
    assert enrol(api, customer, "AB 1").status_code == 201


@pytest.mark.parametrize(
    "external_id",
    ["sandbox-fails-404", "sandbox-fails-422-odd", "sandbox-fails-503-x", "sandbox-1"],
)
def test_other_words_do_not_act(api: Api, customer: Customer, external_id: str) -> None:
    assert enrol(api, customer, external_id).status_code == 201


def test_the_page_names_everything_that_acts() -> None:
    page = (Path(__file__).parents[2] / "docs/sandbox.md").read_text()
    words = [f"`sandbox-fails-{status}" for status in (409, 422, 429, 500, 503)]
    words += [f"| `{LOST}` |", "`sandbox-fails-CODE.csv`", "`sandbox-held-CODE.csv`"]
    words += [*(f"`{code}`" for code in HELD_CODES), *(f"`{name}@…`" for name in SCRIPTED)]
    assert [word for word in words if word not in page] == []


def test_a_lost_answer_is_one_of_a_record_that_was_written(api: Api, customer: Customer) -> None:
    first = enrol(api, customer, "sandbox-loses-answer+1")
    assert (first.status_code, first.headers["Retry-After"]) == (503, "1")
    again = enrol(api, customer, "sandbox-loses-answer+1")
    assert (again.status_code, again.headers["Eligibility-Outcome"]) == (200, "unchanged")


def test_a_retry_with_a_key_gets_the_lost_answer(api: Api, customer: Customer) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    body = member_body(1, external_id="sandbox-loses-answer+2")
    keyed = {"Idempotency-Key": "lost"}
    assert api.post(path, body, headers=keyed).status_code == 503
    again = api.post(path, body, headers=keyed)
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (201, "true")
    assert again.headers["Eligibility-Outcome"] == "created"


def test_in_production_the_same_members_are_like_any_other(
    production: Api, customer: Customer
) -> None:
    for number, name in enumerate(
        ("sandbox-fails-503", "sandbox-fails-422-too_long", "sandbox-loses-answer")
    ):
        assert enrol(production, customer, name, email=f"m{number}@example.com").status_code == 201
    assert production.post("/sandbox/reset").status_code == 404


class Loader:
    """Uploads files by name, and loads them as a worker of the installation does."""

    def __init__(
        self, api: Api, db: Database, config: Config, clock: SetClock, customer: Customer
    ) -> None:
        self.api = api
        self.db = db
        self.config = config
        self.clock = clock
        self.path = f"/v2/plans/{customer.plan_ids[0]}/eligibility-files"

    def load(self, name: str, query: str = "") -> dict[str, Any]:
        headers = {
            "Content-Type": "text/csv",
            "Content-Disposition": f'attachment; filename="{name}"',
        }
        sent = self.api.post(self.path + query, content=csv_of([row(1), row(2)]), headers=headers)
        assert sent.status_code == 202, sent.text
        return self.work(sent.json()["data"]["id"])

    def work(self, file_id: int) -> dict[str, Any]:
        assert run_next(self.db, self.clock, run_options(self.config))
        found: dict[str, Any] = self.api.get(f"{self.path}/{file_id}").json()["data"]
        return found


@pytest.fixture
def loader(api: Api, db: Database, config: Config, clock: SetClock, customer: Customer) -> Loader:
    return Loader(api, db, config, clock, customer)


def test_a_file_always_fails_by_its_name(loader: Loader) -> None:
    for name, code in (
        ("sandbox-fails-cut_off.csv", "cut_off"),
        ("sandbox-fails-no_rows+7.csv.gz", "no_rows"),
    ):
        file = loader.load(name)
        assert (file["state"], file["problem"]["code"]) == ("failed", code)
        assert file["problem"]["message"] == codes.CODES[Where.FILE, code].sentence
        assert file["rows_total"] == 2
        assert file["counts"] == {}


@pytest.mark.parametrize("code", HELD_CODES)
def test_a_file_is_always_held_by_its_name_until_it_is_approved(loader: Loader, code: Code) -> None:
    file = loader.load(f"sandbox-held-{code}.csv")
    assert (file["state"], file["problem"]["code"], file["problem"]["message"]) == (
        "held",
        code,
        code.sentence,
    )
    assert loader.api.post(f"{loader.path}/{file['id']}/approve").status_code == 200
    file = loader.work(file["id"])
    assert (file["state"], file["counts"]["created"]) == ("done", 2)
    dry = loader.load(f"sandbox-held-{code}+2.csv", "?dry_run=true")
    assert (dry["state"], dry["problem"]["code"]) == ("done", code)


def test_other_names_and_production_load_as_ever(loader: Loader) -> None:
    for name in (
        "sandbox-fails-odd.csv",
        "sandbox-held-overtaken.csv",
        "my-sandbox-fails-cut_off.csv",
    ):
        assert loader.load(name)["state"] == "done"
    loader.config = replace(loader.config, environment=Environment.PRODUCTION)
    assert loader.load("sandbox-fails-cut_off.csv")["state"] == "done"
