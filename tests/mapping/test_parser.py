"""A mapping is untrusted JSON: all its faults are told at once, by place, without the values."""

from typing import Any

import pytest

from frontdesk.errors import Invalid
from frontdesk.mapping.parser import NO_MAPPING, FileMapping, MemberWay, parse_mapping, remedy_for


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
    assert parse_mapping({"834": {"coverages": [" hlt ", "DEN"]}}).lines == frozenset({"HLT", "DEN"})
    assert parse_mapping({"834": {"coverages": "all"}}).lines is None


FAULTS: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    ({"fields": []}, [("fields", "wrong_type")]),
    ({"fields": {"shoe": {}}}, [("fields.shoe", "not_allowed")]),
    ({"fields": {"city": 1}}, [("fields.city", "wrong_type")]),
    ({"fields": {"city": {}, "City": {}}}, [("fields.City", "not_allowed")]),
    ({"fields": {"city": {"regex": ".*"}}}, [("fields.city.regex", "unknown_field")]),
    ({"fields": {"city": {"join": 1}}}, [("fields.city.join", "wrong_type")]),
    ({"fields": {"city": {"part": []}}}, [("fields.city.part", "wrong_type")]),
    ({"fields": {"city": {"values": {"a": 1}}}}, [("fields.city.values", "not_allowed")]),
    ({"fields": {"city": {"pad": -1}}}, [("fields.city.pad", "not_allowed")]),
    ({"fields": {"city": {"pad": True}}}, [("fields.city.pad", "wrong_type")]),
    ({"fields": {"city": {"pad": 10**9}}}, [("fields.city.pad", "not_allowed")]),
    *(
        ({"fields": {"city": wrong}}, [("fields.city.constant", "not_allowed")])
        for wrong in ({"constant": ""}, {"constant": "x", "column": "a"}, {"constant": "x" * 501})
    ),
    ({"fields": {"member_id": {"constant": "x"}}}, [("fields.member_id.constant", "not_allowed")]),
    ({"fields": {"dob": {"dates": ["MM/DD/YY"]}}}, [("fields.dob.pivot", "required")]),
    *(
        ({"fields": {"dob": {"dates": [wrong]}}}, [("fields.dob.dates", "not_allowed")])
        for wrong in (
            "(a+)+$",
            "MM/DD",
            "MM/MM/YYYY",
            "YYYY-MM-DD-YY",
            "MONTH/DD/YYYY",
            f"MM{'/' * 50}DD/YYYY",
        )
    ),
    ({"fields": {"dob": {"open": "never"}}}, [("fields.dob.open", "not_allowed")]),
    ({"skip": {}}, [("skip", "wrong_type")]),
    (
        {"skip": [1, {"column": "a", "like": "b"}]},
        [("skip.0", "wrong_type"), ("skip.1.like", "unknown_field"), ("skip.1", "required")],
    ),
    ({"skip": [{"column": "a"}, {"equals": "a"}]}, [("skip.0", "required"), ("skip.1", "required")]),
    ({"skip": [{"column": "a", "starts_with": ""}]}, [("skip.0.starts_with", "not_allowed")]),
    (
        {"skip": [{"column": "-", "equals": []}]},
        [("skip.0.column", "not_allowed"), ("skip.0.equals", "not_allowed")],
    ),
    ({"skip": [{"column": "a", "equals": "b"}] * 21}, [("skip", "not_allowed")]),
    ({"fields": {f"metadata.{number}": {} for number in range(101)}}, [("fields", "not_allowed")]),
    *(
        ({"fields": {"city": {part: None}}}, [(f"fields.city.{part}", "wrong_type")])
        for part in ("column", "join", "blank", "part", "values", "dates", "pivot", "open", "pad", "constant")
    ),
    *(
        ({"fields": {"city": {"column": wrong}}}, [("fields.city.column", "not_allowed")])
        for wrong in ([], "_", " ", [1], [*"abcdefghijk"], ["a", "a"])
    ),
    ({"fields": {"dob": {"dates": ["YYYYMMDD"] * 11}}}, [("fields.dob.dates", "not_allowed")]),
    ({"fields": {"city": {"join": "-" * 21}}}, [("fields.city.join", "not_allowed")]),
    ({"fields": {"city": {"values": {"a": "x" * 501}}}}, [("fields.city.values", "not_allowed")]),
]
# Faults that no schema can tell, and several at once.
ONLY_PARSED: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    (
        {"columns": {"Secret é": "shoe_size"}, "colour": 1, "clear": 2},
        [("colour", "unknown_field"), ("columns.Secret%20%C3%A9", "not_allowed"), ("clear", "wrong_type")],
    ),
    ({"834": []}, [("834", "wrong_type")]),
    (
        {"834": {"coverages": [], "lines": ["HLT"]}},
        [("834.lines", "unknown_field"), ("834.coverages", "not_allowed")],
    ),
    (
        {"fields": {"gender": {"values": {"m": "male", " M ": "female"}}}},
        [("fields.gender.values", "not_allowed")],
    ),
    ({"fields": {"dob": {"open": "2026-02-30"}}}, [("fields.dob.open", "not_allowed")]),
    ({"columns": {"A b": "city", "ab": "state"}}, [("columns.ab", "not_allowed")]),
    ({"fields": {"city": {"column": ["A b", "ab"]}}}, [("fields.city.column", "not_allowed")]),
]


@pytest.mark.parametrize(("mapping", "expected"), [*FAULTS, *ONLY_PARSED])
def test_a_rule_with_faults_is_refused_by_place(
    mapping: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert faults(mapping) == expected


def test_nobody_is_told_to_give_all_new_members_one_birth_date() -> None:
    assert remedy_for("dob", is_table=False) == "ask the sender for it"
    assert '{"constant": "unknown"}' in remedy_for("gender", is_table=False)
