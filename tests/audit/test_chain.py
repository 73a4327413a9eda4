"""Any change of an exported trail is found, by the line."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from frontdesk.audit.chain import BrokenChain, ChainEnd, TrailPruning, ends_of, first_line, sealed

AT = datetime(2026, 11, 20, 12, 0, 0, 5, tzinfo=UTC)


def entry(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "at": AT + timedelta(seconds=number),
        "actor": "cli:ada",
        "action": "client.rotated",
        "account_id": None,
        "detail": {"name": "Ünïcode", "a": [1, None, 0.5]},
    }


def lines_of(*numbers: int, after: ChainEnd = ChainEnd()) -> list[bytes]:  # noqa: B008 - it is a value
    return [line for line, _ in sealed(map(entry, numbers), after)]


def test_an_export_is_whole_and_is_continued_where_it_ended() -> None:
    [*_, (_, end)] = sealed(map(entry, (1, 2)), ChainEnd())
    both = lines_of(1, 2) + lines_of(3, after=end)
    assert both == lines_of(1, 2, 3)
    *_, found = ends_of(both)
    assert found.entry_id == 3
    assert found.size_bytes == sum(map(len, both))


def old_beginning(lines: list[bytes]) -> bytes:
    """What stands for the first line, by the chain alone."""
    return orjson.dumps({"pruned_through": 1, "chain": orjson.loads(lines[0])["chain"]}) + b"\n"


def new_beginning(lines: list[bytes]) -> bytes:
    return first_line(TrailPruning(1, orjson.loads(lines[0])["chain"]))[0]


def changed(before: bytes, after: bytes) -> Callable[[list[bytes]], list[bytes]]:
    """Change the second line. What one gives to it has to be there."""

    def change(lines: list[bytes]) -> list[bytes]:
        assert before in lines[1]
        return [lines[0], lines[1].replace(before, after, 1), *lines[2:]]

    return change


def reordered(line: bytes) -> bytes:
    row = orjson.loads(line)
    return orjson.dumps(dict(reversed(row.items()))) + b"\n"


# The first line that is not what was exported. Where the values are the same, the bytes are not.
CHANGES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], int]] = {
    "dropped": (lambda lines: [lines[0], lines[2]], 2),
    "first dropped": (lambda lines: [lines[1], lines[2]], 1),
    "doubled": (lambda lines: [lines[0], lines[0], *lines[1:]], 2),
    "swapped": (lambda lines: [lines[0], lines[2], lines[1]], 2),
    "edited": (lambda lines: [lines[0], lines[1].replace(b"ada", b"eve"), lines[2]], 2),
    "end cut": (lambda lines: [*lines[:2], lines[2].rstrip(b"\n")], 3),
    "object added": (lambda lines: [*lines, b"{}\n"], 4),
    "text added": (lambda lines: [*lines, b"not JSON\n"], 4),
    "array added": (lambda lines: [*lines, b'["chain"]\n'], 4),
    "made anew": (lambda lines: [*lines[:2], *lines_of(3)], 3),
    "beginning cut as older files had it": (lambda lines: [old_beginning(lines), *lines[1:]], 1),
    "beginning cut": (lambda lines: [new_beginning(lines), *lines[1:]], 2),
    "beginning in the middle": (lambda lines: [*lines[:1], new_beginning(lines), *lines[1:]], 2),
    "key twice": (changed(b'"id":2', b'"id":7,"id":2'), 2),
    "space": (changed(b'"id":2', b'"id": 2'), 2),
    "escape": (changed(b'"cli:ada"', b'"cli:\\u0061da"'), 2),
    "fraction": (changed(b'"id":2', b'"id":2.0'), 2),
    "exponent": (changed(b"0.5", b"5e-1"), 2),
    "carriage return": (changed(b"}\n", b"}\r\n"), 2),
    "names in another order": (lambda lines: [lines[0], reordered(lines[1]), lines[2]], 2),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_line_that_was_changed_dropped_moved_or_added_is_found(name: str) -> None:
    change, line = CHANGES[name]
    with pytest.raises(BrokenChain) as broken:
        list(ends_of(change(lines_of(1, 2, 3))))
    assert broken.value.line == line
