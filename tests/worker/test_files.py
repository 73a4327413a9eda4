"""A worker loads the files that wait, beside delivering."""

import pytest

from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.worker.background import FileLoader
from tests.conftest import Api, SetClock
from tests.factories import Customer
from tests.files.loading import csv_of, row
from tests.patience import PATIENCE_SECONDS, wait_until


def loaded(api: Api, path: str) -> dict[str, object]:
    """The file, once its work has ended."""

    def told() -> dict[str, object]:
        data: dict[str, object] = api.get(path).json()["data"]
        return data

    wait_until(lambda: told()["state"] not in ("waiting", "running"), "the file to be loaded")
    return told()


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
        loader.join(PATIENCE_SECONDS)
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
        loader.join(PATIENCE_SECONDS)
