"""The SQL of reports: what happened to each row of a file.

Rows that changed nothing and have no warning are kept by the chunk as packed numbers: as rows they would double the time of an
unchanged file (docs/decisions/0140).
"""

import zlib
from array import array
from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, delete, func, insert, select, update

from frontdesk.db import Tx
from frontdesk.db.sets import insert_set
from frontdesk.eligibility import external_ids_of
from frontdesk.eligibility.model import Outcome
from frontdesk.files.model import CHANGED, RowOutcome
from frontdesk.files.tables import eligibility_files, file_rows, file_unchanged, has_rows

FAULT, WARNING = "fault", "warning"

_rows, _unchanged, _files = file_rows.c, file_unchanged.c, eligibility_files.c
_TABLES = (file_rows, file_unchanged)
_NO_DIGESTS = {"sha256": None, "idempotency_digest": None}


def insert_outcomes(tx: Tx, file_id: int, chunk: int, outcomes: Sequence[RowOutcome]) -> None:
    rows: list[dict[str, Any]] = []
    numbers = array("q")
    for position, outcome in enumerate(outcomes):
        if outcome.is_plainly_unchanged:
            numbers.extend((position, outcome.place or 0, outcome.member_id))
        else:
            rows.append({"file_id": file_id, "chunk": chunk, "position": position} | _values(outcome))
    insert_set(tx, file_rows, rows)
    if numbers:
        content = zlib.compress(numbers.tobytes(), 1)
        tx.execute(insert(file_unchanged).values(file_id=file_id, chunk=chunk, content=content))


def find_outcomes(
    tx: Tx, file_id: int, from_chunk: int, *, external_id: str | None = None
) -> tuple[int, list[RowOutcome]] | None:
    """The number of the first chunk from this one on, and the outcomes of its rows in order; None after the last chunk.

    With `external_id`, only the rows with this identifier.
    """
    chunk = _next_chunk(tx, file_id, from_chunk)
    if chunk is None:
        return None
    query = _of_chunk(file_id, chunk)
    if external_id is not None:
        query = query.where(_rows.external_id == external_id)
    found = [(row.position, _outcome(row)) for row in tx.execute(query)]
    packed = (_unchanged.file_id == file_id) & (_unchanged.chunk == chunk)
    content = tx.execute(select(file_unchanged.c.content).where(packed)).scalar()
    if content is not None:
        found += _unpacked(tx, content, external_id)
    return chunk, [outcome for _, outcome in sorted(found)]


def find_changed(tx: Tx, file_id: int, chunk: int) -> list[RowOutcome]:
    """The outcomes of the chunk's rows that changed a member, the last one first."""
    query = _of_chunk(file_id, chunk).where(_rows.outcome.in_(CHANGED)).order_by(None)
    return [_outcome(row) for row in tx.execute(query.order_by(_rows.position.desc()))]


def delete_outcomes(tx: Tx, file_id: int, *, from_chunk: int = 0) -> None:
    for table in _TABLES:
        tx.execute(delete(table).where(table.c.file_id == file_id, table.c.chunk >= from_chunk))


def has_report(tx: Tx, file_id: int) -> bool:
    return _next_chunk(tx, file_id, 0) is not None


def delete_chunk(tx: Tx, file_id: int) -> int:
    """Delete the first chunk of the report; how many rows it had."""
    chunk = _next_chunk(tx, file_id, 0)
    if chunk is None:
        return 0
    deleted = [
        tx.execute(delete(table).where(table.c.file_id == file_id, table.c.chunk == chunk)).rowcount
        for table in _TABLES
    ]
    return sum(deleted)


def rows_of_member(
    tx: Tx, member_id: int, external_ids: Collection[str], *, account_id: int
) -> list[dict[str, Any]]:
    """The rows of all files that are about the member, but for those that changed nothing, by column."""
    rows: list[dict[str, Any]] = []
    for mine in _about([member_id], external_ids, account_id):
        found = tx.execute(select(file_rows).where(mine)).mappings()
        rows += ({str(name): row[name] for name in row} for row in found)
    return sorted(rows, key=itemgetter("file_id", "chunk", "position"))


def forget_members(
    tx: Tx, member_ids: Collection[int], external_ids: Collection[str], *, account_id: int
) -> None:
    """Take the identifiers out of the account's reports: of the members' rows, and of rows without a member that name one. The
    files lose their digests, which are made from all of their rows: that of a small file could be guessed.
    """
    found: set[int] = set()
    for mine in _about(member_ids, external_ids, account_id):
        forgotten = update(file_rows).where(mine).values(external_id=None).returning(_rows.file_id)
        found.update(tx.execute(forgotten).scalars())
    tx.execute(update(eligibility_files).where(_files.id.in_(sorted(found))).values(_NO_DIGESTS))


def forget_packed_digests(tx: Tx, account_id: int) -> None:
    """The account's files with packed rows lose their digests: which members they have is not looked up."""
    own = (_files.account_id == account_id) & has_rows(file_unchanged)
    tx.execute(update(eligibility_files).where(own).values(_NO_DIGESTS))


def _values(outcome: RowOutcome) -> dict[str, Any]:
    notes = [(FAULT, *fault) for fault in outcome.faults] + [(WARNING, *each) for each in outcome.warnings]
    return {
        "place": outcome.place,
        "member_id": outcome.member_id or None,
        "external_id": outcome.external_id,
        "outcome": outcome.outcome,
        "changed": [*outcome.changed] or None,
        "notes": notes or None,
        "left_plan_id": outcome.left_plan_id,
    }


def _outcome(row: Row[Any]) -> RowOutcome:
    notes = row.notes or ()
    return RowOutcome(
        row.place,
        row.external_id,
        row.outcome,
        row.member_id or 0,
        [tuple(note[1:]) for note in notes if note[0] == FAULT],
        [tuple(note[1:]) for note in notes if note[0] == WARNING],
        row.changed or (),
        row.left_plan_id,
    )


def _unpacked(tx: Tx, content: bytes, external_id: str | None) -> list[tuple[int, RowOutcome]]:
    """Positions and outcomes. An erased member has no identifier any more."""
    numbers = array("q", zlib.decompress(content))
    positions, places, member_ids = numbers[0::3], numbers[1::3], numbers[2::3]
    names = external_ids_of(tx, {*member_ids})
    return [
        (position, RowOutcome(place, names.get(id_) or None, Outcome.UNCHANGED.value, id_))
        for position, place, id_ in zip(positions, places, member_ids, strict=True)
        if external_id is None or names.get(id_) == external_id
    ]


def _of_chunk(file_id: int, chunk: int) -> Select[Any]:
    return select(file_rows).where(_rows.file_id == file_id, _rows.chunk == chunk).order_by(_rows.position)


def _next_chunk(tx: Tx, file_id: int, chunk: int) -> int | None:
    found = [
        tx.execute(select(func.min(c.chunk)).where(c.file_id == file_id, c.chunk >= chunk)).scalar()
        for c in (_rows, _unchanged)
    ]
    return min((number for number in found if number is not None), default=None)


def _about(
    member_ids: Collection[int], external_ids: Collection[str], account_id: int
) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Conditions, one for each index: the members' rows, and the account's rows without a member that name an identifier."""
    account = select(_files.account_id).where(_files.id == _rows.file_id).scalar_subquery()
    without_member = _rows.member_id.is_(None) & _rows.external_id.is_not(None)
    named = without_member & _rows.external_id.in_(sorted(external_ids)) & (account == account_id)
    return _rows.member_id.in_(sorted(member_ids)), named
