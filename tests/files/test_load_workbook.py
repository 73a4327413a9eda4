"""Workbooks are loaded as other files are: dry run, resumed after a stop, full, undone."""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from frontdesk.files.model import EligibilityFile, FileState, FileStep
from frontdesk.formats import workbook as reader
from frontdesk.formats.model import Format
from tests.files.loading import COLUMNS, Desk, Worker, csv_of, row
from tests.formats.workbooks import workbook
from tests.patience import PATIENCE_SECONDS


def book_of(rows: Sequence[dict[str, Any]]) -> bytes:
    return workbook(
        [["Members of Example Health"], [], COLUMNS, *([each.get(name) for name in COLUMNS] for each in rows)]
    )


def test_a_workbook_is_tried_loaded_and_undone(desk: Desk) -> None:
    content = book_of([row(1, zipcode=2134), row(2), row(3, gender="?")])
    mapping = {"fields": {"zipcode": {"pad": 5}}}
    tried = desk.load(content, mapping=mapping, dry_run=True)
    assert (tried.counts, tried.format, desk.count("members")) == (
        {"created": 2, "refused": 1},
        Format.XLSX,
        0,
    )
    loaded = desk.load(content, mapping=mapping)
    assert desk.outcomes(loaded) == [(4, "created", ""), (5, "created", ""), (6, "refused", "not_allowed")]
    assert desk.members()["E00001"]["zipcode"] == "02134"
    assert desk.load(content, mapping=mapping).counts == {"unchanged": 2, "refused": 1}
    assert desk.undo(loaded).counts == {"withdrawn": 2}


def test_a_workbook_that_was_stopped_goes_on_after_its_last_chunk(desk: Desk) -> None:
    file = desk.hand_in(book_of([row(n) for n in range(60)]))
    desk.options = replace(desk.options, chunk_rows=10, should_stop=lambda: desk.reread(file).rows_done > 0)
    stopped = desk.work(file)
    assert stopped.state is FileState.WAITING
    assert 0 < stopped.rows_done < 60
    desk.options = replace(desk.options, should_stop=lambda: False)
    done = desk.work(stopped)
    assert (done.state, done.rows_done, done.counts) == (FileState.DONE, 60, {"created": 60})
    assert [place for place, _, _ in desk.outcomes(done)] == list(range(4, 64))


def test_a_full_workbook_ends_the_members_that_it_omits(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(12)))
    full = desk.load(book_of([row(n) for n in range(10)]), full=True)
    assert full.counts == {"unchanged": 10, "ended": 2}


def test_a_workbook_without_the_named_sheet_fails_and_nothing_is_applied(desk: Desk) -> None:
    failed = desk.load(book_of([row(1)]), sheet="Leavers")
    assert (failed.state, failed.problem and failed.problem["code"]) == (FileState.FAILED, "no_sheet")
    assert failed.mapping == {"sheet": "Leavers"}
    assert desk.count("members") == 0


SILENT = (sys.executable, "-c", "import time; time.sleep(60)")  # a reader that never gives a row


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker looks up as often as it can."""
    monkeypatch.setattr("frontdesk.files.claims.LOOK_SECONDS", 0.01)
    monkeypatch.setattr("frontdesk.files.claims.RENEW_SECONDS", 0.01)
    monkeypatch.setattr("frontdesk.formats.workbook.LOOK_MILLISECONDS", 10)


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


@pytest.mark.usefixtures("impatient")
def test_a_workbook_of_families_is_read_whole(desk: Desk) -> None:
    columns = [*COLUMNS, "Home"]
    members = [[*row(n, zipcode="" if n % 2 else "02134").values(), "", n // 2] for n in range(40)]
    mapping = {"fields": {"family": {"column": "Home"}}}
    done = desk.load(workbook([columns, *members, members[0]]), mapping=mapping, full=True)
    assert done.counts == {"created": 40, "unchanged": 1, "warned": 20}
    assert sorted(line["row"] for line in desk.report(done) if line["outcome"] != "warned") == [*range(2, 43)]
