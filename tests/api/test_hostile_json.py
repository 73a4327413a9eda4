"""Hostile bodies: never our fault, the expected fault of the caller, the same on both databases,
and nothing stored.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from frontdesk.eligibility.fields import FIELDS
from tests.api.hostile import compact, unreadable, wrong_metadata, wrong_texts, wrong_types
from tests.both import Both, Reply, serving_both
from tests.factories import member_body
from tests.faults.callers import LEVEL

LIMIT = 64 * 1024
UNREADABLE = list(unreadable())
WRONG_VALUES = [*wrong_types(), *wrong_texts(), *wrong_metadata()]


@pytest.fixture(scope="module")
def both(sqlite_template: Path, postgres_url: str, tmp_path_factory: Any) -> Iterator[Both]:
    with serving_both(sqlite_template, postgres_url, tmp_path_factory.mktemp("both")) as services:
        yield services


def enrol(both: Both, raw: bytes, **options: Any) -> Reply:
    return both.ask("POST", f"{both.plan}/eligibility", raw, **options)


def token(both: Both, raw: bytes, **options: Any) -> Reply:
    return both.ask("POST", "/oauth/token", raw, token=False, **options)


def patch(both: Both, raw: bytes, **options: Any) -> Reply:
    return both.ask("PATCH", both.plan, raw, **options)


def check_problem(reply: Reply, status: int) -> None:
    assert reply.status == status
    assert reply.headers["content-type"] == "application/problem+json"


def test_the_corpus_is_as_large_as_it_says() -> None:
    assert len({case.name for case in UNREADABLE}) == len(UNREADABLE)
    assert 3 * len(UNREADABLE) + len(WRONG_VALUES) >= 1_000


@pytest.mark.parametrize("route", [enrol, patch, token])
def test_a_body_that_no_reader_takes_is_malformed_everywhere(
    both: Both, route: Callable[..., Reply]
) -> None:
    with both.storing_nothing():
        replies = {case.name: route(both, case.raw) for case in UNREADABLE}
    assert [name for name, reply in replies.items() if reply.status != 400] == []
    if route is token:
        assert {reply.body["error"] for reply in replies.values()} == {"invalid_request"}
    else:
        assert {reply.headers["content-type"] for reply in replies.values()} == {
            "application/problem+json"
        }


@pytest.mark.parametrize("name", FIELDS)
def test_a_wrong_value_is_the_fault_of_its_field_and_of_no_other(both: Both, name: str) -> None:
    wrong = [(value, faults) for field, value, faults in WRONG_VALUES if field == name]
    with both.storing_nothing():
        for value, faults in wrong:
            reply = enrol(both, compact(member_body(10_000, **{name: value})))
            assert (reply.status, reply.faults) == (422, faults), repr(value)[:60]
            if isinstance(value, str) and len(value.strip()) > 4:
                assert value.strip() not in json.dumps(reply.body, ensure_ascii=False)


def test_a_wrong_value_is_refused_alike_when_the_member_is_known(both: Both) -> None:
    assert enrol(both, compact(member_body(1))).status in (200, 201)
    known = {"external_id": "AB 000001"}
    some = [wrong for wrong in WRONG_VALUES if wrong[0] != "external_id"][:: 1 if LEVEL else 7]
    with both.storing_nothing():
        replies = [enrol(both, compact(known | {name: value})) for name, value, _ in some]
    assert [(reply.status, reply.faults) for reply in replies] == [
        (422, faults) for _, _, faults in some
    ]


_DEEP = {"k": json.loads("[" * 98 + "]" * 98)}
_ODD_NAMES = ("", "__proto__", "constructor", "id", "plan_id", "\0", "é" * 50, "%0d%0a")
ODD_BUT_GOOD: dict[str, dict[str, Any]] = {
    "spaces around": {"first_name": "  Robin \n", "city": "\u3000Boston\u00a0"},
    "newline after a date": {"dob": "1977-01-11\n", "zipcode": "02134\n", "phone": "9999999999\n"},
    "many letters": {
        "first_name": "\U0001f600",
        "last_name": "Ñandú 王 \u05d0\u202d",
        "city": "a\u200db",
    },
    "decomposed": {"first_name": "Zoe\u0308", "last_name": "\u1112\u1161\u11ab"},
    "at the limit": {
        "first_name": "x" * 100,
        "city": "\U0001f600" * 255,
        "county": "e\u0301" * 255,
    },
    "minus zero": {"relationship_code_hipaa": -0},
    "unknown numbers": {
        "a": 2**64,
        "b": -(2**63) - 1,
        "c": 1e308,
        "d": -0.0,
        "e": 5e-324,
        "f": 10**300,
    },
    "unknown and deep": {"deep": _DEEP},
    "odd names": dict.fromkeys(_ODD_NAMES, 7),
    "three thousand names": {f"n{n}": n for n in range(3_000)},
    "quotes": {
        "last_name": "O'Hara; DROP TABLE members; --",
        "city": '"\\%s{}$1?:x',
        "county": "null",
    },
    "words": {"first_name": "null", "last_name": "true", "city": "NaN", "payor_name": "undefined"},
    "noncharacters": {"last_name": "a\ufffe\uffffb", "city": "\ufdd0", "county": "\U0010ffff"},
    "full metadata": {"metadata": {f"{n:040d}": "v" * 500 for n in range(50)}},
    "metadata of marks": {
        "metadata": {"\u0301" * 40: "\u0301\u0316" * 250, "é": "\U0001f600" * 500}
    },
    "nulls": dict.fromkeys(
        ("email", "phone", "city", "metadata", "expiry_date", "invite_immediately")
    ),
    "a leap day": {"dob": "2000-02-29", "effective_date": "9999-12-31"},
}


@pytest.mark.parametrize("odd", ODD_BUT_GOOD)
def test_what_is_odd_but_good_is_stored_alike_and_read_back_unchanged(both: Both, odd: str) -> None:
    number = 20_000 + list(ODD_BUT_GOOD).index(odd)
    created = enrol(both, compact(member_body(number, **ODD_BUT_GOOD[odd])))
    assert created.status == 201
    again = enrol(both, compact(member_body(number, **ODD_BUT_GOOD[odd])))
    assert (again.status, again.headers["eligibility-outcome"]) == (200, "unchanged")
    assert again.body == created.body


@pytest.mark.parametrize("trickle", [False, True])
def test_the_largest_body_is_read_and_one_byte_more_is_too_large(both: Both, trickle: bool) -> None:
    assert (
        enrol(both, compact(member_body(30_000 + trickle)).ljust(LIMIT), trickle=trickle).status
        == 201
    )
    with both.storing_nothing():
        for route in (enrol, patch, token):
            too_large = compact(member_body(30_002)).ljust(LIMIT + 1)
            check_problem(route(both, too_large, trickle=trickle), 413)
            for declared in ("65537", "9" * 30):
                check_problem(route(both, b"{}", headers={"Content-Length": declared}), 413)


OTHER_TYPES = (
    *(
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ),
    *(
        "application/json; charset=utf-16",
        "application/json; charset=latin-1",
        "application/json; charset=latin-1; charset=utf-8",
        "application/json5",
        "json",
    ),
    *(
        "application/jsonx+xml",
        "application/octet-stream",
        "application/json, text/plain",
        "x" * 15_000,
    ),
)


def test_a_body_declared_as_something_else_is_not_read(both: Both) -> None:
    wrong = [("Content-Type", kind) for kind in OTHER_TYPES]
    with both.storing_nothing():
        for header in (*wrong, ("Content-Encoding", "gzip"), ("Content-Encoding", "br, identity")):
            check_problem(enrol(both, compact(member_body(31_000)), headers=dict([header])), 415)
            check_problem(patch(both, b'{"name":"x"}', headers=dict([header])), 415)
        for good in ("json", "json; charset=UTF-8", "merge-patch+json", "json;" + "a=b;" * 3_000):
            assert patch(both, b"{}", headers={"Content-Type": f"application/{good}"}).status == 200


CHANGEABLE = ("name", "description", "external_id")
READ_ONLY = ("id", "type", "active", "created_at")
MARKS = "\u0301\u0316" * 15_000
NOT_TEXT: tuple[Any, ...] = (True, 0, 1.5, 2**64, [], {}, ["x"])
NOT_AS_STORED: tuple[Any, ...] = (None, "x", -1, 2**64, [], {}, 1.5)
WRONG_IN_A_PLAN: list[tuple[dict[str, Any], str]] = [
    *(({name: value}, "wrong_type") for name in CHANGEABLE for value in NOT_TEXT),
    *(
        ({name: blank}, "required")
        for name in ("name", "external_id")
        for blank in (None, "", " \n")
    ),
    *(({name: f"a{c}b"}, "control_character") for name in CHANGEABLE for c in "\0\n\x7f\u2029"),
    *(
        ({name: text}, "too_long")
        for name in ("name", "external_id")
        for text in ("a" * 256, "é" * 256, MARKS)
    ),
    *(({"description": text}, "too_long") for text in ("a" * 2_001, MARKS, "a" * 60_000)),
    *(({name: value}, "read_only") for name in READ_ONLY for value in NOT_AS_STORED),
    *(
        ({name: value}, "read_only")
        for name, value in (("id", True), ("id", 1.0), ("active", 1), ("active", "true"))
    ),
]


def test_a_wrong_value_of_a_plan_is_the_fault_of_its_field(both: Both) -> None:
    with both.storing_nothing():
        replies = [patch(both, compact(body)) for body, _ in WRONG_IN_A_PLAN]
    expected = [(422, dict.fromkeys(body, code)) for body, code in WRONG_IN_A_PLAN]
    assert [(reply.status, reply.faults) for reply in replies] == expected


CLIENT = {
    "grant_type": "client_credentials",
    "client_id": "nobody",
    "client_secret": "x",
    "scope": "customer",
}


@pytest.mark.parametrize("name", CLIENT)
def test_hostile_parameters_of_a_token_request_are_the_callers_fault(both: Both, name: str) -> None:
    with both.storing_nothing():
        for unreadable_value in (*NOT_TEXT, "a\0b", "a\nb"):
            assert token(both, compact(CLIENT | {name: unreadable_value})).status == 400
        for wrong in (None, "", " ", "é" * 1_000, "x" * 60_000, MARKS, "' OR 1=1 --"):
            assert token(both, compact(CLIENT | {name: wrong})).status == 401
