"""The SQL of retention. Each table is gone through by windows of its key, so that no statement looks at more than 1000 rows."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Table,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)

from frontdesk.access.tables import access_tokens, failed_attempts, request_allowances
from frontdesk.audit.chain import TrailPruning
from frontdesk.audit.tables import audit_entries
from frontdesk.db import Tx
from frontdesk.eligibility.tables import member_history, members
from frontdesk.files import delete_chunk
from frontdesk.files.tables import eligibility_files, file_rows, file_unchanged, has_rows
from frontdesk.invitations.tables import invitations
from frontdesk.mailbox.tables import caught_messages
from frontdesk.privacy.model import Person, RetentionKind
from frontdesk.privacy.store import WITHOUT_VALUES
from frontdesk.privacy.tables import audit_prunings, legal_holds, retention_positions

WINDOW = 1000  # ids

_m, _h, _i, _f = members.c, member_history.c, invitations.c, eligibility_files.c


@dataclass(frozen=True, slots=True)
class RetentionSource:
    """The rows of a kind: their table, when they are old enough, and what a legal hold keeps."""

    table: Table
    age: ColumnElement[Any]
    condition: ColumnElement[bool]
    held_by: Column[Any] | None = None


def _source(kind: RetentionKind, dialect: str) -> RetentionSource:
    if kind is RetentionKind.HISTORY:
        # Named by its table: in a subquery the bare column would be another one's.
        has_values: ColumnElement[bool] = literal_column(
            f"CAST(changes AS text) <> CAST({WITHOUT_VALUES[dialect]} AS text)"
        )
        return RetentionSource(member_history, _h.changed_at, has_values, _h.member_id)
    return _SOURCES[kind]


_IS_KEPT = _m.external_id != ""
_SOURCES: Mapping[RetentionKind, RetentionSource] = {
    RetentionKind.WITHDRAWN: RetentionSource(
        members, _m.updated_at, _IS_KEPT & (_m.uniqueness_scope < 0), _m.id
    ),
    RetentionKind.ENDED: RetentionSource(
        members, _m.expiry_date, _IS_KEPT & (_m.uniqueness_scope >= 0) & _m.merged_into.is_(None), _m.id
    ),
    RetentionKind.INVITATIONS: RetentionSource(invitations, _i.settled_at, _i.address != "", _i.member_id),
    RetentionKind.REPORTS: RetentionSource(
        eligibility_files,
        _f.finished_at,
        has_rows(file_rows) | has_rows(file_unchanged),
        _f.account_id,
    ),
    RetentionKind.MAILBOX: RetentionSource(
        caught_messages, caught_messages.c.caught_at, caught_messages.c.id > 0
    ),
    RetentionKind.AUDIT: RetentionSource(audit_entries, audit_entries.c.at, audit_entries.c.id > 0),
    RetentionKind.COUNTERS: RetentionSource(
        failed_attempts, failed_attempts.c.failed_at, failed_attempts.c.id > 0
    ),
}


def last_id(tx: Tx, kind: RetentionKind) -> int:
    return tx.execute(select(func.max(_source(kind, tx.dialect.name).table.c.id))).scalar() or 0


def old_ids(tx: Tx, kind: RetentionKind, before: datetime, after_id: int) -> list[int]:
    """The ids of the rows in the window after this id that are old enough and not held, ascending."""
    source = _source(kind, tx.dialect.name)
    id_ = source.table.c.id
    return _matching(tx, source, before, (id_ > after_id) & (id_ <= after_id + WINDOW))


def still_old(tx: Tx, kind: RetentionKind, before: datetime, ids: Collection[int]) -> list[int]:
    """Those of the rows that are still old enough and not held."""
    source = _source(kind, tx.dialect.name)
    return _matching(tx, source, before, source.table.c.id.in_(sorted(ids)))


def _matching(tx: Tx, source: RetentionSource, before: datetime, place: ColumnElement[bool]) -> list[int]:
    limit: object = before.date().isoformat() if source.age is _m.expiry_date else before
    id_ = source.table.c.id
    query = select(id_).where(place, source.age < limit, source.condition).order_by(id_)
    if source.held_by is not None:
        held = legal_holds.c.account_id if source.held_by is _f.account_id else legal_holds.c.member_id
        query = query.where(source.held_by.not_in(select(held)))
    return list(tx.execute(query).scalars())


def newest_change(tx: Tx, after_id: int) -> datetime | None:
    """The time of the newest entry of the history in the window after this id."""
    window = (_h.id > after_id) & (_h.id <= after_id + WINDOW)
    return tx.execute(select(func.max(_h.changed_at)).where(window)).scalar()


def persons_of(tx: Tx, member_ids: Collection[int]) -> list[Person]:
    query = select(_m.id, _m.account_id).where(_m.id.in_(sorted(member_ids))).order_by(_m.id)
    return [Person(*row) for row in tx.execute(query)]


def drop_values(tx: Tx, ids: Collection[int]) -> int:
    """Take the values out of these entries of the history."""
    emptied: ColumnElement[Any] = literal_column(WITHOUT_VALUES[tx.dialect.name])
    query = update(member_history).where(_h.id.in_(sorted(ids))).values(changes=emptied)
    return tx.execute(query).rowcount


def delete_report_chunk(tx: Tx, file_id: int) -> int:
    """Delete a chunk of the file's report; 0 when none is left, and its idempotency key is free then."""
    if deleted := delete_chunk(tx, file_id):
        return deleted
    cleared = {"sha256": None, "idempotency_key": None, "idempotency_digest": None}
    tx.execute(update(eligibility_files).where(_f.id == file_id).values(cleared))
    return 0


