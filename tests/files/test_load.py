"""Loading a file: what each row becomes, what is stored, and a dry run whose chunks run again."""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from frontdesk.cli.file import summary
from frontdesk.db import Tx
from frontdesk.db.failures import StateChanged
from frontdesk.files.claims import FileClaim
from frontdesk.files.model import EligibilityFile, FileStep, RowOutcome
from frontdesk.formats import workbook as reader
from tests.files.loading import COLUMNS, ON_SQLITE, Desk, Worker, csv_of, lines_of, row
from tests.formats.workbooks import workbook
from tests.patience import PATIENCE_SECONDS
from tests.postgres import Databases


def test_every_row_is_stored_and_reported_once_with_the_file_in_its_history(desk: Desk) -> None:
    rows = [row(n, email=f"r{n}@example.com", invite_immediately=True) for n in range(1200)]
    file = desk.hand_in(lines_of(rows))
    assert f"frontdesk file resume {file.id}" in " ".join(summary(file))
    file = desk.work(file)
    assert (file.state, file.counts) == ("done", {"created": 1200})
    assert file.rows_total == file.rows_done == 1200
    assert desk.outcomes(file) == [(n + 1, "created", "") for n in range(1200)]
    for _ in range(2):
        counted = [desk.count(table) for table in ("members", "member_history", "invitations", "file_parts")]
        assert counted == [1200, 1200, 1200, 0]
        assert desk.load(lines_of(rows)).counts == {"unchanged": 1200}
    with desk.db.read() as tx:
        keys = tx.exec_driver_sql("SELECT DISTINCT file_id, request_id, client FROM member_history").all()
        actions = tx.exec_driver_sql("SELECT action FROM audit_entries ORDER BY id").scalars().all()
    assert [tuple(key) for key in keys] == [(file.id, "request-1", "client-1")]
    assert actions == ["file.received", "file.done"] * 3


def test_a_refused_row_does_not_stop_its_neighbours(desk: Desk) -> None:
    unread = b'{"external_id": "E1",\n[]\n'
    rows = [row(1), row(2, gender="x", zipcode="1"), row(3), row(4, member_id="M00001")]
    repeated = [row(5), row(6), row(5), row(6, last_name="Other")]
    file = desk.load(unread + lines_of([*rows, *repeated]))
    assert file.counts == {"created": 3, "unchanged": 1, "refused": 6}
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
def test_an_optional_value_that_cannot_be_used_costs_only_itself_and_is_not_told(
    desk: Desk, field: str, bad: Any, hint: str
) -> None:
    file = desk.load(lines_of([row(1, **{field: bad})]))
    assert desk.outcomes(file) == [(1, "created", ""), (1, "warned", f"{field}_dropped")]
    line = desk.report(file)[1]
    assert (line["field"], file.codes) == (field, {f"{field}_dropped": 1})
    assert hint in line["hint"]
    assert str(bad) not in str(desk.report(file))


@ON_SQLITE
def test_a_dropped_value_leaves_the_stored_one_and_an_end_that_cannot_be_used_is_refused(desk: Desk) -> None:
    desk.load(lines_of([row(1, phone="6175550100", email="old@example.com")]))
    file = desk.load(lines_of([row(1, phone="1", email="not an address", last_name="New")]))
    assert desk.codes(file) == [("updated", ""), ("warned", "phone_dropped"), ("warned", "email_dropped")]
    assert "was kept without it" in desk.report(file)[2]["hint"]
    found = desk.members()["E00001"]
    assert (found["phone"], found["email"], found["last_name"]) == ("6175550100", "old@example.com", "New")
    assert desk.codes(desk.load(lines_of([row(1, expiry_date="soon")]))) == [("refused", "not_a_date")]


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
    ],
    ids=["blank", "no rows", "no key", "not packed", "a fault in the last row", "no sheet"],
)
def test_a_file_that_cannot_be_read_applies_nothing_and_says_why(
    desk: Desk, content: bytes, options: dict[str, str], code: str
) -> None:
    file = desk.load(content, **options)
    assert file.problem is not None
    assert (file.state, file.problem["code"]) == ("failed", code)
    assert options.items() <= (file.mapping or {}).items()
    assert desk.count("members") == desk.count("file_rows") == 0


def test_two_accounts_that_load_the_same_identifiers_at_once_get_each_of_them_once(
    desk: Desk, other: Desk
) -> None:
    """Large chunks race on the unique keys: who comes second is told so, row by row, and no neighbour is lost."""
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
    """One statement can't do it, since a key is taken before it is given up; then it goes row by row."""
    desk.load(csv_of(row(n) for n in range(400)))
    rows = [row(0, member_id="FREE"), *(row(n, member_id=f"M{n - 1:05d}") for n in range(1, 400))]
    assert desk.load(csv_of(rows)).counts == {"updated": 400}
    found = {key: member["member_id"] for key, member in desk.members().items()}
    assert found == {each["external_id"]: each["member_id"] for each in rows}


