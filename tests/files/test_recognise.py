"""Rows that say what the same member's last row said are recognised before they are parsed, and
nothing else differs.
"""

import csv
import io
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from frontdesk import eligibility
from frontdesk.db import Database, sets
from frontdesk.eligibility import find_members, meaning
from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.tables import members
from frontdesk.formats.model import FileMode
from frontdesk.formats.x12 import Family
from frontdesk.reach import EVERY
from tests.conftest import SetClock
from tests.factories import close_plan, make_customer
from tests.files.families import load_all, relative
from tests.files.loading import (
    COLUMNS,
    ON_SQLITE,
    Desk,
    as_in_a_real_run,
    csv_of,
    examples,
    lines_of,
    row,
)
from tests.formats.reading import HOME

FIFTY = [row(n, email=f"r{n}@example.com") for n in range(50)]


@pytest.fixture
def parsed() -> Iterator[list[str]]:
    """Gathers the member_id of each row that is parsed: the table of fields has a reader that notes
    it.
    """
    found: list[str] = []
    field = FIELDS["member_id"]

    def read_and_note(value: Any, context: Any) -> Any:
        found.append(value)
        return field.kind.read(value, context)

    # Of a kind with a `plain_length`, plain texts are stored without being read.
    noting = replace(field, kind=replace(field.kind, read=read_and_note, plain_length=0))
    with patch.dict(FIELDS, {"member_id": noting}):
        yield found


def forget(desk: Desk, digest: str) -> None:
    """As if no member of the account had this digest: no row, or no family, is recognised."""
    own = members.c.account_id == desk.customer.account_id
    with desk.db.write() as tx:
        tx.execute(update(members).where(own).values({digest: None}))


def quoted(rows: list[dict[str, Any]]) -> bytes:
    """A CSV with each cell in quotation marks."""
    page = io.StringIO(newline="")
    csv.writer(page, quoting=csv.QUOTE_ALL).writerows(
        csv.reader(io.StringIO(csv_of(rows).decode()))
    )
    return page.getvalue().encode()


@pytest.mark.parametrize("written", [csv_of, lines_of, quoted])
def test_only_rows_that_changed_are_parsed_and_written(
    desk: Desk, parsed: list[str], written: Any
) -> None:
    desk.load(written(FIFTY))
    before = desk.members(), desk.count("member_history"), desk.count("invitations")
    parsed.clear()
    assert desk.load(written(FIFTY)).counts == {"unchanged": 50}
    assert parsed == []
    assert (desk.members(), desk.count("member_history"), desk.count("invitations")) == before
    changed = [
        each | {"last_name": "Changed"} if n in (0, 20) else each for n, each in enumerate(FIFTY)
    ]
    content = written([*changed, row(50)])
    assert desk.load(content).counts == {"created": 1, "updated": 2, "unchanged": 48}
    assert parsed == ["M00000", "M00020", "M00050"] * 2, "before and while the file is applied"
    assert desk.members()["E00000"]["last_name"] == "Changed"
    parsed.clear()
    assert (desk.load(content).counts, parsed) == ({"unchanged": 51}, [])


@pytest.mark.parametrize("written", [csv_of, lines_of, quoted])
def test_the_report_is_the_same_when_rows_are_recognised(desk: Desk, written: Any) -> None:
    content = written([*FIFTY, row(50)])
    desk.load(content)
    again = desk.load(content)
    assert again.counts == {"unchanged": 51}
    report = desk.report(again)
    assert [line["external_id"] for line in report] == [f"E{n:05d}" for n in range(51)]
    assert [line["row"] for line in report] == [*range(report[0]["row"], report[0]["row"] + 51)]
    forget(desk, "row_digest")
    assert report == desk.report(desk.load(content))


def test_every_other_write_of_a_member_makes_its_row_count_again(
    desk: Desk, parsed: list[str]
) -> None:
    """The clock stands still, so that no time of a change could tell."""
    content = lines_of([row(1)])
    desk.load(content)
    desk.post(external_id="E00001", last_name="Posted")
    assert desk.load(content).counts == {"updated": 1}
    desk.post(plan=1, external_id="E00001")
    assert desk.load(content).counts == {"moved": 1}
    other = desk.load(lines_of([row(1, last_name="Other")]))
    desk.undo(other)
    desk.undo(desk.load(lines_of([row(1, city="Boston")])))
    parsed.clear()
    assert desk.load(content).counts == {"unchanged": 1}
    assert parsed == ["M00001"] * 2
    for plan, counts in ((1, {"moved": 1}), (0, {"moved": 1}), (0, {"unchanged": 1})):
        assert desk.load(content, plan=plan).counts == counts
    desk.undo(desk.load(lines_of([row(2)])))
    assert desk.load(lines_of([row(2)])).counts == {"created": 1}
    assert desk.load(content, full=True).counts == {"unchanged": 1, "ended": 1, "lost": 1}
    assert desk.load(lines_of([row(1), row(2)])).counts == {"unchanged": 2, "warned": 1}


