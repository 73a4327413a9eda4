"""A file that would end, move or repeat too many members is held before its first row, and a person
approves it once.
"""

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from frontdesk.cli.file import summary
from frontdesk.files.actions import approve_file
from frontdesk.files.model import EligibilityFile, FileKey, WrongState
from frontdesk.formats.model import FileMode
from frontdesk.plans import external_ids_of
from frontdesk.reach import EVERY
from tests.files.loading import COLUMNS, ON_SQLITE, Desk, csv_of, lines_of, row
from tests.formats.reading import file_834, person
from tests.formats.workbooks import workbook

MANY = 26  # one more than may move without a person's approval
CHANGE = FileMode.CHANGE
FULL = FileMode.FULL
HUNDRED = csv_of(row(n) for n in range(100, 160))


def _834(rows: Iterable[dict[str, Any]]) -> bytes:
    keys = [str(each["external_id"]) for each in rows]
    return file_834(*(person(family=key, number=f"REF*23*{key}~") for key in keys)).encode()


FORMATS: dict[str, Callable[[Iterable[dict[str, Any]]], bytes]] = {
    "csv": csv_of,
    "jsonl": lines_of,
    "json": lambda rows: json.dumps(list(rows)).encode(),
    "xlsx": lambda rows: workbook(
        [COLUMNS, *([each.get(name) for name in COLUMNS] for each in rows)]
    ),
    "834": _834,
}
WRONG_PLAN = csv_of(row(n) for n in range(MANY))


def sent_to_the_other_plan(
    desk: Desk, content: bytes = WRONG_PLAN, **options: Any
) -> EligibilityFile:
    """A file with all members of plan 0, sent to plan 1."""
    mapping = {"834": {"identify": "REF*23"}}
    desk.load(content, mode=CHANGE, mapping=mapping)
    return desk.load(content, plan=1, mapping=mapping, **options)


def plans(desk: Desk) -> set[int]:
    return {member["plan_id"] for member in desk.members().values()}


@ON_SQLITE
@pytest.mark.parametrize(("kind", "mode"), [*((kind, CHANGE) for kind in FORMATS), ("csv", FULL)])
def test_a_file_of_another_plan_is_held_before_its_first_row(
    desk: Desk, kind: str, mode: FileMode
) -> None:
    held = sent_to_the_other_plan(desk, FORMATS[kind](row(n) for n in range(MANY)), mode=mode)
    first, second = desk.customer.plan_ids
    said = "26 of the file's 26 rows would move members here from other plans: more than 25, and "
    said += "more than 10 %."
    assert held.problem == {"code": "too_many_moves", "message": said, "place": None}
    assert (held.state, held.rows_done) == ("held", 0)
    assert (held.counts, held.codes) == ({"would_move": MANY}, {"leaves_plan": MANY})
    name = desk.db.ask(lambda tx: external_ids_of(tx, [first]))[first]
    first_row = {"csv": 2, "xlsx": 2, "834": 8}.get(kind, 1)
    line: dict[str, Any] = {"row": first_row, "external_id": next(iter(desk.members()))}
    line |= {
        "outcome": "would_move",
        "code": "leaves_plan",
        "field": "plan",
        "hint": "The member would leave another plan of the account.",
    }
    rest: dict[str, Any] = {"changed": [], "left_plan": name, "transaction": None, "ordinal": None}
    rest |= dict.fromkeys(("access_before", "access_after"), "2026-01-01/..")
    assert desk.report(held)[0] == line | rest
    assert plans(desk) == {first}
    done = desk.approve(held)
    assert (done.state, done.counts["moved"], "would_move" in done.counts) == ("done", MANY, False)
    assert plans(desk) == {second}


def test_only_members_that_move_with_their_access_count_and_each_once(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(60)))
    few = [row(n) for n in range(25)]
    compared = desk.load(WRONG_PLAN, plan=1, mode=FileMode.COMPARE)
    assert (compared.state, compared.counts) == ("done", {"refused": MANY})
    assert desk.load(csv_of([*few, *few]), plan=1).counts == {"moved": 25, "unchanged": 25}
    many = [*(row(n) for n in range(25, 55)), *(row(n) for n in range(100, 370))]
    assert desk.load(csv_of(many), plan=1).counts == {"moved": 30, "created": 270}, (
        "a tenth of its rows"
    )
    ended = [row(n, expiry_date="2026-06-30") for n in range(400, 400 + MANY)]
    desk.load(lines_of(ended))
    assert (
        desk.load(lines_of(each | {"expiry_date": None} for each in ended), plan=1).state == "done"
    )


