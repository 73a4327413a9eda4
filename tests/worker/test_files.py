"""A worker loads the files that wait, at once and whenever one comes."""

import pytest

from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.db.notifications import WorkListener
from frontdesk.worker.background import FileLoader
from tests.conftest import Api
from tests.factories import NOW, Customer
from tests.files.loading import csv_of, row
from tests.patience import wait_until


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


def test_files_are_loaded_one_after_the_other_and_a_bad_one_holds_up_nobody(
    api: Api, config: Config, db: Database, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that wait when a worker starts, and each further one, although the worker looks by itself once an hour."""
    monkeypatch.setattr(FileLoader, "poll_seconds", 3600.0)
    contents = (csv_of([row(1)]), b"no header\n", csv_of([row(2)]))
    paths = [upload(api, customer, content) for content in contents]
    loader = FileLoader(config, db, clock=lambda: NOW)
    with loader, WorkListener(db.engine, loader.wake):
        assert [loaded(api, path)["state"] for path in paths] == ["done", "failed", "done"]
        for number in (3, 4):
            assert loaded(api, upload(api, customer, csv_of([row(number)])))["state"] == "done"
