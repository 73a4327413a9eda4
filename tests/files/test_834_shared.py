"""Numbers of an 834 that several people carry: a group, a class, a plan, a card of a family (docs/834.md, Identifiers)."""

import io
from typing import Any

import pytest

from frontdesk.files.mapping import NO_MAPPING
from frontdesk.files.model import FileMode, Row
from frontdesk.files.readers import NumberIndex, SharedNumbers, X12Options, open_unread, x12_shared
from tests.files.loading import Desk
from tests.files.readers.reading import file_834
from tests.files.test_834_people import child, codes, load, person

PEOPLE = [
    ("Robin", "19770111", "F1"),
    ("Alex", "19780203", "F2"),
    ("Kim", "19790203", "F3"),
    ("Robin", "19790303", "F4"),
]
TOLD = ("warned", "shared_reference")
MATCHED = ("warned", "identity_matched")
DENTAL = "HD*021**DEN*Teeth~DTP*348*D8*20260101~"


def with_number(source: str, number: str, who: int, **said: str) -> str:
    first, born, family = PEOPLE[who]
    if source == "MI":
        return person(first, born, family=family, name=f"MI*{number}", **said)
    return person(first, born, family=family, number=f"REF*{source}*{number}~", **said)


def keys(desk: Desk) -> list[str]:
    return sorted(desk.members())


@pytest.mark.parametrize("source", ["23", "MI"])
def test_a_number_of_several_people_is_nobodys_own_wherever_they_stand(desk: Desk, source: str) -> None:
    members = [with_number(source, f"CLASS0{who % 2}", who) for who in range(4)]
    first = load(desk, *members)
    assert codes(desk, first) == [
        ("created", ""),
        TOLD,
        ("created", ""),
        TOLD,
        ("created", ""),
        ("created", ""),
    ]
    assert keys(desk) == ["F1", "F2", "F3", "F4"]
    assert load(desk, *reversed(members), purpose="RX").counts == {"unchanged": 4, "warned": 2}
    alone = [load(desk, member).counts for member in members]
    assert alone == [{"unchanged": 1, "warned": 1}] * 4
    assert keys(desk) == ["F1", "F2", "F3", "F4"]


@pytest.mark.parametrize("source", ["23", "MI"])
def test_the_key_of_a_member_does_not_follow_its_neighbours(desk: Desk, source: str) -> None:
    robin, alex, kim = (with_number(source, "CLASS01", who) for who in range(3))
    load(desk, robin)
    both = load(desk, robin, alex)
    assert codes(desk, both) == [("unchanged", ""), TOLD, MATCHED, ("created", "")]
    load(desk, kim)
    assert keys(desk) == ["CLASS01", "F2", "F3"]
    assert load(desk, kim, alex, robin, purpose="RX").counts["unchanged"] == 3
    # What the file has shown is forgotten with it.
    desk.undo(both)
    assert desk.count("shared_numbers") == 0


@pytest.mark.parametrize("source", ["23", "MI"])
def test_another_class_is_not_another_person(desk: Desk, source: str) -> None:
    members = [with_number(source, "CLASS01", who) for who in range(2)]
    load(desk, *members)
    moved = with_number(source, "CLASS02", 0)
    assert codes(desk, load(desk, moved)) == [("unchanged", ""), MATCHED]
    assert load(desk, moved, members[1], purpose="RX").counts == {"unchanged": 2, "warned": 2}
    new = with_number(source, "CLASS03", 2)
    load(desk, new)
    assert codes(desk, load(desk, new.replace("CLASS03", "CLASS04"))) == [("unchanged", ""), MATCHED]
    assert keys(desk) == ["CLASS03", "F1", "F2"]


def test_a_group_in_place_of_the_family_keeps_namesakes_apart(desk: Desk) -> None:
    named = [
        person(first, "19770111", family="GROUP1", number=f"REF*23*E00{n}~")
        for n, first in enumerate(["Robin", "Alex"])
    ]
    load(desk, *named)
    namesake = load(desk, named[0].replace("E000", "E003"))
    assert namesake.counts == {"created": 1}


