"""What the tests of the interface share: the customer's client at /oauth, the customer's files, the
audit trail.
"""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from frontdesk.audit import AuditQuery, list_entries
from frontdesk.config import Uniqueness
from frontdesk.db import Database
from frontdesk.files.claims import RunOptions
from frontdesk.files.run import run_next
from frontdesk.reach import EVERY
from tests.conftest import Api, SetClock
from tests.factories import Customer
from tests.files.loading import csv_of, row

BASE_URL = "https://api.example.com"
URLENCODED = "application/x-www-form-urlencoded"

Trail = Callable[[str], list[dict[str, Any]]]


def urlencoded(form: dict[str, str]) -> dict[str, Any]:
    return {"content": urlencode(form).encode(), "headers": {"Content-Type": URLENCODED}}


def as_json(form: dict[str, str]) -> dict[str, Any]:
    return {"content": json.dumps(form).encode(), "headers": {"Content-Type": "application/json"}}


class OAuth:
    """The customer's client at /oauth. Parameters replace its own; None takes one out."""

    def __init__(self, api: Api, customer: Customer) -> None:
        self.caller = api.as_(None)
        self.form = {"grant_type": "client_credentials", "client_id": customer.client_id}
        self.form |= {"client_secret": customer.client_secret}

    def token(
        self, send: Callable[..., Any] = urlencoded, path: str = "token", **changes: Any
    ) -> Any:
        form = {name: value for name, value in (self.form | changes).items() if value is not None}
        return self.caller.post(f"/oauth/{path}", **send(form))

    def revoke(
        self, token: str | None, send: Callable[..., Any] = urlencoded, **changes: Any
    ) -> Any:
        return self.token(send, "revoke", token=token, grant_type=None, **changes)


@pytest.fixture
def oauth(api: Api, customer: Customer) -> OAuth:
    return OAuth(api, customer)


class Files:
    """A customer's eligibility files over HTTP, and the worker that loads them."""

    def __init__(self, api: Api, db: Database, customer: Customer, clock: SetClock) -> None:
        self.api = api
        self.db = db
        self.customer = customer
        self.clock = clock
        self.path = f"/v2/plans/{customer.plan_ids[0]}/eligibility-files"

    def of(self, other: Customer) -> "Files":
        return Files(self.api.as_(other.token), self.db, other, self.clock)

    def upload(self, content: Any, query: str = "", kind: str = "text/csv", **headers: str) -> Any:
        return self.api.post(
            self.path + query, content=content, headers={"Content-Type": kind} | headers
        )

    def work(self) -> bool:
        return run_next(self.db, self.clock, RunOptions(Uniqueness.SERVICE))

    def load(self, content: Any, query: str = "", kind: str = "text/csv") -> Any:
        """The file after it was uploaded and worked on."""
        taken = self.upload(content, query, kind)
        assert taken.status_code == 202, taken.text
        assert self.work()
        return self.file(taken)

    def file(self, taken: Any) -> Any:
        """The file of this answer or id as it is now."""
        number = taken if isinstance(taken, int) else taken.json()["data"]["id"]
        return self.api.get(f"{self.path}/{number}").json()["data"]

    def report(self, file: Any, query: str = "") -> Any:
        return self.api.get(f"{self.path}/{file['id']}/report{query}").text.splitlines()

    def act(self, file_id: int, deed: str) -> Any:
        return self.api.post(f"{self.path}/{file_id}/{deed}")

    def held(self) -> int:
        """The id of a full file that would end 40 members."""
        self.load(csv_of(row(n) for n in range(41)))
        return int(self.load(csv_of([row(0)]), "?mode=full")["id"])

    def count(self) -> int:
        with self.db.read() as tx:
            return int(tx.exec_driver_sql("SELECT count(*) FROM eligibility_files").scalar_one())


@pytest.fixture
def files(api: Api, db: Database, customer: Customer, clock: SetClock) -> Files:
    return Files(api, db, customer, clock)


@pytest.fixture
def trail(db: Database) -> Trail:
    """The audit entries of an action, the oldest first."""
    return lambda action: list(
        reversed(db.ask(lambda tx: list_entries(tx, EVERY, AuditQuery(action=action))))
    )


def codes(answer: Any) -> dict[str, str]:
    """The code of each field at fault."""
    return {fault["field"]: fault["code"] for fault in answer.json()["errors"]}
