"""A suggestion becomes a mapping by a person's choices."""

import pytest

from frontdesk.errors import Invalid
from frontdesk.mapping.parser import parse_mapping
from frontdesk.mapping.suggest.accepted import accept
from tests.mapping.suggesting import suggested

CONTENT = "Employee ID,Last,First,Birth Date,Sex,Zip,Hire Date,Employment Status,Ref\n" + "".join(
    f"E-{n:03d},Sample {n},Robin,03/{n + 1:02d}/1980,Female,02134,01/31/2026,"
    f"{'Terminated' if n % 3 == 0 else 'Active'},R{n}\n"
    for n in range(20)
)


def test_the_suggestion_is_accepted_as_it_is_once_its_question_is_answered() -> None:
    found = suggested(CONTENT)
    untouched = {each["column"]: next(iter(each["fields"]), None) for each in found["columns"]}
    open_ = accept(found, columns=untouched, answers={})
    assert open_ == found["mapping"]
    with pytest.raises(Invalid):
        parse_mapping(open_)
    ends = accept(found, columns={}, answers={"Employment Status": 0})
    assert ends["end"][0]["column"] == "Employment Status"
    assert len(parse_mapping(ends).end) == 1
    says_nothing = accept(found, columns={}, answers={"Employment Status": 1})
    assert "end" not in says_nothing
    parse_mapping(says_nothing)


def test_another_field_or_none_takes_the_place_of_the_suggested_one() -> None:
    found = suggested(CONTENT)
    assert found["mapping"]["fields"]["dob"]["column"] == "Birth Date"
    answers = {"Employment Status": 1}
    changed = {"Birth Date": None, "Ref": "member_id"}
    mapping = accept(found, columns=changed, answers=answers)
    assert mapping["fields"].keys() == {"effective_date"}  # neither dob nor member_id
    moved = accept(found, columns={"Ref": "external_id"}, answers=answers)
    assert (moved["columns"]["Ref"], moved["columns"]["Employee ID"]) == ("external_id", None)
    assert mapping["columns"]["Birth Date"] is None
    assert mapping["columns"]["Ref"] == "member_id"
    assert parse_mapping(mapping).columns["ref"] == "member_id"
    assert "dob" in found["mapping"]["fields"]  # the suggestion stays


def test_a_choice_that_is_not_of_the_suggestion_is_refused() -> None:
    found = suggested(CONTENT)
    for columns, answers in (
        ({"Nothing": "dob"}, {}),
        ({}, {"Employment Status": 2}),
        ({}, {"Employment Status": -1}),
        ({}, {"Ref": 0}),
    ):
        with pytest.raises(Invalid):
            accept(found, columns=columns, answers=answers)
    with pytest.raises(Invalid):
        parse_mapping(accept(found, columns={"Ref": "nonsense"}, answers={"Employment Status": 1}))
