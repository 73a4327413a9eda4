"""A worker loads the files that wait, beside delivering."""

import time

import pytest

from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.worker.background import FileLoader
from tests.conftest import Api, SetClock
from tests.factories import Customer
from tests.files.loading import csv_of, row


def loaded(api: Api, path: str) -> dict[str, object]:
    """The file, once its work has ended; a minute is far more than it needs."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        data: dict[str, object] = api.get(path).json()["data"]
        if data["state"] not in ("waiting", "running"):
            return data
        time.sleep(0.05)
    raise AssertionError("nobody loads the file")


def upload(api: Api, customer: Customer, content: bytes) -> str:
    address = f"/v2/plans/{customer.plan_ids[0]}/eligibility-files"
    taken = api.request("POST", address, content=content, headers={"Content-Type": "text/csv"})
    return str(taken.headers["Location"]).removeprefix("https://api.example.com")


def test_files_that_wait_are_loaded_one_after_the_other_and_a_bad_one_holds_up_nobody(
    api: Api, config: Config, db: Database, customer: Customer, clock: SetClock
) -> None:
    paths = [
        upload(api, customer, content) for content in (csv_of([row(1)]), b"no header\n", csv_of([row(2)]))
    ]
    loader = FileLoader(config, db, clock=clock)
    loader.start()
    try:
        states = [loaded(api, path)["state"] for path in paths]
    finally:
        loader.stop()
        loader.join(30)
    assert states == ["done", "failed", "done"]


def test_a_worker_that_starts_loads_at_once(
    api: Api,
    config: Config,
    db: Database,
    customer: Customer,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FileLoader, "poll_seconds", 3600.0)
    path = upload(api, customer, csv_of([row(1)]))
    loader = FileLoader(config, db, clock=clock)
    loader.start()
    try:
        assert loaded(api, path)["state"] == "done"
    finally:
        loader.stop()
        loader.join(30)
