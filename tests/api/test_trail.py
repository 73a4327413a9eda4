"""Reads of reports and decisions about files are in the audit trail, with client, hashed network and request id."""

from typing import Any

import pytest

from frontdesk.db import Database
from frontdesk.files.actions import begin_file
from frontdesk.files.model import EligibilityFile
from tests.api.conftest import Files, Trail
from tests.conftest import Api, SetClock
from tests.factories import make_customer
from tests.files.loading import csv_of, row


def test_each_reading_of_a_report_is_recorded(files: Files, api: Api, db: Database, trail: Trail) -> None:
    path = f"{files.path}/{files.load(csv_of([row(1)]))['id']}/report"
    read = [api.get(path + query) for query in ("", "?format=csv", "?page[size]=1")]
    assert api.as_(make_customer(db, name="Other").token).get(path).status_code == 404
    entries, customer = trail("file.report_read"), files.customer
    assert [entry["request_id"] for entry in entries] == [answer.headers["X-Request-Id"] for answer in read]
    named = [entries[0][name] for name in ("actor", "account_id", "subject_id")]
    assert named == [customer.client_id, customer.account_id, 1]
    assert [len(entry["detail"]["network"]) for entry in entries] == [16] * 3
    assert "testclient" not in str(entries)


def test_uploads_decisions_and_changes_have_the_callers_network(files: Files, api: Api, trail: Trail) -> None:
    files.act(files.load(csv_of([row(1)]))["id"], "undo")
    api.request("PUT", "/v2/eligibility-mappings/hr", json={"columns": {"Name": "last_name"}})
    api.patch(f"/v2/plans/{files.customer.plan_ids[0]}", {"name": "Renamed"})
    for action in ("file.received", "file.undo_asked", "mapping.saved", "plan.changed"):
        [entry] = trail(action)
        assert len(entry["detail"]["network"]) == 16, action
    [done] = trail("file.done")  # by a worker: it has none
    assert "network" not in done["detail"]


def test_an_upload_is_recorded_with_the_time_of_its_end(
    files: Files, trail: Trail, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin_and_wait(*arguments: Any, **options: Any) -> EligibilityFile:
        file = begin_file(*arguments, **options)
        clock.advance(600)
        return file

    monkeypatch.setattr("frontdesk.files.actions.begin_file", begin_and_wait)
    files.upload(csv_of([row(1)]))
    [entry] = trail("file.received")
    assert entry["at"] == clock()
