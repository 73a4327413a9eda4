"""An undo that would take access from too many members is held before its first chunk."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import given

from frontdesk.cli.file import summary
from frontdesk.db import Database
from frontdesk.eligibility import people
from frontdesk.eligibility.access_days import Spans, spans_of
from frontdesk.eligibility.undo import undo_dry_run
from frontdesk.files.claims import claim_next
from frontdesk.files.model import EligibilityFile, FileState, WrongState
from frontdesk.files.undo import forecast_undo
from tests.conftest import SetClock
from tests.files.loading import Desk, csv_of, examples, lines_of, row
from tests.files.undoing import act, fresh_desk, loads, records


def census(desk: Desk, count: int, **options: Any) -> EligibilityFile:
    return desk.load(csv_of(map(row, range(count))), **options)


def begin_undo(desk: Desk, file: EligibilityFile) -> EligibilityFile:
    """Undo the file, and approve nothing."""
    return desk.work(desk.hand_in_undo(file))


def test_the_undo_of_a_first_load_is_held_until_it_is_approved(desk: Desk) -> None:
    file = census(desk, 30)
    before = records(desk)
    held = begin_undo(desk, file)
    assert (held.state, held.rows_done) == ("held", 0)
    assert held.counts == {"would_lose": 30, "lost": 30}
    said = (
        "30 of the 30 members with access under plan plan-0 would lose it (more than 25, and more "
    )
    said += "than 10 %): 30 from 2026-11-20 on because the undo takes back what gave it."
    assert held.problem == {"code": "too_many_lose_access", "message": said, "place": None}
    assert records(desk) == before
    assert summary(held) == [
        f"Undo {held.id} is held: 30 would_lose, 30 lost.",
        said,
        (
            f"Nothing was taken back. To take the file back: frontdesk file approve {held.id}; "
            f"to leave it applied: frontdesk file cancel {held.id}"
        ),
        f"Which members: frontdesk file report {held.id} --outcome would_lose",
    ]
    done = desk.approve(held)
    assert (done.state, done.counts, desk.members()) == ("done", {"withdrawn": 30, "lost": 30}, {})
    assert len(desk.report(done)) == 30


def test_a_held_undo_is_cancelled_and_the_file_undone_later(desk: Desk) -> None:
    file = census(desk, 30)
    held = begin_undo(desk, file)
    with pytest.raises(WrongState, match=f"The undo of this file, file {held.id}, is held"):
        desk.hand_in_undo(file)
    assert desk.cancel(held).state == "cancelled"
    assert len(desk.members()) == 30
    assert desk.undo(file).counts == {"withdrawn": 30, "lost": 30}


@pytest.mark.parametrize(
    ("stored", "lost", "is_held"),
    [
        (0, 4, False),
        (0, 5, True),
        (5, 5, True),
        (6, 5, False),
        (100, 25, False),
        (100, 26, True),
        (234, 26, False),
        (233, 26, True),
    ],
)
def test_too_many_are_more_than_25_and_a_tenth_or_5_that_are_half(
    desk: Desk, stored: int, lost: int, is_held: bool
) -> None:
    if stored:
        census(desk, stored)
    file = desk.load(csv_of(row(n) for n in range(stored, stored + lost)))
    assert (begin_undo(desk, file).state == "held") == is_held


def test_the_members_of_all_plans_count_together(desk: Desk) -> None:
    """In each plan they are too few."""
    census(desk, 60)
    desk.load(csv_of(row(n) for n in range(60, 120)), plan=1)
    mapping = {
        "fields": {"plan": {"column": "Plan"}},
        "plans": {"plan-0": "plan-0", "plan-1": "plan-1"},
    }
    rows = [row(n, Plan=f"plan-{n % 2}") for n in range(120, 152)]
    file = desk.load(csv_of(rows, (*row(1), "Plan")), mapping=mapping)
    assert file.counts == {"created": 32}
    held = begin_undo(desk, file)
    assert held.problem is not None
    assert "32 of the 152 members with access under all plans" in held.problem["message"]


def test_only_days_from_today_on_count(desk: Desk) -> None:
    past = [row(n, expiry_date="2026-11-19") for n in range(10)]
    assert begin_undo(desk, desk.load(lines_of(past))).state == "done"
    future = [row(n, effective_date="2027-01-01") for n in range(10)]
    held = begin_undo(desk, desk.load(lines_of(future)))
    assert held.problem is not None
    assert "10 from 2027-01-01 on because the undo" in held.problem["message"]


def test_a_redo_that_ends_members_again_is_held_and_the_undo_of_an_end_is_not(desk: Desk) -> None:
    census(desk, 60)
    ended = desk.approve_if_held(census(desk, 20, full=True))
    assert ended.counts["ended"] == 40
    undo = begin_undo(desk, ended)
    assert (undo.state, undo.counts) == ("done", {"restored": 40, "gained": 40})
    assert begin_undo(desk, undo).state == "held"


def test_a_newer_file_does_not_overtake_an_undo(desk: Desk) -> None:
    """It takes back the changes that still stand."""
    file = census(desk, 30)
    held = begin_undo(desk, file)
    desk.load(lines_of([row(1, city="New")]))
    done = desk.approve(held)
    assert done.counts == {"withdrawn": 29, "refused": 1, "lost": 29}
    assert [*desk.members()] == ["E00001"]


def test_a_worker_that_stops_while_it_decides_leaves_the_undo_for_the_next(desk: Desk) -> None:
    desk.options = replace(desk.options, chunk_rows=10)
    file = census(desk, 30)
    options = desk.options
    undo = desk.hand_in_undo(file)
    desk.options = replace(options, should_stop=lambda: desk.reread(undo).state == "running")
    assert (desk.work(undo).state, desk.reread(undo).step) == ("waiting", "check")
    desk.options = options
    held = desk.work(undo)
    desk.options = replace(options, should_stop=lambda: desk.reread(undo).rows_done > 0)
    stopped = desk.approve(held)
    assert (stopped.state, 0 < stopped.rows_done < 30) == ("waiting", True)
    desk.options = options
    assert desk.work(undo).counts == {"withdrawn": 30, "lost": 30}


def test_an_approved_undo_continues_after_chunks_without_rows(desk: Desk) -> None:
    """The list of the held undo has chunks too; they don't count."""
    desk.options = replace(desk.options, chunk_rows=10)
    census(desk, 60)
    rows = [row(n, expiry_date="2026-11-30") for n in range(40)]
    file = desk.approve_if_held(desk.load(lines_of([*rows, *map(row, range(40, 60))])))
    undo = desk.undo(file)
    options = desk.options
    held = begin_undo(desk, undo)
    assert held.state == "held"
    desk.options = replace(options, should_stop=lambda: desk.reread(held).rows_done > 0)
    stopped = desk.approve(held)
    assert (stopped.state, 0 < stopped.rows_done < 40) == ("waiting", True)
    desk.options = options
    done = desk.work(held)
    assert (done.counts["restored"], "unchanged" in done.counts, done.rows_done) == (40, False, 40)
    assert len(desk.report(done)) == 40


