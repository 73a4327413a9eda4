"""Pages of a report by outcome and code: the right lines, from the chunks that have them alone."""

from collections.abc import Iterator
from dataclasses import replace
from json import dumps
from typing import Any

import pytest

from frontdesk.files import row_store
from frontdesk.files.model import COUNTS, EligibilityFile
from frontdesk.files.report import (
    ALL,
    ReportCursor,
    ReportFilter,
    ReportLine,
    read_report,
    report_page,
)
from tests.files.loading import COLUMNS, Desk, csv_of, row

WITH_END = (*COLUMNS, "expiry_date")


@pytest.fixture
def nightly(desk: Desk) -> EligibilityFile:
    """A file of 60 rows in chunks of 10: most change a zip code, a few something else or nothing."""
    rows = [row(n) for n in range(60)]
    desk.load(csv_of(rows, WITH_END))
    rows = [one if n % 20 == 8 else one | {"zipcode": "02199"} for n, one in enumerate(rows)]
    rows[9] |= {"dob": "never", "zipcode": "x"}
    rows[31] |= {"expiry_date": "2026-07-01"}
    rows[48] |= {"external_id": "E99999", "member_id": "M99999", "email": "none@none.com"}
    rows[55] |= {"dob": "never"}
    desk.options = replace(desk.options, chunk_rows=10)
    file = desk.load(csv_of(rows, WITH_END))
    assert file.counts == {
        "created": 1,
        "updated": 55,
        "unchanged": 2,
        "refused": 2,
        "warned": 1,
        "lost": 1,
    }
    return file


def lines_by_pages(
    desk: Desk, file: EligibilityFile, wanted: ReportFilter, size: int
) -> Iterator[ReportLine]:
    cursor: ReportCursor | None = ReportCursor()
    while cursor is not None:
        page, cursor = report_page(desk.db, file.id, wanted, after=cursor, size=size)
        assert len(page) == size or cursor is None
        yield from page


def is_wanted(line: dict[str, Any], wanted: ReportFilter) -> bool:
    asked = wanted._asdict().items()
    return all(value in (None, line[name]) for name, value in asked)


def test_pages_have_the_lines_of_the_report_with_the_outcome_and_the_code(
    desk: Desk, nightly: EligibilityFile
) -> None:
    whole = desk.report(nightly)
    by_outcome = [ReportFilter(outcome) for outcome in COUNTS if outcome not in ("lost", "gained")]
    by_code = [ReportFilter(code=code) for code in nightly.codes]
    both = ReportFilter("refused", "not_a_date"), ReportFilter("updated", "not_a_date")
    by_member = [ReportFilter(external_id=key) for key in ("E00007", "E00008", "E00055", "none")]
    of_one = ReportFilter("refused", external_id="E00055")
    for wanted in (ALL, *by_outcome, *by_code, *both, *by_member, of_one):
        expected = [line for line in whole if is_wanted(line, wanted)]
        for size in (1, 7):
            found = [line._asdict() for line in lines_by_pages(desk, nightly, wanted, size)]
            assert [dumps(each) for each in found] == [dumps(each) for each in expected]
        assert b"".join(read_report(desk.db, nightly.id, wanted)).count(b"\n") == len(expected)


def test_the_rows_that_take_or_give_access_are_a_list(desk: Desk, nightly: EligibilityFile) -> None:
    [line] = lines_by_pages(desk, nightly, ReportFilter("lost"), 5)
    assert (line.row, line.outcome, line.access_after) == (33, "updated", "2026-01-01/2026-07-01")
    assert [*lines_by_pages(desk, nightly, ReportFilter("gained"), 5)] == []
    undo = desk.undo(nightly)
    [line] = lines_by_pages(desk, undo, ReportFilter("gained"), 5)
    assert (line.outcome, line.access_after) == ("restored", "2026-01-01/..")


def test_a_page_reads_no_chunk_without_such_lines(
    desk: Desk, nightly: EligibilityFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    original = row_store.chunk_outcomes

    def recorded(tx: Any, file_id: int, chunk: int, **selection: Any) -> Any:
        read.append(chunk)
        return original(tx, file_id, chunk, **selection)

    monkeypatch.setattr(row_store, "chunk_outcomes", recorded)
    chunks = nightly.chunks_done
    for wanted, most in (
        (ReportFilter("created"), 1),
        (ReportFilter("warned"), 1),
        (ReportFilter("refused"), 2),
        (ReportFilter(code="not_a_date"), 2),
        (ReportFilter("would_lose"), 0),
    ):
        read.clear()
        [*lines_by_pages(desk, nightly, wanted, 1)]
        assert len({*read}) <= most < chunks


def test_lists_of_a_held_file_go_with_its_first_rows(desk: Desk) -> None:
    rows = [row(n) for n in range(40)]
    desk.load(csv_of(rows, WITH_END))
    ends = [one | {"expiry_date": "2026-06-30"} for one in rows[:30]]
    held = desk.load(csv_of(ends, WITH_END))
    assert held.state == "held"
    wanted = ReportFilter("would_lose")
    assert len([*lines_by_pages(desk, held, wanted, 7)]) == held.counts["would_lose"] == 30
    done = desk.approve(held)
    assert [*lines_by_pages(desk, done, wanted, 7)] == []
    assert len([*lines_by_pages(desk, done, ReportFilter("lost"), 7)]) == done.counts["lost"] == 30
