"""The request schemas of the OpenAPI document beside the parsers: what a schema refuses is refused,
what it takes is taken.

Some rules no schema can tell (a real date, an address's syntax); a value that breaks one of these
only may fit the schema.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.eligibility import parse_member
from frontdesk.eligibility.fields import FIELDS
from frontdesk.errors import Invalid
from frontdesk.mapping.parser import parse_mapping
from frontdesk.plans import parse_plan_patch
from frontdesk.plans.changes import CHANGEABLE
from tests.api.mappings import HR
from tests.api.reference import DOCUMENT, schema_validator
from tests.faults.callers import LEVEL, times
from tests.mapping.faulty import FAULTS

NOT_IN_A_SCHEMA = {
    "lookalike_character",
    "control_character",
    "malformed_email",
    "not_a_date",
    "in_the_future",
    "before_1900",
}
SCHEMAS = DOCUMENT["components"]["schemas"]

# JSON Schema's white space and Python's are the same but for these, of which none is ever meant.
# Invisible characters (Cf) at the ends are trimmed by the parser; no schema can name them all.
ODD_SPACE = "\x1c\x1d\x1e\x1f\x85\ufeff"
LETTERS = st.characters(exclude_characters=ODD_SPACE, exclude_categories=["Cf"], codec="utf-8")
TEXT = st.text(LETTERS, max_size=60)
LONG_TEXT = st.integers(95, 260).map(lambda length: "x" * length)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 200)
    | st.floats(allow_nan=False)
    | TEXT
    | LONG_TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)


def values(schema: dict[str, Any], likely: Any) -> st.SearchStrategy[Any]:
    """Anything, and what is nearly right: the pattern's own texts, other letter case, with and
    without a character.
    """
    texts = st.from_regex(schema["pattern"], alphabet=LETTERS) if "pattern" in schema else TEXT
    nearly = texts | st.just(str(likely))
    spoilt = st.tuples(nearly, TEXT, st.integers(0, 12)).map(
        lambda parts: parts[0][: parts[2]] + parts[1]
    )
    return ANYTHING | nearly | nearly.map(str.upper) | nearly.map(str.swapcase) | spoilt


# Made once: patterns and schemas take long to compile.
MEMBER, PLAN, MAPPING = (
    schema_validator(SCHEMAS[name]) for name in ("MemberChange", "PlanPatch", "Mapping")
)
VALUES = {
    ("MemberChange", name): values(SCHEMAS["MemberChange"]["properties"][name], field.example)
    for name, field in FIELDS.items()
}
VALUES |= {
    ("PlanPatch", name): values(SCHEMAS["PlanPatch"]["properties"][name], "x")
    for name in CHANGEABLE
}


@pytest.mark.parametrize(("schema", "name"), VALUES)
@settings(max_examples=times(50, long=1000), database=None, deadline=None, derandomize=LEVEL == "")
@given(data=st.data())
def test_schema_and_parser_agree_on_every_field(
    schema: str, name: str, data: st.DataObject
) -> None:
    body = {name: data.draw(VALUES[schema, name])}
    if schema == "PlanPatch":
        fits = PLAN.is_valid(body)
        faults = parse_plan_patch(body).faults
    else:
        body = {"external_id": "1"} | body
        fits = MEMBER.is_valid(body)
        faults = parse_member(body, today="2026-11-20").faults
    codes = {fault.code for fault in faults}
    assert codes <= NOT_IN_A_SCHEMA if fits else codes


IDENTIFY = {"subscriber": "ssn", "dependent": "REF*0F+first_name+dob"}
GOOD: list[dict[str, Any]] = [
    {},
    HR,
    {"columns": {"a": "metadata.k", " B ": "city"}, "clear": ["NULL", "n/a"], "delimiter": "\t"},
    {"fields": {"city": {}, "metadata.Cost Center": {"constant": True}}},
    {
        "fields": {
            "plan": {"column": ["a", "b"], "join": ""},
            "member_id": {"column": "a", "blank": "00"},
        }
    },
    {
        "fields": {
            "dob": {"dates": ["MM/DD/YY", "excel"], "pivot": 0},
            "expiry_date": {"dates": "YYYYMMDD"},
        }
    },
    {
        "fields": {
            "dob": {"dates": ["D. MON YYYY", "YYYY-MM-DD"], "open": ["9999-12-31"], "pad": 1.0}
        }
    },
    {"fields": {"gender": {"values": {"": None, "m f": "male", "x": False}, "part": "first_name"}}},
    {"skip": [{"column": "a", "equals": ["", "x"]}, {"column": "b", "starts_with": "Total"}]},
    {
        "834": {
            "identify": "REF*0F + person_code",
            "member_id": "REF*1L+REF*3H",
            "person_code": "REF*23",
        }
    },
    {"834": {"identify": IDENTIFY, "plan": "HD03+HD04", "coverages": "all"}, "plans": {"a": "b"}},
    {
        "834": {
            "coverages": ["HLT"],
            "family_coverage": "own",
            "verify": "full",
            "counts": "lenient",
        }
    },
    {"end": [{"column": "a", "equals": "x"}], "ssn": "plain", "questions": {"Status": "unrelated"}},
    {"columns": {"Member ID": None}, "header_row": 50, "sheet": "Members"},
]
BAD: dict[str, list[Any]] = {
    "colour": [1],
    "columns": [{"-": "city"}, {"a": "shoe"}, {"a": "metadata." + "k" * 41}],
    "questions": [{"a": "yes"}, {"a": None}, {"a": []}, {"-": "unrelated"}, "open"],
    "ssn": ["hashed"],
    "end": [[{"column": "a"}]],
    "clear": [" ", []],
    "header_row": [0, 51, 1.5, "1", True],
    "sheet": ["", "x" * 32, 1],
    "delimiter": ["x"],
    "plans": [{"a": " "}],
    "fields": [{"dob": {"dates": ["YYYY-MM-DD", "DDMMYY"]}}],
    "834": [
        *(
            None,
            {"person_code": "NM109"},
            {"plan": "INS02"},
            {"family_coverage": "all"},
            {"coverages": []},
        ),
        *(
            {"coverages": None},
            {"verify": "all"},
            {"counts": True},
            {"identify": []},
            {"identify": "NM108"},
        ),
        *(
            {"identify": way}
            for way in ("person_code", "REF*1L+REF*38", "first_name+dob", "NM109+HD04")
        ),
        *({"identify": "NM109" + "+NM109" * 20}, {"identify": {"subscriber": "NM109"}}),
        {"identify": {"subscriber": "NM109", "dependent": ""}},
    ],
}


@pytest.mark.parametrize("mapping", GOOD)
def test_a_mapping_that_is_parsed_fits_the_schema(mapping: dict[str, Any]) -> None:
    parse_mapping(mapping)
    MAPPING.validate(mapping)


@pytest.mark.parametrize(
    "mapping",
    [{part: value} for part, wrong in BAD.items() for value in wrong]
    + [each[0] for each in FAULTS],
)
def test_a_mapping_that_is_refused_does_not_fit(mapping: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        parse_mapping(mapping)
    assert not MAPPING.is_valid(mapping)
