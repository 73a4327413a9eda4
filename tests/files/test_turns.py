"""Accounts take turns: no account's files keep another's waiting, and what was begun goes on where it was."""

import gzip
from dataclasses import replace

import pytest

from frontdesk.files.model import EligibilityFile
from tests.files.loading import Desk, Worker, csv_of, lines_of, row
from tests.files.readers.reading import file_834


def rows_done(desk: Desk, file: EligibilityFile) -> int:
    return desk.reread(file).rows_done


def test_one_row_does_not_wait_for_twenty_files_of_another_account(desk: Desk, other: Desk) -> None:
    many = [desk.hand_in(csv_of([row(n)])) for n in range(20)]
    one = other.hand_in(csv_of([row(100)]))
    worker = Worker(desk, seconds=60.0)
    assert [worker.turn(), worker.turn()] == [True, True]
    assert (desk.reread(many[0]).state, other.reread(one).state) == ("done", "done")
    worker.work()
    assert {desk.reread(file).counts["created"] for file in many} == {1}


def test_a_large_file_gives_the_worker_back_and_goes_on(desk: Desk, other: Desk) -> None:
    large = desk.hand_in(csv_of(row(n) for n in range(100)))
    small = other.hand_in(csv_of([row(1000)]))
    worker = Worker(desk)
    worker.turn()
    paused = desk.reread(large)
    assert (paused.state, 0 < paused.rows_done < 100) == ("waiting", True)
    worker.turn()
    assert rows_done(other, small) == 1
    worker.work()
    done = desk.reread(large)
    assert (done.state, done.counts) == ("done", {"created": 100})
    assert [line["row"] for line in desk.report(done)] == list(range(2, 102))


def test_of_two_large_files_each_has_its_turns(desk: Desk, other: Desk) -> None:
    first, second = (
        desk.hand_in(csv_of(row(n) for n in range(60))),
        other.hand_in(csv_of(row(n) for n in range(100, 160))),
    )
    worker = Worker(desk)
    seen = []
    while worker.turn():
        seen.append((rows_done(desk, first), rows_done(desk, second)))
    assert (0 < seen[0][0] < 60, seen[0][1]) == (True, 0), seen
    assert (seen[1][0], 0 < seen[1][1] < 60) == (seen[0][0], True), seen
    assert seen[-1] == (60, 60)


@pytest.mark.parametrize("kept", [4, 0])
def test_a_dry_run_that_is_paused_reports_what_it_would_have_reported_at_once(
    desk: Desk, other: Desk, kept: int
) -> None:
    """Without the scratch database it would have to begin anew, so a worker that can't keep it does not pause it."""
    content = lines_of(
        [*(row(n) for n in range(40)), *(row(n, last_name="New") for n in range(40, 60)), row(60, dob="x")]
    )
    whole = desk.load(content, dry_run=True)
    paused = desk.hand_in(content, dry_run=True)
    other.hand_in(csv_of(row(n) for n in range(100, 150)))
    worker = Worker(desk, kept=kept)
    seen = []
    while worker.turn():
        file = desk.reread(paused)
        seen.append((file.state.value, file.step.value))
    assert (("waiting", "apply") in seen) == (kept > 0)
    done = desk.reread(paused)
    assert (done.state, done.counts, desk.report(done)) == ("done", whole.counts, desk.report(whole))


def test_a_paused_dry_run_that_another_worker_takes_over_begins_anew(desk: Desk, other: Desk) -> None:
    content = csv_of(row(n) for n in range(50))
    paused = desk.hand_in(content, dry_run=True)
    theirs = other.hand_in(csv_of(row(n) for n in range(100, 150)))
    first, second = Worker(desk), Worker(desk)
    for worker in (first, second, second, first, first, second, first):
        worker.turn()
    first.work()
    assert (desk.reread(paused).counts, other.reread(theirs).counts) == ({"created": 50}, {"created": 50})