def test_rows_that_name_another_plan_than_that_of_their_members_are_held(desk: Desk) -> None:
    first, second = desk.customer.plan_ids
    named = desk.db.ask(lambda tx: external_ids_of(tx, [first, second]))
    mapping = {
        "fields": {"plan": {"column": "Plan"}},
        "plans": {str(id_): named[id_] for id_ in named},
    }
    columns = (*COLUMNS, "Plan")
    own = csv_of((row(n, Plan=first) for n in range(MANY)), columns)
    assert desk.load(own, mapping=mapping).counts == {"created": MANY}
    assert desk.load(own, mapping=mapping, plan=1).counts == {"unchanged": MANY}, (
        "the file's plan is none's"
    )
    moved = csv_of((row(n, Plan=second) for n in range(MANY)), columns)
    assert desk.load(moved, mapping=mapping).counts == {"would_move": MANY}


def test_a_full_file_of_another_plan_says_both_what_it_would_move_and_end(desk: Desk) -> None:
    desk.load(HUNDRED, plan=1)
    held = sent_to_the_other_plan(desk, full=True)
    said = (
        "26 of the file's 26 rows would move members here from other plans: more than 25, and more "
        "than 10 %. 60 of the 60 members with access under plan plan-1 would lose it (more than 25, "
        "and more than 10 %): 60 from 2026-11-21 on because the file omits them. 60 of the plan's "
        "60 members would be ended, and the file has 26 rows, less than half of the 60 members."
    )
    assert (held.problem or {})["message"] == said
    assert held.counts == {"would_move": MANY, "would_lose": 60, "lost": 60}
    dry = desk.load(WRONG_PLAN, plan=1, full=True, dry_run=True)
    assert (dry.state, dry.problem, dry.needs_approval) == ("done", held.problem, True)
    assert dry.counts == {"moved": MANY, "would_end": 60} | held.counts
    assert desk.report(dry)[MANY + 60 :] == desk.report(held)
    done = desk.approve(held)
    assert (done.state, done.counts, done.members_missing) == (
        "done",
        {"moved": MANY, "ended": 60, "lost": 60},
        60,
    )


@ON_SQLITE
@pytest.mark.parametrize(
    "unreadable",
    [
        b'{"external_id": "E00002",',
        b'{"member_id": "M00002"}\n',
        b'{"external_id": " "}\n',
        b'["E00002"]',
    ],
)
def test_a_full_file_with_an_unreadable_identifier_waits_for_approval(
    desk: Desk, unreadable: bytes
) -> None:
    desk.load(csv_of(row(n) for n in range(3)))
    whole = desk.load(lines_of(row(n) for n in range(3)) + unreadable, full=True)
    assert (whole.state, whole.counts) == ("done", {"unchanged": 3, "refused": 1}), (
        "no member is missing"
    )
    held = desk.load(lines_of([row(0), row(1)]) + unreadable, full=True)
    assert (held.state, held.counts) == ("held", {"would_lose": 1, "lost": 1})
    assert [text in str(held.problem) for text in ("too_many_ends", "don't say whose")] == [
        True,
        True,
    ]
    assert set(desk.ends().values()) == {None}
    assert desk.approve(held).counts == {"unchanged": 2, "refused": 1, "ended": 1, "lost": 1}


def test_a_sender_that_gave_everybody_a_new_number_is_held(desk: Desk) -> None:
    desk.load(csv_of(row(n) for n in range(60)))
    renumbered = [row(n, external_id=f"N{n}", member_id=f"N{n}") for n in range(MANY)]
    content = csv_of([*renumbered, *(row(n) for n in range(30, 60))])
    held = desk.load(content)
    said = "26 of the file's 56 rows would create members who look like stored ones"
    assert [text in str(held.problem) for text in ("too_many_similar", said)] == [True, True]
    assert (held.state, held.counts) == ("held", {"would_be_similar": MANY})
    first = desk.report(held)[0]
    assert (first["external_id"], first["code"]) == ("E00000", "similar_member")
    assert first["hint"] == "Row 2 would create a member who looks like this one."
    dry = desk.load(content, dry_run=True)
    assert (dry.problem, dry.counts["would_be_similar"]) == (held.problem, MANY)
    done = desk.approve(held)
    assert done.counts == {"created": MANY, "unchanged": 30, "warned": MANY}
    assert set(done.codes) == {"similar_member"}
    others = [row(n, external_id=f"O{n}", member_id=f"O{n}") for n in range(30, 60)]
    twins = desk.load(csv_of([*(row(n) for n in range(30, 60)), *others]))
    assert twins.state == "done", "of people whom the file names by their identifiers"


