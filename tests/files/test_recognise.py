"""Rows that say what the same member's last row said are recognised before they are parsed, and nothing else differs."""

import csv
import io
import json
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import date
from hashlib import blake2b
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select, update

from frontdesk import eligibility
from frontdesk.db import Database
from frontdesk.eligibility import find_members, parse_member
from frontdesk.eligibility.tables import installation
from frontdesk.files import load
from frontdesk.files.check import check_file
from frontdesk.files.claims import claim_next
from frontdesk.files.families import ROW_MEANING_VERSION, FamilyRecogniser
from frontdesk.files.load import RowRecogniser, parse_rows
from frontdesk.files.model import ChunkItem, EligibilityFile, RowOutcome
from frontdesk.formats.model import FileMode
from frontdesk.formats.x12 import Family
from tests.conftest import SetClock
from tests.factories import close_plan, make_customer
from tests.files.loading import COLUMNS, ON_SQLITE, Desk, as_in_a_real_run, csv_of, examples, lines_of, row
from tests.formats.reading import HOME, MEMBER, file_834, interchange, person, transaction
from tests.formats.workbooks import workbook

FIFTY = [row(n, email=f"r{n}@example.com") for n in range(50)]


@contextmanager
def counting_parsed() -> Iterator[list[object]]:
    """Gathers the identifiers of the rows that are parsed in the block."""
    parsed: list[object] = []

    def parse(values: Any, **options: Any) -> Any:
        if "external_id" in values:  # else the check reads who a new member is
            parsed.append(values["external_id"])
        return parse_member(values, **options)

    with patch.object(eligibility, "parse_member", parse):
        yield parsed


def parsed_of(desk: Desk, content: bytes, counts: dict[str, int], **options: Any) -> list[object]:
    """The identifiers of the rows that are parsed when the content is loaded, which has these counts."""
    with counting_parsed() as parsed:
        assert desk.load(content, **options).counts == counts
    return parsed


def quoted(rows: list[dict[str, Any]]) -> bytes:
    """A CSV with each cell in quotation marks."""
    page = io.StringIO(newline="")
    csv.writer(page, quoting=csv.QUOTE_ALL).writerows(csv.reader(io.StringIO(csv_of(rows).decode())))
    return page.getvalue().encode()


@pytest.mark.parametrize("written", [csv_of, lines_of, quoted])
def test_only_what_changed_is_parsed_and_written_and_the_report_is_the_same(desk: Desk, written: Any) -> None:
    desk.load(written(FIFTY))
    before = desk.members(), desk.count("member_history"), desk.count("invitations")
    assert parsed_of(desk, written(FIFTY), {"unchanged": 50}) == []
    assert (desk.members(), desk.count("member_history"), desk.count("invitations")) == before
    changed = [each | {"last_name": "Changed"} if n in (0, 20) else each for n, each in enumerate(FIFTY)]
    content = written([*changed, row(50)])
    parsed = parsed_of(desk, content, {"created": 1, "updated": 2, "unchanged": 48})
    assert parsed == ["E00000", "E00020", "E00050"]
    assert desk.members()["E00000"]["last_name"] == "Changed"
    with counting_parsed() as parsed:
        again = desk.load(content)
    assert (again.counts, parsed) == ({"unchanged": 51}, [])
    report = desk.report(again)
    assert [line["external_id"] for line in report] == [f"E{n:05d}" for n in range(51)]
    assert [line["row"] for line in report] == [*range(report[0]["row"], report[0]["row"] + 51)]
    with patch.object(RowRecogniser, "known_digests", return_value={}):
        assert report == desk.report(desk.load(content))


def test_every_other_write_of_a_member_makes_its_row_count_again(desk: Desk) -> None:
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
    assert parsed_of(desk, content, {"unchanged": 1}) == ["E00001"]
    for plan, counts in ((1, {"moved": 1}), (0, {"moved": 1}), (0, {"unchanged": 1})):
        assert desk.load(content, plan=plan).counts == counts
    desk.undo(desk.load(lines_of([row(2)])))
    assert desk.load(lines_of([row(2)])).counts == {"created": 1}
    assert desk.load(content, full=True).counts == {"unchanged": 1, "ended": 1}
    assert desk.load(lines_of([row(1), row(2)])).counts == {"unchanged": 2, "warned": 1}


