"""A file is decided once before it is applied, and held if it would take access from too many
members, whatever the cause (docs/files.md, Decide about a held file).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import orjson
import pytest
from sqlalchemy import select

from frontdesk.cli.file import summary
from frontdesk.eligibility.decide import DecidedChunk, StoredChunk, decide_chunk
from frontdesk.eligibility.model import Submission
from frontdesk.eligibility.row_access import FileTerms
from frontdesk.events import begin_feed
from frontdesk.events.tables import events
from frontdesk.files import set_file_settings
from frontdesk.files.model import EligibilityFile, WrongState
from frontdesk.formats.model import FileMode
from frontdesk.interface import present
from tests.conftest import SetClock
from tests.files.loading import COLUMNS, ON_SQLITE, Desk, csv_of, lines_of, row
from tests.formats.reading import file_834, person

TODAY = "2026-11-20"
MANY = 30
BY_CARD = {"834": {"identify": "REF*23"}}
EVERYBODY = range(MANY)
FIRST = csv_of(map(row, EVERYBODY))


def census(**changes: Any) -> bytes:
    return csv_of((row(n, **changes) for n in EVERYBODY), (*COLUMNS, "expiry_date"))


def _834(code: str = "021", more: str = "") -> bytes:
    loops = (
        person("Robin", "19800203", last=f"Sample {n}", number=f"REF*23*E{n:05d}~", code=code)
        for n in EVERYBODY
    )
    return file_834(*(loop + more for loop in loops)).encode()


def load_first(desk: Desk) -> None:
    assert desk.load(FIRST).counts == {"created": MANY}


Cause = Callable[[Desk], EligibilityFile]
CAUSES: dict[str, Cause] = {
    "a last day that is past": lambda desk: desk.load(census(expiry_date="2026-10-31")),
    "a wrong word in a rule": lambda desk: desk.load(
        csv_of((row(n, Status="Active") for n in EVERYBODY), (*COLUMNS, "Status")),
        mapping={"end": [{"column": "Status", "equals": ["Active"]}]},
    ),
    "INS03 = 024": lambda desk: desk.load(_834("024"), mapping=BY_CARD),
    "absence": lambda desk: desk.load(csv_of([row(99)]), full=True),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_file_that_takes_access_from_everybody_is_held_whatever_the_cause(
    desk: Desk, cause: str
) -> None:
    load_first(desk)
    before = desk.members()
    held = CAUSES[cause](desk)
    assert (held.state, held.rows_done, desk.members()) == ("held", 0, before)
    problem = held.problem or {}
    assert problem["code"] == "too_many_lose_access"
    said = "30 of the 30 members with access under plan plan-0 would lose it"
    assert problem["message"].startswith(said)
    assert (held.counts["would_lose"], held.counts["lost"]) == (MANY, MANY)
    lines = [line for line in desk.report(held) if line["outcome"] == "would_lose"]
    assert {line["external_id"] for line in lines} == before.keys()
    assert {line["access_before"] for line in lines} == {"2026-01-01/.."}
    done = desk.approve(held)
    assert (done.state, done.counts["lost"]) == ("done", MANY)
    assert "would_lose" not in done.counts


@ON_SQLITE
def test_the_sentence_says_how_many_of_which_plan_on_which_days_and_why(desk: Desk) -> None:
    load_first(desk)
    rows = [row(n, expiry_date="2026-10-31") for n in range(12)]
    rows += [row(n, expiry_date="2026-12-31") for n in range(12, 20)]
    rows += [row(n) for n in range(20, 24)]
    file = desk.load(csv_of(rows, (*COLUMNS, "expiry_date")), full=True)
    parts = (
        "26 of the 30 members with access under plan plan-0 would lose it (more than 25, and more",
        f"than 10 %): 12 from {TODAY} on by the dates of their rows, 8 from 2027-01-01 on by the",
        "dates of their rows, 6 from 2026-11-21 on because the file omits them.",
    )
    said = " ".join(parts)
    assert said in (file.problem or {})["message"]
    hints = {line["external_id"]: line["hint"] for line in desk.report(file)}
    assert hints["E00000"] == (
        "The last day of access would be 2026-10-31, by the dates of the row."
    )
    assert hints["E00012"] == (
        "The last day of access would be 2026-12-31, by the dates of the row."
    )
    assert hints["E00029"] == (
        "The last day of access would be 2026-11-20, because the file omits the member."
    )


@ON_SQLITE
@pytest.mark.parametrize(
    ("members", "losing", "is_held"),
    [
        (4, 4, False),  # fewer than 5
        (10, 5, True),
        (11, 5, False),
        (60, 25, False),
        (300, 26, False),  # less than a tenth
        (300, 31, True),
        (60, 26, True),
    ],
)
def test_how_many_may_lose_access_without_approval(
    desk: Desk, members: int, losing: int, *, is_held: bool
) -> None:
    desk.load(csv_of(map(row, range(members))))
    ended = (row(n, expiry_date="2026-10-31") for n in range(losing))
    file = desk.load(csv_of(ended, (*COLUMNS, "expiry_date")))
    assert (file.state, file.counts["lost"]) == ("held" if is_held else "done", losing)


def test_a_census_of_next_year_takes_nothing_and_is_held_if_it_is_full(desk: Desk) -> None:
    load_first(desk)
    late = census(effective_date="2027-01-01")
    done = desk.load(late)
    assert (done.state, done.counts) == ("done", {"unchanged": MANY, "warned": MANY})
    assert done.codes == {"stays_until_then": MANY}
    member = desk.members()["E00001"]
    assert (str(member["effective_date"]), member["expiry_date"]) == ("2026-01-01", None)
    desk.undo(done)
    held = desk.load(late, full=True)
    assert (held.state, (held.problem or {})["code"]) == ("held", "begins_later")
    said = (
        "30 rows begin after today, for members who have access today, of the plan's 30: more than "
    )
    assert said in str(held.problem)
    assert held.counts == {"would_be_later": MANY}
    assert {line["code"] for line in desk.report(held)} == {"begins_after_today"}
    assert "load it with the mode change" in str(held.problem)
    assert "lost" not in desk.approve(held).counts


@ON_SQLITE
def test_a_full_file_of_members_whose_access_ends_the_day_before_is_not_held(desk: Desk) -> None:
    """The sender has announced the end of the year before."""
    desk.load(census(expiry_date="2026-12-31"))
    renewed = census(effective_date="2027-01-01", expiry_date="2027-12-31")
    done = desk.load(renewed, full=True)
    assert (done.problem, done.counts["gained"]) == (None, MANY)


@ON_SQLITE
def test_an_account_has_its_own_numbers(desk: Desk) -> None:
    desk.load(csv_of(map(row, range(100))))
    ended = csv_of((row(n, expiry_date="2026-10-31") for n in range(12)), (*COLUMNS, "expiry_date"))
    with desk.db.write() as tx:
        set_file_settings(tx, desk.customer.account_id, most_members=10, most_percent=15)
    assert desk.load(ended, dry_run=True).problem is None
    with desk.db.write() as tx:
        set_file_settings(tx, desk.customer.account_id, most_percent=5)
    assert "more than 10, and more than 5 %" in str(desk.load(ended).problem)


def test_what_was_shown_is_what_a_late_approval_does(desk: Desk) -> None:
    """Three weeks later the rows begin in the past; they still end nothing before that."""
    load_first(desk)
    held = desk.load(census(effective_date="2026-12-10"), full=True)
    assert held.counts == {"would_be_later": MANY}
    cast(SetClock, desk.clock).now += timedelta(days=40)
    done = desk.approve(held)
    assert (done.state, done.counts) == ("done", {"unchanged": MANY, "warned": MANY})
    assert {str(each["effective_date"]) for each in desk.members().values()} == {"2026-01-01"}


@ON_SQLITE
@pytest.mark.parametrize("begin", ["31/12/2026", "30.11.2026", "2027-13-45", "next year"])
def test_a_full_file_of_dates_that_cannot_be_read_is_no_list_of_a_later_day(
    desk: Desk, begin: str
) -> None:
    load_first(desk)
    rows = [row(n, effective_date=begin) for n in range(20)]
    file = desk.load(csv_of([*rows, *map(row, range(20, 28))]), full=True)
    assert file.counts == {"refused": 20, "unchanged": 8, "ended": 2, "lost": 2}


@ON_SQLITE
def test_a_row_with_a_stray_quotation_mark_may_be_of_an_omitted_member(desk: Desk) -> None:
    desk.load(csv_of(map(row, range(20))))
    *lines, last = csv_of(map(row, range(18))).splitlines(keepends=True)
    held = desk.load(b"".join([*lines, b'"' + last]), full=True)
    assert held.state == "held"
    assert "1 refused rows don't say whose they are" in str(held.problem)


@ON_SQLITE
@pytest.mark.parametrize("name", ["first_name", "last_name"])
def test_a_refused_row_with_half_a_name_may_be_of_an_omitted_member(desk: Desk, name: str) -> None:
    rows = [row(n, dob=f"1980-01-{n + 1:02}") for n in range(20)]
    desk.load(csv_of(rows))
    half = rows[17] | {"external_id": "NEW", "member_id": "NEW", name: ""}
    held = desk.load(csv_of([*rows[:17], half]), full=True)
    assert (held.state, (held.problem or {})["code"]) == ("held", "too_many_ends")


@ON_SQLITE
def test_rows_that_two_stray_quotation_marks_have_swallowed_may_be_omitted(desk: Desk) -> None:
    whole = csv_of(row(n, dob=f"1980-01-{n + 1:02}") for n in range(20))
    desk.load(whole)
    torn = whole.replace(b"Sample 13,", b'"Sample 13,').replace(b"Sample 16,", b'Sample 16",')
    held = desk.load(torn, full=True)
    assert (held.state, (held.problem or {})["code"]) == ("held", "too_many_ends")


def test_an_undo_that_is_held_has_taken_nothing_back(desk: Desk) -> None:
    load_first(desk)
    older = desk.load(csv_of(map(row, range(10))), full=True)
    newer = desk.load(csv_of(map(row, range(60))), full=True)
    assert (older.state, newer.state) == ("held", "done")
    assert desk.work(desk.hand_in_undo(newer)).state == "held"
    with pytest.raises(WrongState, match=f"newer file of the plan, file {newer.id},"):
        desk.approve(older)


@ON_SQLITE
@pytest.mark.parametrize(("left_out", "state"), [(4, "done"), (5, "done"), (6, "held")])
def test_a_plan_of_twelve_members(desk: Desk, left_out: int, state: str) -> None:
    desk.load(csv_of(map(row, range(12))), full=True)
    file = desk.load(csv_of(map(row, range(left_out, 12))), full=True)
    assert file.state == state


@pytest.mark.parametrize(
    ("content", "code"),
    [(csv_of([]), "no_rows"), (b"[]", "no_rows"), (file_834().encode(), "too_many_lose_access")],
)
def test_an_empty_full_file_ends_nobody(desk: Desk, content: bytes, code: str) -> None:
    load_first(desk)
    before = desk.members()
    file = desk.load(content, full=True)
    assert (file.problem or {})["code"] == code
    assert desk.members() == before


def test_members_of_all_plans_together_hold_a_file(desk: Desk) -> None:
    """Of each plan fewer than half, and no more than 25."""
    first, second = desk.customer.plan_ids
    columns = (*COLUMNS, "expiry_date", "Plan")
    mapping = {"fields": {"plan": {"column": "Plan"}}, "plans": {"0": "plan-0", "1": "plan-1"}}
    everybody = [row(n, Plan=n % 2) for n in range(110)]
    desk.load(csv_of(everybody, columns), mapping=mapping)
    file = desk.load(
        csv_of((each | {"expiry_date": "2026-10-31"} for each in everybody[:44]), columns),
        mapping=mapping,
    )
    said = "44 of the 110 members with access under all plans of the account would lose it"
    assert said in str(file.problem)
    assert first != second


def test_an_approval_covers_what_was_shown_and_no_more(desk: Desk) -> None:
    """Between the day on which it was held and the approval, members of the file got access back."""
    days = ("effective_date", "expiry_date")
    desk.load(csv_of(map(row, range(100))))
    early = [row(n, expiry_date="2026-10-31") for n in range(60, 100)]
    assert desk.approve(desk.load(csv_of(early, (*COLUMNS, *days[1:])))).state == "done"
    rows = [row(n, expiry_date="2026-10-31") for n in (*range(30), *range(60, 100))]
    held = desk.load(csv_of(rows, (*COLUMNS, "expiry_date")))
    assert held.counts["would_lose"] == 30
    for n in range(60, 63):
        desk.post(**row(n), expiry_date=None)
    waiting = desk.approve(held, work=False)
    for n in range(63, 100):
        desk.post(**row(n), expiry_date=None)
    again = desk.work(waiting)
    assert (again.state, again.counts["would_lose"], again.approved) == ("held", 70, False)
    assert "70 of the 100 members" in str(again.problem)
    done = desk.approve(again)
    assert (done.state, done.counts["lost"]) == ("done", 70)


def test_a_few_more_than_were_shown_go_on(desk: Desk) -> None:
    desk.load(csv_of(map(row, range(60))))
    ended = [row(n, expiry_date="2026-10-31") for n in range(30)]
    held = desk.load(csv_of(ended, (*COLUMNS, "expiry_date")))
    desk.post(external_id="E00000", first_name="Robyn")
    assert desk.approve(held).counts["lost"] == 30


def test_a_worker_that_dies_before_the_first_row_leaves_the_approval(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_first(desk)
    held = desk.approve(desk.load(census(expiry_date="2026-10-31")), work=False)

    def be_killed(*_args: Any, **_options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("frontdesk.files.run.apply_rows", be_killed)
        with pytest.raises(KeyboardInterrupt):
            desk.try_to_work(held, lease_seconds=0.0)
    assert desk.work(held).counts == {"updated": MANY, "lost": MANY}


def _rows(desk: Desk, file: EligibilityFile, without: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The lines of rows and omitted members, as the load says them."""
    return [
        line | {"outcome": line["outcome"].replace("would_end", "ended")}
        for line in desk.report(file)
        if line["outcome"] != "would_lose" and line["external_id"] not in without
    ]