def access(desk: Desk) -> dict[int, Spans]:
    """The access of each member by its id, without those that have none."""
    days = ("effective_date", "expiry_date")
    found = {
        member["id"]: spans_of(member | {name: member[name] and str(member[name]) for name in days})
        for member in desk.members().values()
    }
    return {id_: spans for id_, spans in found.items() if spans}


def forecast(desk: Desk, undo: EligibilityFile, undone: EligibilityFile) -> dict[int, Any]:
    """The forecast access of the members by id, first before and last after; nothing is written."""
    claim = claim_next(desk.db, desk.clock, desk.options, only=undo.id)
    assert claim is not None
    stored = desk.stored()
    pairs: dict[int, Any] = {}
    with undo_dry_run() as dry_run:
        for each in chain.from_iterable(forecast_undo(claim, undone, dry_run)):
            first, _ = pairs.get(each.member_id, (each.access.before, None))
            pairs[each.member_id] = (first, each.access.after)
    assert desk.stored() == stored
    claim.update(state=FileState.WAITING)
    return pairs


def check_forecast(desk: Desk, file: EligibilityFile) -> EligibilityFile:
    """Undo the file; what was forecast is what happens."""
    before = access(desk)
    undo = desk.hand_in_undo(file)
    pairs = forecast(desk, undo, file)
    undo = desk.approve_if_held(desk.work(undo))
    after = access(desk)
    changed = {id_ for id_ in before.keys() | after if before.get(id_) != after.get(id_)}
    assert changed <= pairs.keys()
    for id_, (first, last) in pairs.items():
        assert ([*before.get(id_, ())], [*after.get(id_, ())]) == ([*first], [*last])
    return undo


@examples
@given(loaded=loads)
def test_what_is_forecast_is_what_an_undo_does(
    db: Database, clock: SetClock, loaded: Sequence[tuple[list[dict[str, Any]], int, bool]]
) -> None:
    desk = fresh_desk(db, clock)
    files = [
        desk.approve_if_held(desk.load(lines_of(sent), plan=plan, full=full))
        for sent, plan, full in loaded
    ]
    for file in reversed(files):
        check_forecast(desk, check_forecast(desk, check_forecast(desk, file)))


def test_a_forecast_sees_keys_that_wander_between_chunks(desk: Desk) -> None:
    """Each member has the member_id of the next one; an undo out of order would find it taken."""
    desk.options = replace(desk.options, chunk_rows=1)
    desk.load(lines_of(row(n) for n in range(1, 4)))
    ends = {"expiry_date": "2026-12-31"}
    wandered = {3: "M9", 2: "M00003", 1: "M00002"}
    file = desk.load(lines_of(row(n, member_id=id_, **ends) for n, id_ in wandered.items()))
    assert check_forecast(desk, file).counts == {"restored": 3, "gained": 3}


@pytest.mark.parametrize("chunk_rows", [None, 1])
def test_a_forecast_of_a_member_that_the_file_wrote_twice(
    desk: Desk, chunk_rows: int | None
) -> None:
    desk.options = replace(desk.options, chunk_rows=chunk_rows)
    desk.load(csv_of([row(1), row(2)]))
    act(desk, people.merge, "E00001", "E00002")
    ends = ("2027-12-31", "2028-12-31")
    rows = [{"external_id": f"E0000{n}", "expiry_date": end} for n, end in enumerate(ends, 1)]
    file = desk.load(lines_of(rows))
    assert file.counts["updated"] == 2
    assert check_forecast(desk, file).counts["restored"] == 2
