"""A suggestion becomes a mapping by a person's choices."""

import pytest

from frontdesk.errors import Invalid
from frontdesk.mapping.parser import parse_mapping
from frontdesk.mapping.suggest.accepted import (
    accept,
    answer_of,
    fields_of,
    is_open,
    reads_day_first,
)
from tests.mapping.suggesting import suggested

CONTENT = "Employee ID,Last,First,Birth Date,Sex,Zip,Hire Date,Employment Status,Ref\n" + "".join(
    f"E-{n:03d},Sample {n},Robin,03/{n + 1:02d}/1980,Female,02134,01/31/2026,"
    f"{'Terminated' if n % 3 == 0 else 'Active'},R{n}\n"
    for n in range(20)
)


def test_the_suggestion_is_accepted_as_it_is_once_its_question_is_answered() -> None:
    found = suggested(CONTENT)
    untouched = {each["column"]: next(iter(each["fields"]), None) for each in found["columns"]}
    open_ = accept(found, year=2026, columns=untouched, answers={})
    assert open_ == found["mapping"]
    with pytest.raises(Invalid):
        parse_mapping(open_)
    ends = accept(found, year=2026, columns={}, answers={"Employment Status": 0})
    assert ends["end"][0]["column"] == "Employment Status"
    assert len(parse_mapping(ends).end) == 1
    says_nothing = accept(found, year=2026, columns={}, answers={"Employment Status": 1})
    assert "end" not in says_nothing
    parse_mapping(says_nothing)


def test_another_field_or_none_takes_the_place_of_the_suggested_one() -> None:
    found = suggested(CONTENT)
    assert found["mapping"]["fields"]["dob"]["column"] == "Birth Date"
    answers = {"Employment Status": 1}
    changed = {"Birth Date": None, "Ref": "member_id"}
    mapping = accept(found, year=2026, columns=changed, answers=answers)
    assert mapping["fields"].keys() == {"effective_date"}  # neither dob nor member_id
    moved = accept(found, year=2026, columns={"Ref": "external_id"}, answers=answers)
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
            accept(found, year=2026, columns=columns, answers=answers)
    with pytest.raises(Invalid):
        parse_mapping(
            accept(found, year=2026, columns={"Ref": "nonsense"}, answers={"Employment Status": 1})
        )


FAMILY_FILE = "Subscriber ID,Person Code,Last,First,DOB,Sex,Zip,Effective Date\n" + "".join(
    f"S{n // 2:03d},0{n % 2},Sample,Robin{n},1980-01-{n + 1:02d},F,02134,2026-01-01\n"
    for n in range(12)
)


def test_a_join_that_loses_a_column_keeps_the_others() -> None:
    found = suggested(FAMILY_FILE)
    rule = found["mapping"]["fields"]["external_id"]
    assert rule["column"] == ["Subscriber ID", "Person Code"]
    unchanged = accept(
        found, year=2026, columns=dict.fromkeys(rule["column"], "external_id"), answers={}
    )
    assert unchanged == found["mapping"]  # one claim of two columns
    mapping = accept(found, year=2026, columns={"Person Code": None}, answers={})
    assert mapping["fields"]["external_id"]["column"] == "Subscriber ID"
    assert "join" not in mapping["fields"]["external_id"]
    assert fields_of(mapping, "person_code") == ()
    parse_mapping(mapping)


def test_a_field_that_two_columns_are_given_is_refused() -> None:
    found = suggested(CONTENT)
    with pytest.raises(Invalid) as refused:
        accept(found, year=2026, columns={"Last": "last_name", "Ref": "last_name"}, answers={})
    [fault] = refused.value.faults
    assert (fault.field, fault.code) == ("last_name", "repeated")


def test_a_date_that_moves_to_another_column_is_read_as_before() -> None:
    found = suggested(CONTENT)
    mapping = accept(
        found, year=2026, columns={"Hire Date": None, "Ref": "effective_date"}, answers={}
    )
    assert mapping["fields"]["dob"]["dates"] == ["MM/DD/YYYY"]
    assert mapping["fields"]["effective_date"] == {"column": "Ref", "dates": ["MM/DD/YYYY"]}
    moved = accept(
        found, year=2026, columns={"Birth Date": "effective_date", "Hire Date": "dob"}, answers={}
    )
    assert moved["fields"]["dob"]["column"] == "Hire Date"
    assert fields_of(moved, "Birth Date") == ("effective_date",)
    assert fields_of(moved, "Hire Date") == ("dob",)


def test_the_order_of_dates_is_turned_and_both_stay_where_both_are() -> None:
    found = suggested(CONTENT)
    assert reads_day_first(found["mapping"], "birth_date") is False
    assert reads_day_first(found["mapping"], "Zip") is None
    turned = accept(
        found, year=2026, columns={"Birth Date": "dob"}, answers={}, day_first={"Birth Date": True}
    )
    assert turned["fields"]["dob"]["dates"] == ["DD/MM/YYYY"]
    assert turned["fields"]["effective_date"]["dates"] == ["MM/DD/YYYY"]
    back = accept(
        found,
        year=2026,
        columns={"Birth Date": "dob"},
        answers={},
        day_first={"Birth Date": False},
        base=turned,
    )
    assert back == found["mapping"]
    turned["fields"]["dob"]["dates"] = ["DD/MM/YYYY", "MM/DD/YYYY", "YYYYMMDD"]
    both = accept(
        found,
        year=2026,
        columns={"Birth Date": "dob"},
        answers={},
        day_first={"Birth Date": False},
        base=turned,
    )
    assert both["fields"]["dob"]["dates"] == ["MM/DD/YYYY", "YYYYMMDD", "DD/MM/YYYY"]


def test_an_answer_takes_the_place_of_the_other_and_is_read_back() -> None:
    found = suggested(CONTENT)
    [question] = found["questions"]
    assert (answer_of(found["mapping"], question), is_open(found["mapping"], question)) == (
        None,
        True,
    )
    mapping = None
    for number in (0, 1, 0):
        answers = {"Employment Status": number}
        mapping = accept(found, year=2026, columns={}, answers=answers, base=mapping)
        assert answer_of(mapping, question) == number
        assert ("end" in mapping) == (number == 0)
        assert not is_open(mapping, question)
        parse_mapping(mapping)
    own = {"end": [{"column": "employment status", "equals": "gone"}]}
    assert (answer_of(own, question), is_open(own, question)) == (None, False)