def test_a_dry_run_and_the_load_say_the_same_while_others_change_members(desk: Desk) -> None:
    desk.load(csv_of(map(row, range(200))), full=True)
    rows = [row(n, zipcode="10001") for n in range(40)]
    rows += [row(n, expiry_date="2026-12-31") for n in range(40, 50)]
    rows += [row(n, effective_date="2026-12-24") for n in range(50, 55)]
    rows += [row(n, dob="1901-02-03", first_name="Ada") for n in range(55, 60)]
    rows += [row(n) for n in range(60, 190)]
    rows += [row(n) for n in range(300, 310)]
    content = csv_of(rows, (*COLUMNS, "expiry_date"))
    dry = desk.load(content, full=True, dry_run=True)
    changed = {f"E{n:05d}" for n in (3, 45)}
    for key in changed:
        desk.post(external_id=key, zipcode="10001", expiry_date="2027-06-30")
    file = desk.load(content, full=True)
    assert (dry.problem, file.problem) == (None, None)
    assert _rows(desk, dry, changed) == _rows(desk, file, changed)
    of_both = ("ended", "refused", "created", "unchanged")
    assert [file.counts[name] for name in of_both] == [10, 5, 10, 136]
    assert (dry.counts["lost"], dry.counts["would_end"]) == (20, 10)