def test_a_chunk_of_many_changes_writes_whatever_changes_in_any_of_its_records(desk: Desk) -> None:
    """Only the columns that change are written then; each record here changes another one."""
    new = {"last_name": "New", "member_id": "N{}", "email": "New{}@example.com", "expiry_date": "2027-01-01"}
    old = [row(n, email=f"old{n}@example.com", metadata={"a": "1"}) for n in range(150)]
    desk.load(lines_of(old))
    names = (*new, "metadata", "city")
    sent = [
        was | {name: {"b": "2"} if name == "metadata" else new.get(name, "X").format(n)}
        for n, (was, name) in enumerate(zip(old, names * 25, strict=True))
    ]
    assert desk.approve(desk.load(lines_of(sent), plan=1)).counts == {"moved": 150}
    stored = desk.members()
    for wanted in sent:
        found = stored[wanted["external_id"]] | {"metadata": wanted["metadata"]}
        assert {name: found[name] for name in wanted} == wanted
        assert found["email_folded"] == wanted["email"].lower()
        assert found["plan_id"] == desk.customer.plan_ids[1]
    assert desk.load(lines_of(sent), plan=1).counts == {"unchanged": 150}


@pytest.fixture
def fail_before_saving(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`fail_before_saving(times, fail)`: so many times, `fail` is called for a chunk that is decided and not stored."""
    save_chunk = FileClaim.save_chunk

    def set_up(times: int, fail: Callable[[], None]) -> None:
        left = [fail] * times

        def save(claim: FileClaim, tx: Tx, outcomes: Sequence[RowOutcome], *, rows_done: int) -> None:
            if left:
                left.pop()()
            save_chunk(claim, tx, outcomes, rows_done=rows_done)

        monkeypatch.setattr(FileClaim, "save_chunk", save)

    return set_up


# The second and the third row depend on what the first would have done.
RUN_AGAIN = csv_of([row(1), row(2, member_id="M00001"), row(1), row(3)])
OUTCOMES = [(2, "created", ""), (3, "refused", "not_unique"), (4, "unchanged", ""), (5, "created", "")]


@pytest.mark.parametrize("times", [1, 2, 3, 5])  # from the third on, row by row
def test_a_chunk_of_a_dry_run_that_lost_a_race_is_decided_as_if_it_ran_the_first_time(
    desk: Desk, fail_before_saving: Callable[..., None], times: int
) -> None:
    def lose_race() -> None:
        raise StateChanged

    fail_before_saving(times, lose_race)
    assert desk.outcomes(desk.load(RUN_AGAIN, dry_run=True)) == OUTCOMES
    assert desk.count("members") == 0


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_cut_connection_changes_no_outcome(
    desk: Desk, postgres: Databases, fail_before_saving: Callable[..., None]
) -> None:
    def cut() -> None:
        assert postgres.kill_backends(str(desk.db.engine.url.database)) > 0

    fail_before_saving(1, cut)
    assert desk.outcomes(desk.load(RUN_AGAIN, dry_run=True)) == OUTCOMES


@ON_SQLITE
def test_a_workbook_is_tried_loaded_ended_by_its_absence_and_undone(desk: Desk) -> None:
    content = book_of([row(1, zipcode=2134), row(2), row(3, gender="?")])
    mapping = {"fields": {"zipcode": {"pad": 5}}}
    tried = desk.load(content, mapping=mapping, dry_run=True)
    assert (tried.counts, tried.format, desk.count("members")) == (
        {"created": 2, "refused": 1}, "xlsx", 0,
    )  # fmt: skip
    loaded = desk.load(content, mapping=mapping)
    assert desk.outcomes(loaded) == [(4, "created", ""), (5, "created", ""), (6, "refused", "not_allowed")]
    assert desk.members()["E00001"]["zipcode"] == "02134"
    assert desk.load(content, mapping=mapping).counts == {"unchanged": 2, "refused": 1}
    full = desk.load(book_of([row(1)]), full=True, dry_run=True)
    assert full.counts == {"unchanged": 1, "would_end": 1}
    assert desk.undo(loaded).counts == {"withdrawn": 2}


SILENT = (sys.executable, "-c", "import time; time.sleep(60)")  # a reader that never gives a row


@pytest.mark.parametrize("silent_from", [FileStep.CHECK, FileStep.APPLY])
@pytest.mark.usefixtures("impatient")
def test_a_worker_whose_workbook_gives_no_row_yet_takes_the_file_of_another_account(
    desk: Desk, other: Desk, monkeypatch: pytest.MonkeyPatch, silent_from: FileStep
) -> None:
    """A workbook of 36 MB took 26 s to open, and the files of other accounts waited."""
    real, small = reader.READER, list[EligibilityFile]()

    def be_silent(large: EligibilityFile) -> bool:
        if not small and desk.reread(large).step is silent_from:
            monkeypatch.setattr(reader, "READER", SILENT)
            small.append(other.hand_in(csv_of([row(100)])))
        return False

    large = desk.hand_in(book_of([row(n) for n in range(20)]))
    if silent_from is FileStep.CHECK:
        be_silent(large)
    else:
        monkeypatch.setattr("frontdesk.files.load.hold_if_needed", lambda *_: be_silent(large))
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
def test_a_workbook_that_gives_no_row_yet_can_be_cancelled_and_its_worker_stopped(
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
    assert sorted(line["row"] for line in desk.report(done) if line["outcome"] != "warned") == [*range(2, 43)]