@ON_SQLITE
def test_a_stored_expiry_date_that_the_row_does_not_have_is_warned_of_once_it_is_past(
    desk: Desk, clock: SetClock
) -> None:
    desk.post(**row(1, expiry_date="2026-12-31"))
    for full in (False, True):
        assert desk.load(lines_of([row(1)]), full=full).counts == {"unchanged": 1}
    clock.advance(400 * 86_400)
    assert desk.load(lines_of([row(1)])).counts == {"unchanged": 1, "warned": 1}
    assert desk.load(lines_of([row(1, expiry_date="2026-12-31")])).counts == {"unchanged": 1}


@ON_SQLITE
def test_a_row_of_another_account_or_of_a_contradiction_or_to_compare_is_parsed(
    desk: Desk, other: Desk
) -> None:
    content = lines_of([row(1), row(2)])
    desk.load(content)
    [found] = desk.db.ask(lambda tx: find_members(tx, "E00001", None))
    assert (found["last_name"], "row_digest" in found) == ("Sample", False)
    file = other.load(content)
    assert (file.counts, {*file.codes}) == ({"refused": 2}, {"not_unique"})
    twice = desk.load(lines_of([row(1), row(1, city="Boston"), row(2), row(2)]))
    assert twice.counts == {"refused": 2, "unchanged": 2}
    compared = parsed_of(desk, content, {"unchanged": 2}, mode=FileMode.COMPARE)
    assert compared == ["E00001", "E00002"]


def test_digests_of_another_key_or_version_are_not_recognised(desk: Desk, owner: Database) -> None:
    content = lines_of([row(1)])
    desk.load(content)
    with patch.object(load, "ROW_MEANING_VERSION", b"other"):
        assert parsed_of(desk, content, {"unchanged": 1}) == ["E00001"]
    desk.load(content)
    with owner.write() as tx:
        kept = tx.execute(select(installation.c.row_digest_key)).scalar_one()
        tx.execute(update(installation).values(row_digest_key="00" * 32))
    assert parsed_of(desk, content, {"unchanged": 1}) == ["E00001"]
    with owner.write() as tx:
        tx.execute(update(installation).values(row_digest_key=kept))


@ON_SQLITE
def test_a_row_of_a_table_is_recognised_under_the_same_columns_and_mapping_only(desk: Desk) -> None:
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
        assert parsed_of(desk, content, counts, **options) == ["E00001", "E00002"]
        assert parsed_of(desk, content, {"unchanged": 2}, **options) == []


@ON_SQLITE
def test_equal_rows_that_are_written_differently_do_not_contradict_one_another(desk: Desk) -> None:
    desk.load(csv_of([row(1), row(2)]))
    header, first, second = csv_of([row(1), row(2)], (*COLUMNS, "note")).decode().splitlines()
    quoted = ",".join(f'"{cell}"' for cell in first.split(","))
    lines = [header, first, first + "seen", quoted, second, second.replace("Sample", "Other")]
    file = desk.load("\n".join(lines).encode())
    assert file.counts == {"unchanged": 3, "refused": 2}
    assert [(line["row"], line["code"]) for line in desk.report(file) if line["outcome"] == "refused"] == [
        (5, "repeated_differently"),
        (6, "repeated_differently"),
    ]


numbers = st.integers(1, 6)
odd = st.sampled_from(
    [{}, {}, {}, {"state": "Nowhere"}, {"dob": "x"}, {"expiry_date": "2026-02-01"}, {"expiry_date": None},
     {"effective_date": "2027-01-01"}, {"metadata": {"b": "1", "a": "2"}}, {"metadata": {"a": "2", "b": "1"}}]
)  # fmt: skip


def a_row(number: int, last_name: str, member: int, more: dict[str, Any]) -> dict[str, Any]:
    dob = f"1980-02-{number:02d}"  # else they are similar
    return row(number, last_name=last_name, dob=dob, member_id=f"M{member:05d}") | more