@pytest.mark.parametrize("source", ["23", "MI"])
def test_a_loop_for_each_coverage_is_no_sharing(desk: Desk, source: str) -> None:
    loops = [with_number(source, "W10001", 0), with_number(source, "W10002", 1)]
    dental = [
        with_number(source, "W10001", 0, coverage=DENTAL),
        with_number(source, "W10002", 1, coverage=DENTAL),
    ]
    assert load(desk, *loops, *dental).counts == {"created": 2}
    corrected = with_number(source, "W10001", 0).replace("Robin", "Robyn")
    assert "shared_reference" not in load(desk, *loops, corrected).codes
    assert desk.count("shared_numbers") == 0


def test_a_plan_for_each_loop_makes_one_member(desk: Desk) -> None:
    loops = [with_number("23", "MED001", 0), with_number("23", "DEN001", 0, coverage=DENTAL)]
    load(desk, *loops)
    assert keys(desk) == ["MED001"]
    others = [
        loop.replace("F1", "F2").replace("Robin", "Alex").replace("19770111", "19780203") for loop in loops
    ]
    assert load(desk, *loops, *others).counts == {"unchanged": 1, "created": 1, "warned": 1}
    assert keys(desk) == ["F2", "MED001"]


def test_without_a_family_there_is_nothing_to_call_them_by(desk: Desk) -> None:
    members = [with_number("23", "CLASS01", who).replace(f"REF*0F*F{who + 1}~", "") for who in range(2)]
    file = load(desk, *members)
    assert codes(desk, file) == [("refused", "no_match_key")] * 2


def test_the_card_of_a_family_leaves_each_its_key(desk: Desk) -> None:
    card = "MI*CARD77001"
    family = [person(name=card), person("Alex", "19780203", relation="01", name=card), child(name=card)]
    load(desk, *family)
    for each in family:
        load(desk, each)
    assert keys(desk) == ["FAMILY1", "FAMILY1-R01", "FAMILY1-R19"]


@pytest.mark.parametrize("options", [{"dry_run": True}, {"mode": FileMode.COMPARE}])
def test_a_file_that_writes_no_member_leaves_nothing_known(desk: Desk, options: dict[str, Any]) -> None:
    load(desk, *(with_number("23", "CLASS01", who) for who in range(2)), **options)
    assert desk.count("shared_numbers") == 0


def test_each_account_has_its_own(desk: Desk, other: Desk) -> None:
    load(desk, *(with_number("23", "CLASS01", who) for who in range(2)))
    load(desk, with_number("23", "CLASS01", 2))
    assert keys(desk) == ["F1", "F2", "F3"]
    load(other, with_number("23", "CLASS01", 3))
    assert "CLASS01" in desk.members()


def read_with(numbers: SharedNumbers, text: str) -> list[Row]:
    _, rows = open_unread(
        io.BytesIO(text.encode()), None, "utf-8", NO_MAPPING, x12=X12Options(shared=numbers)
    )
    return [row for row in rows if isinstance(row, Row)]


def test_many_shared_numbers_are_one_habit_of_the_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(x12_shared, "SHARED_LIMIT", 3)
    families = [
        person(first, born, family=f"F{n}", number=f"REF*23*CARD{n:04}~", relation=relation)
        for n in range(5)
        for first, born, relation in (("Robin", "19770111", "18"), ("Alex", "19780203", "01"))
    ]
    text = file_834(*families)
    search = SharedNumbers(index=NumberIndex())
    read_with(search, text)
    known = search.found()
    assert len(known) == 2
    lone = file_834(person(family="F9", number="REF*23*CARD9999~"))
    [row] = read_with(SharedNumbers(known=known), lone)
    assert (row.key, row.warnings) == ("F9", ("shared_reference",))
    again = SharedNumbers(known=known, index=NumberIndex())
    assert [row.key for row in read_with(again, text)][:2] == ["F0", "F0-R01"]
    assert not again.found()


def test_the_next_number_may_be_shared_too() -> None:
    both = [
        person(first, born, family=family, number="REF*23*GROUP01~", name=f"MI*{own}")
        for (first, born, family), own in zip(
            PEOPLE, ("CLASS01", "CLASS01", "OWN0003", "OWN0004"), strict=True
        )
    ]
    known: frozenset[int] = frozenset()
    passes = 0
    while True:
        numbers = SharedNumbers(known=known, index=NumberIndex())
        found = [row.key for row in read_with(numbers, file_834(*both))]
        new = numbers.found()
        if not new:
            break
        known |= new
        passes += 1
    assert (passes, found) == (1, ["F1", "F2", "OWN0003", "OWN0004"])
