"""A worker keeps what it has read of a file while other accounts have their turn: nothing is read twice, no other worker begins
anew."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from frontdesk.db import Database
from frontdesk.files.model import UnreadRows
from frontdesk.files.parsing_process import parse_in_process
from frontdesk.files.readers import open_in_steps
from tests.files.loading import COLUMNS, Desk, Worker, csv_of, lines_of, row
from tests.files.readers.reading import file_834
from tests.files.readers.workbooks import workbook

ROWS, SMALL = 60, 8


def _workbook() -> bytes:
    members = [row(n) for n in range(ROWS)]
    return workbook([COLUMNS, *([member.get(name) for name in COLUMNS] for member in members)])


def _834() -> bytes:
    return file_834(
        *(
            f"INS*Y*18*021*28*A~REF*0F*{n:09d}~REF*23*W{n:08d}~NM1*IL*1*Sample*Robin~DMG*D8*19770111*F~"
            f"N3*1 Example Street~N4*Boston*MA*02134~HD*021**HLT*Gold~DTP*348*D8*20260101~"
            for n in range(1, ROWS + 1)
        )
    ).encode()


FORMATS: dict[str, Callable[[], bytes]] = {
    "csv": lambda: csv_of(row(n) for n in range(ROWS)),
    "json": lambda: lines_of(row(n) for n in range(ROWS)),
    "xlsx": _workbook,
    "x12": _834,
}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The places of the rows that were read, of all files."""
    read: list[int] = []

    def counted(*args: Any, **options: Any) -> Any:
        header, found = yield from open_in_steps(*args, **options)

        def each() -> Iterator[Any]:
            for item in found:
                read.extend(
                    range(item.place, item.place + (len(item) if isinstance(item, UnreadRows) else 1))
                )
                yield item

        return header, each()

    monkeypatch.setattr("frontdesk.files.rows.open_in_steps", counted)
    return read


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_that_loses_its_turn_is_read_no_further_than_one_that_does_not(
    desk: Desk, other: Desk, read: list[int], kind: str
) -> None:
    large = desk.hand_in(FORMATS[kind]())
    for n in range(SMALL):
        other.hand_in(csv_of([row(1000 + n)]))
    worker = Worker(desk)
    turns = set()
    while worker.turn():
        turns.add(desk.reread(large).rows_done)
    done = desk.reread(large)
    assert (done.state, done.counts) == ("done", {"created": ROWS})
    assert turns - {0, ROWS}, turns
    assert len(read) == 2 * (ROWS + SMALL), "once to check, once to apply"


def test_a_file_that_is_not_kept_is_read_again_and_complete(desk: Desk, other: Desk, read: list[int]) -> None:
    large = desk.hand_in(FORMATS["csv"]())
    for n in range(SMALL):
        other.hand_in(csv_of([row(1000 + n)]))
    Worker(desk, kept=0).work()
    done = desk.reread(large)
    assert (done.counts, desk.count("members")) == ({"created": ROWS}, ROWS + SMALL)
    assert [line["row"] for line in desk.report(done)] == list(range(2, ROWS + 2))
    assert len(read) > 2 * (ROWS + SMALL)


def test_a_parsing_process_is_kept_too(desk: Desk, other: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    def counted(*args: Any, **options: Any) -> Any:
        begun.append(1)
        return parse_in_process(*args, **options)

    monkeypatch.setattr("frontdesk.files.load.parse_in_process", counted)
    desk.options = replace(desk.options, subprocess_from_rows=10)
    large = desk.hand_in(FORMATS["csv"]())
    for n in range(SMALL):
        other.hand_in(csv_of([row(1000 + n)]))
    worker = Worker(desk)
    worker.turn()
    assert desk.reread(large).state == "waiting"
    worker.work()
    assert (desk.reread(large).counts, begun) == ({"created": ROWS}, [1])


def test_a_kept_file_stays_with_its_worker_and_so_do_later_files_of_its_account(
    desk: Desk, other: Desk
) -> None:
    large, later = desk.hand_in(FORMATS["csv"]()), desk.hand_in(csv_of([row(500)]))
    small = other.hand_in(csv_of([row(1000)]))
    first, second = Worker(desk), Worker(desk)
    first.turn()
    assert desk.reread(large).state == "waiting"
    second.work()
    assert (other.reread(small).state, desk.reread(large).epoch, desk.reread(later).epoch) == ("done", 1, 0)
    first.work()
    assert {desk.reread(file).state.value for file in (large, later)} == {"done"}


def test_the_files_of_a_worker_that_ends_are_free_at_once(desk: Desk, other: Desk) -> None:
    large = desk.hand_in(FORMATS["csv"]())
    other.hand_in(csv_of([row(1000)]))
    first, second = Worker(desk), Worker(desk)
    first.turn()
    first.end()
    second.work()
    assert desk.reread(large).counts == {"created": ROWS}


def test_the_files_of_a_worker_that_died_are_free_when_its_lease_is_over(desk: Desk, other: Desk) -> None:
    large = desk.hand_in(FORMATS["csv"]())
    other.hand_in(csv_of([row(1000)]))
    desk.options = replace(desk.options, lease_seconds=0.01)
    Worker(desk).turn()
    kept_until = desk.reread(large).kept_until
    assert kept_until is not None
    second = Worker(desk)
    second.work()
    while desk.reread(large).state == "waiting":  # the lease is on the database's clock
        second.work()
    assert desk.reread(large).counts == {"created": ROWS}


def test_a_kept_file_is_renewed_while_the_worker_is_busy_with_another(
    desk: Desk, other: Desk, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.files.claims.RENEW_SECONDS", 0.01)
    large = desk.hand_in(FORMATS["csv"]())
    other.hand_in(csv_of(row(1000 + n) for n in range(20)))
    worker = Worker(desk)
    worker.turn()
    first = desk.reread(large).kept_until
    renewed: list[bool] = []

    def wait_for_renewal() -> bool:
        while not renewed:
            now = desk.reread(large).kept_until
            if first is not None and now is not None and now > first:
                renewed.append(True)
        return False

    worker.options = replace(worker.options, should_stop=wait_for_renewal)
    worker.turn()
    assert renewed
    worker.work()
    assert desk.reread(large).state == "done"