def test_the_counts_the_sentence_and_the_lists_are_the_same_at_every_door(desk: Desk) -> None:
    load_first(desk)
    late = census(expiry_date="2026-12-31")
    dry = desk.load(late, dry_run=True)
    held = desk.load(late)
    assert dry.problem == held.problem
    shown = present.file(held)
    told = summary(held)
    assert told[0] == "File 3 is held: 30 would_lose, 30 lost."
    assert told[1] == (held.problem or {})["message"]
    assert shown["counts"] == {"would_lose": 30, "lost": 30}
    lists = [
        [line for line in desk.report(file) if line["outcome"] == "would_lose"]
        for file in (dry, held)
    ]
    assert lists[0] == lists[1]


def test_the_event_of_a_held_file_has_its_problem_and_counts(desk: Desk) -> None:
    account = desk.customer.account_id
    with desk.db.write() as tx:
        begin_feed(tx, account, desk.clock())
    load_first(desk)
    held = desk.load(census(expiry_date="2026-12-31"))
    of_account = select(events.c.data).where(
        events.c.account_id == account, events.c.type == "file.held"
    )
    [data] = desk.db.ask(lambda tx: tx.execute(of_account).scalars().all())
    problem = held.problem or {}
    assert data["code"] == "too_many_lose_access"
    assert (data["message"], data["counts"]) == (problem["message"], held.counts)


