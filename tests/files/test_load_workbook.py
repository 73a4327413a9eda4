"""Workbooks are loaded as other files are: dry run, parsed apart, resumed after a stop, full, undone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from frontdesk.files.model import FileState, Format
from tests.files.loading import COLUMNS, Desk, csv_of, row
from tests.files.readers.workbooks import workbook


def book_of(rows: Sequence[dict[str, Any]]) -> bytes:
    return workbook(
        [["Members of Example Health"], [], COLUMNS, *([each.get(name) for name in COLUMNS] for each in rows)]
    )


@pytest.mark.parametrize("apart", [False, True])
def test_a_workbook_is_tried_loaded_and_undone(desk: Desk, apart: bool) -> None:
    desk.options = replace(desk.options, subprocess_from_rows=1 if apart else 1000)
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
    looks = iter([False] * 4 + [True] * 99)
    desk.options = replace(desk.options, chunk_rows=10, should_stop=lambda: next(looks))
    stopped = desk.work(desk.hand_in(book_of([row(n) for n in range(60)])))
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
