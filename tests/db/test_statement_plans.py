"""No plan can degrade: every statement reaches its rows by key, on an empty, a fresh, a just loaded
and an analysed database.
"""

from collections import defaultdict
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert

from frontdesk import audit
from frontdesk.db import Database
from frontdesk.eligibility import reading
from frontdesk.files.model import FileKey
from frontdesk.files.overview import read_view
from frontdesk.invitations.model import Delivery
from frontdesk.invitations.store.claims import find_lanes
from frontdesk.invitations.store.limits import find_mailbox_times
from frontdesk.queues.store.pools import select_pools
from frontdesk.queues.tables import encounters
from frontdesk.reach import EVERY
from frontdesk.system.state import MOST_COUNTED
from tests.db.day import Installation
from tests.db.explained import Explained, Recorder
from tests.factories import NOW, member_body
from tests.files.loading import csv_of, row
from tests.population import analyze, copy_files, copy_members, fill_queues, fill_trail
from tests.queues.feed import JOINED, event, feed, make_clinic

MEMBERS = 100_000
VISITS = 30_000
MOST_ROWS = MOST_COUNTED  # that a statement of these sets may look at in one table

# One row; a row for each account, plan or group, all of which are asked for; the set itself; the
# oldest 20 by the primary key; a row for each client, for each account with its own quota, for each
# webhook endpoint, for each member under legal hold, for the last pruning, for each pair that a
# person called distinct; users and their invitations, where an operator lists all of them.
READ_WHOLE = {
    *("alembic_version", "installation", "delivery_home", "worker_status"),
    *("delivery_windows", "plans", "provider_groups", "queue_snapshots"),
    *("staging_members", "staging_invitations"),
    *("disclosures", "opened_names", "people_searches"),
    *("failed_attempts", "request_allowances", "legal_holds"),
    *("audit_prunings", "distinct_members", "users", "user_invitations"),
    *("uniqueness_probes", "webhook_endpoints", "account_quotas"),
    *("pg_class", "pg_attribute"),  # the schema itself, which System compares with what it needs
}
# The list of accounts is read whole, by nothing that a customer does.
EVERY_ACCOUNT = "FROM accounts ORDER BY accounts.id"
PAGE_OF_PLAN = "ORDER BY members.plan_id, members.id"  # of 10,000 rows at most (0067)
ENDS = ("SELECT max(", "SELECT min(")  # of an id: one step from an end of its index
# They count every row, in an index: of bounces it holds no other rows.
COUNTS = (
    "SELECT invitations.state, count(*)",
    "SELECT count(*) AS count_1 \nFROM delivery_reports \nWHERE kind = 'bounced'",
)


