"""The SQL of files' reports: what became of each row, by the chunk.

Rows that changed nothing and have no warning are stored by the chunk as packed numbers: as rows they
would double the time of an unchanged file (docs/decisions/0026).
"""

import zlib
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
import sqlalchemy as sa

from frontdesk.db import Tx
from frontdesk.db.sets import insert_set
from frontdesk.eligibility import external_ids_of
from frontdesk.eligibility.model import Outcome
from frontdesk.files.model import CHANGED, GAINED, LOST, WARNED, WOULD_LOSE, RowOutcome
from frontdesk.files.tables import file_lists, file_rows, file_unchanged

_rows = file_rows.c
_unchanged = file_unchanged.c
_lists = file_lists.c
PACKED_COLUMNS = 5  # numbers of an unchanged row
REPORT_LINE_BYTES = 150  # of a row's line without faults and warnings, in the table and its indexes


def insert_outcomes(tx: Tx, file_id: int, chunk: int, outcomes: Sequence[RowOutcome]) -> int:
    """Returns about how many bytes the lines take."""
    rows: list[dict[str, Any]] = []
    numbers = array("q")
    size = 0
    for position, outcome in enumerate(outcomes):
        is_row_of_member = outcome.place is not None and outcome.member_id
        if outcome.outcome == Outcome.UNCHANGED and is_row_of_member and not outcome.warnings:
            place = outcome.place or 0
            in_file = (outcome.transaction_number, outcome.member_number)
            numbers.extend((position, place, outcome.member_id, *in_file))
        else:
            values = {name: value or None for name, value in outcome._asdict().items()}
            rows.append({"file_id": file_id, "chunk": chunk, "position": position, **values})
            size += REPORT_LINE_BYTES
            if outcome.faults or outcome.warnings:
                size += len(orjson.dumps(values))
    insert_set(tx, file_rows, rows)
    if numbers:
        content = zlib.compress(numbers.tobytes(), 1)
        tx.execute(sa.insert(file_unchanged).values(file_id=file_id, chunk=chunk, content=content))
        size += len(content)
    return size


def insert_lists(tx: Tx, file_id: int, chunk: int, words: Iterable[str]) -> None:
    """Note that the chunk has lines with these outcomes and codes."""
    rows = [{"file_id": file_id, "word": word, "chunk": chunk} for word in sorted(words)]
    insert_set(tx, file_lists, rows)


def next_chunk(tx: Tx, file_id: int, from_chunk: int, *, word: str | None = None) -> int | None:
    """The number of the first chunk, from this one on, with lines; with `word`, with lines that have
    this outcome or code. None after the last one.
    """
    if word is not None:
        listed = (_lists.file_id == file_id) & (_lists.word == word)
        found = sa.select(sa.func.min(_lists.chunk)).where(listed, _lists.chunk >= from_chunk)
        return tx.execute(found).scalar()
    ahead = [
        sa.select(sa.func.min(c.chunk)).where(c.file_id == file_id, c.chunk >= from_chunk)
        for c in (_rows, _unchanged)
    ]
    numbers = [tx.execute(query).scalar() for query in ahead]
    return min((number for number in numbers if number is not None), default=None)


def changed_outcomes(tx: Tx, file_id: int, chunk: int) -> list[RowOutcome]:
    """The outcomes of the chunk's rows that have changed a member, in order. Nothing is unpacked."""
    mine = (_rows.file_id == file_id) & (_rows.chunk == chunk) & _rows.outcome.in_(CHANGED)
    query = sa.select(file_rows).where(mine).order_by(_rows.file_id, _rows.chunk, _rows.position)
    return [_outcome(row) for row in tx.execute(query)]


