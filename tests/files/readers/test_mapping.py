"""A mapping is untrusted JSON: all its faults are told at once, by place, without the values."""

from typing import Any

import pytest

from frontdesk.errors import Invalid
from frontdesk.mapping.parser import NO_MAPPING, FileMapping, parse_mapping
from frontdesk.mapping.parser_834 import MemberWay


def faults(body: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(Invalid) as caught:
        parse_mapping(body)
    return [(fault.field, fault.code) for fault in caught.value.faults]


def test_nothing_said_means_the_usual() -> None:
    assert parse_mapping({}) == parse_mapping({"columns": None}) == NO_MAPPING


def test_a_whole_mapping() -> None:
    assert parse_mapping(
        {
            "columns": {"Emp No": "External ID", "Div": "metadata.Division"},
            "delimiter": "|",
            "clear": " NULL ",
            "plans": {" A1 ": " gold "},
            "ssn": "plain",
            "834": {
                "identify": {"subscriber": "REF*0F", "dependent": "REF*0F + first_name+dob"},
                "member_id": "REF*ZZ",
                "person_code": "REF*23",
                "plan": ["REF*1L", "HD03+HD04"],
                "coverages": ["HLT"],
                "family_coverage": "subscriber",
            },
        }
    ) == FileMapping(
        columns={"empno": "external_id", "div": "metadata.Division"},
        delimiter="|",
        clear=frozenset({"NULL"}),
        plans={"A1": "gold"},
        ssn="plain",
        identify=MemberWay(("REF*0F",), ("REF*0F", "first_name", "dob")),
        member_id=MemberWay(("REF*ZZ",), ("REF*ZZ",)),
        person_code="REF*23",
        plan=(("REF*1L",), ("HD03", "HD04")),
        lines=frozenset({"HLT"}),
        family_coverage="subscriber",
    )


@pytest.mark.parametrize(
    ("part", "value", "code"),
    [
        ("columns", [], "wrong_type"),
        ("delimiter", "x", "not_allowed"),
        ("delimiter", [], "not_allowed"),
        ("clear", "", "wrong_type"),
        ("clear", 1, "wrong_type"),
        ("plans", "gold", "wrong_type"),
        ("plans", {"a": ""}, "wrong_type"),
        ("ssn", "hashed", "not_allowed"),
        ("834.identify", [], "wrong_type"),
        ("834.identify", {"subscriber": "NM109"}, "wrong_type"),
        ("834.identify.dependent", {"subscriber": "NM109", "dependent": 1}, "not_allowed"),
        ("834.identify", "+".join(["NM109"] * 20), "not_allowed"),
        ("834.identify", "NM108", "not_allowed"),
        ("834.identify", "REF*38", "not_allowed"),
        ("834.identify", "first_name+dob", "not_allowed"),
        ("834.identify", "REF*0F+HD03", "not_allowed"),
        ("834.member_id", "REF*1L+person_code", "not_allowed"),
        ("834.person_code", "NM109", "not_allowed"),
        ("834.person_code", 17, "not_allowed"),
        ("834.plan", "INS02", "not_allowed"),
        ("834.plan", ["HD04"] * 101, "wrong_type"),
        ("834.coverages", "HLT", "wrong_type"),
        ("834.coverages", [], "wrong_type"),
        ("834.family_coverage", "all", "not_allowed"),
    ],
)
def test_a_part_that_can_not_be_used_is_named(part: str, value: Any, code: str) -> None:
    section, _, name = part.partition(".")
    name = name.partition(".")[0]
    assert (part, code) in faults({section: {name: value}} if name else {part: value})


@pytest.mark.parametrize(
    "columns",
    [
        {"a": 1},
        {"a": True},
        {"-_ ": "city"},
        {"a": "metadata.", "b": "metadata. "},
        {"a": "metadata." + "k" * 41},
        {"Emp No": "member_id", "EMP_NO": "external_id"},
    ],
)
def test_a_column_is_mapped_to_one_field_that_there_is(columns: dict[str, Any]) -> None:
    assert {place.partition(".")[0] for place, _ in faults({"columns": columns})} == {"columns"}


def test_a_column_may_be_written_in_two_ways() -> None:
    assert parse_mapping({"columns": {"Emp No": "member_id", "emp_no": "member_id"}}).columns == {
        "empno": "member_id"
    }


def test_several_words_can_clear_a_field() -> None:
    assert parse_mapping({"clear": ["NULL", " n/a "]}).clear == {"NULL", "n/a"}
    assert faults({"clear": []}) == faults({"clear": ["x", ""]}) == [("clear", "wrong_type")]


def test_every_fault_is_told_at_once() -> None:
    body = {"columns": {"Secret é": "shoe_size"}, "colour": 1, "clear": 2}
    assert faults(body) == [
        ("colour", "unknown_field"),
        ("columns.Secret%20%C3%A9", "not_allowed"),
        ("clear", "wrong_type"),
    ]


def test_what_an_account_says_of_its_834s_is_checked_by_place() -> None:
    assert parse_mapping({"834": {"coverages": [" hlt ", "DEN"]}}).lines == frozenset({"HLT", "DEN"})
    assert parse_mapping({"834": {"coverages": "all"}}).lines is None
    assert faults({"834": []}) == [("834", "wrong_type")]
    assert faults({"834": {"coverages": [], "lines": ["HLT"]}}) == [
        ("834.lines", "unknown_field"),
        ("834.coverages", "wrong_type"),
    ]
