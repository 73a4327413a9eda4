"""A mapping is untrusted JSON: all its faults are told at once, by place, without the values."""

from typing import Any

import pytest

from frontdesk.errors import Invalid
from frontdesk.mapping.parser import NO_MAPPING, FileMapping, MemberWay, parse_mapping, remedy_for
from tests.mapping.faulty import FAULTS, Told, of_rule


def faults(body: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(Invalid) as caught:
        parse_mapping(body)
    return [(fault.field, fault.code) for fault in caught.value.faults]


def test_a_whole_mapping() -> None:
    assert parse_mapping({}) == NO_MAPPING
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
        ("delimiter", [], "wrong_type"),
        ("clear", "", "not_allowed"),
        ("clear", [], "not_allowed"),
        ("clear", ["x", ""], "not_allowed"),
        ("clear", 1, "wrong_type"),
        ("plans", "gold", "wrong_type"),
        ("plans", {"a": ""}, "not_allowed"),
        ("ssn", "hashed", "not_allowed"),
        ("834.identify", [], "wrong_type"),
        ("834.identify", {"subscriber": "NM109"}, "not_allowed"),
        ("834.identify.dependent", {"subscriber": "NM109", "dependent": 1}, "wrong_type"),
        ("834.identify", "+".join(["NM109"] * 20), "not_allowed"),
        *(
            ("834.identify", way, "not_allowed")
            for way in ("NM108", "REF*38", "first_name+dob", "REF*0F+HD03")
        ),
        ("834.member_id", "REF*1L+person_code", "not_allowed"),
        ("834.person_code", "NM109", "not_allowed"),
        ("834.person_code", 17, "wrong_type"),
        ("834.plan", "INS02", "not_allowed"),
        ("834.plan", ["HD04"] * 101, "not_allowed"),
        ("834.coverages", "HLT", "not_allowed"),
        ("834.coverages", [], "not_allowed"),
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
        *({"a": 1}, {"a": True}, {"-_ ": "city"}, {"a": "metadata.", "b": "metadata. "}),
        *({"a": "metadata." + "k" * 41}, {"Emp No": "member_id", "EMP_NO": "external_id"}),
    ],
)
def test_a_column_is_mapped_to_one_field_that_there_is(columns: dict[str, Any]) -> None:
    assert {place.partition(".")[0] for place, _ in faults({"columns": columns})} == {"columns"}


def test_the_same_can_be_said_in_several_ways() -> None:
    twice = {"columns": {"Emp No": "member_id", "emp_no": "member_id"}}
    assert parse_mapping(twice).columns == {"empno": "member_id"}
    assert parse_mapping({"clear": ["NULL", " n/a "]}).clear == {"NULL", "n/a"}
    assert parse_mapping({"834": {"coverages": [" hlt ", "DEN"]}}).lines == frozenset(
        {"HLT", "DEN"}
    )
    assert parse_mapping({"834": {"coverages": "all"}}).lines is None


# Faults that no schema can tell, and several at once.
ONLY_PARSED: Told = [
    (
        {"columns": {"Secret é": "shoe_size"}, "colour": 1, "clear": 2},
        [
            ("colour", "unknown_field"),
            ("columns.Secret%20%C3%A9", "not_allowed"),
            ("clear", "wrong_type"),
        ],
    ),
    ({"834": []}, [("834", "wrong_type")]),
    ({"834": {"lines": ["HLT"]}}, [("834.lines", "unknown_field")]),
    ({"columns": {"A b": "city", "ab": "state"}}, [("columns.ab", "not_allowed")]),
    *of_rule("city", "column", "not_allowed", ["A b", "ab"]),
    *of_rule("gender", "values", "not_allowed", {"m": "male", " M ": "female"}),
    *of_rule("dob", "open", "not_allowed", "2026-02-30"),
]


@pytest.mark.parametrize(("mapping", "expected"), [*FAULTS, *ONLY_PARSED])
def test_a_rule_with_faults_is_refused_by_place(
    mapping: Any, expected: list[tuple[str, str]]
) -> None:
    assert faults(mapping) == expected


def test_of_very_many_faults_the_first_hundred_are_told() -> None:
    """And no others: a question about a column is not judged by half of the mapping."""
    columns = {f"Column {number}": "nothing" for number in range(1500)}
    answers = {
        "columns": columns,
        "questions": {"Status": "open"},
        "skip": [{"column": "Status", "equals": "x"}],
    }
    assert faults(answers) == [
        (f"columns.Column%20{number}", "not_allowed") for number in range(100)
    ]


def test_nobody_is_told_to_give_all_new_members_one_birth_date() -> None:
    assert remedy_for("dob", is_table=False) == "ask the sender for it"
    assert '{"constant": "unknown"}' in remedy_for("gender", is_table=False)
