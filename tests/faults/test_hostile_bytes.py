"""Bodies that chance makes out of good ones and out of what readers stumble over: never our fault,
alike on both databases.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from frontdesk.eligibility.fields import FIELDS
from tests.api.hostile import compact, unreadable
from tests.both import Both, serving_both
from tests.factories import member_body
from tests.faults.callers import times
from tests.faults.fuzzing import HOSTILE, changed, changes, fuzz

EXAMPLES = times(60, long=1_000_000)  # of each of five kinds

TOKENS = b"""
    { } [ ] , : " \\ \\u \\ud83d \\ude00 \\u0000 null true NaN 1e400 -0 18446744073709551616 =?
    "external_id": "metadata":{ "dob":"2026-W01-1" "name": "id": [[[[[[[[ ]]]]]]]] 2026-02-30 @ .
    {"a":{"a":{"a":{"a":{"a":{"a": }}}}}}
""".split()
SEEDS = {
    "eligibility": compact(
        member_body(1, metadata={"a": "é", "b": "\U0001f600"}, middle_name="\u0301")
    ),
    "plan": compact({"name": "Zoë", "description": None, "external_id": "plan-0", "active": True}),
    "token": compact({"grant_type": "client_credentials", "client_id": "x", "client_secret": "y"}),
}
ALLOWED = {"eligibility": {200, 201, 400, 422}, "plan": {200, 400, 422}, "token": {400, 401}}
NAMES = {*FIELDS, "name", "description", "id", "type", "active", "created_at"}
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=300)
    | st.sampled_from(
        ["2026-01-01", "female", "a@b.com", "9999999999", "02134", "TRUE", "Primary", "\0", "=?"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=45), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def both(
    sqlite_template: Path, postgres_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    with serving_both(sqlite_template, postgres_url, tmp_path_factory.mktemp("both")) as services:
        yield services


def send(both: Both, route: str, raw: bytes) -> None:
    path = {"plan": both.plan, "token": "/oauth/token"}.get(route, f"{both.plan}/eligibility")
    reply = both.ask("PATCH" if route == "plan" else "POST", path, raw, token=route != "token")
    assert reply.status in ALLOWED[route]
    if reply.status == 422:
        assert reply.faults
        assert {name.partition(".")[0] for name in reply.faults} <= NAMES


@pytest.mark.parametrize("route", SEEDS)
def test_good_bodies_with_bytes_changed_are_never_our_fault(both: Both, route: str) -> None:
    def check(wanted: Any) -> None:
        send(both, route, changed(SEEDS[route], wanted))

    fuzz(check, changes(TOKENS), examples=EXAMPLES, seconds=0)


def test_bodies_made_of_what_readers_stumble_over_are_never_our_fault(both: Both) -> None:
    hostile = [*TOKENS, *HOSTILE, *(case.raw for case in unreadable() if len(case.raw) < 300)]

    def check(parts: list[bytes], route: str) -> None:
        send(both, route, b"".join(parts))

    parts = st.lists(st.sampled_from(hostile), max_size=12)
    fuzz(check, parts, st.sampled_from(list(SEEDS)), examples=EXAMPLES, seconds=0)


def test_fields_with_any_value_are_never_our_fault(both: Both) -> None:
    def check(values: dict[str, Any], member: int) -> None:
        send(both, "eligibility", compact(member_body(member) | values))

    values = st.dictionaries(st.sampled_from(list(FIELDS)), VALUES, max_size=6)
    fuzz(check, values, st.integers(0, 50), examples=EXAMPLES, seconds=0)
