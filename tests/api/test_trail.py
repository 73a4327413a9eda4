"""Reads of reports and decisions about files are in the audit trail, with client, hashed network and request id."""

from typing import Any

import pytest

from frontdesk.audit import AuditQuery, list_entries
from frontdesk.db import Database
from frontdesk.files.actions import begin_file
from frontdesk.files.model import EligibilityFile
from tests.api.test_files import address, upload, work
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_customer
from tests.files.loading import csv_of, row


def trail(db: Database, action: str) -> list[dict[str, Any]]:
    return list(reversed(db.ask(lambda tx: list_entries(tx, AuditQuery(action=action)))))


def test_each_reading_of_a_report_is_recorded_and_another_accounts_attempt_is_none(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    path = f"{address(customer)}/{upload(api, customer, csv_of([row(1)])).json()['data']['id']}/report"
    assert work(db, clock)
    read = [api.get(path + query) for query in ("", "?format=csv", "?page[size]=1")]
    assert [answer.status_code for answer in read] == [200] * 3
    assert api.as_(make_customer(db, name="Other").token).get(path).status_code == 404
    entries = trail(db, "file.report_read")
    assert [entry["request_id"] for entry in entries] == [answer.headers["X-Request-Id"] for answer in read]
    entry = entries[0]
    assert (entry["actor"], entry["account_id"], entry["subject_id"]) == (
        customer.client_id,
        customer.account_id,
        1,
    )
    assert [len(entry["detail"]["network"]) for entry in entries] == [16] * 3
    assert "testclient" not in str(entries)


def test_uploads_decisions_and_changes_carry_the_callers_network(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    upload(api, customer, csv_of([row(1)]))
    assert work(db, clock)
    api.post(f"{address(customer)}/1/undo")
    api.request("PUT", "/v2/eligibility-mappings/hr", json={"columns": {"Name": "last_name"}})
    api.patch(f"/v2/plans/{customer.plan_ids[0]}", {"name": "Renamed"})
    for action in ("file.received", "file.undo_asked", "mapping.saved", "plan.changed"):
        [entry] = trail(db, action)
        assert len(entry["detail"]["network"]) == 16, action
    [done] = trail(db, "file.done")  # by a worker: it has none
    assert "network" not in done["detail"]


def test_an_upload_is_recorded_with_the_time_of_its_end(
    api: Api, db: Database, customer: Customer, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin_and_wait(*arguments: Any, **options: Any) -> EligibilityFile:
        file = begin_file(*arguments, **options)
        clock.advance(600)
        return file

    monkeypatch.setattr("frontdesk.files.actions.begin_file", begin_and_wait)
    upload(api, customer, csv_of([row(1)]))
    [entry] = trail(db, "file.received")
    assert entry["at"] == clock()
