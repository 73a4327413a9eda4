"""What became of each row, packed by the chunk and unpacked for the report and for the undo; it decides nothing."""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from frontdesk.db import Database
from frontdesk.files import store
from frontdesk.files.model import WARNED, RowOutcome


def pack(entries: Sequence[RowOutcome]) -> bytes:
    return zlib.compress(orjson.dumps([tuple(entry) for entry in entries]), 1)


def unpack(content: bytes) -> list[RowOutcome]:
    rows: list[list[Any]] = orjson.loads(zlib.decompress(content))
    return [RowOutcome(*row) for row in rows]


def count(entries: Iterable[RowOutcome]) -> Counter[str]:
    """Rows by outcome, and how many were warned about."""
    counts: Counter[str] = Counter()
    for entry in entries:
        counts[entry.outcome] += 1
        if entry.warnings:
            counts[WARNED] += 1
    return counts


def read_outcomes(
    db: Database, file_id: int, *, backwards_from: int | None = None
) -> Iterator[list[RowOutcome]]:
    """The chunks' entries in order, or from chunk `backwards_from` back to the first; one chunk in memory at a time."""
    number = 0 if backwards_from is None else backwards_from
    while number >= 0:
        at = number
        content = db.ask(lambda tx, at=at: store.find_outcomes(tx, file_id, at))  # type: ignore[misc]
        if content is None:
            return
        yield unpack(content)
        number += 1 if backwards_from is None else -1
