"""Strict JSON: what two readers could take in two ways is refused, at any depth."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import Malformed
from frontdesk.text import LARGEST_DEPTH
from frontdesk.web.request import parse_json_object

HIGH = r"\ud83d"
LOW = r"\ude00"
PAIR = r"\ud83d\ude00"


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"b":', "}")])
def test_nesting_is_read_to_one_depth_and_no_deeper(opening: str, closing: str) -> None:
    def nested(depth: int, last: str = "") -> bytes:
        """An object that is `depth` levels deep."""
        return ('{"a":' + opening * (depth - 1) + "1" + closing * (depth - 1) + last + "}").encode()

    assert parse_json_object(nested(LARGEST_DEPTH))
    for depth in (LARGEST_DEPTH + 1, 300, *range(900, 1_000, 3), 1_500, 10_000):
        for last in ("", r',"c":"\u0041"'):  # an escape is read in another way
            with pytest.raises(Malformed):
                parse_json_object(nested(depth, last))


def test_many_brackets_side_by_side_are_no_depth() -> None:
    assert len(parse_json_object(b'{"a":[' + b",".join([b"[]"] * 5_000) + b"]}")) == 1
    assert parse_json_object(b'{"a":"' + b"[{" * 5_000 + b'"}')


@pytest.mark.parametrize(
    "place", ['{"a":"%s"}', '{"%s":1}', '{"a":["x","%s"]}', '{"a":{"b":{"%s":[]}}}']
)
def test_a_whole_surrogate_pair_is_text_and_more_than_one_is_not(place: str) -> None:
    for half in (PAIR + LOW, HIGH + PAIR, r"\uDBFF", r"\\" + HIGH):
        with pytest.raises(Malformed):
            parse_json_object((place % half).encode())
    for whole in (PAIR, r"\\ud83d", r"\\\\ude00", r"\u0041", r"\"\\ud800", r"\uD83D\uDE00"):
        assert parse_json_object((place % whole).encode()) == json.loads(place % whole)


LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5)
TREES = st.recursive(
    LEAVES | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=4), TREES, max_size=5), st.booleans())
def test_good_json_is_read_as_it_was_meant(value: dict[str, Any], plain: bool) -> None:
    assert parse_json_object(json.dumps(value, ensure_ascii=plain).encode()) == value


@pytest.mark.parametrize(
    ("raw", "detail"),
    [(b'{"a": 1,\n "b": }', "The body is not valid JSON: line 2, column 7."),
     (b"", "The body is not valid JSON: line 1, column 1."),
     (b'{"a": 1}\n{', "The body is not valid JSON: line 2, column 1."),
     (b'{"a": 1,\n "b": "\xff"}', "The body is not valid JSON in UTF-8: line 2."),
     (b'{"a": {"last name": 1, "last name": 2}}', "The body has the key last%20name twice."),
     (b'{"%s": 1, "%s": 2}' % (b"x" * 99, b"x" * 99), f"The body has the key {'x' * 40} twice."),
     (b'{"a": 1, "b": 2, "b": 3, "a": 4}', "The body has the key b twice."),
     (b'{"\\ud800": 1, "\\ud800": 2}', "The body has the key %3F twice.")],
)  # fmt: skip
def test_a_refused_body_is_told_where_it_goes_wrong(raw: bytes, detail: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse_json_object(raw)
    assert refused.value.detail == detail