@ON_SQLITE
def test_only_news_of_stored_members_is_decided_twice(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided: list[int] = []

    def noting(stored: StoredChunk, rows: Sequence[Submission], file: FileTerms) -> DecidedChunk:
        decided.append(len(rows))
        return decide_chunk(stored, rows, file)

    monkeypatch.setattr("frontdesk.eligibility.dry_run.decide_chunk", noting)
    desk.load(FIRST)
    assert decided == [], "it meets nobody"
    desk.load(FIRST)
    desk.load(FIRST, full=True)
    assert decided == [], "it says what is known"
    desk.load(csv_of(row(n) for n in range(100, 110)))
    assert decided == [], "it meets nobody, and omits nobody"
    desk.load(csv_of([row(1, zipcode="10001"), *map(row, range(2, MANY))]))
    assert decided == [1]


@ON_SQLITE
def test_other_people_than_the_stored_ones_hold_a_file(desk: Desk) -> None:
    names = ["Ana", "Bela", "Chidi", "Dora", "Emre", "Fay", "Gil", "Hana", "Ivo", "Jun"]
    people = [row(n, first_name=name) for n, name in enumerate(names)]
    desk.load(csv_of(people))
    shifted = [each | {"first_name": names[n - 1]} for n, each in enumerate(people)]
    held = desk.load(csv_of(shifted))
    assert (held.state, held.counts) == ("held", {"would_be_other": 10})
    said = "10 of the file's 10 rows describe other people than the stored members with their"
    assert said in str(held.problem)
    lines = desk.report(held)
    assert [line["row"] for line in lines] == list(range(2, 12))
    assert {(line["outcome"], line["code"]) for line in lines} == {
        ("would_be_other", "first_name_changed")
    }
    assert desk.approve(held).codes == {"first_name_changed": 10}


@ON_SQLITE
def test_a_column_of_last_names_that_was_sorted_alone_holds_a_file(desk: Desk) -> None:
    names = ["Adams", "Brook", "Castle", "Dunn", "Ellis", "Frost", "Gray", "Hill", "Irwin", "Jones"]
    people = [row(n, first_name=f"Robin{'abcdefghij'[n]}", last_name=names[-n]) for n in range(10)]
    desk.load(csv_of(people))
    in_order = sorted(each["last_name"] for each in people)
    sorted_alone = zip(people, in_order, strict=True)
    held = desk.load(csv_of(each | {"last_name": name} for each, name in sorted_alone))
    assert (held.problem or {})["code"] == "too_many_other_people"
    assert {line["code"] for line in desk.report(held)} == {"last_name_changed"}
    hyphenated = [each | {"last_name": f"{each['last_name']}-Lee"} for each in people]
    assert desk.load(csv_of(hyphenated)).state == "done"


@ON_SQLITE
def test_renumbered_members_are_told_if_only_the_spelling_of_their_identifiers_changed(
    desk: Desk,
) -> None:
    desk.load(csv_of(map(row, range(10))))
    respelt = [row(n, external_id=f"e-{n}", member_id=f"N{n}") for n in range(4)]
    others = [row(n, external_id=f"N{n}", member_id=f"N{n}") for n in range(4, 8)]
    held = desk.load(csv_of([*respelt, *others]))
    assert "The identifiers of 4 differ by zeros, letter case or punctuation only." in str(
        held.problem
    )


@ON_SQLITE
def test_the_report_says_which_access_a_row_takes_and_gives(desk: Desk) -> None:
    desk.load(csv_of(map(row, range(4))))
    rows = [
        {"external_id": "E00000", "expiry_date": "2026-10-31"},
        {"external_id": "E00001", "expiry_date": "2027-12-31"},
        {"external_id": "E00002", "zipcode": "10001"},
    ]
    file = desk.load(lines_of(rows))
    access = [(line["access_before"], line["access_after"]) for line in desk.report(file)]
    assert access == [
        ("2026-01-01/..", "2026-01-01/2026-10-31"),
        ("2026-01-01/..", "2026-01-01/2027-12-31"),
        (None, None),
    ]
    assert file.counts == {"updated": 3, "lost": 2}
    back = desk.load(lines_of([{"external_id": "E00000", "expiry_date": None}]))
    assert back.counts == {"updated": 1, "gained": 1}


@ON_SQLITE
def test_a_rehearsal_counts_no_probe(desk: Desk, other: Desk) -> None:
    """Its load counts them."""
    other.load(csv_of(row(n) for n in range(500, 520)))
    load_first(desk)
    taken = [row(n, member_id=f"M{500 + n:05d}") for n in range(20)]
    desk.load(csv_of(taken))
    counted = "SELECT taken FROM uniqueness_probes"
    assert desk.db.ask(lambda tx: tx.exec_driver_sql(counted).scalars().all()) == [20]


@ON_SQLITE
def test_compared_files_are_never_held(desk: Desk) -> None:
    load_first(desk)
    late = census(expiry_date="2026-12-31")
    assert desk.load(late, mode=FileMode.COMPARE).state == "done"
    assert replace(desk.load(late)).state == "held"
    assert orjson.dumps(desk.load(late).counts)