@ON_SQLITE
def test_a_stored_expiry_that_the_row_lacks_is_warned_of_before_and_after_it_has_come(
    desk: Desk, clock: SetClock
) -> None:
    desk.post(**row(1, expiry_date="2026-12-31"))
    for full in (False, True):
        file = desk.load(lines_of([row(1)]), full=full)
        assert (file.counts, file.codes) == ({"unchanged": 1, "warned": 1}, {"end_stays": 1})
    clock.advance(400 * 86_400)
    file = desk.load(lines_of([row(1)]))
    assert (file.counts, file.codes) == ({"unchanged": 1, "warned": 1}, {"still_ended": 1})
    assert desk.load(lines_of([row(1, expiry_date="2026-12-31")])).counts == {"unchanged": 1}


@ON_SQLITE
def test_a_row_of_another_account_is_parsed(desk: Desk, other: Desk) -> None:
    content = lines_of([row(1), row(2)])
    desk.load(content)
    [found] = desk.db.ask(lambda tx: find_members(tx, EVERY, "E00001"))
    assert (found["last_name"], "row_digest" in found) == ("Sample", False)
    file = other.load(content)
    assert (file.counts, {*file.codes}) == ({"refused": 2}, {"not_unique"})


@ON_SQLITE
def test_a_row_that_contradicts_another_is_parsed(desk: Desk, parsed: list[str]) -> None:
    content = lines_of([row(1), row(2)])
    desk.load(content)
    twice = desk.load(lines_of([row(1), row(1, city="Boston"), row(2), row(2)]))
    assert twice.counts == {"refused": 2, "unchanged": 2}
    parsed.clear()
    assert desk.load(content, mode=FileMode.COMPARE).counts == {"unchanged": 2}
    assert parsed == ["M00001", "M00002"]


@ON_SQLITE
def test_a_row_with_a_warning_is_parsed_each_time(desk: Desk, parsed: list[str]) -> None:
    warned = [
        row(3, state="Nowhere"),
        row(4, dob="1980-02-03T05:00:00Z"),
        row(5, email="no address"),
    ]
    desk.load(lines_of(warned))
    parsed.clear()
    assert desk.load(lines_of(warned)).counts == {"unchanged": 3, "warned": 3}
    assert parsed == [each["member_id"] for each in warned] * 2


@pytest.mark.parametrize(
    "changed",
    [
        patch.object(meaning, "RULES_VERSION", 0),
        patch.object(sets, "installation_key", lambda _tx: bytes(32)),
    ],
    ids=["version", "key"],
)
def test_digests_of_another_key_or_version_are_not_recognised(
    desk: Desk, parsed: list[str], changed: Any
) -> None:
    content = lines_of([row(1)])
    desk.load(content)
    parsed.clear()
    with changed:
        assert desk.load(content).counts == {"unchanged": 1}
    assert parsed == ["M00001"] * 2


@ON_SQLITE
def test_a_row_of_a_table_is_recognised_under_its_columns_and_mapping_only(
    desk: Desk, parsed: list[str]
) -> None:
    rows = [row(1, city="Boston", county="Suffolk"), row(2)]
    columns = (*COLUMNS, "city", "county")
    desk.load(csv_of(rows, columns))
    same_values = csv_of(rows, (*COLUMNS, "county", "city"))
    other_values = csv_of(rows, columns).replace(b"city,county", b"county,city")
    by_mapping = {"mapping": {"columns": {"city": "county", "county": "city"}}}
    changed = {"updated": 1, "unchanged": 1}
    for content, options, counts in (
        (same_values, {}, {"unchanged": 2}),
        (csv_of(rows, columns), by_mapping, changed),
        (csv_of(rows, columns), {}, changed),
        (other_values, {}, changed),
    ):
        parsed.clear()
        assert desk.load(content, **options).counts == counts
        assert parsed == ["M00001", "M00002"] * 2
        parsed.clear()
        assert desk.load(content, **options).counts == {"unchanged": 2}
        assert parsed == []


@ON_SQLITE
def test_equal_rows_in_different_spellings_do_not_contradict_each_other(desk: Desk) -> None:
    desk.load(csv_of([row(1), row(2)]))
    header, first, second = csv_of([row(1), row(2)], (*COLUMNS, "note")).decode().splitlines()
    quoted = ",".join(f'"{cell}"' for cell in first.split(","))
    lines = [header, first, first + "seen", quoted, second, second.replace("Sample", "Other")]
    file = desk.load("\n".join(lines).encode())
    assert file.counts == {"unchanged": 3, "refused": 2}
    assert [
        (line["row"], line["code"]) for line in desk.report(file) if line["outcome"] == "refused"
    ] == [(5, "repeated_differently"), (6, "repeated_differently")]


