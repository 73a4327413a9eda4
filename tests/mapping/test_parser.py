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


Told = list[tuple[dict[str, Any], list[tuple[str, str]]]]


def of_rule(field: str, part: str, code: str, *wrong: Any) -> Told:
    """The part of a field's rule with each of the wrong values, and its fault."""
    return [({"fields": {field: {part: each}}}, [(f"fields.{field}.{part}", code)]) for each in wrong]


NO_DATES = ("(a+)+$", "MM/DD", "MM/MM/YYYY", "YYYY-MM-DD-YY", "MONTH/DD/YYYY", f"MM{'/' * 50}DD/YYYY")
PARTS = ("column", "join", "blank", "part", "values", "dates", "pivot", "open", "pad", "constant")
FAULTS: Told = [
    ({"fields": []}, [("fields", "wrong_type")]),
    ({"fields": {f"metadata.{number}": {} for number in range(101)}}, [("fields", "not_allowed")]),
    ({"fields": {"shoe": {}}}, [("fields.shoe", "not_allowed")]),
    ({"fields": {"city": 1}}, [("fields.city", "wrong_type")]),
    ({"fields": {"city": {}, "City": {}}}, [("fields.City", "not_allowed")]),
    ({"fields": {"city": {"constant": "x", "column": "a"}}}, [("fields.city.constant", "not_allowed")]),
    ({"fields": {"dob": {"dates": ["MM/DD/YY"]}}}, [("fields.dob.pivot", "required")]),
    *(case for part in PARTS for case in of_rule("city", part, "wrong_type", None)),
    *of_rule("city", "regex", "unknown_field", ".*"),
    *of_rule("city", "join", "wrong_type", 1),
    *of_rule("city", "join", "not_allowed", "-" * 21),
    *of_rule("city", "part", "wrong_type", []),
    *of_rule("city", "values", "not_allowed", {"a": 1}, {"a": "x" * 501}),
    *of_rule("city", "pad", "wrong_type", True),
    *of_rule("city", "pad", "not_allowed", -1, 10**9),
    *of_rule("city", "constant", "not_allowed", "", "x" * 501),
    *of_rule("member_id", "constant", "not_allowed", "x"),
    *of_rule("city", "column", "not_allowed", [], "_", " ", [1], [*"abcdefghijk"], ["a", "a"]),
    *of_rule("dob", "dates", "not_allowed", *([wrong] for wrong in NO_DATES), ["YYYYMMDD"] * 11),
    *of_rule("dob", "open", "not_allowed", "never"),
    ({"skip": {}}, [("skip", "wrong_type")]),
    (
        {"skip": [1, {"column": "a", "like": "b"}]},
        [("skip.0", "wrong_type"), ("skip.1.like", "unknown_field"), ("skip.1", "required")],
    ),
    ({"skip": [{"column": "a"}, {"equals": "a"}]}, [("skip.0", "required"), ("skip.1", "required")]),
    ({"skip": [{"column": "a", "starts_with": ""}]}, [("skip.0.starts_with", "not_allowed")]),
    ({"skip": [{"column": "-", "equals": "a"}]}, [("skip.0.column", "not_allowed")]),
    ({"skip": [{"column": "a", "equals": []}]}, [("skip.0.equals", "not_allowed")]),
    ({"skip": [{"column": "a", "equals": "b"}] * 21}, [("skip", "not_allowed")]),
]
# Faults that no schema can tell, and several at once.
ONLY_PARSED: Told = [
    (
        {"columns": {"Secret é": "shoe_size"}, "colour": 1, "clear": 2},
        [("colour", "unknown_field"), ("columns.Secret%20%C3%A9", "not_allowed"), ("clear", "wrong_type")],
    ),
    ({"834": []}, [("834", "wrong_type")]),
    ({"834": {"lines": ["HLT"]}}, [("834.lines", "unknown_field")]),
    ({"columns": {"A b": "city", "ab": "state"}}, [("columns.ab", "not_allowed")]),
    *of_rule("city", "column", "not_allowed", ["A b", "ab"]),
    *of_rule("gender", "values", "not_allowed", {"m": "male", " M ": "female"}),
    *of_rule("dob", "open", "not_allowed", "2026-02-30"),
]


@pytest.mark.parametrize(("mapping", "expected"), [*FAULTS, *ONLY_PARSED])
def test_a_rule_with_faults_is_refused_by_place(mapping: Any, expected: list[tuple[str, str]]) -> None:
    assert faults(mapping) == expected


def test_nobody_is_told_to_give_all_new_members_one_birth_date() -> None:
    assert remedy_for("dob", is_table=False) == "ask the sender for it"
    assert '{"constant": "unknown"}' in remedy_for("gender", is_table=False)