def delete_rows(tx: Tx, kind: RetentionKind, ids: Collection[int]) -> int:
    table = _source(kind, tx.dialect.name).table
    return tx.execute(delete(table).where(table.c.id.in_(sorted(ids)))).rowcount


def delete_counters(tx: Tx, before: datetime) -> int:
    """Delete old tokens and request counters: of clients that ask no more, the others clear away their own."""
    tokens = select(access_tokens.c.token_hash).where(access_tokens.c.expires_at < before).limit(WINDOW)
    old = access_tokens.c.token_hash.in_(tx.execute(tokens).scalars().all())
    count = tx.execute(delete(access_tokens).where(old)).rowcount
    minute = int(before.timestamp()) // 60
    return count + tx.execute(delete(request_allowances).where(request_allowances.c.minute < minute)).rowcount


def has_holds(tx: Tx) -> bool:
    return tx.execute(select(legal_holds.c.member_id).limit(1)).first() is not None


def last_pruning(tx: Tx) -> TrailPruning | None:
    """The last pruning of the audit trail."""
    columns = audit_prunings.c
    query = select(columns.through_id, columns.chain).order_by(columns.through_id.desc()).limit(1)
    row = tx.execute(query).first()
    return row and TrailPruning(*row)


def has_pruned(tx: Tx, pruning: TrailPruning) -> bool:
    columns = audit_prunings.c
    query = select(columns.chain).where(columns.through_id == pruning.pruned_through)
    return tx.execute(query).scalar() == pruning.pruned_chain


def prune_audit(tx: Tx, after_id: int, through_id: int, chain: str, *, now: datetime) -> int:
    """Delete the entries up to `through_id`, after their chain is kept: the trigger wants it."""
    tx.execute(insert(audit_prunings).values(through_id=through_id, chain=chain, pruned_at=now))
    columns = audit_entries.c
    pruned = (columns.id > after_id) & (columns.id <= through_id)
    return tx.execute(delete(audit_entries).where(pruned)).rowcount


def get_position(tx: Tx, kind: str) -> int:
    columns = retention_positions.c
    return tx.execute(select(columns.position).where(columns.kind == kind)).scalar() or 0


def move_position(tx: Tx, kind: str, position: int, *, only_below: int | None = None) -> bool:
    """Set the position; with `only_below`, only if it is below that. False if it was not set."""
    columns = retention_positions.c
    mine: list[ColumnElement[bool]] = [columns.kind == kind]
    if only_below is not None:
        mine.append(columns.position < only_below)
    if tx.execute(update(retention_positions).where(*mine).values(position=position)).rowcount:
        return True
    if tx.execute(select(columns.kind).where(columns.kind == kind)).first() is not None:
        return False
    tx.execute(insert(retention_positions).values(kind=kind, position=position))
    return True


def first_history_id(tx: Tx, member_id: int) -> int:
    query = select(_h.id).where(_h.member_id == member_id).order_by(_h.member_id, _h.id).limit(1)
    return tx.execute(query).scalar() or 0