numbers = st.integers(1, 6)
odd = st.sampled_from(
    [{}, {}, {}, {"state": "Nowhere"}, {"dob": "x"}, {"expiry_date": "2026-02-01"}, {"expiry_date": None},
     {"effective_date": "2027-01-01"}, {"metadata": {"b": "1", "a": "2"}}, {"metadata": {"a": "2", "b": "1"}}]
)  # fmt: skip


def a_row(number: int, last_name: str, member: int, more: dict[str, Any]) -> dict[str, Any]:
    dob = f"1980-02-{number:02d}"  # else they are similar
    return row(number, last_name=last_name, dob=dob, member_id=f"M{member:05d}") | more


contents = st.lists(
    st.builds(a_row, numbers, st.sampled_from(["Zoë", "Sample"]), numbers, odd),
    min_size=1,
    max_size=8,
)
kinds = st.sampled_from(["load", "again", "again", "post", "undo"])
steps = st.lists(
    st.tuples(kinds, contents, st.integers(0, 1), st.booleans(), st.booleans()),
    min_size=2,
    max_size=6,
)


def written(sent: list[dict[str, Any]]) -> bytes:
    """As CSV, of which rows are recognised before they are read, where cells can say it; else as
    JSON lines.
    """
    if all(type(value) is str for values in sent for value in values.values()):
        return csv_of(sent, (*COLUMNS, "state", "expiry_date"))
    return lines_of(sent)


def run(db: Database, clock: SetClock, taken: Any) -> tuple[Any, ...]:
    """Take the steps with a new customer; what was told and what is stored then."""
    desk = Desk(db, make_customer(db, name="Known"), clock)
    desk.options = replace(desk.options, chunk_rows=3)
    with db.write() as tx:
        # earlier examples are out of the way
        tx.exec_driver_sql("UPDATE members SET uniqueness_scope = -id")
    told: list[Any] = []
    last = None
    content = lines_of([row(1)])
    for kind, sent, plan, full, dry_run in taken:
        if kind == "post":
            desk.post(plan, **sent[0])
            continue
        if kind == "undo" and last is not None:
            file = desk.undo(last)
            last = None
        else:
            content = written(sent) if kind == "load" else content
            file = desk.load(content, plan=plan, full=full, dry_run=dry_run)
            last = None if dry_run or file.state == "held" else file
        told.append(
            (file.state, file.counts, file.members_missing, as_in_a_real_run(desk.report(file)))
        )
    return told, *desk.stored()


@examples
@given(taken=steps)
def test_files_end_as_they_would_if_every_row_were_parsed(
    db: Database, clock: SetClock, taken: Any
) -> None:
    with patch.object(eligibility, "find_row_digests", return_value={}):
        expected = run(db, clock, taken)
    assert run(db, clock, taken) == expected


@pytest.mark.parametrize("written", [csv_of, lines_of])
def test_each_row_for_a_plan_that_is_not_active_is_warned_of_in_each_file(
    desk: Desk, written: Any
) -> None:
    content = written(row(n) for n in range(3))
    assert desk.load(content).counts == {"created": 3}
    close_plan(desk.db, desk.customer.plan_ids[0])
    assert desk.load(content).counts == {"unchanged": 3, "warned": 3}
    again = desk.load(content)
    assert again.counts == {"unchanged": 3, "warned": 3}
    line = desk.report(again)[1]
    assert (line["outcome"], line["code"], line["field"]) == ("warned", "plan_inactive", "plan")
    ends = desk.load(written([row(0)]), full=True, dry_run=True)
    assert ends.counts["warned"] == 1, "not of those that end"


FAMILIES = [relative(family, number) for family in range(6) for number in (1, 2, 3)]


@contextmanager
def counting_read() -> Iterator[list[int]]:
    """Gathers the places of the families that are read in the block."""
    read: list[int] = []
    loops = Family.loops

    def counted(family: Family) -> Any:
        read.append(family.place)
        return loops(family)

    with patch.object(Family, "loops", counted):
        yield read


@ON_SQLITE
def test_a_family_that_says_the_same_on_another_day_is_not_read(desk: Desk) -> None:
    load_all(desk, FAMILIES)
    with counting_read() as read:
        again = load_all(desk, FAMILIES, day="20261121", purpose="RX")
    assert (again.counts, read) == ({"unchanged": 18}, [])
    report = desk.report(again)
    forget(desk, "family_digest")
    assert desk.report(load_all(desk, FAMILIES, day="20261121", purpose="RX")) == report
    assert [line["external_id"] for line in report][:3] == ["F0-01", "F0-02", "F0-03"]
    with counting_read() as read:
        file = load_all(desk, FAMILIES[:15], purpose="RX", day="20261121")
    assert (file.counts, read) == ({"ended": 3, "unchanged": 15, "lost": 3}, [])


