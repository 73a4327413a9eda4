"""Full files end absent members behind a safety threshold; dry runs report the same and write nothing."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from frontdesk.config import Uniqueness
from frontdesk.db import open_database
from frontdesk.eligibility import enrol, list_ids_under, parse_member
from frontdesk.eligibility.model import Submission
from frontdesk.files.actions import approve_file, cancel_file
from frontdesk.files.load import ChunkWriter
from frontdesk.files.model import ChunkRow, FileKey, WrongState
from tests.conftest import SetClock
from tests.files.loading import Desk, csv_of, lines_of, row


def as_in_a_real_run(report: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line | {"outcome": "ended"} if line["outcome"] == "would_end" else line for line in report]


def expiries(desk: Desk) -> dict[str, Any]:
    return {key: member["expiry_date"] for key, member in desk.members().items()}


def test_a_change_file_leaves_absent_members_alone(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(5)))
    desk.load(csv_of([row(1)]))
    assert set(expiries(desk).values()) == {None}


def test_a_full_file_ends_absent_members_on_its_date(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(5)))
    file = desk.load(csv_of(row(n) for n in range(1, 4)), full=True)
    assert file.counts == {"unchanged": 3, "ended": 2}
    assert (file.members_before, file.members_missing, file.file_date) == (5, 2, "2026-11-20")
    assert {key for key, day in expiries(desk).items() if str(day) == "2026-11-20"} == {"E00000", "E00004"}
    assert next(line for line in desk.report(file) if line["row"] is None)["code"] == "ended_by_absence"


def test_a_full_file_ends_no_member_of_another_plan_and_none_twice(desk: Desk) -> None:
    desk.load(csv_of([row(1), row(2)]))
    desk.load(csv_of([row(3)]), plan=1)
    desk.load(csv_of([row(1)]), full=True)
    file = desk.load(csv_of([row(1)]), full=True)
    assert file.counts == {"unchanged": 1}
    assert [str(day) for day in expiries(desk).values()] == ["None", "2026-11-20", "None"]


def test_access_that_was_to_begin_later_ends_on_its_first_day_once_with_a_warning(desk: Desk) -> None:
    """expiry_date is never before effective_date (docs/interface.md, Fields of a member), and access always ends."""
    desk.load(csv_of([row(1), row(2, effective_date="2027-01-01")]))
    before = desk.members()
    dry, file = (desk.load(csv_of([row(1)]), full=True, dry_run=each) for each in (True, False))
    assert dry.counts == {"unchanged": 1, "would_end": 1, "warned": 1}
    assert file.counts == {"unchanged": 1, "ended": 1, "warned": 1}
    assert dry.codes == file.codes == {"ended_by_absence": 1, "ends_on_first_day": 1}
    assert as_in_a_real_run(desk.report(dry)) == desk.report(file)
    assert desk.outcomes(file)[1:] == [
        (None, "ended", "ended_by_absence"),
        (None, "warned", "ends_on_first_day"),
    ]
    assert str(expiries(desk)["E00002"]) == "2027-01-01"
    assert desk.load(csv_of([row(1)]), full=True).counts == {"unchanged": 1}
    desk.undo(file)
    assert desk.members() == before


def test_a_row_with_the_date_on_which_access_ended_has_no_warning(desk: Desk) -> None:
    content = csv_of([row(1, expiry_date="2026-03-01")], columns=(*row(1), "expiry_date"))
    desk.load(content)
    assert desk.load(content).counts == {"unchanged": 1}


def test_a_member_changed_after_the_work_began_is_not_ended(desk: Desk) -> None:
    desk.load(csv_of([row(1), row(2)]))
    file = desk.hand_in(csv_of([row(1)]), full=True)
    with desk.db.write() as tx:
        tx.exec_driver_sql(
            "UPDATE members SET updated_at = '2026-11-20T12:00:01.000000Z' WHERE external_id = 'E00002'"
        )
    assert desk.work(file).counts == {"unchanged": 1}


def test_a_file_that_would_end_too_many_members_is_held_until_it_is_approved(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(60)))
    held = desk.load(csv_of([*(row(n) for n in range(34)), row(100)]), full=True)
    assert (held.state, held.members_missing) == ("held", 26)
    assert held.counts == {"would_end": 26}
    assert held.finished_at is None
    assert set(expiries(desk).values()) == {None}
    done = desk.approve(held)
    assert (done.state, done.counts) == ("done", {"unchanged": 34, "created": 1, "ended": 26})


def test_a_file_of_less_than_half_of_the_last_one_is_held(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(20)), full=True)
    held = desk.load(csv_of(row(n) for n in range(9)), full=True)
    assert held.state == "held"
    assert held.problem is not None
    assert "less than half" in held.problem["message"]
    assert desk.load(csv_of(row(n) for n in range(10)), full=True).state == "done"


@pytest.mark.parametrize(
    "unreadable",
    [b'{"external_id": "E00002",', b'{"member_id": "M00002"}\n', b'{"external_id": " "}\n', b'["E00002"]'],
)
def test_a_full_file_with_a_row_without_identifier_ends_no_member_until_it_is_approved(
    desk: Desk, unreadable: bytes
) -> None:
    desk.load(csv_of(row(n) for n in range(3)))
    held = desk.load(lines_of([row(0), row(1)]) + unreadable, full=True)
    assert (held.state, held.counts) == ("held", {"would_end": 1})
    assert held.problem is not None
    assert (held.problem["code"], "can't be read" in held.problem["message"]) == ("too_many_ends", True)
    assert set(expiries(desk).values()) == {None}
    assert desk.approve(held).counts == {"unchanged": 2, "refused": 1, "ended": 1}


def test_a_member_whose_row_is_refused_is_not_missing(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(3)))
    file = desk.load(csv_of([row(0), row(1, dob="2026-02-30")]), full=True)
    assert file.counts == {"unchanged": 1, "refused": 1, "ended": 1}
    assert [key for key, day in expiries(desk).items() if day is not None] == ["E00002"]


def test_the_rule_is_told_in_words(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(300)))
    held = desk.load(csv_of(row(n) for n in range(269)), full=True)
    assert held.problem is not None
    assert held.problem["message"] == "31 of the plan's 300 members would be ended, more than 10 % of 300."


def test_a_full_file_with_a_row_without_identifier_is_done_when_no_member_is_missing(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(3)))
    done = desk.load(lines_of(row(n) for n in range(3)) + b"{}", full=True)
    assert (done.state, done.counts) == ("done", {"unchanged": 3, "refused": 1})


def test_a_held_file_that_is_cancelled_ends_no_member(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(60)))
    held = desk.load(csv_of([row(1)]), full=True)
    with desk.db.write() as tx:
        assert cancel_file(tx, FileKey(held.id), desk.requester()).state == "cancelled"
    assert set(expiries(desk).values()) == {None}
    assert desk.count("file_parts") == 0


def test_a_held_file_that_a_newer_full_one_has_overtaken_is_not_approved(desk: Desk) -> None:
    """The sender has sent a better file; approved by mistake, the old one would end members that the new one lists."""
    desk.load(csv_of(row(n) for n in range(60)))
    held = desk.load(csv_of([row(1)]), full=True)
    assert desk.load(csv_of(row(n) for n in range(60)), full=True).counts == {"unchanged": 60}
    with pytest.raises(WrongState, match="newer file of the plan, file 3,"):
        desk.approve(held)
    with desk.db.write() as tx:
        cancel_file(tx, FileKey(held.id), desk.requester())
    assert set(expiries(desk).values()) == {None}


def test_of_two_held_files_the_older_one_can_not_be_approved(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(100)))
    older = desk.load(csv_of(row(n) for n in range(50)), full=True)
    newer = desk.load(csv_of(row(n) for n in range(45, 100)), full=True)
    assert (older.state, newer.state) == ("held", "held")
    with pytest.raises(WrongState, match="newer file of the plan, file 3,"):
        desk.approve(older)
    assert desk.approve(newer).counts == {"unchanged": 55, "ended": 45}


def test_an_approved_file_that_is_overtaken_before_it_runs_ends_no_member(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(100)))
    held = desk.load(csv_of([row(1)]), full=True)
    with desk.db.write() as tx:
        approve_file(tx, FileKey(held.id), desk.requester())
    assert desk.load(csv_of(row(n) for n in range(100)), full=True).counts == {"unchanged": 100}
    held = desk.work(held)
    assert held.problem is not None
    assert (held.state, held.problem["code"]) == ("held", "overtaken")
    assert set(expiries(desk).values()) == {None}


def test_a_newer_file_that_was_undone_does_not_overtake(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(60)))
    held = desk.load(csv_of([row(1)]), full=True)
    newer = desk.load(csv_of(row(n) for n in range(60)), full=True)
    assert desk.undo(newer).state == "done"
    assert desk.approve(held).counts == {"unchanged": 1, "ended": 59}


@pytest.mark.parametrize("begins", ["2026-01-01", "2027-01-01"])
def test_a_member_that_is_changed_while_a_file_ends_members_is_left_alone(
    desk: Desk, clock: SetClock, monkeypatch: pytest.MonkeyPatch, begins: str
) -> None:
    """The change commits after the batch was read and before it is written; the report does not warn of it."""
    desk.load(csv_of([row(0), row(1), row(2, effective_date=begins)]))
    clock.advance(60)
    file = desk.hand_in(csv_of([row(0)]), full=True)

    write = ChunkWriter.write

    def change_first(writer: ChunkWriter, rows: Sequence[ChunkRow]) -> None:
        if rows[0].place is None:
            clock.advance(1)
            account, plans = desk.customer.account_id, desk.customer.plan_ids
            record = parse_member(row(2, last_name="Renewed", effective_date=begins), today="2026-11-20")
            with desk.db.write() as tx:
                submission = Submission(account, plans[0], record, "client", "request")
                enrol(tx, [submission], now=clock(), uniqueness=Uniqueness.SERVICE)
        write(writer, rows)

    monkeypatch.setattr(ChunkWriter, "write", change_first)
    assert desk.work(file).counts == {"unchanged": 2, "ended": 1}
    assert [key for key, day in expiries(desk).items() if day is not None] == ["E00001"]


def test_of_two_approvals_at_once_the_second_is_refused(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(60)))
    held = desk.load(csv_of([row(1)]), full=True)
    told: list[str] = []

    def approve_too() -> None:
        with desk.db.write() as tx, pytest.raises(WrongState) as refusal:
            approve_file(tx, FileKey(held.id), desk.requester())
        told.append(str(refusal.value))

    other = threading.Thread(target=approve_too)
    with desk.db.write() as tx:
        approve_file(tx, FileKey(held.id), desk.requester())
        other.start()
        other.join(0.3)  # it waits for the first one's commit
    other.join()
    assert told == ["The file is waiting; only one that is held can be approved."]


def test_a_held_file_lists_each_member_that_it_would_end_until_it_is_approved(desk: Desk) -> None:
    desk.load(csv_of([*(row(n) for n in range(59)), row(59, effective_date="2027-01-01")]))
    dry, held = (desk.load(csv_of([row(0)]), full=True, dry_run=each) for each in (True, False))
    listed = {line["external_id"] for line in desk.report(held) if line["outcome"] == "would_end"}
    assert listed == {f"E{n:05d}" for n in range(1, 60)}
    assert held.codes == {"ended_by_absence": 59, "ends_on_first_day": 1}
    assert (dry.counts, dry.codes, desk.report(dry)[1:]) == (
        {"unchanged": 1} | held.counts,
        held.codes,
        desk.report(held),
    )
    done = desk.approve(held)
    assert (done.counts, done.codes) == ({"unchanged": 1, "ended": 59, "warned": 1}, held.codes)
    assert [line["outcome"] for line in desk.report(done)].count("would_end") == 0
    undo = desk.undo(done)
    assert (undo.counts, undo.rows_done, undo.rows_total) == ({"restored": 59}, 59, 59)


def test_a_worker_that_dies_while_it_lists_members_leaves_a_list_without_gaps(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.files.check.LISTED_TOGETHER", 7)
    desk.load(csv_of(row(n) for n in range(60)))
    file = desk.hand_in(csv_of([row(0)]), full=True)
    looks = iter([False] * 13 + [True])
    desk.options = replace(desk.options, should_stop=lambda: next(looks, False))
    stopped = desk.work(file)
    assert (stopped.state, 0 < stopped.counts["would_end"] < 59) == ("waiting", True)
    held = desk.work(file)
    assert (held.state, held.counts) == ("held", {"would_end": 59})
    assert len(desk.report(held)) == 59


def test_an_account_goes_on_with_other_files_while_one_is_held(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(60)))
    assert desk.load(csv_of([row(1)]), full=True).state == "held"
    assert desk.load(csv_of([row(2)])).state == "done"


TANGLED = [
    row(1, last_name="Changed"),
    row(2, member_id="M00001"),  # taken
    row(3, member_id="M-NEW"),  # gives up M00003 ...
    row(50, member_id="M00003"),  # ... which this one takes, a row later
    row(51, member_id="M00003"),  # and this one can't
    row(52, email="shared@example.com"),
    row(53, email="SHARED@example.com"),
    row(54, email="nothing"),
    row(54, email="nothing"),
    row(55),
    row(55, zipcode="1"),
    row(56, invite_immediately=True, email="new@example.com"),
]


@pytest.mark.parametrize("full", [False, True])
def test_a_dry_run_reports_what_the_real_run_does_and_writes_nothing(desk: Desk, full: bool) -> None:
    """Also over chunks: what a row of one gives up, a row of another may take."""
    desk.options = replace(desk.options, chunk_rows=5)
    desk.load(csv_of(row(n) for n in range(20)))
    filling = [row(n) for n in range(1000, 1020)]
    content = lines_of([*TANGLED[:3], *filling, *TANGLED[3:]])
    before = desk.members(), desk.count("member_history"), desk.count("invitations")
    dry = desk.load(content, full=full, dry_run=True)
    assert (desk.members(), desk.count("member_history"), desk.count("invitations")) == before
    real = desk.load(content, full=full)
    assert dry.counts == {
        "would_end" if full and name == "ended" else name: n for name, n in real.counts.items()
    }
    assert as_in_a_real_run(desk.report(dry)) == desk.report(real)
    assert (dry.counts["refused"], dry.codes) == (4, real.codes)


def test_a_dry_run_of_a_full_file_reports_that_it_would_be_held_and_is_done(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(60)))
    dry = desk.load(csv_of([row(1)]), full=True, dry_run=True)
    assert (dry.state, dry.counts) == ("done", {"unchanged": 1, "would_end": 59})
    assert dry.problem is not None
    assert dry.problem["code"] == "too_many_ends"


def test_a_dry_run_has_nothing_to_undo(desk: Desk) -> None:
    file = replace(desk.load(csv_of([row(1)]), dry_run=True))
    with pytest.raises(Exception, match="dry run"):
        desk.undo(file)


def test_sqlite_goes_on_in_a_plans_members_where_the_last_batch_ended(sqlite_template: Path) -> None:
    """By the plan alone it would read all batches before this one again: with a million members, for an hour."""
    db = open_database(f"sqlite:///{sqlite_template}")
    sent: list[tuple[str, Any]] = []
    event.listen(db.engine, "before_cursor_execute", lambda *told: sent.append((told[2], told[3])))
    with db.read() as tx:
        assert list_ids_under(tx, 1, after_id=7, limit=10) == []
        sql, values = sent[-1]
        [step] = tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values).all()
    db.close()
    assert "(plan_id=? AND id>?)" in step[3]