contents = st.lists(
    st.builds(a_row, numbers, st.sampled_from(["Zoë", "Sample"]), numbers, odd), min_size=1, max_size=8
)
kinds = st.sampled_from(["load", "again", "again", "post", "undo"])
steps = st.lists(
    st.tuples(kinds, contents, st.integers(0, 1), st.booleans(), st.booleans()), min_size=2, max_size=6
)


def written(sent: list[dict[str, Any]]) -> bytes:
    """As CSV, of which rows are recognised before they are read, where cells can say it; else as JSON lines."""
    if all(type(value) is str for values in sent for value in values.values()):
        return csv_of(sent, (*COLUMNS, "state", "expiry_date"))
    return lines_of(sent)


def run(db: Database, clock: SetClock, taken: list[Any]) -> tuple[Any, ...]:
    """Take the steps with a new customer; what was told and what is stored then."""
    desk = Desk(db, make_customer(db, name="Known"), clock)
    desk.options = replace(desk.options, chunk_rows=3)
    with db.write() as tx:
        tx.exec_driver_sql("UPDATE members SET uniqueness_scope = -id")  # earlier examples are out of the way
    told: list[Any] = []
    last, content = None, lines_of([row(1)])
    for kind, sent, plan, full, dry_run in taken:
        if kind == "post":
            desk.post(plan, **sent[0])
            continue
        if kind == "undo" and last is not None:
            file, last = desk.undo(last), None
        else:
            content = written(sent) if kind == "load" else content
            file = desk.load(content, plan=plan, full=full, dry_run=dry_run)
            last = None if dry_run or file.state == "held" else file
        told.append((file.state, file.counts, file.members_missing, as_in_a_real_run(desk.report(file))))
    return told, *desk.stored()


@examples
@given(taken=steps)
def test_files_end_as_they_would_if_every_row_were_parsed(
    db: Database, clock: SetClock, taken: list[Any]
) -> None:
    with patch.object(RowRecogniser, "known_digests", return_value={}):
        expected = run(db, clock, taken)
    assert run(db, clock, taken) == expected


@pytest.mark.parametrize("written", [csv_of, lines_of])
def test_each_row_for_a_plan_that_is_not_active_is_warned_of_in_each_file(desk: Desk, written: Any) -> None:
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


def relative(family: int, number: int, **said: str) -> str:
    """The loop of a subscriber (number 1) or a dependent."""
    first = f"P{'abcdefghij'[family % 10]}{'abcdefghij'[number % 10]}"
    keys = {"family": f"F{family}", "number": f"REF*17*{number:02}~", "last": f"Sample{family}"}
    relation = "18" if number == 1 else "19"
    return person(said.pop("first", first), f"19{70 + number}0101", relation=relation, **keys, **said)


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


def load_people(
    desk: Desk, people: list[str], *, day: str = "20261120", purpose: str = "2"
) -> EligibilityFile:
    return desk.load(interchange(transaction(*people, day=day, purpose=purpose)).encode())


@ON_SQLITE
def test_a_family_that_says_the_same_on_another_day_is_not_read(desk: Desk) -> None:
    load_people(desk, FAMILIES)
    with counting_read() as read:
        again = load_people(desk, FAMILIES, day="20261121", purpose="RX")
    assert (again.counts, read) == ({"unchanged": 18}, [])
    report = desk.report(again)
    with patch.object(FamilyRecogniser, "make_index"):
        assert desk.report(load_people(desk, FAMILIES, day="20261121", purpose="RX")) == report
    assert [line["external_id"] for line in report][:3] == ["F0-01", "F0-02", "F0-03"]
    with counting_read() as read:
        file = load_people(desk, FAMILIES[:15], purpose="RX", day="20261121")
    assert (file.counts, read) == ({"ended": 3, "unchanged": 15}, [])


@ON_SQLITE
def test_only_the_family_that_changed_is_read(desk: Desk) -> None:
    load_people(desk, FAMILIES)
    changed = [*FAMILIES[:3], FAMILIES[3].replace("Boston", "Salem"), *FAMILIES[4:]]
    with counting_read() as read:
        file = load_people(desk, changed)
    assert (file.counts, len(set(read))) == ({"updated": 1, "unchanged": 17}, 1)
    with counting_read() as read:
        assert load_people(desk, changed).counts == {"unchanged": 18}
    assert read == []
    desk.post(external_id="F1-02", city="Salem")
    assert load_people(desk, changed).counts == {"updated": 1, "unchanged": 17}, "as any other write"