@ON_SQLITE
def test_families_of_another_field_table_or_version_are_read(desk: Desk) -> None:
    with counting_read() as first:
        load_all(desk, FAMILIES)
    nickname = replace(FIELDS["city"], name="nickname")
    with_nickname = {**FIELDS, "nickname": nickname}
    for changed in (
        patch.object(meaning, "RULES_VERSION", 0),
        patch.object(meaning, "FIELDS", with_nickname),
    ):
        with changed, counting_read() as read:
            assert load_all(desk, FAMILIES).counts == {"unchanged": 18}
        assert set(read) == set(first)
        with counting_read() as again:
            load_all(desk, FAMILIES)
        assert set(again) == set(first), "its digests are those of the other meaning"
    with counting_read() as read:
        load_all(desk, FAMILIES)
    assert read == []


@ON_SQLITE
def test_only_the_family_that_changed_is_read(desk: Desk) -> None:
    load_all(desk, FAMILIES)
    changed = [*FAMILIES[:3], FAMILIES[3].replace("Boston", "Salem"), *FAMILIES[4:]]
    with counting_read() as read:
        file = load_all(desk, changed)
    assert (file.counts, len(set(read))) == ({"updated": 1, "unchanged": 17}, 1)
    with counting_read() as read:
        assert load_all(desk, changed).counts == {"unchanged": 18}
    assert read == []
    desk.post(external_id="F1-02", city="Salem")
    assert load_all(desk, changed).counts == {"updated": 1, "unchanged": 17}, "as any other write"


@ON_SQLITE
def test_a_dependent_takes_the_new_address_of_a_subscriber_elsewhere(desk: Desk) -> None:
    lost = relative(0, 4, home="")
    load_all(desk, [*FAMILIES, lost])
    moved = [each.replace("02134", "01970") for each in FAMILIES[:3]]
    load_all(desk, [*moved, *FAMILIES[3:], lost])
    assert desk.members()["F0-04"]["zipcode"] == "01970"
    # The text of the subscriber's family is the same, that of the dependent is not.
    load_all(desk, [*moved, *FAMILIES[3:], relative(0, 4, home="", first="New")])
    assert desk.members()["F0-04"]["zipcode"] == "01970"


@ON_SQLITE
def test_members_of_a_plan_that_is_not_active_are_warned_each_time(desk: Desk) -> None:
    load_all(desk, FAMILIES)
    close_plan(desk.db, desk.customer.plan_ids[0])
    assert load_all(desk, FAMILIES).counts == {"unchanged": 18, "warned": 18}


def _next_day(choice: random.Random, people: list[str]) -> list[str]:
    """The people of the day after: most as they were, some changed, gone, doubled, apart or without
    an address.
    """
    found = []
    for each in people:
        ways: list[tuple[float, list[str]]] = [
            (0.03, []),
            (0.06, [each.replace("Gold", choice.choice(["Silver", "Bronze"]))]),
            (0.08, [each.replace(HOME, "")]),
            (0.10, [each.replace("02134", "01970")]),
            (0.12, [each + "DTP*349*D8*20261122~HD*021**PPO*Late~DTP*348*D8*20261201~"]),
            (0.13, [each.replace("*021*28", "*024*28")]),
            (0.14, [each, each]),
            (1.00, [each]),
        ]
        what = choice.random()
        found += next(way for most, way in ways if what <= most)
    if choice.random() < 0.4:
        at = choice.randrange(len(found))
        to = choice.randrange(len(found))
        found.insert(to, found.pop(at))
    return found


@ON_SQLITE
@pytest.mark.parametrize("seed", range(6))
def test_days_of_files_do_the_same_without_recognising_families(
    desk: Desk, other: Desk, seed: int
) -> None:
    choice = random.Random(seed)
    people = [
        relative(family, number)
        for family in range(12)
        for number in range(1, choice.choice([2, 3, 5]))
    ]
    for day in range(20, 26):
        found = []
        purpose = choice.choice(["2", "RX"])
        for each, letter in ((desk, "F"), (other, "G")):  # the accounts share no identifier
            own = [loop.replace("0F*F", "0F*" + letter) for loop in people]
            if letter == "G":
                forget(other, "family_digest")
            file = load_all(each, own, day=f"202611{day}", purpose=purpose)
            found.append(repr((file.counts, each.report(file), each.stored())).replace("G", "F"))
        assert found[0] == found[1]
        people = _next_day(choice, people)