def chunk_outcomes(
    tx: Tx,
    file_id: int,
    chunk: int,
    *,
    outcome: str | None = None,
    code: str | None = None,
    external_id: str | None = None,
) -> list[RowOutcome]:
    """The outcomes of the chunk's rows in order: of all rows, or of those that may have lines with
    this outcome and code, and have this identifier.
    """
    query = sa.select(file_rows).where(_rows.file_id == file_id, _rows.chunk == chunk)
    if external_id is not None:
        query = query.where(_rows.external_id == external_id)
    if outcome is not None:
        query = query.where(_has_outcome(outcome))
    if code is not None:
        query = query.where(_may_have_code(code))
    found = [(row.position, _outcome(row)) for row in tx.execute(query)]
    if outcome in (None, Outcome.UNCHANGED) and code is None:
        packed = (_unchanged.file_id == file_id) & (_unchanged.chunk == chunk)
        content = tx.execute(sa.select(file_unchanged.c.content).where(packed)).scalar()
        if content is not None:
            found += _unpacked(tx, content, external_id)
    return [outcome for _, outcome in sorted(found)]


def _has_outcome(outcome: str) -> sa.ColumnElement[bool]:
    if outcome == WARNED:
        return _rows.warnings.is_not(None)
    if outcome in (LOST, GAINED):
        return _rows.access.is_not(None)
    return _rows.outcome == outcome


def _may_have_code(code: str) -> sa.ColumnElement[bool]:
    """The word stands in the faults or warnings. Lines without a row may have their code by their
    outcome.
    """
    texts = [sa.cast(column, sa.Text) for column in (_rows.faults, _rows.warnings)]
    named = [text.contains(f'"{code}"', autoescape=True) for text in texts]
    return sa.or_(*named, _rows.place.is_(None))


def shown_losses(tx: Tx, file_id: int) -> Sequence[int]:
    """The ids, in order, of the members that the report of a held file lists as losing access."""
    listed = (_rows.file_id == file_id) & (_rows.outcome == WOULD_LOSE)
    found = tx.execute(sa.select(_rows.member_id).where(listed).order_by(_rows.member_id))
    return array("q", found.scalars())


def list_lines(
    tx: Tx, file_id: int, *, outcome: str, chunks: range
) -> list[tuple[int | None, int | None]]:
    """Place and member of each of the report's lines with the outcome in these chunks, in order.
    Those that are stored as packed numbers are not among them.
    """
    query = sa.select(_rows.place, _rows.member_id).where(
        _rows.file_id == file_id, _rows.chunk >= chunks.start, _rows.chunk < chunks.stop
    )
    query = query.where(_rows.outcome == outcome).order_by(_rows.chunk, _rows.position)
    return [(place, member_id) for place, member_id in tx.execute(query)]


def delete_outcomes(tx: Tx, file_id: int) -> None:
    for table in (file_rows, file_unchanged, file_lists):
        tx.execute(sa.delete(table).where(table.c.file_id == file_id))


def _outcome(row: sa.Row[Any]) -> RowOutcome:
    return RowOutcome(
        place=row.place,
        external_id=row.external_id,
        outcome=row.outcome,
        member_id=row.member_id or 0,
        faults=row.faults or (),
        warnings=row.warnings or (),
        changed=row.changed or (),
        left_plan_id=row.left_plan_id,
        transaction_number=row.transaction_number or 0,
        member_number=row.member_number or 0,
        access=row.access or (),
    )


def _unpacked(tx: Tx, content: bytes, external_id: str | None) -> list[tuple[int, RowOutcome]]:
    """Positions and outcomes. An erased member has no identifier any more."""
    numbers = array("q", zlib.decompress(content))
    columns = [numbers[at::PACKED_COLUMNS] for at in range(PACKED_COLUMNS)]
    member_ids = columns[2]
    external_ids = external_ids_of(tx, {*member_ids})
    unchanged = Outcome.UNCHANGED.value
    found = []
    for position, place, member_id, transaction, ordinal in zip(*columns, strict=True):
        own_id = external_ids.get(member_id)
        if external_id in (None, own_id):
            outcome = RowOutcome(
                place,
                own_id or None,
                unchanged,
                member_id,
                transaction_number=transaction,
                member_number=ordinal,
            )
            found.append((position, outcome))
    return found
