"""Full files end absent members, and a later one reopens them; a dry run reports the same and
writes nothing (docs/files.md).
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from frontdesk.access.accounts import set_reopens_absent
from frontdesk.db import open_database
from frontdesk.eligibility import list_history, list_ids_under
from frontdesk.files.load import ChunkWriter
from frontdesk.files.model import ChunkRow
from tests.conftest import SetClock
from tests.files.loading import ON_SQLITE, Desk, as_in_a_real_run, csv_of, lines_of, row

ENDED = "2026-11-20"
BOTH = lines_of([row(1), row(2)])
ONE = lines_of([row(1)])


def test_a_full_file_ends_absent_members_of_its_plan_on_its_date_once(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(5)))
    desk.load(csv_of([row(9)]), plan=1)
    desk.load(csv_of([row(1)]))
    assert set(desk.ends().values()) == {None}, "a change file leaves them alone"
    present = csv_of([row(1), row(2), row(3, dob="2026-02-30")])
    file = desk.load(present, full=True)
    assert file.counts == {"unchanged": 2, "refused": 1, "ended": 2, "lost": 2}
    assert (file.members_before, file.members_missing, file.file_date) == (5, 2, ENDED)
    assert {key for key, day in desk.ends().items() if day == ENDED} == {"E00000", "E00004"}
    assert (
        next(line for line in desk.report(file) if line["row"] is None)["code"]
        == "ended_by_absence"
    )
    assert desk.load(present, full=True).counts == {"unchanged": 2, "refused": 1}


def test_a_full_file_that_was_undone_says_nothing_of_the_size_of_the_plan(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(40)), full=True)
    few = csv_of(row(n) for n in range(8))
    held = desk.load(few, full=True)
    assert "less than half of the 40 rows of the last full one" in str(held.problem)
    desk.undo(desk.approve(held))
    assert desk.load(few, full=True).problem == held.problem


def test_access_that_was_to_begin_later_ends_on_its_first_day_once_with_a_warning(
    desk: Desk,
) -> None:
    """expiry_date is never before effective_date (docs/interface.md, Fields of a member), and
    access always ends.
    """
    desk.load(csv_of([row(1), row(2, effective_date="2027-01-01")]))
    before = desk.members()
    dry, file = (desk.load(csv_of([row(1)]), full=True, dry_run=each) for each in (True, False))
    assert dry.counts == {"unchanged": 1, "would_end": 1, "warned": 1, "lost": 1}
    assert file.counts == {"unchanged": 1, "ended": 1, "warned": 1, "lost": 1}
    assert dry.codes == file.codes == {"ended_by_absence": 1, "ends_on_first_day": 1}
    assert as_in_a_real_run(desk.report(dry)) == as_in_a_real_run(desk.report(file))
    assert desk.codes(file)[1:] == [("ended", "ended_by_absence"), ("warned", "ends_on_first_day")]
    assert desk.ends()["E00002"] == "2027-01-01"
    assert desk.load(csv_of([row(1)]), full=True).counts == {"unchanged": 1}
    desk.undo(file)
    assert desk.members() == before


@ON_SQLITE
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            300,
            269,
            (
                "31 of the 300 members with access under plan plan-0 would lose it (more than 25, and "
                "more than 10 %): 31 from 2026-11-21 on because the file omits them."
            ),
        ),
        (300, 270, None),
        (
            20,
            10,
            (
                "10 of the 20 members with access under plan plan-0 would lose it (half of them or "
                "more): 10 from 2026-11-21 on because the file omits them."
            ),
        ),
        (20, 11, None),
        (
            6,
            2,
            (
                "4 of the plan's 6 members would be ended, and the file has 2 rows, less than half of "
                "the 6 rows of the last full one."
            ),
        ),
        (6, 3, None),
    ],
)
def test_how_many_may_end_without_approval(
    desk: Desk, before: int, after: int, said: str | None
) -> None:
    desk.load(csv_of(row(n) for n in range(before)), full=True)
    file = desk.load(csv_of(row(n) for n in range(after)), full=True)
    assert file.state == ("done" if said is None else "held")
    assert (file.problem or {}).get("message") == said


def test_a_held_file_lists_each_member_that_it_would_end_until_it_is_approved(desk: Desk) -> None:
    desk.load(csv_of([*(row(n) for n in range(59)), row(59, effective_date="2027-01-01")]))
    content = csv_of([row(0), row(100)])
    dry, held = (desk.load(content, full=True, dry_run=each) for each in (True, False))
    assert (held.state, held.members_missing, held.finished_at) == ("held", 59, None)
    assert set(desk.ends().values()) == {None}
    listed = {line["external_id"] for line in desk.report(held) if line["outcome"] == "would_lose"}
    assert listed == {f"E{n:05d}" for n in range(1, 60)}
    assert held.counts == {"would_lose": 59, "lost": 59}
    assert held.codes == {"loses_access": 59}
    assert {line["hint"] for line in desk.report(held)} == {
        f"The last day of access would be {ENDED}, because the file omits the member.",
        "The last day of access would be 2027-01-01, because the file omits the member.",
    }
    ends = {"ended_by_absence": 59, "ends_on_first_day": 1}
    assert (dry.state, dry.codes) == ("done", ends | held.codes)
    rows_and_ends = 2 + 59 + 1
    assert desk.report(dry)[rows_and_ends:] == desk.report(held)
    done = desk.approve(held)
    counts = {"unchanged": 1, "created": 1, "ended": 59, "warned": 1, "lost": 59}
    assert (done.counts, done.codes) == (counts, ends)
    would_end = {"would_end" if name == "ended" else name: n for name, n in counts.items()}
    assert dry.counts == would_end | held.counts
    as_said = as_in_a_real_run(desk.report(dry)[:rows_and_ends])
    assert as_said == as_in_a_real_run(desk.report(done))
    undo = desk.undo(done)
    assert (undo.counts, undo.rows_done, undo.rows_total) == (
        {"restored": 59, "withdrawn": 1, "lost": 1, "gained": 59},
        60,
        60,
    )


@pytest.mark.parametrize("begins", ["2026-01-01", "2027-01-01"])
def test_a_member_that_is_changed_while_a_file_ends_members_is_left_alone(
    desk: Desk, clock: SetClock, monkeypatch: pytest.MonkeyPatch, begins: str
) -> None:
    """One change commits before the members are listed, one after its batch was read and before it
    is written. The report does not warn of them.
    """
    desk.load(csv_of([row(0), row(1), row(2, effective_date=begins), row(3)]))
    clock.advance(60)
    file = desk.hand_in(csv_of([row(0), row(4)]), full=True)
    clock.advance(1)
    desk.post(**row(3, last_name="Renewed"))
    clock.advance(-1)
    write = ChunkWriter.write

    def change_first(writer: ChunkWriter, rows: Sequence[ChunkRow]) -> Any:
        if rows[0].place is None:
            clock.advance(1)
            desk.post(**row(2, last_name="Renewed", effective_date=begins))
        return write(writer, rows)

    monkeypatch.setattr(ChunkWriter, "write", change_first)
    assert desk.work(file).counts == {"created": 1, "unchanged": 2, "ended": 1, "lost": 1}
    assert [key for key, day in desk.ends().items() if day is not None] == ["E00001"]


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
def test_a_dry_run_reports_what_the_real_run_does_and_writes_nothing(
    desk: Desk, full: bool
) -> None:
    """Also over chunks: what a row of one gives up, a row of another may take."""
    desk.options = replace(desk.options, chunk_rows=5)
    desk.load(csv_of(row(n) for n in range(20)))
    filling = [row(n) for n in [*range(7, 20), *range(1000, 1020)]]
    content = lines_of([*TANGLED[:3], *filling, *TANGLED[3:]])
    before = desk.members(), desk.count("member_history"), desk.count("invitations")
    dry = desk.load(content, full=full, dry_run=True)
    assert (desk.members(), desk.count("member_history"), desk.count("invitations")) == before
    with pytest.raises(Exception, match="dry run"):
        desk.undo(dry)
    real = desk.load(content, full=full)
    ended = {"would_end": real.counts["ended"]} if full else {}
    assert dry.counts == {name: n for name, n in real.counts.items() if name != "ended"} | ended
    assert as_in_a_real_run(desk.report(dry)) == as_in_a_real_run(desk.report(real))
    assert (dry.counts["refused"], dry.codes) == (4, real.codes)


def test_sqlite_goes_on_in_a_plans_members_where_the_last_batch_ended(
    sqlite_template: Path,
) -> None:
    """By the plan alone it would read all batches before this one again: with a million members,
    for an hour.
    """
    db = open_database(f"sqlite:///{sqlite_template}")
    sent: list[tuple[str, Any]] = []
    event.listen(db.engine, "before_cursor_execute", lambda *told: sent.append((told[2], told[3])))
    with db.read() as tx:
        assert list_ids_under(tx, 1, after_id=7, limit=10) == []
        sql, values = sent[-1]
        [step] = tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values).all()
    db.close()
    assert "(plan_id=? AND id>?)" in step[3]


def omit(desk: Desk, *rows: dict[str, Any]) -> None:
    """Store E00001 and the rows, then end those by a full file that omits them; of many a person
    approves it.
    """
    desk.load(lines_of([row(1), *rows]))
    file = desk.load(ONE, full=True)
    if file.state == "held":
        file = desk.approve(file)
    assert file.counts["ended"] == len(rows)


@ON_SQLITE
@pytest.mark.parametrize("begins", ["2026-01-01", "2027-01-01"])
def test_a_member_that_one_full_file_omitted_is_reopened_by_the_next(
    desk: Desk, begins: str
) -> None:
    both = [row(1), row(2, effective_date=begins)]
    omit(desk, both[1])
    dry, back = (desk.load(lines_of(both), full=True, dry_run=each) for each in (True, False))
    assert dry.counts == back.counts == {"unchanged": 1, "reopened": 1, "gained": 1}
    assert desk.outcomes(back)[1:] == [(2, "reopened", "")]
    assert desk.ends()["E00002"] is None
    assert desk.load(lines_of(both), full=True).counts == {"unchanged": 2}


@ON_SQLITE
def test_a_changed_row_reopens_and_null_and_one_with_a_date_says_when_access_ends(
    desk: Desk,
) -> None:
    omit(desk, row(2), row(3), row(4))
    rows = [
        row(1),
        row(2, last_name="New"),
        row(3, expiry_date=None),
        row(4, expiry_date="2027-06-30"),
    ]
    assert desk.load(lines_of(rows), full=True).counts == {
        "unchanged": 1,
        "reopened": 2,
        "updated": 1,
        "gained": 3,
    }
    assert [*desk.ends().values()] == [None, None, None, "2027-06-30"]


@ON_SQLITE
@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("2027-06-30", "2027-06-30", {"unchanged": 1, "reopened": 1, "gained": 1, "warned": 1}),
        ("2026-11-25", ENDED, {"unchanged": 2, "warned": 1}),
        ("9999-12-31", None, {"unchanged": 1, "reopened": 1, "gained": 1}),
    ],
)
def test_access_gets_back_the_end_that_it_had_unless_that_is_past(
    desk: Desk, clock: SetClock, before: str, after: str | None, counts: dict[str, int]
) -> None:
    omit(desk, row(2, expiry_date=before))
    clock.advance(10 * 86_400)
    assert desk.load(BOTH, full=True).counts == counts
    assert desk.ends()["E00002"] == after


@ON_SQLITE
@pytest.mark.parametrize("how", ["post", "row", "cleared and ended"])
def test_a_member_that_was_ended_on_purpose_stays_ended(desk: Desk, how: str) -> None:
    """Also where the purpose is told after the absence, with the very date that the absence gave."""
    omit(desk, row(2))
    if how == "row":
        assert desk.load(lines_of([row(2, expiry_date=ENDED)])).counts == {"updated": 1}
    else:
        if how != "post":
            desk.post(external_id="E00002", expiry_date=None)
        desk.post(external_id="E00002", expiry_date=ENDED)
    assert desk.load(BOTH, full=True).counts == {"unchanged": 2, "warned": 1}
    assert desk.ends()["E00002"] == ENDED


def test_a_change_file_reopens_nobody_and_a_full_one_of_another_plan_moves_too(desk: Desk) -> None:
    omit(desk, row(2))
    assert desk.load(lines_of([row(2)])).counts == {"unchanged": 1, "warned": 1}
    assert desk.ends()["E00002"] == ENDED
    assert desk.load(lines_of([row(2)]), plan=1, full=True).counts == {"reopened": 1, "gained": 1}
    member = desk.members()["E00002"]
    assert (member["expiry_date"], member["plan_id"]) == (None, desk.customer.plan_ids[1])


def test_an_account_can_switch_it_off(desk: Desk) -> None:
    omit(desk, row(2))
    with desk.db.write() as tx:
        set_reopens_absent(tx, desk.customer.account_id, reopens_absent=False)
    for _ in range(2):
        back = desk.load(BOTH, full=True)
        assert back.counts == {"unchanged": 2, "warned": 1}
        assert (2, "warned", "still_ended") in desk.outcomes(back)
    null = lines_of([row(1), row(2, expiry_date=None)])
    assert desk.load(null, full=True).counts == {"unchanged": 1, "updated": 1, "gained": 1}


def test_an_undo_takes_the_reopening_back_and_a_later_file_reopens_again(desk: Desk) -> None:
    omit(desk, row(2))
    before = desk.members()
    back = desk.load(BOTH, full=True)
    after = desk.members()
    undo = desk.undo(back)
    assert (undo.counts, desk.members()) == ({"restored": 1, "lost": 1}, before)
    redo = desk.undo(undo)
    assert (redo.counts, desk.members()) == ({"restored": 1, "gained": 1}, after)
    desk.undo(redo)
    assert desk.load(BOTH, full=True).counts == {"unchanged": 1, "reopened": 1, "gained": 1}
    entries = desk.db.ask(lambda tx: list_history(tx, before["E00002"]["id"]))
    told = [entry.outcome.value for entry in entries]
    assert told == ["created", "ended", "reopened", "restored", "restored", "restored", "reopened"]
