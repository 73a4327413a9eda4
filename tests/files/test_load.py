"""Loading a file: what each row becomes, what is stored and reported, and what the planner knows
then.
"""

import csv
import gzip
import io
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import inspect

from frontdesk.cli.file import summary
from frontdesk.db import Database, Tx
from frontdesk.db.engine import refresh_statistics
from frontdesk.db.failures import StateChanged
from frontdesk.db.service_role import MAINTAIN_SINCE
from frontdesk.files.claims import FileClaim
from frontdesk.files.model import EligibilityFile, FileStep, RowOutcome
from frontdesk.files.report import read_report
from frontdesk.formats import workbook as reader
from frontdesk.plans import external_ids_of
from tests.files.exports import names_in
from tests.files.loading import COLUMNS, ON_SQLITE, Desk, Worker, csv_of, lines_of, row
from tests.formats.reading import file_834
from tests.formats.workbooks import workbook
from tests.patience import PATIENCE_SECONDS
from tests.postgres import SERVICE, Databases

ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


def test_every_row_is_stored_and_reported_once_with_the_file_in_its_history(desk: Desk) -> None:
    rows = [row(n, email=f"r{n}@example.com", invite_immediately=True) for n in range(1200)]
    file = desk.hand_in(lines_of(rows))
    assert f"frontdesk file resume {file.id}" in " ".join(summary(file))
    file = desk.work(file)
    assert (file.state, file.counts) == ("done", {"created": 1200})
    assert file.rows_total == file.rows_done == 1200
    assert desk.outcomes(file) == [(n + 1, "created", "") for n in range(1200)]
    for _ in range(2):
        counted = [
            desk.count(table)
            for table in ("members", "member_history", "invitations", "file_parts")
        ]
        assert counted == [1200, 1200, 1200, 0]
        assert desk.load(lines_of(rows)).counts == {"unchanged": 1200}
    with desk.db.read() as tx:
        keys = tx.exec_driver_sql(
            "SELECT DISTINCT file_id, request_id, client FROM member_history"
        ).all()
        actions = tx.exec_driver_sql("SELECT action FROM audit_entries ORDER BY id").scalars().all()
    assert [tuple(key) for key in keys] == [(file.id, "request-1", "client-1")]
    assert actions == ["file.received", "file.done"] * 3


def test_a_refused_row_does_not_stop_its_neighbours(desk: Desk) -> None:
    unread = b'{"external_id": "E1",\n[]\n'
    rows = [
        row(1),
        row(2, gender="x", zipcode="1"),
        row(3, zip_code="1"),
        row(4, member_id="M00001"),
    ]
    repeated = [row(5), row(6), row(5), row(6, last_name="Other")]
    file = desk.load(unread + lines_of([*rows, *repeated]))
    assert (file.counts, file.ignored) == (
        {"created": 3, "unchanged": 1, "refused": 6},
        ["zip_code"],
    )
    assert desk.outcomes(file) == [
        (1, "refused", "not_json"),
        (2, "refused", "not_json"),
        (3, "created", ""),
        (4, "refused", "not_allowed"),
        (4, "refused", "malformed_zipcode"),
        (5, "created", ""),
        (6, "refused", "not_unique"),
        (7, "created", ""),
        (8, "refused", "repeated_differently"),
        (9, "unchanged", ""),
        (10, "refused", "repeated_differently"),
    ]
    assert set(desk.members()) == {"E00001", "E00003", "E00005"}


@ON_SQLITE
@pytest.mark.parametrize(
    ("field", "bad", "hint"),
    [
        ("phone", "12345", ""),
        ("phone", "+49 30 1234567", "it looks like a number outside North America"),
        ("email", "robin.example.com", "it has no @"),
        ("middle_name", "L" * 101, ""),
        ("state", "M" * 256, ""),
        ("relationship_code_hipaa", "1" * 256, ""),
        ("subscriber_relationship", "spouse", ""),
        ("medical_enrollment", "Y", "it looks like yes or no"),
        ("metadata", {"": "x"}, ""),
        ("invite_immediately", "perhaps", ""),
    ],
)
def test_an_unusable_optional_value_costs_only_itself(
    desk: Desk, field: str, bad: Any, hint: str
) -> None:
    file = desk.load(lines_of([row(1, **{field: bad})]))
    assert desk.outcomes(file) == [(1, "created", ""), (1, "warned", f"{field}_dropped")]
    line = desk.report(file)[1]
    assert (line["field"], file.codes) == (field, {f"{field}_dropped": 1})
    assert hint in line["hint"]
    assert str(bad) not in str(desk.report(file))


