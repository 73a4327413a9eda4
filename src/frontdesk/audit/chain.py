"""The audit trail as a file of JSON lines that shows any later change: each line carries a digest
of all lines up to it.

`chain` is the SHA-256, in hexadecimal, of the `chain` of the line before (nothing at the first
line), a line feed, and the line itself without `chain`. A line has exactly one form: its names
sorted, no space, the escapes of orjson. If a line is changed, dropped or added, every later digest
differs, and so does the last digest, which is stored elsewhere.

A file that begins after a pruning has a first line with the id of the last pruned entry and its
digest in the full chain. This line is part of the chain, so the last digest also covers the
beginning.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from frontdesk.text import stored_time


class TrailPruning(NamedTuple):
    """The last pruned entry, and its digest in the full chain."""

    pruned_through: int
    pruned_chain: str


class ChainEnd(NamedTuple):
    """The last good line: its digest, the id of its entry, the bytes and the entries up to its end,
    and the pruning that the file begins after. Empty before the first line.
    """

    chain: str = ""
    entry_id: int = 0
    size_bytes: int = 0
    entries: int = 0
    pruning: TrailPruning | None = None


class BrokenChain(Exception):
    """`line`, counted from 1, is not what was exported there."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


def sealed(entries: Iterable[dict[str, Any]], end: ChainEnd) -> Iterator[tuple[bytes, ChainEnd]]:
    """The line of each entry, a row by column, and the end of the chain after it."""
    for entry in entries:
        row = {str(name): value for name, value in entry.items()} | {"at": stored_time(entry["at"])}
        line, end = _line(row, end, entry_id=row["id"])
        yield line, end


def first_line(pruning: TrailPruning) -> tuple[bytes, ChainEnd]:
    return _line(pruning._asdict(), ChainEnd(pruning=pruning), entry_id=pruning.pruned_through)


def ends_of(lines: Iterable[bytes]) -> Iterator[ChainEnd]:
    """The end of the chain after each line. Raises BrokenChain."""
    end = ChainEnd()
    for number, line in enumerate(lines, 1):
        try:
            row = orjson.loads(line)
            del row["chain"]
            if number == 1 and row.keys() == {*TrailPruning._fields}:
                made, end = first_line(TrailPruning(**row))
            else:
                made, end = _line(row, end, entry_id=row["id"])
        except (ValueError, TypeError, KeyError, AttributeError):
            raise BrokenChain(number) from None
        if made != line:  # by every byte: another text may have the same values
            raise BrokenChain(number)
        yield end


def _line(row: dict[str, Any], end: ChainEnd, *, entry_id: int) -> tuple[bytes, ChainEnd]:
    text = orjson.dumps(row, option=orjson.OPT_SORT_KEYS)
    chain = hashlib.sha256(end.chain.encode() + b"\n" + text).hexdigest()
    line = orjson.dumps(
        {**row, "chain": chain}, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    )
    size = end.size_bytes + len(line)
    # The first line may be no entry.
    entries = end.entries + ("id" in row)
    return line, end._replace(chain=chain, entry_id=entry_id, size_bytes=size, entries=entries)