@ON_SQLITE
def test_a_dependent_takes_the_new_address_of_a_subscriber_elsewhere(desk: Desk) -> None:
    lost = relative(0, 4, home="")
    load_people(desk, [*FAMILIES, lost])
    moved = [each.replace("02134", "01970") for each in FAMILIES[:3]]
    load_people(desk, [*moved, *FAMILIES[3:], lost])
    assert desk.members()["F0-04"]["zipcode"] == "01970"
    # The text of the subscriber's family is the same, that of the dependent is not.
    load_people(desk, [*moved, *FAMILIES[3:], relative(0, 4, home="", first="New")])
    assert desk.members()["F0-04"]["zipcode"] == "01970"


@ON_SQLITE
def test_members_of_a_plan_that_is_not_active_are_warned_each_time(desk: Desk) -> None:
    load_people(desk, FAMILIES)
    close_plan(desk.db, desk.customer.plan_ids[0])
    assert load_people(desk, FAMILIES).counts == {"unchanged": 18, "warned": 18}


def _next_day(choice: random.Random, people: list[str]) -> list[str]:
    """The people of the day after: most as they were, some changed, gone, doubled, apart or without an address."""
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
        at, to = choice.randrange(len(found)), choice.randrange(len(found))
        found.insert(to, found.pop(at))
    return found


@ON_SQLITE
@pytest.mark.parametrize("seed", range(6))
def test_days_of_files_do_the_same_with_and_without_recognising_families(
    desk: Desk, other: Desk, seed: int
) -> None:
    choice = random.Random(seed)
    people = [
        relative(family, number) for family in range(12) for number in range(1, choice.choice([2, 3, 5]))
    ]
    for day in range(20, 26):
        found, purpose = [], choice.choice(["2", "RX"])
        for each, letter in ((desk, "F"), (other, "G")):  # the accounts share no identifier
            own = [loop.replace("0F*F", "0F*" + letter) for loop in people]
            with nullcontext() if letter == "F" else patch.object(FamilyRecogniser, "make_index"):
                file = load_people(each, own, day=f"202611{day}", purpose=purpose)
            found.append(repr((file.counts, each.report(file), each.stored())).replace("G", "F"))
        assert found[0] == found[1]
        people = _next_day(choice, people)


GOLDEN, RENEW = Path(__file__).with_name("row_meaning.json"), "FRONTDESK_TEST_RENEW"

# A value that is read as it is, one that is changed, one that is dropped or refused, of each kind of field.
ODD: list[dict[str, Any]] = [
    {}, {"first_name": "  Zoe\u0308 "}, {"first_name": ""}, {"last_name": "O\u2019Neil\u200b"}, {"middle_name": "x" * 300},
    {"dob": "1980-02-30"}, {"dob": "1980-02-03T00:00:00Z"}, {"dob": "1980-02-03T05:00:00Z"}, {"dob": "02/03/1980"},
    {"gender": "F"}, {"gender": "other"}, {"email": "Robin@Example.COM"}, {"email": "no address"}, {"phone": "(617) 555-0100"},
    {"phone": "12"}, {"zipcode": "2134"}, {"zipcode": "021341234"}, {"zipcode": "x"}, {"state": "Massachusetts"},
    {"state": "Nowhere"}, {"effective_date": "2026-13-01"}, {"expiry_date": "2025-01-01"}, {"expiry_date": "null"},
    {"member_id": ""}, {"external_id": ""}, {"external_id": " E 1 "}, {"subscriber_relationship": "Dependent"},
    {"relationship_code_hipaa": "1"}, {"relationship_code_hipaa": "99"}, {"invite_immediately": "true"}, {"city": "Bos\tton"},
]  # fmt: skip
ALL_COLUMNS = [*row(0), *dict.fromkeys(name for odd in ODD for name in odd if name not in row(0))]
TYPED: list[dict[str, Any]] = [
    {"zipcode": 2134}, {"dob": None}, {"invite_immediately": True}, {"metadata": {"b": "1", "a": 2}}, {"metadata": []},
]  # fmt: skip
RULES = {
    "columns": {"city": "county"},
    "clear": ["null"],
    "fields": {
        "zipcode": {"pad": 5},
        "dob": {"dates": ["YYYY-MM-DD", "MM/DD/YYYY"]},
        "gender": {"values": {"f": "female", "": "unknown"}},
        "member_id": {"column": ["external_id", "member_id"], "join": "-"},
        "payor_name": {"constant": "Example Mutual"},
    },
    "skip": [{"column": "state", "equals": "Nowhere"}],
}
SEGMENTS = [
    ("", ""), ("*18*", "*19*"), ("INS*Y*18*", "INS*N*01*"), ("*021*28", "*024*28"), ("*021*28", "*001*28"),
    ("*021*28", "*030*28"), ("DMG*D8*19770111*F~", ""), ("19770111", "19771311"),
    ("N4*Boston*MA*02134**CY*Suffolk~", ""), ("HD*021", "HD*024"), ("HD*021", "HD*001"), ("*HLT*", "*DEN*"),
    ("DTP*348*D8*20260101~", ""), ("DTP*348*D8*20260101~", "DTP*357*D8*20260630~"), ("DTP*348", "DTP*349"),
    ("REF*0F*FAMILY1~", ""), ("REF*17*01~", "REF*23*C1~"), ("Robin*Lee", "Robin*Lee**Jr"),
    ("*34*900000001", "*ZZ*W1"), ("PER*IP**TE*6175550100*EM*robin@example.com~", "PER*IP**HP*1~"),
    ("~N3", "~LUI*LE*en~N3"),
]  # fmt: skip