@ON_SQLITE
def test_a_dropped_value_leaves_the_stored_one(desk: Desk) -> None:
    desk.load(lines_of([row(1, phone="6175550100", email="old@example.com")]))
    file = desk.load(lines_of([row(1, phone="1", email="not an address", last_name="New")]))
    assert desk.codes(file) == [
        ("updated", ""),
        ("warned", "phone_dropped"),
        ("warned", "email_dropped"),
    ]
    assert "was applied without it" in desk.report(file)[2]["hint"]
    found = desk.members()["E00001"]
    assert (found["phone"], found["email"], found["last_name"]) == (
        "6175550100",
        "old@example.com",
        "New",
    )


@ON_SQLITE
def test_a_row_with_an_end_that_is_no_date_is_refused(desk: Desk) -> None:
    desk.load(lines_of([row(1)]))
    assert desk.codes(desk.load(lines_of([row(1, expiry_date="soon")]))) == [
        ("refused", "not_a_date")
    ]


def book_of(rows: Sequence[dict[str, Any]]) -> bytes:
    cells = ([each.get(name) for name in COLUMNS] for each in rows)
    return workbook([["Members of Example Health"], [], COLUMNS, *cells])


@ON_SQLITE
@pytest.mark.parametrize(
    ("content", "options", "code"),
    [
        (b" \n", {}, "no_header"),
        (b"external_id,dob\n", {}, "no_rows"),
        (b"name,dob\nRobin,1980-01-01\n", {}, "no_key_column"),
        (b"\x1f\x8bnonsense", {}, "not_gzip"),
        (csv_of(row(n) for n in range(3000)) + b"\xff\xfe,,,,,,,,\n", {}, "wrong_encoding"),
        (book_of([row(1)]), {"sheet": "Leavers"}, "no_sheet"),
        (file_834().replace("GE*1*3", "GE*2*3").encode(), {}, "wrong_count"),
        (gzip.compress(b"external_id,b\n" + b"1,\n" * 30_000, 9), {}, "zip_bomb"),
    ],
    ids=names_in("blank,no rows,no key,not packed,a fault in the last row,no sheet,count,no bytes"),
)
def test_an_unreadable_file_applies_nothing(
    desk: Desk, content: bytes, options: Any, code: str
) -> None:
    file = desk.load(content, **options)
    assert file.problem is not None
    assert (file.state, file.problem["code"]) == ("failed", code)
    assert options.items() <= (file.mapping or {}).items()
    assert desk.count("members") == desk.count("file_rows") == 0


