"""Fuzzing: good input is cut, doubled, moved and mixed with what readers stumble over, for as long
as a run has.

An ordinary run has one short turn, the same each time. The others have
`FRONTDESK_TEST_FUZZ_SECONDS` per door: 60 in the night and 600 in the long one unless told.
"""

import os
import re
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.faults.callers import LEVEL, SEED

SECONDS = float(
    os.environ.get("FRONTDESK_TEST_FUZZ_SECONDS") or {"": 0, "nightly": 60, "long": 600}[LEVEL]
)
ROUND = 500  # examples; Hypothesis keeps what it has tried in memory

HOSTILE: tuple[bytes, ...] = (
    *(
        b"",
        b"\0",
        b"\n",
        b"\r",
        b"\r\n",
        b" ",
        b"\t",
        b'"',
        b'""',
        b"'",
        b"\\",
        b"\\N",
        b",",
        b";",
        b"|",
        b"~",
        b"*",
        b":",
        b"^",
    ),
    *(
        b"\xff",
        b"\xfe\xff",
        b"\xef\xbb\xbf",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\x1b",
        b"\x1a",
        b"\xf0\x9f\x98\x80",
        "\u2028".encode(),
    ),
    *(
        "\u202e".encode(),
        "\u0661".encode(),
        "\u0130".encode(),
        b"\xcc\x81" * 9,
        b"-",
        b"-0",
        b"0",
        b"9" * 40,
        b"1e400",
        b"NaN",
    ),
    *(
        b"99991231",
        b"20260230",
        b"00000000",
        b"2026-02-30",
        b"=?utf-8?b?////?=",
        b"=1+1",
        b"#N/A",
        b"%00",
        b"%",
        b"{",
        b"}",
    ),
    *(b"[" * 120, b"<!DOCTYPE x>", b"&#0;", b"&lt;", b"\x1f\x8b", b"PK\x03\x04", b"A" * 300),
)

# From which piece on, how many pieces, and what comes in their place: bytes, or pieces from
# elsewhere, which are put before.
Change = tuple[int, int, bytes | int]


def changes(tokens: Sequence[bytes] = ()) -> st.SearchStrategy[list[Change]]:
    """Up to eight changes; `tokens` are what the format gives a meaning to."""
    put = st.sampled_from([*HOSTILE, *tokens]) | st.binary(max_size=6) | st.integers(0, 10_000)
    return st.lists(
        st.tuples(st.integers(0, 10_000), st.integers(0, 6), put), min_size=1, max_size=8
    )


def changed(raw: bytes, wanted: Sequence[Change], *, between: bytes = b"") -> bytes:
    """The bytes after the changes. `between` are the bytes that end a piece; without, each byte is
    one.
    """
    pieces = (
        re.split(b"([%s])" % re.escape(between), raw)
        if between
        else [bytes([byte]) for byte in raw]
    )
    for place, length, put in wanted:
        at = place % (len(pieces) + 1)
        if isinstance(put, bytes):
            pieces[at : at + length] = [put]
        else:
            source = put % (len(pieces) + 1)
            pieces[at:at] = pieces[source : source + 2 * length]
    return b"".join(pieces)


def fuzz(
    check: Callable[..., None],
    *inputs: st.SearchStrategy[Any],
    examples: int,
    seconds: float = SECONDS,
) -> None:
    """Call `check` with inputs, `examples` times or for longer.

    Each round starts anew from a seed of its own, so that a failure can be seen again.
    """
    until = time.monotonic() + seconds
    for number in count(SEED):
        quiet = settings(
            max_examples=ROUND if seconds else min(ROUND, examples),
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        seed(number)(quiet(given(st.tuples(*inputs))(lambda drawn: check(*drawn))))()
        if time.monotonic() >= until and (seconds or (number - SEED + 1) * ROUND >= examples):
            break
