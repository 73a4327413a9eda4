"""Bodies that chance makes out of good ones and out of what readers stumble over: never our fault, alike on both databases.

A refused body leaves nothing behind; that is asked once per round, since each asking is dearer than a request.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from frontdesk.eligibility.fields import FIELDS
from tests.api.hostile import compact, unreadable
from tests.both import Both, Reply, serving_both
from tests.factories import member_body
from tests.faults.callers import times

# 5 million in the long run. Each round starts anew, since what has been tried is kept in memory.
EXAMPLES = times(60, long=5_000)
ROUNDS = times(1, long=200)

TOKENS: list[bytes] = [
    b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u", b"\\ud83d", b"\\ude00", b"\\u0000", b"null", b"true", b"NaN",
    b"1e400", b"-0", b"-", b"0", b"18446744073709551616", b"\0", b"\n", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf",
    b"\xcc\x81", b"=?", b'"external_id":', b'"metadata":{', b'"dob":"2026-W01-1"', b'"name":', b'"id":', b"[[[[[[[[", b"]]]]]]]]",
    b'{"a":' * 40, b"}" * 40, b"2026-02-30", "\u0661".encode(), b"@", b".", b"\r\n", b"\x1b", "\u2028".encode(), b" ",
]  # fmt: skip
SEEDS: dict[str, bytes] = {
    "eligibility": compact(member_body(1, metadata={"a": "é", "b": "\U0001f600"}, middle_name="\u0301")),
    "plan": compact({"name": "Zoë", "description": None, "external_id": "plan-0", "active": True}),
    "token": compact({"grant_type": "client_credentials", "client_id": "x", "client_secret": "y"}),
}
CUTS = st.tuples(
    st.integers(0, 600), st.integers(0, 8), st.sampled_from([b"", *TOKENS]) | st.binary(max_size=4)
)
CHANGES = st.lists(CUTS, min_size=1, max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=300)
    | st.sampled_from(["2026-01-01", "female", "a@b.com", "9999999999", "02134", "TRUE", "Primary", "\0", "=?"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=45), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@pytest.fixture(scope="module")
def both(
    sqlite_template: Path, postgres_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    with serving_both(sqlite_template, postgres_url, tmp_path_factory.mktemp("both")) as services:
        yield services


def changed(raw: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for place, length, put in changes:
        at = place % (len(raw) + 1)
        raw = raw[:at] + put + raw[at + length :]
    return raw


def send(both: Both, route: str, raw: bytes) -> Reply:
    if route == "token":
        return both.ask("POST", "/oauth/token", raw, token=False)
    if route == "plan":
        return both.ask("PATCH", both.plan, raw)
    return both.ask("POST", f"{both.plan}/eligibility", raw)


def check(reply: Reply, allowed: set[int]) -> None:
    assert reply.status in allowed
    if reply.status == 422:
        assert reply.faults
        assert {name.partition(".")[0] for name in reply.faults} <= {
            *FIELDS,
            "name",
            "description",
            "id",
            "type",
            "active",
            "created_at",
        }


ALLOWED = {"eligibility": {200, 201, 400, 422}, "plan": {200, 400, 422}, "token": {400, 401}}

Property = Callable[..., None]


def of_one_round(number: int) -> Callable[[Property], Property]:
    """What makes a property a round of its own, the same one each time: a failure can be seen again."""

    def decorate(test: Property) -> Property:
        quiet = settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
        return seed(number)(quiet(test))

    return decorate


@pytest.mark.parametrize("route", SEEDS)
def test_good_bodies_with_bytes_changed_are_never_our_fault(both: Both, route: str) -> None:
    for number in range(ROUNDS):

        @of_one_round(number)
        @given(CHANGES)
        def a_changed_body(changes: list[tuple[int, int, bytes]]) -> None:
            check(send(both, route, changed(SEEDS[route], changes)), ALLOWED[route])

        a_changed_body()


def test_bodies_made_of_what_readers_stumble_over_are_never_our_fault(both: Both) -> None:
    hostile = [case.raw for case in unreadable() if len(case.raw) < 300]
    for number in range(ROUNDS):

        @of_one_round(number)
        @given(st.lists(st.sampled_from(TOKENS + hostile), max_size=12), st.sampled_from(list(SEEDS)))
        def a_body(parts: list[bytes], route: str) -> None:
            check(send(both, route, b"".join(parts)), ALLOWED[route])

        a_body()


def test_fields_with_any_value_are_never_our_fault(both: Both) -> None:
    for number in range(ROUNDS):

        @of_one_round(number)
        @given(st.dictionaries(st.sampled_from(list(FIELDS)), VALUES, max_size=6), st.integers(0, 50))
        def a_member(values: dict[str, Any], member: int) -> None:
            check(send(both, "eligibility", compact(member_body(member) | values)), ALLOWED["eligibility"])

        a_member()
