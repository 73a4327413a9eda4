"""Mappings with faults, and the faults that the parser tells of each."""

from typing import Any

Told = list[tuple[dict[str, Any], list[tuple[str, str]]]]


def of_rule(field: str, part: str, code: str, *wrong: Any) -> Told:
    """The part of a field's rule with each of the wrong values, and its fault."""
    return [
        ({"fields": {field: {part: each}}}, [(f"fields.{field}.{part}", code)]) for each in wrong
    ]


NO_DATES = (
    "(a+)+$",
    "MM/DD",
    "MM/MM/YYYY",
    "YYYY-MM-DD-YY",
    "MONTH/DD/YYYY",
    f"MM{'/' * 50}DD/YYYY",
)
PARTS = ("column", "join", "blank", "part", "values", "dates", "pivot", "open", "pad", "constant")
FAULTS: Told = [
    ({"fields": []}, [("fields", "wrong_type")]),
    ({"fields": {f"metadata.{number}": {} for number in range(101)}}, [("fields", "not_allowed")]),
    ({"fields": {"shoe": {}}}, [("fields.shoe", "not_allowed")]),
    ({"fields": {"city": 1}}, [("fields.city", "wrong_type")]),
    ({"fields": {"city": {}, "City": {}}}, [("fields.City", "not_allowed")]),
    (
        {"fields": {"city": {"constant": "x", "column": "a"}}},
        [("fields.city.constant", "not_allowed")],
    ),
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
    (
        {"skip": [{"column": "a"}, {"equals": "a"}]},
        [("skip.0", "required"), ("skip.1", "required")],
    ),
    ({"skip": [{"column": "a", "starts_with": ""}]}, [("skip.0.starts_with", "not_allowed")]),
    ({"skip": [{"column": "-", "equals": "a"}]}, [("skip.0.column", "not_allowed")]),
    ({"skip": [{"column": "a", "equals": []}]}, [("skip.0.equals", "not_allowed")]),
    ({"skip": [{"column": "a", "equals": "b"}] * 21}, [("skip", "not_allowed")]),
]