DATED: list[dict[str, Any]] = [{"zipcode": 2134}, {"dob": date(1980, 2, 3)}, {"invite_immediately": True}]


def odd_rows(*more: dict[str, Any]) -> list[dict[str, Any]]:
    return [row(number) | odd for number, odd in enumerate(ODD)] + [
        row(50 + number) | odd for number, odd in enumerate(more)
    ]


LOOPS = [MEMBER.replace(*pair).replace("FAMILY1", f"FAMILY{n}") for n, pair in enumerate(SEGMENTS)]
CONTENTS: dict[str, bytes] = {
    "csv": csv_of(odd_rows(), ALL_COLUMNS),
    "csv by rules": csv_of(odd_rows(), ALL_COLUMNS),
    "json": lines_of(odd_rows(*TYPED)),
    "xlsx by rules": workbook(
        [ALL_COLUMNS, *([each.get(name) for name in ALL_COLUMNS] for each in odd_rows(*DATED))]
    ),
    "834": file_834(*LOOPS).encode(),
}


def meaning_of(item: ChunkItem) -> str:
    """A digest of all that the row says, without the numbers that a database gives."""
    if isinstance(item, RowOutcome):
        told: tuple[object, ...] = (*item,)
    else:
        record = item.submission.record
        more = (record.faults, record.warnings, record.invite_immediately, item.submission.context)
        told = (item.external_id, sorted(record.given.items()), more, item.submission.action, item.warnings)
    return blake2b(repr(told).encode(), digest_size=4).hexdigest()


@ON_SQLITE
@pytest.mark.parametrize("kind", CONTENTS)
def test_a_row_means_what_it_meant_in_this_version(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("frontdesk.eligibility.row_digest_key", lambda _tx: bytes(32))
    file = desk.hand_in(CONTENTS[kind], mapping=RULES if kind.endswith("by rules") else None)
    claim = claim_next(desk.db, desk.clock, desk.options, only=file.id)
    assert claim is not None
    check = replace(check_file(claim), contradictory=frozenset(), apart=())
    found = [meaning_of(item) for chunk in parse_rows(claim, check, lambda: None) for item in chunk]
    assert len(found) >= 20
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    version = ROW_MEANING_VERSION.decode()
    if os.environ.get(RENEW):
        golden = {**golden, "version": version, kind: found}
        GOLDEN.write_text(json.dumps(golden).replace('], "', '],\n"') + "\n")
    assert (golden["version"], golden[kind]) == (version, found), (
        "Rows mean something else than in the last version: raise ROW_MEANING_VERSION (files/load.py), then renew with "
        f"{RENEW}=1 .venv/bin/pytest -n 0 {Path(__file__).name}"
    )
