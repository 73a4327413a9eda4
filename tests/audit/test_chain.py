"""Any change of an exported trail is found, by the line."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from frontdesk.audit.chain import BrokenChain, ChainEnd, ends_of, sealed

AT = datetime(2026, 11, 20, 12, 0, 0, 5, tzinfo=UTC)


def entry(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "at": AT + timedelta(seconds=number),
        "actor": "cli:ada",
        "action": "client.rotated",
        "account_id": None,
        "detail": {"name": "Ünïcode", "a": [1, None]},
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


@pytest.mark.parametrize(
    ("change", "line"),
    [
        pytest.param(lambda lines: [lines[0], lines[2]], 2, id="dropped"),
        pytest.param(lambda lines: [lines[1], lines[2]], 1, id="first_dropped"),
        pytest.param(lambda lines: [lines[0], lines[0], *lines[1:]], 2, id="doubled"),
        pytest.param(lambda lines: [lines[0], lines[2], lines[1]], 2, id="swapped"),
        pytest.param(lambda lines: [lines[0], lines[1].replace(b"ada", b"eve"), lines[2]], 2, id="edited"),
        pytest.param(lambda lines: [*lines[:2], lines[2].rstrip(b"\n")], 3, id="end_cut"),
        pytest.param(lambda lines: [*lines, b"{}\n"], 4, id="object_added"),
        pytest.param(lambda lines: [*lines, b"not JSON\n"], 4, id="text_added"),
        pytest.param(lambda lines: [*lines, b'["chain"]\n'], 4, id="array_added"),
        pytest.param(lambda lines: [*lines[:2], *lines_of(3)], 3, id="made_anew"),
    ],
)
def test_a_line_that_was_changed_dropped_moved_or_added_is_found(change: Any, line: int) -> None:
    with pytest.raises(BrokenChain) as broken:
        list(ends_of(change(lines_of(1, 2, 3))))
    assert broken.value.line == line
