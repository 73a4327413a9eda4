"""A file that would take too many members from other plans is held before its first row: perhaps it is that of another plan."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from frontdesk.files.model import EligibilityFile, WrongState
from frontdesk.formats.model import FileMode
from frontdesk.plans import external_ids_of
from tests.files.loading import COLUMNS, Desk, csv_of, lines_of, row
from tests.formats.reading import file_834
from tests.formats.workbooks import workbook

MANY = 26  # one more than may move without a person's approval


def _workbook(rows: Iterable[dict[str, Any]]) -> bytes:
    return workbook([COLUMNS, *([each.get(name) for name in COLUMNS] for each in rows)])


def _834(rows: Iterable[dict[str, Any]]) -> bytes:
    return file_834(
        *(
            f"INS*Y*18*021*28*A~REF*0F*{each['external_id']}~REF*23*{each['external_id']}~NM1*IL*1*Sample*Robin~"
            "DMG*D8*19800203*F~N3*1 Example Street~N4*Boston*MA*02134~HD*021**HLT*Gold~DTP*348*D8*20260101~"
            for each in rows
        )
    ).encode()


FORMATS: dict[str, Callable[[Iterable[dict[str, Any]]], bytes]] = {
    "csv": csv_of,
    "jsonl": lines_of,
    "json": lambda rows: json.dumps(list(rows)).encode(),
    "xlsx": _workbook,
    "834": _834,
}


def sent_to_the_other_plan(desk: Desk, content: bytes, **options: Any) -> EligibilityFile:
    """A file with all members of plan 0, sent to plan 1."""
    mapping = {"834": {"identify": "REF*23"}}
    desk.load(content, mode=FileMode.CHANGE, mapping=mapping)
    return desk.load(content, plan=1, mapping=mapping, **options)


def plans(desk: Desk) -> set[int]:
    return {member["plan_id"] for member in desk.members().values()}


@pytest.mark.parametrize("mode", [FileMode.CHANGE, FileMode.FULL])
@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_that_is_sent_to_another_plan_is_held_before_its_first_row(
    desk: Desk, kind: str, mode: FileMode
) -> None:
    held = sent_to_the_other_plan(desk, FORMATS[kind](row(n) for n in range(MANY)), mode=mode)
    first, second = desk.customer.plan_ids
    assert held.problem == {
        "code": "too_many_moves",
        "message": "26 of the file's 26 rows would move members here from other plans, more than 25.",
        "place": None,
    }
    assert (held.state, held.rows_done, held.counts, held.codes) == (
        "held",
        0,
        {"would_move": MANY},
        {"leaves_plan": MANY},
    )
    assert desk.report(held)[0] == {
        "row": None,
        "external_id": next(iter(desk.members())),
        "outcome": "would_move",
        "code": "leaves_plan",
        "field": "plan",
        "hint": f"The member would leave plan {first}.",
        "changed": [],
        "left_plan": desk.db.ask(lambda tx: external_ids_of(tx, [first]))[first],
    }
    assert plans(desk) == {first}
    done = desk.approve(held)
    assert (done.state, done.counts["moved"], "would_move" in done.counts) == ("done", MANY, False)
    assert plans(desk) == {second}


def test_a_file_that_moves_few_members_goes_on(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(60)))
    assert desk.load(csv_of(row(n) for n in range(25)), plan=1).counts == {"moved": 25}
    many = [*(row(n) for n in range(25, 55)), *(row(n) for n in range(100, 370))]
    assert desk.load(csv_of(many), plan=1).counts == {"moved": 30, "created": 270}, "a tenth of its rows"


def test_a_member_that_stands_on_two_rows_moves_once(desk: Desk) -> None:
    few = [row(n) for n in range(25)]
    desk.load(csv_of(few))
    assert desk.load(csv_of([*few, *few]), plan=1).state == "done"


def test_members_without_access_leave_nothing(desk: Desk) -> None:
    ended = [row(n, expiry_date="2026-06-30") for n in range(MANY)]
    desk.load(lines_of(ended))
    assert desk.load(lines_of(row(n, expiry_date=None) for n in range(MANY)), plan=1).counts == {
        "moved": MANY
    }


def test_rows_that_change_no_member_do_not_count_as_moves(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(MANY)))
    compared = desk.load(csv_of(row(n) for n in range(MANY)), plan=1, mode=FileMode.COMPARE)
    assert (compared.state, compared.counts) == ("done", {"refused": MANY})


def test_rows_that_name_another_plan_than_that_of_their_members_are_held(desk: Desk) -> None:
    with desk.db.read() as tx:
        found = tx.exec_driver_sql("SELECT id, external_id FROM plans").all()
    named = {str(id_): name for id_, name in found}
    mapping = {"fields": {"plan": {"column": "Plan"}}, "plans": named}
    columns = (*COLUMNS, "Plan")
    first, second = desk.customer.plan_ids
    own = csv_of((row(n, Plan=first) for n in range(MANY)), columns)
    assert desk.load(own, mapping=mapping).counts == {"created": MANY}
    assert desk.load(own, mapping=mapping, plan=1).counts == {"unchanged": MANY}, (
        "the plan of the file is none's"
    )
    moved = csv_of((row(n, Plan=second) for n in range(MANY)), columns)
    assert desk.load(moved, mapping=mapping).counts == {"would_move": MANY}


def test_a_cancelled_file_has_moved_no_member(desk: Desk) -> None:
    held = sent_to_the_other_plan(desk, csv_of(row(n) for n in range(MANY)))
    before = desk.members()
    assert desk.cancel(held).state == "cancelled"
    assert (desk.members(), desk.count("file_parts")) == (before, 0)


def test_a_dry_run_says_why_the_real_run_would_be_held_and_what_its_rows_would_do(desk: Desk) -> None:
    content = csv_of(row(n) for n in range(MANY))
    dry = sent_to_the_other_plan(desk, content, dry_run=True)
    real = desk.load(content, plan=1)
    assert (dry.state, dry.counts) == ("done", {"moved": MANY, "would_move": MANY})
    assert (dry.problem, dry.needs_approval) == (real.problem, True)
    assert desk.report(dry)[MANY:] == desk.report(real)


def test_a_full_file_of_another_plan_says_both_what_it_would_move_and_end_and_is_approved_once(
    desk: Desk,
) -> None:
    desk.load(csv_of(row(n) for n in range(100, 160)), plan=1)
    content = csv_of(row(n) for n in range(MANY))
    held = sent_to_the_other_plan(desk, content, full=True)
    assert held.problem is not None
    assert held.problem["message"] == (
        "26 of the file's 26 rows would move members here from other plans, more than 25. "
        "60 of the plan's 60 members would be ended, more than 25."
    )
    assert held.counts == {"would_move": MANY, "would_end": 60}
    dry = desk.load(content, plan=1, full=True, dry_run=True)
    assert (dry.problem, dry.counts) == (held.problem, {"moved": MANY, "would_move": MANY, "would_end": 60})
    done = desk.approve(held)
    assert (done.state, done.counts, done.members_missing) == ("done", {"moved": MANY, "ended": 60}, 60)


def test_a_file_that_was_killed_while_it_was_being_held_is_held(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = csv_of(row(n) for n in range(MANY))
    desk.load(content)
    file = desk.hand_in(content, plan=1)
    with monkeypatch.context() as broken:
        broken.setattr("frontdesk.eligibility.find_access", _raise_interrupt)
        with pytest.raises(KeyboardInterrupt):
            desk.try_to_work(file, lease_seconds=0.0)
    assert (desk.reread(file).step, desk.reread(file).rows_done) == ("apply", 0)
    held = desk.work(file)
    assert (held.state, held.counts) == ("held", {"would_move": MANY})


def test_an_approved_file_that_is_stopped_goes_on_after_its_last_chunk(desk: Desk) -> None:
    held = sent_to_the_other_plan(desk, csv_of(row(n) for n in range(60)))
    running = desk.options
    desk.options = replace(running, chunk_rows=10, should_stop=lambda: desk.reread(held).rows_done > 0)
    stopped = desk.approve(held)
    assert (stopped.state, 0 < stopped.rows_done < 60) == ("waiting", True)
    desk.options = running
    done = desk.work(held)
    assert (done.state, done.counts) == ("done", {"moved": 60})
    assert [line["row"] for line in desk.report(done)] == list(range(2, 62))


def test_an_undo_of_an_approved_file_brings_the_members_back(desk: Desk) -> None:
    held = sent_to_the_other_plan(desk, csv_of(row(n) for n in range(MANY)))
    assert desk.undo(desk.approve(held)).counts == {"restored": MANY}
    assert plans(desk) == {desk.customer.plan_ids[0]}


def test_a_full_file_that_was_sent_to_the_wrong_plan_and_cancelled_overtakes_none(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(100, 160)), plan=1)
    older = desk.load(csv_of([row(100)]), plan=1, full=True)
    wrong = sent_to_the_other_plan(desk, csv_of(row(n) for n in range(MANY)), full=True)
    assert (older.state, wrong.state) == ("held", "held")
    with pytest.raises(WrongState, match="newer file"):
        desk.approve(older)
    desk.cancel(wrong)
    assert desk.approve(older).counts == {"unchanged": 1, "ended": 59}


def _raise_interrupt(*_args: Any, **_options: Any) -> None:
    raise KeyboardInterrupt


def test_a_sender_that_gave_everybody_a_new_number_is_held(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(60)))
    renumbered = [row(n, external_id=f"N{n}", member_id=f"N{n}") for n in range(MANY)]
    content = csv_of([*renumbered, *(row(n) for n in range(30, 60))])
    held = desk.load(content)
    assert held.problem is not None
    assert (held.state, held.problem["code"]) == ("held", "too_many_similar")
    assert (
        "26 of the file's 56 rows would create members who look like stored ones" in held.problem["message"]
    )
    assert held.counts == {"would_be_similar": MANY}
    first = desk.report(held)[0]
    assert (first["external_id"], first["code"]) == ("E00000", "similar_member")
    assert first["hint"] == "Row 2 would create a member who looks like this one."
    dry = desk.load(content, dry_run=True)
    assert (dry.problem, dry.counts["would_be_similar"]) == (held.problem, MANY)
    done = desk.approve(held)
    assert done.counts == {"created": MANY, "unchanged": 30, "warned": MANY}
    assert set(done.codes) == {"similar_member"}


def test_people_whom_the_file_names_by_their_identifiers_are_not_similar(desk: Desk) -> None:
    """Twins of a careless sender, or another contract of the same people."""
    stored = [row(n) for n in range(MANY)]
    desk.load(csv_of(stored))
    others = [row(n, external_id=f"N{n}", member_id=f"N{n}") for n in range(MANY)]
    assert desk.load(csv_of([*stored, *others])).state == "done"


@pytest.mark.parametrize("mode", [FileMode.CHANGE, FileMode.FULL])
def test_a_held_file_is_overtaken_by_any_newer_one_that_was_applied(desk: Desk, mode: FileMode) -> None:
    held = sent_to_the_other_plan(desk, csv_of(row(n) for n in range(MANY)), mode=mode)
    assert desk.load(csv_of([row(99)]), plan=1, mode=FileMode.COMPARE).state == "done"
    newer = desk.load(csv_of([row(99)]), plan=1)
    with pytest.raises(WrongState, match=f"newer file of the plan, file {newer.id}"):
        desk.approve(held)
    desk.undo(newer)
    assert desk.approve(held).state == "done"