def test_two_accounts_that_load_the_same_identifiers_at_once_get_each_once(
    desk: Desk, other: Desk
) -> None:
    """Large chunks race on the unique keys: who comes second is told so, row by row, and no
    neighbour is lost.
    """
    ours = desk.hand_in(csv_of(row(n) for n in range(400)))
    theirs = other.hand_in(csv_of(row(n) for n in range(399, 0, -1)))
    workers = [threading.Thread(target=desk.work_on_any) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    counts = [desk.reread(file).counts for file in (ours, theirs)]
    assert sum(count.get("created", 0) for count in counts) == 400
    assert sum(count.get("refused", 0) for count in counts) == 399
    assert desk.count("members") == desk.count("member_history") == 400


def test_keys_that_change_hands_within_one_large_chunk_are_written(desk: Desk) -> None:
    """One statement can't do it, since a key is taken before it is given up; then it goes row by
    row.
    """
    desk.load(csv_of(row(n) for n in range(400)))
    rows = [row(0, member_id="FREE"), *(row(n, member_id=f"M{n - 1:05d}") for n in range(1, 400))]
    assert desk.load(csv_of(rows)).counts == {"updated": 400}
    found = {key: member["member_id"] for key, member in desk.members().items()}
    assert found == {each["external_id"]: each["member_id"] for each in rows}


def test_a_chunk_of_many_changes_writes_whatever_changes_in_any_of_its_records(desk: Desk) -> None:
    """Only the columns that change are written then; each record here changes another one."""
    new = {
        "last_name": "New",
        "member_id": "N{}",
        "email": "New{}@example.com",
        "expiry_date": "2027-01-01",
    }
    old = [row(n, email=f"old{n}@example.com", metadata={"a": "1"}) for n in range(150)]
    desk.load(lines_of(old))
    names = (*new, "metadata", "city")
    sent = [
        was | {name: {"b": "2"} if name == "metadata" else new.get(name, "X").format(n)}
        for n, (was, name) in enumerate(zip(old, names * 25, strict=True))
    ]
    assert desk.approve(desk.load(lines_of(sent), plan=1)).counts == {"moved": 150, "lost": 25}
    stored = desk.members()
    for wanted in sent:
        found = stored[wanted["external_id"]] | {"metadata": wanted["metadata"]}
        assert {name: found[name] for name in wanted} == wanted
        assert found["email_folded"] == wanted["email"].lower()
        assert found["plan_id"] == desk.customer.plan_ids[1]
    assert desk.load(lines_of(sent), plan=1).counts == {"unchanged": 150}


def fail_before_saving(
    monkeypatch: pytest.MonkeyPatch, times: int, fail: Callable[[], None]
) -> None:
    """So many times, `fail` is called for a chunk that is decided and not stored."""
    save_chunk = FileClaim.save_chunk
    left = [fail] * times

    def save(claim: FileClaim, tx: Tx, outcomes: Sequence[RowOutcome], *, rows_done: int) -> None:
        if left:
            left.pop()()
        save_chunk(claim, tx, outcomes, rows_done=rows_done)

    monkeypatch.setattr(FileClaim, "save_chunk", save)


# The second and the third row depend on what the first would have done.
RUN_AGAIN = csv_of([row(1), row(2, member_id="M00001"), row(1), row(3)])
OUTCOMES = [
    (2, "created", ""),
    (3, "refused", "not_unique"),
    (4, "unchanged", ""),
    (5, "created", ""),
]


@pytest.mark.parametrize("times", [1, 2, 3, 5])  # from the third on, row by row
def test_a_chunk_of_a_dry_run_that_lost_a_race_is_decided_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    def lose_race() -> None:
        raise StateChanged

    fail_before_saving(monkeypatch, times, lose_race)
    assert desk.outcomes(desk.load(RUN_AGAIN, dry_run=True)) == OUTCOMES
    assert desk.count("members") == 0


@ON_POSTGRESQL
def test_a_cut_connection_changes_no_outcome(
    desk: Desk, postgres: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut() -> None:
        assert postgres.kill_backends(str(desk.db.engine.url.database)) > 0

    fail_before_saving(monkeypatch, 1, cut)
    assert desk.outcomes(desk.load(RUN_AGAIN, dry_run=True)) == OUTCOMES


SILENT = (sys.executable, "-c", "import time; time.sleep(60)")  # a reader that never gives a row


@pytest.mark.parametrize("silent_from", [FileStep.CHECK, FileStep.APPLY])
@pytest.mark.usefixtures("impatient")
def test_a_worker_whose_workbook_gives_no_row_yet_takes_the_file_of_another_account(
    desk: Desk, other: Desk, monkeypatch: pytest.MonkeyPatch, silent_from: FileStep
) -> None:
    """A workbook of 36 MB took 26 s to open, and the files of other accounts waited."""
    real = reader.READER
    small = list[EligibilityFile]()

    def be_silent(large: EligibilityFile) -> bool:
        if not small and desk.reread(large).step is silent_from:
            monkeypatch.setattr(reader, "READER", SILENT)
            small.append(other.hand_in(csv_of([row(100)])))
        return False

    large = desk.hand_in(book_of([row(n) for n in range(20)]))
    if silent_from is FileStep.CHECK:
        be_silent(large)
    else:
        monkeypatch.setattr("frontdesk.files.run._rehearse", lambda *_: be_silent(large))
    worker = Worker(desk)
    worker.turn()
    while desk.reread(small[0]).state != "done":
        worker.turn()
    paused = desk.reread(large)
    assert (paused.state, paused.step, paused.rows_done) == ("running", silent_from, 0)
    began = time.monotonic()
    worker.end()
    assert time.monotonic() - began < PATIENCE_SECONDS, "the reading process ends with its worker"
    assert desk.reread(large).state == "waiting"
    monkeypatch.setattr(reader, "READER", real)
    Worker(desk).work()
    assert desk.reread(large).counts == {"created": 20}


@ON_SQLITE
@pytest.mark.usefixtures("impatient")
def test_a_silent_workbook_can_be_cancelled_and_stopped(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "READER", SILENT)
    file = desk.hand_in(book_of([row(1)]))
    running = desk.options
    desk.options = replace(running, should_stop=lambda: True)
    assert desk.work(file).state == "waiting"
    cancelled: list[EligibilityFile] = []

    def cancel(_step: FileStep, _done: int, _total: int | None) -> None:
        if not cancelled:
            cancelled.append(desk.cancel(file))

    desk.options = replace(running, on_progress=cancel)
    assert desk.work(file).state == "cancelled"


@ON_SQLITE
@pytest.mark.usefixtures("impatient")
def test_a_workbook_of_families_is_read_whole(desk: Desk) -> None:
    columns = [*COLUMNS, "Home"]
    members = [[*row(n, zipcode="" if n % 2 else "02134").values(), "", n // 2] for n in range(40)]
    mapping = {"fields": {"family": {"column": "Home"}}}
    done = desk.load(workbook([columns, *members, members[0]]), mapping=mapping, full=True)
    assert done.counts == {"created": 40, "unchanged": 1, "warned": 20}
    assert sorted(line["row"] for line in desk.report(done) if line["outcome"] != "warned") == [
        *range(2, 43)
    ]


LARGE = 200
TABLES = ("members", "member_history", "invitations")


@pytest.fixture
def unknown(owner: Database) -> None:
    """Statistics as of empty tables."""
    with owner.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in TABLES:
            connection.exec_driver_sql(f"VACUUM ANALYZE {table}")


def known_rows(db: Database, table: str = "members") -> int:
    query = "SELECT reltuples FROM pg_class WHERE oid = %s::text::regclass"
    return int(db.ask(lambda tx: tx.exec_driver_sql(query, (table,)).scalar_one()))


def load_rows(desk: Desk, first: int, count: int, **options: object) -> None:
    desk.load(csv_of([row(first + n) for n in range(count)]), **options)


@ON_POSTGRESQL
@pytest.mark.usefixtures("unknown")
def test_the_planner_knows_of_a_large_file_but_no_small_one_and_no_dry_run(
    db: Database, desk: Desk
) -> None:
    load_rows(desk, 0, LARGE, dry_run=True)
    load_rows(desk, 0, 20)
    assert known_rows(db) == 0
    load_rows(desk, 20, LARGE)
    version = db.ask(lambda tx: tx.exec_driver_sql("SHOW server_version_num").scalar_one())
    expected = 20 + LARGE if int(version) >= MAINTAIN_SINCE else 0  # before, only an owner can
    assert (known_rows(db), known_rows(db, "member_history")) == (expected, expected)


@ON_POSTGRESQL
@pytest.mark.usefixtures("unknown")
def test_what_only_the_owner_may_do_is_skipped(db: Database, owner: Database, desk: Desk) -> None:
    load_rows(desk, 0, 20)
    with owner.write() as tx:
        for table in TABLES:
            if tx.exec_driver_sql("SHOW server_version_num").scalar_one() >= str(MAINTAIN_SINCE):
                tx.exec_driver_sql(f"REVOKE MAINTAIN ON {table} FROM {SERVICE}")
    refresh_statistics(db, TABLES, written=10**6)
    assert known_rows(db) == 0


@ON_SQLITE
def test_sqlite_stays_without_statistics_and_so_uses_every_index(db: Database, desk: Desk) -> None:
    load_rows(desk, 0, LARGE)
    assert not db.ask(lambda tx: inspect(tx).has_table("sqlite_stat1"))


def as_csv(desk: Desk, file: EligibilityFile) -> list[list[str]]:
    text = b"".join(read_report(desk.db, file.id, as_csv=True)).decode()
    return list(csv.reader(io.StringIO(text)))


@ON_SQLITE
def test_a_report_has_no_formulas_and_no_refused_values(desk: Desk) -> None:
    """Also behind a semicolon: spreadsheets of half the world part cells there."""
    keys = ["=1+1", "+1", "-1", "@SUM(A1)", "|calc", "%0", "\uff1d1"]
    hidden = "E1;=cmd|' /C calc'!A0; +1;x-1"
    file = desk.load(csv_of(row(n, external_id=key) for n, key in enumerate([*keys, hidden, "E1"])))
    cells = [line[1] for line in as_csv(desk, file)[1:]]
    assert cells == [*(f"'{key}" for key in keys), "E1;'=cmd|' /C calc'!A0;' +1;x-1", "E1"]
    secret = "QUEBEC-CANARY"
    file = desk.load(csv_of([row(1, gender=secret, dob=secret, zipcode=secret, email=secret)]))
    assert secret not in str((desk.report(file), desk.reread(file)))


def test_a_row_names_what_it_changed_and_the_plan_that_its_member_left(desk: Desk) -> None:
    desk.load(csv_of([row(1), row(2), row(3)]))
    file = desk.load(csv_of([row(1), row(2, last_name="New", zipcode="02199"), row(4)]), plan=1)
    left = desk.db.ask(lambda tx: external_ids_of(tx, desk.customer.plan_ids))[
        desk.customer.plan_ids[0]
    ]
    told = [
        (line["row"], line["outcome"], line["changed"], line["left_plan"])
        for line in desk.report(file)
    ]
    assert told == [
        (2, "moved", [], left),
        (3, "moved", ["last_name", "zipcode"], left),
        (4, "created", [], None),
    ]
    header, _, second, _ = as_csv(desk, file)
    assert (header[-6:-4], second[-6:-4]) == (["changed", "left_plan"], ["last_name zipcode", left])
    dry = desk.load(csv_of([row(2, last_name="Newer")]), plan=1, dry_run=True)
    assert desk.report(dry)[0]["changed"] == ["last_name", "zipcode"]
