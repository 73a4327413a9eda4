"""The audit trail as a file of JSON lines that shows any later change: each line carries a digest of all lines up to it.

`chain` is the SHA-256, in hexadecimal, of the `chain` of the line before (nothing at the first line), a line feed, and the
line itself without `chain`, its names sorted. To change, drop or add a line, one must compute every digest after it anew. The
last one is then no longer the one that was noted elsewhere. Retention keeps the chain of what it prunes, so a file that begins
after a pruning ends with the same chain as one that has everything.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from frontdesk.clock import stored_time

PRUNED = "pruned_through"  # the id in the first line of a file that begins after a pruning


class ChainEnd(NamedTuple):
    """The last good line: its digest, the id of its entry, and the bytes up to its end. Empty before the first line."""

    chain: str = ""
    entry_id: int = 0
    size_bytes: int = 0


class BrokenChain(Exception):
    """`line`, counted from 1, is not what was exported there."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def sealed(entries: Iterable[dict[str, Any]], end: ChainEnd) -> Iterator[tuple[bytes, ChainEnd]]:
    """The line of each entry, a row by column, and the end of the chain after it."""
    for entry in entries:
        row = {str(name): value for name, value in entry.items()} | {"at": stored_time(entry["at"])}
        chain = _digest(end.chain, row)
        line = orjson.dumps({**row, "chain": chain}, option=orjson.OPT_APPEND_NEWLINE)
        end = ChainEnd(chain, row["id"], end.size_bytes + len(line))
        yield line, end


def first_line(through_id: int, chain: str) -> tuple[bytes, ChainEnd]:
    """The first line of a file that begins after a pruning: the chain goes on from what was pruned, as if it stood there."""
    line = orjson.dumps({PRUNED: through_id, "chain": chain}, option=orjson.OPT_APPEND_NEWLINE)
    return line, ChainEnd(chain, through_id, len(line))


def ends_of(lines: Iterable[bytes]) -> Iterator[ChainEnd]:
    """The end of the chain after each line. Raises BrokenChain."""
    end = ChainEnd()
    for number, line in enumerate(lines, 1):
        try:
            row = orjson.loads(line)
            told = row.pop("chain")
            if number == 1 and row.keys() == {PRUNED}:
                end = ChainEnd(told, row[PRUNED], len(line))
                yield end
                continue
            end = ChainEnd(_digest(end.chain, row), row["id"], end.size_bytes + len(line))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise BrokenChain(number) from None
        if end.chain != told or not line.endswith(b"\n"):
            raise BrokenChain(number)
        yield end


def _digest(before: str, row: dict[str, Any]) -> str:
    text = orjson.dumps(row, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(before.encode() + b"\n" + text).hexdigest()
