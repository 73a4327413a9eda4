"""Accounts take turns: no account's files keep another's waiting, and a file that pauses goes on
where it was.
"""

import gzip
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from frontdesk.files.model import EligibilityFile
from frontdesk.mapping.model import UnreadRows, read_loops
from frontdesk.mapping.opening import open_unread
from tests.files.loading import COLUMNS, Desk, Worker, csv_of, lines_of, row
from tests.formats.reading import file_834, person
from tests.formats.workbooks import workbook

ROWS = 60
SMALL = 8


MEMBERS = [row(n) for n in range(ROWS)]
LOOPS = [
    person(family=f"{n:09d}", last=f"Sample {n}", number="REF*17*01~") for n in range(1, ROWS + 1)
]
FORMATS: dict[str, bytes] = {
    "csv": csv_of(MEMBERS),
    "json": lines_of(MEMBERS),
    "xlsx": workbook([COLUMNS, *([member.get(name) for name in COLUMNS] for member in MEMBERS)]),
    "x12": file_834(*LOOPS).encode(),
}
LARGE = FORMATS["csv"]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were read, of all files."""
    read: list[int] = []

    def counted(*args: Any, **options: Any) -> Any:
        header, items = open_unread(*args, **options)

        def each() -> Iterator[Any]:
            for item in read_loops(items):
                read.append(len(item) if isinstance(item, UnreadRows) else 1)
                yield item

        return header, each()

    monkeypatch.setattr("frontdesk.files.check.open_unread", counted)
    return read


def rows_done(desk: Desk, file: EligibilityFile) -> int:
    return desk.reread(file).rows_done


def producers() -> list[str]:
    return [
        thread.name
        for thread in threading.enumerate()
        if thread.name.startswith(("lease", "producer"))
    ]


def test_one_row_does_not_wait_for_twenty_files_of_another_account(desk: Desk, other: Desk) -> None:
    file = desk.hand_in(LARGE)
    _ = desk.hand_in(csv_of([row(100)]))
    assert (Worker(desk).turn(), desk.reread(file).state) == (True, "done")
    Worker(desk).work()
    many = [desk.hand_in(csv_of([row(n)])) for n in range(20)]
    one = other.hand_in(csv_of([row(200)]))
    worker = Worker(desk, seconds=60.0)
    assert [worker.turn(), worker.turn()] == [True, True]
    assert (desk.reread(many[0]).state, other.reread(one).state) == ("done", "done")
    worker.work()
    assert {desk.reread(file).counts["unchanged"] for file in many} == {1}


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.usefixtures("impatient")
def test_a_large_file_pauses_for_others_at_any_row_and_nothing_is_read_twice(
    desk: Desk, other: Desk, read: list[int], kind: str, dry_run: bool
) -> None:
    large = desk.hand_in(FORMATS[kind], dry_run=dry_run)
    small = [other.hand_in(csv_of([row(1000 + n)])) for n in range(SMALL)]
    worker = Worker(desk)
    steps = []
    done_before = []
    while worker.turn():
        file = desk.reread(large)
        steps.append((file.state.value, file.step.value))
        done_before += [rows_done(other, each) for each in small if file.state == "running"]
    done = desk.reread(large)
    assert (done.state, done.counts["created"], done.epoch) == ("done", ROWS, 1)
    assert ("running", "apply") in steps  # test_load pauses a check, for certain
    assert 1 in done_before
    assert sum(read) == 2 * (ROWS + SMALL), "once to check, once to apply"
    places = [line["row"] for line in desk.report(done) if line["outcome"] != "warned"]
    assert (len(places), places) == (ROWS, sorted({*places}))


def test_of_two_large_files_each_has_its_turns(desk: Desk, other: Desk) -> None:
    first = desk.hand_in(LARGE)
    second = other.hand_in(csv_of(row(n) for n in range(100, 160)))
    worker = Worker(desk)
    seen = []
    while worker.turn():
        seen.append((rows_done(desk, first), rows_done(desk, second)))
    assert all(abs(ours - theirs) <= 10 for ours, theirs in seen[:-2]), seen
    assert seen[-1] == (60, 60)


def test_a_dry_run_that_pauses_reports_what_it_would_have_reported_at_once(
    desk: Desk, other: Desk
) -> None:
    renamed = (row(n, last_name="New") for n in range(20))
    content = lines_of([*MEMBERS[:40], *renamed, row(60, dob="x")])
    whole = desk.load(content, dry_run=True)
    paused = desk.hand_in(content, dry_run=True)
    other.hand_in(csv_of(row(n) for n in range(100, 150)))
    Worker(desk).work()
    done = desk.reread(paused)
    assert (done.state, done.counts, desk.report(done)) == (
        "done",
        whole.counts,
        desk.report(whole),
    )


def test_a_paused_file_and_later_ones_stay_with_their_worker_until_that_ends(
    desk: Desk, other: Desk
) -> None:
    large = desk.hand_in(LARGE)
    later = desk.hand_in(csv_of([row(500)]))
    small = other.hand_in(csv_of([row(1000)]))
    first = Worker(desk)
    second = Worker(desk)
    first.turn()
    assert desk.reread(large).state == "running"
    second.work()
    assert (other.reread(small).state, desk.reread(large).epoch, desk.reread(later).epoch) == (
        "done",
        1,
        0,
    )
    first.end()
    assert (desk.reread(large).state, producers()) == ("waiting", []), (
        "free at once when its worker ends"
    )
    second.work()
    assert [desk.reread(file).counts["created"] for file in (large, later)] == [ROWS, 1]


def test_a_paused_file_that_is_taken_or_cancelled_is_dropped_at_its_next_turn(
    desk: Desk, other: Desk
) -> None:
    first = Worker(desk)
    second = Worker(desk)
    desk.options = replace(desk.options, lease_seconds=-1)
    asleep = Worker(desk)
    large = desk.hand_in(LARGE, dry_run=True)
    other.hand_in(csv_of([row(1000)]))
    asleep.turn()
    second.work()
    asleep.work()
    assert (desk.reread(large).counts, producers()) == ({"created": ROWS}, [])
    cancelled = desk.hand_in(LARGE)
    other.hand_in(csv_of([row(1001)]))
    while desk.reread(cancelled).state == "waiting":
        first.turn()
    desk.cancel(cancelled)
    first.work()
    assert (desk.reread(cancelled).state, producers()) == ("cancelled", [])


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_worker_with_as_many_loads_as_it_may_have_gives_one_back_if_it_can(
    desk: Desk, other: Desk, monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
    """A dry run could only begin anew, so the other account waits for its end."""
    monkeypatch.setattr("frontdesk.files.turns.MOST_OPEN", 1)
    large = desk.hand_in(LARGE, dry_run=dry_run)
    theirs = other.hand_in(csv_of(row(100 + n) for n in range(50)), dry_run=dry_run)
    worker = Worker(desk)
    given_back = []
    while worker.turn():
        given_back += [
            file.id for file in (desk.reread(large), other.reread(theirs)) if file.epoch > 1
        ]
    assert (desk.reread(large).counts, other.reread(theirs).counts) == (
        {"created": ROWS},
        {"created": 50},
    )
    assert {*given_back} == (set() if dry_run else {large.id, theirs.id})


def test_an_undo_takes_turns_too(desk: Desk, other: Desk) -> None:
    desk.options = replace(desk.options, chunk_rows=10)
    file = desk.load(LARGE)
    held = desk.work(desk.hand_in_undo(file))
    other.load(csv_of([row(999)]))
    undo = desk.approve(held, work=False)
    small = other.hand_in(csv_of([row(1000)]))
    worker = Worker(desk)
    worker.turn()
    while other.reread(small).state != "done":
        assert desk.reread(undo).state == "running"
        worker.turn()
    assert (desk.reread(undo).state, rows_done(desk, undo) < 60) == ("running", True)
    worker.work()
    assert (desk.reread(undo).counts, other.reread(small).state) == (
        {"withdrawn": 60, "lost": 60},
        "done",
    )


def test_a_bomb_of_refused_lines_ends_before_it_holds_anybody_up(desk: Desk, other: Desk) -> None:
    """15 KB that unpack to 5 million lines held every account's files for nine minutes."""
    content = gzip.compress(b"external_id,dob\n" + b"x,y\n" * 5_000_000, 9)
    assert len(content) < 25_000
    bombs = [desk.hand_in(content) for _ in range(5)]
    one = other.hand_in(csv_of([row(1)]))
    seen: list[int] = []
    desk.options = replace(desk.options, on_progress=lambda _step, done, _total: seen.append(done))
    worker = Worker(desk)
    worker.work()
    assert max(seen, default=0) < 1_300_000, "rows that were read"
    assert other.reread(one).state == "done"
    assert {desk.reread(file).problem["code"] for file in bombs} == {"zip_bomb"}  # type: ignore[index]


def test_a_file_that_begins_with_refused_rows_only_fails(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.files.load.ROWS_TO_JUDGE_BY", 100)
    desk.options = replace(desk.options, chunk_rows=50)
    wrong = [row(n, dob="never") for n in range(300)]
    failed = desk.load(csv_of(wrong))
    assert failed.problem is not None
    assert (failed.state, failed.problem["code"]) == ("failed", "all_refused")
    assert set(failed.counts) == {"refused"}
    assert failed.rows_done < 300
    assert desk.load(csv_of(wrong[:99])).counts == {"refused": 99}
    assert desk.load(csv_of([row(0), *wrong[1:]])).counts == {"created": 1, "refused": 299}