@pytest.mark.parametrize("new_database_url", ["sqlite", "postgresql"], indirect=True)
def test_every_statement_finds_its_rows_by_key(
    new_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults: dict[str, set[str]] = defaultdict(set)
    with ExitStack() as stack:
        one = Installation(new_database_url, stack)
        for state in ("empty", "fresh", "loaded", "analysed"):
            if state == "loaded":
                copy_members(one.db, 1, numbers=range(1, MEMBERS), invited=True)
                fill_queues(one.db, VISITS, days=80, until=NOW)
            if state in ("fresh", "analysed"):
                analyze(one.db)
                one.restart()
            recorder = Recorder(one.db)
            with recorder.recording(monkeypatch, one.db, one.served):
                one.a_day()
                one.forget()
            assert len({explained.statement for explained in recorder.explained}) > 80
            for explained in recorder.explained:
                faults[" ".join(explained.statement.split())] |= {
                    f"{state}: {fault}" for fault in faults_of(explained)
                }
    assert {statement: found for statement, found in faults.items() if found} == {}


def faults_of(explained: Explained) -> list[str]:
    most = reading.MOST_ROWS if PAGE_OF_PLAN in explained.statement else MOST_ROWS
    faults = [
        scan.text
        for scan in explained.scans
        if not (scan.key and scan.rows <= most)
        and scan.table not in READ_WHOLE
        and not (explained.statement.startswith(ENDS) and scan.rows <= 1)
        and not explained.statement.startswith(COUNTS)
        and not explained.statement.endswith(EVERY_ACCOUNT)
    ]
    faults += sorted(explained.kinds & {"Hash Join", "Merge Join"})
    return faults + ["JIT"] * explained.is_compiled


@pytest.mark.parametrize("new_database_url", ["sqlite", "postgresql"], indirect=True)
def test_batches_are_found_by_key_when_alone(
    new_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        one = Installation(new_database_url, stack)
        plan = one.customer.plan_ids[0]
        assert one.api.post(f"/v2/plans/{plan}/eligibility", member_body(0)).status_code == 201
        copy_members(one.db, 1, numbers=range(1, 20_000), invited=True)
        analyze(one.db)
        one.restart()
        recorder = Recorder(one.db)
        with recorder.recording(monkeypatch, one.db), one.db.read() as tx:
            assert [(lane.delivery, lane.plan_id) for lane in find_lanes(tx)] == [
                (Delivery.BATCHED, plan)
            ]
    [explained] = recorder.explained
    assert faults_of(explained) == []


@pytest.mark.parametrize("new_database_url", ["sqlite", "postgresql"], indirect=True)
def test_places_of_a_mailbox_are_found_by_the_mailbox_before_the_first_statistics(
    new_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a first load all invitations are pending and of one account, and PostgreSQL takes that
    for few.
    """
    with ExitStack() as stack:
        one = Installation(new_database_url, stack)
        plan = one.customer.plan_ids[0]
        assert one.api.post(f"/v2/plans/{plan}/eligibility", member_body(0)).status_code == 201
        copy_members(one.db, 1, numbers=range(1, 20_000), invited=True)
        recorder = Recorder(one.db)
        with recorder.recording(monkeypatch, one.db), one.db.read() as tx:
            find_mailbox_times(
                tx, ["a"], window=(NOW, NOW), count=9, waiting_of=one.customer.account_id
            )
    [explained] = recorder.explained
    keys = [scan.key for scan in explained.scans if scan.table == "invitations"]
    assert any("mailbox_digest" in key for key in keys)
    assert not any("account_id" in key or "state" in key for key in keys)


def test_a_line_is_read_without_the_bookings_to_come(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    clinic = make_clinic(db)
    feed(db, event("j", JOINED, 0, plan_id=clinic.plan_ids[0], visit="v"))
    booked: dict[str, Any] = {"provider_group_id": clinic.group_id, "plan_id": clinic.plan_ids[0]}
    booked |= {"state": "waiting", "last_event_at": NOW}
    rows = [
        booked | {"visit": str(hour), "joined_at": NOW + timedelta(hours=hour)}
        for hour in range(3, 500)
    ]
    with db.write() as tx:
        tx.execute(insert(encounters), rows)
    analyze(db)
    recorder = Recorder(db)
    with recorder.recording(monkeypatch, db), db.read() as tx:
        pool = select_pools(tx, [clinic.group_id], NOW)[clinic.group_id]
    assert len(pool.waiting) == 1
    [line] = [each for each in recorder.explained if "joined_at <=" in each.statement]
    [scan] = line.scans
    assert scan.rows <= 1
    assert "joined_at <" in scan.key.replace("joined_at<", "joined_at <")


@pytest.mark.parametrize("new_database_url", ["sqlite", "postgresql"], indirect=True)
def test_files_of_a_plan_in_a_state_are_found_by_both(
    new_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page of the plan's first file asks for the files before it, of which there are none."""
    with ExitStack() as stack:
        one = Installation(new_database_url, stack)
        first = one.desk.load(csv_of([row(0)]))
        copy_files(one.db, first.id, count=5 * MOST_ROWS)
        analyze(one.db)
        one.restart()
        recorder = Recorder(one.db)
        with recorder.recording(monkeypatch, one.db):
            one.db.ask(lambda tx: read_view(tx, FileKey(first.id, EVERY)))
    assert len(recorder.explained) >= 3
    assert [faults_of(explained) for explained in recorder.explained if faults_of(explained)] == []


@pytest.mark.parametrize("new_database_url", ["sqlite", "postgresql"], indirect=True)
def test_looks_are_counted_among_many_other_entries(
    new_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = 50 * MOST_ROWS
    with ExitStack() as stack:
        one = Installation(new_database_url, stack)
        fill_trail(one.db, one.customer, users=20, entries=entries, until=NOW)
        analyze(one.db)
        one.restart()
        recorder = Recorder(one.db)
        account_id = one.customer.account_id
        with recorder.recording(monkeypatch, one.db), one.db.read() as tx:
            looks = audit.count_looks(tx, account_id, [NOW - timedelta(weeks=1)])
    assert sum(each.times for each in looks) == entries // 100
    assert [faults_of(explained) for explained in recorder.explained if faults_of(explained)] == []
