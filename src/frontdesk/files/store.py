"""The SQL of eligibility files, their parts and the outcomes of their rows."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, insert, select, update

from frontdesk.db import Tx
from frontdesk.db.failures import violation_as
from frontdesk.files.tables import eligibility_files, file_mappings, file_outcomes, file_parts

_columns = eligibility_files.c


def insert_file(tx: Tx, row: Mapping[str, Any]) -> int:
    key: Any = tx.execute(insert(eligibility_files).values(**row)).inserted_primary_key
    return int(key[0])


def find_file(tx: Tx, file_id: int) -> dict[str, Any] | None:
    row = tx.execute(select(eligibility_files).where(_columns.id == file_id)).mappings().first()
    return dict(row) if row else None


def lock_file(tx: Tx, file_id: int) -> None:
    """Let nobody else decide about the file until the transaction has ended."""
    tx.execute(select(_columns.id).where(_columns.id == file_id).with_for_update())


def newest_files(tx: Tx, account_id: int | None, limit: int) -> list[dict[str, Any]]:
    query = select(eligibility_files).order_by(_columns.id.desc()).limit(limit)
    if account_id is not None:
        query = query.where(_columns.account_id == account_id)
    return [dict(row) for row in tx.execute(query).mappings()]


def change_state(tx: Tx, file_id: int, states: Collection[str], changes: Mapping[str, Any]) -> bool:
    """Whether the file was in one of the states, and so was changed."""
    found = (_columns.id == file_id) & _columns.state.in_(list(states))
    return tx.execute(update(eligibility_files).where(found).values(**changes)).rowcount == 1


def find_undo(tx: Tx, file_id: int, void_states: Collection[str]) -> int | None:
    """The undo of a file that is not void."""
    query = select(func.max(_columns.id)).where(
        _columns.undoes_id == file_id, _columns.state.not_in(list(void_states))
    )
    return tx.execute(query).scalar()


def find_claimable(tx: Tx, now: datetime, *, only: int | None) -> dict[str, Any] | None:
    """The oldest file that nobody works on: one whose worker's lease has run out, else one that waits while no other of
    its account runs."""
    running = select(_columns.account_id).where(_columns.state == "running")
    left = (_columns.state == "running") & (_columns.lease_until < now)
    waits = (_columns.state == "waiting") & _columns.account_id.not_in(running)
    for condition in (left, waits):
        query = select(eligibility_files).where(condition).order_by(_columns.id).limit(1)
        if only is not None:
            query = query.where(_columns.id == only)
        row = tx.execute(query).mappings().first()
        if row is not None:
            return dict(row)
    return None


class AccountBusy(Exception):
    """Another file of the account is being worked on."""


def claim(tx: Tx, file_id: int, epoch: int, *, now: datetime, lease_until: datetime) -> bool:
    """Whether nobody has claimed the file since that epoch, nor renewed his lease; then it is ours, in the next one.

    Raises AccountBusy.
    """
    is_free = (_columns.state == "waiting") | ((_columns.state == "running") & (_columns.lease_until < now))
    changes = {"state": "running", "epoch": epoch + 1, "lease_until": lease_until}
    with violation_as(AccountBusy(), eligibility_files, "account_id"):
        query = update(eligibility_files).where(_columns.id == file_id, _columns.epoch == epoch, is_free)
        return tx.execute(query.values(**changes)).rowcount == 1


def save(tx: Tx, file_id: int, epoch: int, changes: Mapping[str, Any]) -> bool:
    """Whether the file is still ours, and so was changed."""
    found = (_columns.id == file_id) & (_columns.epoch == epoch) & (_columns.state == "running")
    return tx.execute(update(eligibility_files).where(found).values(**changes)).rowcount == 1


def last_full_rows(tx: Tx, plan_id: int, before_id: int) -> int | None:
    """How many rows the plan's last applied full file had."""
    query = (
        select(_columns.rows_total)
        .where(
            _columns.plan_id == plan_id,
            _columns.id < before_id,
            _columns.mode == "full",
            _columns.state == "done",
            _columns.dry_run.is_(False),
        )
        .order_by(_columns.id.desc())
        .limit(1)
    )
    return tx.execute(query).scalar()


def newer_full(tx: Tx, plan_id: int, after_id: int, *, begun: bool) -> list[int]:
    """The plan's full files that came after this one, the newest first: those whose rows were, or are being, applied, and
    unless only those that have `begun`, those that wait."""
    applied = _columns.started_at.is_not(None)
    query = select(_columns.id).where(
        _columns.plan_id == plan_id,
        _columns.id > after_id,
        _columns.mode == "full",
        _columns.dry_run.is_(False),
        applied if begun else applied | _columns.state.in_(["waiting", "running"]),
    )
    return list(tx.execute(query.order_by(_columns.id.desc())).scalars())


def find_mapping(tx: Tx, account_id: int) -> dict[str, Any] | None:
    query = select(file_mappings.c.mapping).where(file_mappings.c.account_id == account_id)
    return tx.execute(query).scalar()


def save_mapping(tx: Tx, account_id: int, mapping: dict[str, Any] | None, now: datetime) -> None:
    """None takes it away."""
    tx.execute(delete(file_mappings).where(file_mappings.c.account_id == account_id))
    if mapping is not None:
        row = {"account_id": account_id, "mapping": mapping, "changed_at": now}
        tx.execute(insert(file_mappings).values(**row))


def insert_part(tx: Tx, file_id: int, number: int, content: bytes) -> None:
    tx.execute(insert(file_parts).values(file_id=file_id, number=number, content=content))


def find_part(tx: Tx, file_id: int, number: int) -> bytes | None:
    query = select(file_parts.c.content).where(file_parts.c.file_id == file_id, file_parts.c.number == number)
    return tx.execute(query).scalar()


def delete_parts(tx: Tx, file_id: int) -> None:
    tx.execute(delete(file_parts).where(file_parts.c.file_id == file_id))


def delete_file(tx: Tx, file_id: int) -> None:
    delete_parts(tx, file_id)
    tx.execute(delete(eligibility_files).where(_columns.id == file_id))


def unfinished_uploads(tx: Tx, before: datetime) -> list[int]:
    query = select(_columns.id).where(_columns.state == "receiving", _columns.created_at < before)
    return list(tx.execute(query).scalars())


def insert_outcomes(tx: Tx, file_id: int, number: int, step: str, content: bytes) -> None:
    tx.execute(insert(file_outcomes).values(file_id=file_id, number=number, step=step, content=content))


def find_outcomes(tx: Tx, file_id: int, number: int) -> bytes | None:
    query = select(file_outcomes.c.content).where(
        file_outcomes.c.file_id == file_id, file_outcomes.c.number == number
    )
    return tx.execute(query).scalar()


def delete_outcomes(tx: Tx, file_id: int) -> None:
    tx.execute(delete(file_outcomes).where(file_outcomes.c.file_id == file_id))