def test_a_cancelled_file_has_moved_and_ended_no_member_and_overtakes_none(desk: Desk) -> None:
    desk.load(HUNDRED, plan=1)
    older = desk.load(csv_of([row(100)]), plan=1, full=True)
    wrong = sent_to_the_other_plan(desk, full=True)
    before = desk.members()
    assert (older.state, wrong.state) == ("held", "held")
    with pytest.raises(WrongState, match="newer file"):
        desk.approve(older)
    parts = desk.count("file_parts")
    assert desk.cancel(wrong).state == "cancelled"
    assert (desk.members(), desk.count("file_parts")) == (before, parts - 1)
    assert desk.approve(older).counts == {"unchanged": 1, "ended": 59, "lost": 59}


@pytest.mark.parametrize("newest", [CHANGE, FULL])
def test_a_held_full_file_is_overtaken_by_any_newer_one_that_was_applied(
    desk: Desk, newest: FileMode
) -> None:
    """The sender has sent a better file; approved by mistake, the old one would end or move members
    that the new one lists.
    """
    desk.load(HUNDRED, plan=1)
    held = sent_to_the_other_plan(desk, full=True)
    assert desk.load(HUNDRED, plan=1, mode=FileMode.COMPARE).state == "done"
    newer = desk.load(HUNDRED, plan=1, mode=newest)
    with pytest.raises(WrongState, match=f"newer file of the plan, file {newer.id},"):
        desk.approve(held)
    desk.undo(newer)
    assert desk.approve(held).state == "done"


def test_an_approved_file_that_is_overtaken_before_it_runs_ends_no_member(desk: Desk) -> None:
    desk.load(HUNDRED)
    held = desk.approve(desk.load(csv_of([row(100)]), full=True), work=False)
    assert desk.load(HUNDRED, full=True).counts == {"unchanged": 60}
    held = desk.work(held)
    assert (held.state, "'overtaken'" in str(held.problem)) == ("held", True)
    assert "To apply the whole file" not in str(summary(held))
    assert summary(held)[2] == f"To cancel the file: frontdesk file cancel {held.id}"
    assert set(desk.ends().values()) == {None}


def test_of_two_approvals_at_once_the_second_is_refused(desk: Desk) -> None:
    desk.load(HUNDRED)
    held = desk.load(csv_of([row(100)]), full=True)
    told: list[str] = []

    def approve_too() -> None:
        with pytest.raises(WrongState) as refusal:
            desk.approve(held)
        told.append(str(refusal.value))

    other = threading.Thread(target=approve_too)
    with desk.db.write() as tx:
        approve_file(tx, FileKey(held.id, EVERY), desk.requester())
        other.start()
        other.join(0.3)  # it waits for the first one's commit
    other.join()
    assert told == ["The file is waiting; only one that is held can be approved."]


