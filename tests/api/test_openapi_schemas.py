"""The request schemas of the OpenAPI document beside the parsers: what a schema refuses is refused, what it takes is taken.

Some rules no schema can tell (a real date, an address's syntax); a value that breaks one of these only may fit the schema.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.eligibility import parse_member
from frontdesk.eligibility.fields import FIELDS
from frontdesk.plans import parse_plan_patch
from frontdesk.plans.changes import CHANGEABLE
from tests.api.test_openapi import DOCUMENT, schema_validator
from tests.faults.callers import LEVEL, times

TODAY = "2026-11-20"
NOT_IN_A_SCHEMA = {"control_character", "malformed_email", "not_a_date", "in_the_future", "before_1900"}
MEMBER = DOCUMENT["components"]["schemas"]["MemberChange"]
PLAN_PATCH = DOCUMENT["components"]["schemas"]["PlanPatch"]

# JSON Schema's white space and Python's are the same but for these, of which none is ever meant.
ODD_SPACE = "\x1c\x1d\x1e\x1f\x85\ufeff"
TEXT = st.text(st.characters(exclude_characters=ODD_SPACE, codec="utf-8"), max_size=60)
LONG_TEXT = st.integers(95, 260).map(lambda length: "x" * length)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 200) | st.floats(allow_nan=False) | TEXT | LONG_TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)


def values(schema: dict[str, Any], likely: Any) -> st.SearchStrategy[Any]:
    """Anything, and what is nearly right: the pattern's own texts, other letter case, with and without a character."""
    texts = st.from_regex(schema["pattern"]) if "pattern" in schema else TEXT
    texts = texts.filter(lambda text: not set(text) & set(ODD_SPACE))
    nearly = texts | st.just(str(likely))
    spoilt = st.tuples(nearly, TEXT, st.integers(0, 12)).map(lambda parts: parts[0][: parts[2]] + parts[1])
    return ANYTHING | nearly | nearly.map(str.upper) | nearly.map(str.swapcase) | spoilt


# Made once: patterns and schemas take long to compile.
MEMBER_SCHEMA, PLAN_SCHEMA = schema_validator(MEMBER), schema_validator(PLAN_PATCH)
MEMBER_VALUES = {name: values(MEMBER["properties"][name], field.example) for name, field in FIELDS.items()}
PLAN_VALUES = {name: values(PLAN_PATCH["properties"][name], "Gold") for name in CHANGEABLE}


@pytest.mark.parametrize("name", FIELDS)
@settings(max_examples=times(50, long=1000), database=None, deadline=None, derandomize=LEVEL == "")
@given(data=st.data())
def test_a_members_schema_and_parser_agree_on_every_field(name: str, data: st.DataObject) -> None:
    value = data.draw(MEMBER_VALUES[name])
    body = {"external_id": "1"} | {name: value}
    check(MEMBER_SCHEMA.is_valid(body), [fault.code for fault in parse_member(body, today=TODAY).faults])


@pytest.mark.parametrize("name", CHANGEABLE)
@settings(max_examples=times(50, long=1000), database=None, deadline=None, derandomize=LEVEL == "")
@given(data=st.data())
def test_a_plans_schema_and_parser_agree_on_every_field(name: str, data: st.DataObject) -> None:
    value = data.draw(PLAN_VALUES[name])
    codes = [fault.code for fault in parse_plan_patch({name: value}).faults]
    check(PLAN_SCHEMA.is_valid({name: value}), codes)


def check(fits: bool, codes: list[str]) -> None:
    if fits:
        assert set(codes) <= NOT_IN_A_SCHEMA
    else:
        assert codes