def test_rows_that_take_long_end_a_turn_however_few_they_are(
    desk: Desk, other: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.files.overtime.OVERTIME_SECONDS", 0.0)
    large, small = desk.hand_in(lines_of(row(n) for n in range(50))), other.hand_in(csv_of([row(1000)]))
    worker = Worker(desk)
    worker.turn()
    checked = desk.reread(large)
    assert (checked.state, checked.step, checked.rows_done) == ("waiting", "check", 0)
    worker.work()
    done = desk.reread(large)
    assert (done.counts, done.chunks_done >= 5) == ({"created": 50}, True)
    assert other.reread(small).state == "done"


def _one_family() -> bytes:
    return file_834(
        *(
            f"INS*Y*18*021*28*A~REF*0F*F1~REF*23*W{n:08d}~NM1*IL*1*Sample*Robin{n}~DMG*D8*19770111*F~"
            f"N3*1 Example Street~N4*Boston*MA*02134~HD*021**HLT*Gold~DTP*348*D8*20260101~"
            for n in range(50)
        )
    ).encode()


@pytest.mark.parametrize(
    "content", [csv_of(row(n) for n in range(50)), _one_family()], ids=["a block of a table", "one family"]
)
def test_rows_that_take_long_end_a_chunk_also_within_a_block_or_a_family(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    """Between two chunks the worker looks whether the file was cancelled, and whether others wait."""
    monkeypatch.setattr("frontdesk.files.overtime.OVERTIME_SECONDS", 0.0)
    done = desk.load(content)
    assert (done.counts, done.chunks_done >= 5) == ({"created": 50}, True)


def test_a_check_that_is_paused_goes_on_where_it_was(
    desk: Desk, other: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.files.check.CHECKPOINT_ROWS", 10)
    large = desk.hand_in(csv_of([*(row(n) for n in range(50)), row(3, last_name="Else")]), full=True)
    small = [other.hand_in(csv_of([row(1000 + n)])) for n in range(3)]
    worker = Worker(desk)
    worker.turn()
    checked = desk.reread(large)
    assert (checked.state, checked.step, checked.rows_done) == ("waiting", "check", 0)
    worker.work()
    assert desk.reread(large).counts == {"created": 49, "refused": 2}
    assert {other.reread(file).state for file in small} == {"done"}


def test_a_cancelled_file_is_let_go(desk: Desk, other: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk.files.check.CHECKPOINT_ROWS", 10)
    content = csv_of(row(n) for n in range(50))
    worker = Worker(desk, kept=1)
    for _ in range(3):
        large = desk.hand_in(content, dry_run=True)
        other.hand_in(csv_of([row(1000)]))
        worker.turn()
        worker.turn()
        assert desk.reread(large).state == "waiting"
        desk.cancel(large)
    worker.work()


def test_an_undo_takes_turns_too(desk: Desk, other: Desk) -> None:
    desk.options = replace(desk.options, chunk_rows=10)
    file = desk.load(csv_of(row(n) for n in range(60)))
    other.load(csv_of([row(999)]))
    undo = desk.hand_in_undo(file)
    small = other.hand_in(csv_of([row(1000)]))
    worker = Worker(desk)
    worker.turn()
    assert (desk.reread(undo).state, 0 < rows_done(desk, undo) < 60) == ("waiting", True)
    worker.turn()
    assert rows_done(other, small) == 1
    worker.work()
    assert (desk.reread(undo).counts, other.reread(small).state) == ({"withdrawn": 60}, "done")


def test_a_worker_that_is_alone_with_an_account_does_not_pause(desk: Desk) -> None:
    file = desk.hand_in(csv_of(row(n) for n in range(60)))
    desk.hand_in(csv_of([row(100)]))
    assert Worker(desk).turn()
    assert desk.reread(file).state == "done"


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
    assert max(seen) < 1_300_000, "rows that were read"
    assert other.reread(one).state == "done"
    assert {desk.reread(file).problem["code"] for file in bombs} == {"zip_bomb"}  # type: ignore[index]


def test_rows_that_cost_no_byte_each_are_no_list_of_members(desk: Desk) -> None:
    content = gzip.compress(b"external_id,b\n" + b"1,\n" * 30_000, 9)
    failed = desk.load(content)
    assert failed.problem is not None
    assert (failed.problem["code"], "for each byte" in failed.problem["message"]) == ("zip_bomb", True)


def test_a_file_that_begins_with_nothing_but_refused_rows_fails(
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
