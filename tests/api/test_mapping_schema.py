"""The schema of a mapping takes what the parser takes, and refuses what it refuses."""

from typing import Any

import pytest

from frontdesk.errors import Invalid
from frontdesk.mapping.parser import parse_mapping
from tests.api.test_mappings import HR
from tests.api.test_openapi import DOCUMENT, schema_validator
from tests.mapping.test_parser import FAULTS

SCHEMA = schema_validator(DOCUMENT["components"]["schemas"]["Mapping"])

GOOD: list[dict[str, Any]] = [
    {},
    HR,
    {"columns": {"a": "metadata.k", " B ": "city"}, "clear": ["NULL", "n/a"], "delimiter": "\t"},
    {
        "fields": {
            "city": {},
            "metadata.Cost Center": {"constant": True},
            "plan": {"column": ["a", "b"], "join": ""},
        }
    },
    {"fields": {"dob": {"dates": ["MM/DD/YY", "excel"], "pivot": 0}, "expiry_date": {"dates": "YYYYMMDD"}}},
    {"fields": {"dob": {"dates": ["D. MON YYYY", "YYYY-MM-DD"], "open": ["9999-12-31"], "pad": 1.0}}},
    {"fields": {"gender": {"values": {"": None, "m f": "male", "x": False}, "part": "first_name"}}},
    {"fields": {"member_id": {"column": ["a", "b"], "join": "-", "blank": "00"}}},
    {"skip": [{"column": "a", "equals": ["", "x"]}, {"column": "b", "starts_with": "Total"}]},
    {"834": {"identify": "REF*0F + person_code", "member_id": "REF*1L+REF*3H", "person_code": "REF*23"}},
    {"834": {"identify": {"subscriber": "ssn", "dependent": "REF*0F+first_name+dob"}}},
    {"end": [{"column": "a", "equals": "x"}], "ssn": "plain"},
    {"columns": {"Member ID": None}, "questions": {"Status": "unrelated"}},
    {"header_row": 50, "sheet": "Members"},
    {"834": {"plan": "HD03+HD04", "coverages": "all"}, "plans": {"a": "b"}},
    {
        "ssn": "plain",
        "834": {"coverages": ["HLT"], "family_coverage": "own", "verify": "full", "counts": "lenient"},
    },
]
BAD_WAYS: list[Any] = [
    "person_code",
    "REF*1L+REF*38",
    "first_name+dob",
    "NM109+HD04",
    "NM108",
    [],
    {"subscriber": "NM109"},
    {"subscriber": "NM109", "dependent": ""},
    "NM109" + "+NM109" * 20,
]
BAD: list[dict[str, Any]] = [
    {"colour": 1},
    {"columns": {"-": "city"}},
    {"columns": {"a": "shoe"}},
    {"columns": {"a": "metadata." + "k" * 41}},
    *(
        {"questions": {name: answer}}
        for name, answer in (("a", "yes"), ("a", None), ("a", []), ("-", "unrelated"))
    ),
    {"questions": "open"},
    {"ssn": "hashed"},
    {"end": [{"column": "a"}]},
    {"clear": " "},
    *({"header_row": row} for row in (0, 51, 1.5, "1", True)),
    *({"sheet": name} for name in ("", "x" * 32, 1)),
    {"clear": []},
    {"delimiter": "x"},
    {"plans": {"a": " "}},
    {"fields": {"dob": {"dates": ["YYYY-MM-DD", "DDMMYY"]}}},
    *({"834": {"identify": way}} for way in BAD_WAYS),
    {"834": {"person_code": "NM109"}},
    {"834": {"plan": "INS02"}},
    {"834": {"family_coverage": "all"}},
    {"834": {"coverages": []}},
    {"834": {"coverages": None}},
    {"ssn": "hashed"},
    {"834": {"verify": "all"}},
    {"834": {"counts": True}},
    {"834": None, "834.verify": "full"},
    *(mapping for mapping, _ in FAULTS),
]


@pytest.mark.parametrize("mapping", GOOD)
def test_what_is_parsed_fits_the_schema(mapping: dict[str, Any]) -> None:
    parse_mapping(mapping)
    SCHEMA.validate(mapping)


@pytest.mark.parametrize("mapping", BAD)
def test_what_is_refused_does_not_fit(mapping: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        parse_mapping(mapping)
    assert not SCHEMA.is_valid(mapping)