def test_a_worker_that_dies_while_it_lists_leaves_no_gaps(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.files.brakes.LISTED_TOGETHER", 7)
    desk.load(csv_of(row(n) for n in range(60)))
    file = desk.hand_in(csv_of([row(0)]), full=True)
    running = desk.options
    desk.options = replace(running, should_stop=lambda: "would_lose" in desk.reread(file).counts)
    stopped = desk.work(file)
    assert (stopped.state, 0 < stopped.counts["would_lose"] < 59) == ("waiting", True)
    desk.options = running
    held = desk.work(file)
    assert (held.state, held.counts) == ("held", {"would_lose": 59, "lost": 59})
    assert len(desk.report(held)) == 59


def test_a_file_killed_while_it_was_being_held_is_held(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def be_killed(*_args: Any, **_options: Any) -> None:
        raise KeyboardInterrupt

    desk.load(WRONG_PLAN)
    file = desk.hand_in(WRONG_PLAN, plan=1)
    with monkeypatch.context() as broken:
        broken.setattr("frontdesk.files.brakes._would_move", be_killed)
        with pytest.raises(KeyboardInterrupt):
            desk.try_to_work(file, lease_seconds=0.0)
    assert (desk.reread(file).step, desk.reread(file).rows_done) == ("apply", 0)
    held = desk.work(file)
    assert (held.state, held.counts) == ("held", {"would_move": MANY})


def test_an_approved_file_resumes_after_its_last_chunk(desk: Desk) -> None:
    held = sent_to_the_other_plan(desk, csv_of(row(n) for n in range(60)))
    running = desk.options
    desk.options = replace(
        running, chunk_rows=10, should_stop=lambda: desk.reread(held).rows_done > 0
    )
    stopped = desk.approve(held)
    assert (stopped.state, 0 < stopped.rows_done < 60) == ("waiting", True)
    desk.options = running
    done = desk.work(held)
    assert (done.state, done.counts) == ("done", {"moved": 60})
    assert [line["row"] for line in desk.report(done)] == list(range(2, 62))
    assert desk.undo(done).counts == {"restored": 60}
    assert plans(desk) == {desk.customer.plan_ids[0]}


NO_ADDRESS = "none@none.com"


@pytest.mark.parametrize("field", ["email", "phone"])
@pytest.mark.parametrize("write", [csv_of, lines_of])
def test_a_file_full_of_placeholders_is_held_and_can_be_approved(
    desk: Desk, field: str, write: Callable[..., bytes]
) -> None:
    good = {"email": "robin{}@example.com", "phone": "61755501{:02}"}[field]
    empty = {"email": NO_ADDRESS, "phone": "0000000000"}[field]
    columns = [*row(1), field]
    rows = [row(n, **{field: empty if n % 2 else good.format(n)}) for n in range(60)]
    half = rows[2:]
    extra = (columns,) if write is csv_of else ()
    assert desk.load(write(half, *extra)).counts == {"created": 58, "warned": 29}
    more = [*rows, row(60, **{field: empty})]
    held = desk.load(write(more, *extra))
    said = f"31 of the first 61 values of {field} stand for none, such as none@none.com or "
    said += "0000000000, and would be left out."
    assert held.problem == {"code": "too_many_placeholders", "message": said, "place": None}
    assert (held.state, held.counts) == ("held", {})
    done = desk.approve(held)
    assert (done.state, done.codes["placeholder"]) == ("done", 31)
    assert {desk.members()["E00001"][field], desk.members()["E00060"][field]} == {None}
    few = [row(n, **{field: empty}) for n in range(100, 125)]
    assert desk.load(write(few, *extra)).state == "done", "25 are not many"


def test_a_mapping_can_say_once_that_a_word_stands_for_none(desk: Desk) -> None:
    content = csv_of(row(n, email=NO_ADDRESS) for n in range(30))
    assert desk.load(content).state == "held"
    mapping = {"fields": {"email": {"column": "email", "values": {NO_ADDRESS: ""}}}}
    assert desk.load(content, mapping=mapping).counts == {"created": 30}
    assert desk.load(content, mapping=mapping).counts == {"unchanged": 30}


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "834"])
def test_rounded_identifiers_hold_a_full_file(desk: Desk, kind: str) -> None:
    desk.load(csv_of(row(n) for n in range(12)))
    ruined = ["1.23457E+11", "1.00002E+10", "N/A", "null", "AB\u201300001"]
    # By other names than the stored ones, of which a refused row would keep the member.
    rows = [row(n, external_id=key, last_name="Moore") for n, key in enumerate(ruined)]
    rest = [row(n) for n in range(5, 12)]
    dry = desk.load(FORMATS[kind]([*rows, *rest]), full=True, dry_run=True)
    assert (dry.problem or {})["code"] == "too_many_ends"
    assert "5 refused rows don't say whose they are" in str(dry.problem)
    assert dry.codes["spreadsheet_value"] == 4
    assert dry.codes["lookalike_character"] == 1
    refused = desk.load(FORMATS[kind]([*rows, *rest]))
    assert (refused.counts, len(desk.members())) == ({"refused": 5, "unchanged": 7}, 12)
    [hint] = {line["hint"] for line in desk.report(refused) if line["code"] == "spreadsheet_value"}
    assert "format the column as text" in hint
