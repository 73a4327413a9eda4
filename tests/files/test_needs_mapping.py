"""An 834 whose mapping does not say how it names its members is held with a suggestion, and changes nothing (docs/834.md)."""

import io
from typing import Any

import pytest

from frontdesk.errors import Invalid
from frontdesk.files import list_mappings
from frontdesk.files.actions import accept_mapping, approve_file
from frontdesk.files.model import EligibilityFile, FileKey, WrongState
from frontdesk.mapping.suggest.suggestion import suggest_mapping
from tests.files.loading import Desk
from tests.files.test_834_identity import child, person
from tests.formats.reading import file_834

UNNAMED: dict[str, Any] = {"mapping": {}}


def hand_in(desk: Desk, *members: str, **options: Any) -> EligibilityFile:
    return desk.load(file_834(*members).encode(), **(UNNAMED | options))


def accept(
    desk: Desk, file: EligibilityFile, mapping: dict[str, Any] | None = None, **options: Any
) -> EligibilityFile:
    with desk.db.write() as tx:
        accept_mapping(tx, FileKey(file.id), desk.requester(), mapping=mapping or {}, **options)
    return desk.work(file)


def suggestion(file: EligibilityFile) -> dict[str, Any]:
    assert file.problem is not None
    found: dict[str, Any] = file.problem["suggestion"]
    return found


CARDS = [
    person(number="REF*23*C-1~"),
    child(number="REF*23*C-2~"),
    child("Toni", "20180506", number="REF*23*C-3~"),
]
BY_FAMILY = {"subscriber": "REF*0F", "dependent": "REF*0F+first_name+dob"}
SUGGESTED: list[tuple[str, list[str], Any]] = [
    ("a number of everybody's own", CARDS, "REF*23"),
    ("a number that two share", [*CARDS[:2], child("Toni", "20180506", number="REF*23*C-2~")], BY_FAMILY),
    ("a number that somebody lacks", [*CARDS[:2], child("Toni", "20180506")], BY_FAMILY),
    ("family and person code", [person(number="REF*17*01~"), child(number="REF*17*02~")], "REF*0F+person_code"),
    ("subscribers alone", [person(), person("Lee", family="F2")], BY_FAMILY),
    ("a family number each, of two", [person(), child(family="F2")], BY_FAMILY),
    ("a family number each, of many", [person(), *(child(family=f"F{n}") for n in range(20))], "REF*0F"),
    ("a dependent alone", [child()], BY_FAMILY),
    ("categories alone with everybody", [person(number="REF*ZZ*A~"), child(number="REF*ZZ*B~")], BY_FAMILY),
    ("members with two loops", [*CARDS, CARDS[0].replace("HLT", "DEN")], "REF*23"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("members", "way"), [each[1:] for each in SUGGESTED], ids=[each[0] for each in SUGGESTED]
)
def test_the_strongest_way_that_everybody_has_alone_is_suggested(
    desk: Desk, members: list[str], way: Any
) -> None:
    file = hand_in(desk, *members)
    assert (file.state, desk.members(), file.rows_done) == ("held", {}, 0)
    assert file.problem is not None
    assert file.problem["code"] == "needs_mapping"
    assert suggestion(file)["mapping"] == {"834": {"identify": way}}
    assert suggestion(file)["reasons"]


def test_a_suggestion_has_figures_and_no_value_of_a_member(desk: Desk) -> None:
    members = [*CARDS[:2], child("Toni", "20180506", number="REF*23*C-2~REF*SY*123456789~")]
    found = suggestion(hand_in(desk, *members))
    by_name = {each["reference"]: each for each in found["references"]}
    assert by_name["REF*23"] == {
        "reference": "REF*23", "people": 3, "with_others": 2, "looks_like_ssn": False,
    }  # fmt: skip
    assert by_name["REF*0F"]["with_others"] == 3
    assert by_name["REF*SY"]["looks_like_ssn"]
    assert not [value for value in ("C-1", "FAMILY1", "Robin", "123456789") if value in repr(found)]


def test_an_accepted_suggestion_loads_the_file_and_is_kept_for_later_ones(desk: Desk) -> None:
    done = accept(desk, hand_in(desk, *CARDS))
    assert (done.state, done.counts, done.problem) == ("done", {"created": 3}, None)
    assert desk.members().keys() == {"C-1", "C-2", "C-3"}
    later = desk.load(file_834(*CARDS).encode(), mapping_name=None, mapping=None)
    assert later.counts == {"unchanged": 3}


def test_another_mapping_may_be_given_and_kept_for_this_file_only(desk: Desk) -> None:
    held = hand_in(desk, *CARDS)
    with pytest.raises(Invalid):
        accept(desk, held, {"834": {"verify": "full"}})
    done = accept(desk, held, {"834": {"identify": "REF*0F+relationship+birth_sequence"}}, keep=False)
    assert done.counts == {"refused": 3}
    with desk.db.read() as tx:
        assert list_mappings(tx, desk.customer.account_id) == []


def test_a_dry_run_says_the_same_and_a_held_file_is_not_approved_or_accepted_twice(desk: Desk) -> None:
    dry = hand_in(desk, *CARDS, dry_run=True)
    assert (dry.state, dry.needs_mapping) == ("done", True)
    held = hand_in(desk, *CARDS)
    with pytest.raises(WrongState, match="file accept"), desk.db.write() as tx:
        approve_file(tx, FileKey(held.id), desk.requester())
    accept(desk, held)
    with pytest.raises(WrongState), desk.db.write() as tx:
        accept_mapping(tx, FileKey(held.id), desk.requester(), mapping={})


def test_a_file_that_only_compares_says_so(desk: Desk) -> None:
    file = desk.load(file_834(*CARDS, purpose="4").encode())
    assert file.problem is not None
    assert (file.state, file.problem["code"]) == ("done", "only_compared")
    assert '"verify": "full"' in file.problem["message"]


def test_a_suggestion_can_be_asked_for_before_a_file_is_loaded() -> None:
    content = file_834(*CARDS).encode()
    whole, part = (
        suggest_mapping(io.BytesIO(text), today="2026-11-20")
        for text in (content, content[: content.index(b"C-3")])
    )
    assert whole["mapping"] == part["mapping"] == {"834": {"identify": "REF*23"}}
    assert (whole["people"], part["people"]) == (3, 2)
