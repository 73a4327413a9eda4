"""Families of an 834 are recognised by their text, and nothing else differs from reading each of them."""

import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import pytest

from frontdesk.files.families import FamilyRecogniser
from frontdesk.files.model import EligibilityFile
from frontdesk.formats.x12 import Family
from tests.factories import close_plan
from tests.files.loading import ON_SQLITE, Desk
from tests.formats import reading
from tests.formats.reading import HOME, interchange, transaction

pytestmark = ON_SQLITE


def person(family: int, number: int, **said: str) -> str:
    """The loop of a subscriber (number 1) or a dependent."""
    first = f"P{'abcdefghij'[family % 10]}{'abcdefghij'[number % 10]}"
    keys = {"family": f"F{family}", "number": f"REF*17*{number:02}~", "last": f"Sample{family}"}
    relation = "18" if number == 1 else "19"
    return reading.person(said.pop("first", first), f"19{70 + number}0101", relation=relation, **keys, **said)


FAMILIES = [person(family, number) for family in range(6) for number in (1, 2, 3)]


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


def load(desk: Desk, people: list[str], *, day: str = "20261120", purpose: str = "2") -> EligibilityFile:
    return desk.load(interchange(transaction(*people, day=day, purpose=purpose)).encode())


def test_a_family_that_says_the_same_on_another_day_is_not_read(desk: Desk) -> None:
    load(desk, FAMILIES)
    with counting_read() as read:
        again = load(desk, FAMILIES, day="20261121", purpose="RX")
    assert (again.counts, read) == ({"unchanged": 18}, [])
    report = desk.report(again)
    with patch.object(FamilyRecogniser, "make_index"):
        assert desk.report(load(desk, FAMILIES, day="20261121", purpose="RX")) == report
    assert [line["external_id"] for line in report][:3] == ["F0-01", "F0-02", "F0-03"]
    with counting_read() as read:
        file = load(desk, FAMILIES[:15], purpose="RX", day="20261121")
    assert (file.counts, read) == ({"ended": 3, "unchanged": 15}, [])


def test_only_the_family_that_changed_is_read(desk: Desk) -> None:
    load(desk, FAMILIES)
    changed = [*FAMILIES[:3], FAMILIES[3].replace("Boston", "Salem"), *FAMILIES[4:]]
    with counting_read() as read:
        file = load(desk, changed)
    assert (file.counts, len(set(read))) == ({"updated": 1, "unchanged": 17}, 1)
    with counting_read() as read:
        assert load(desk, changed).counts == {"unchanged": 18}
    assert read == []
    desk.post(external_id="F1-02", city="Salem")
    assert load(desk, changed).counts == {"updated": 1, "unchanged": 17}, "as any other write"


def test_a_dependent_takes_the_new_address_of_a_subscriber_elsewhere(desk: Desk) -> None:
    lost = person(0, 4, home="")
    load(desk, [*FAMILIES, lost])
    moved = [each.replace("02134", "01970") for each in FAMILIES[:3]]
    load(desk, [*moved, *FAMILIES[3:], lost])
    assert desk.members()["F0-04"]["zipcode"] == "01970"
    # The text of the subscriber's family is the same, that of the dependent is not.
    load(desk, [*moved, *FAMILIES[3:], person(0, 4, home="", first="New")])
    assert desk.members()["F0-04"]["zipcode"] == "01970"


def test_members_of_a_plan_that_is_not_active_are_warned_each_time(desk: Desk) -> None:
    load(desk, FAMILIES)
    close_plan(desk.db, desk.customer.plan_ids[0])
    assert load(desk, FAMILIES).counts == {"unchanged": 18, "warned": 18}


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


@pytest.mark.parametrize("seed", range(6))
def test_days_of_files_do_the_same_with_and_without_recognising_families(
    desk: Desk, other: Desk, seed: int
) -> None:
    choice = random.Random(seed)
    people = [person(family, number) for family in range(12) for number in range(1, choice.choice([2, 3, 5]))]
    for day in range(20, 26):
        found, purpose = [], choice.choice(["2", "RX"])
        for each, letter in ((desk, "F"), (other, "G")):  # the accounts share no identifier
            own = [loop.replace("0F*F", "0F*" + letter) for loop in people]
            with nullcontext() if letter == "F" else patch.object(FamilyRecogniser, "make_index"):
                file = load(each, own, day=f"202611{day}", purpose=purpose)
            found.append(repr((file.counts, each.report(file), each.stored())).replace("G", "F"))
        assert found[0] == found[1]
        people = _next_day(choice, people)
