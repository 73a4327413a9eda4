"""The SQL of members and their history."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import delete, func, select

from frontdesk.db import Tx
from frontdesk.db.sets import Found, Row, find_set, insert_set, lock_set, next_ids, update_set
from frontdesk.eligibility.fields import STORED_COLUMNS
from frontdesk.eligibility.tables import installation, member_history, members

_READ = ("id", "account_id", "plan_id", "uniqueness_scope", *STORED_COLUMNS, "updated_at")


def lock_members(tx: Tx, scope: int, keys: Mapping[str, set[str]], *, lock: bool = True) -> Found:
    """The members of one uniqueness scope that hold any of the keys, by column, locked in id order. A set read."""
    return lock_set(tx, members, keys, columns=_READ, within={"uniqueness_scope": scope}, lock=lock)


def find_by_ids(tx: Tx, ids: Collection[int]) -> Found:
    return find_set(tx, members, "id", ids, columns=(*_READ, "created_at"))


def lock_by_ids(tx: Tx, ids: Collection[int]) -> list[dict[str, Any]]:
    """The members, locked in id order."""
    query = select(*(members.c[name] for name in _READ)).where(members.c.id.in_(list(ids)))
    rows = tx.execute(query.order_by(members.c.id).with_for_update(key_share=True))
    return [dict(zip(_READ, row, strict=True)) for row in rows]


def find_histories(tx: Tx, member_ids: Collection[int]) -> Found:
    """The history rows of the members, in no order. A set read."""
    columns = ("id", "member_id", "outcome", "plan_id", "changes", "request_id")
    return find_set(tx, member_history, "member_id", member_ids, columns=columns)


def delete_members(tx: Tx, ids: Collection[int]) -> None:
    """Only for the scratch database of a rehearsal: a stored member is never deleted."""
    tx.execute(delete(members).where(members.c.id.in_(list(ids))))


def members_under(tx: Tx, plan_id: int, *, after_id: int, limit: int) -> list[dict[str, Any]]:
    """The plan's members by id, those that were withdrawn left out."""
    names = ("id", "external_id", "effective_date", "expiry_date", "updated_at")
    query = select(*(members.c[name] for name in names)).where(
        members.c.plan_id == plan_id, members.c.id > after_id, members.c.uniqueness_scope >= 0
    )
    return [dict(row) for row in tx.execute(query.order_by(members.c.id).limit(limit)).mappings()]


def count_open(tx: Tx, plan_id: int, day: str) -> int:
    """How many of the plan's members have access after the day, or will have."""
    is_open = members.c.expiry_date.is_(None) | (members.c.expiry_date > day)
    query = select(func.count()).where(members.c.plan_id == plan_id, members.c.uniqueness_scope >= 0, is_open)
    return int(tx.execute(query).scalar_one())


def stored_values(row: dict[str, Any]) -> dict[str, Any]:
    """A found member's values by column (SQLite keeps JSON as text)."""
    if isinstance(row["metadata"], str):
        row["metadata"] = orjson.loads(row["metadata"])
    return row


def with_changes(row: dict[str, Any]) -> dict[str, Any]:
    """A found history row with its changes as an object (SQLite keeps JSON as text)."""
    if isinstance(row["changes"], str):
        row["changes"] = orjson.loads(row["changes"])
    return row


def new_member_ids(tx: Tx, count: int) -> list[int]:
    return next_ids(tx, members, count)


def insert_members(tx: Tx, rows: Sequence[Row]) -> None:
    insert_set(tx, members, rows)


def update_members(tx: Tx, rows: Sequence[Row], *, columns: Sequence[str] | None = None) -> None:
    update_set(tx, members, rows, columns=columns)


def insert_history(tx: Tx, rows: Sequence[Row]) -> None:
    insert_set(tx, member_history, rows)


def find_expired(tx: Tx, member_ids: Collection[int], today: str) -> set[int]:
    """Those of the members whose access ended before today (`YYYY-MM-DD`), and those that were withdrawn."""
    found = find_set(tx, members, "id", member_ids, columns=("id", "expiry_date", "uniqueness_scope"))
    return {
        row["id"]
        for row in found.rows
        if row["uniqueness_scope"] < 0 or (row["expiry_date"] is not None and row["expiry_date"] < today)
    }


def find_members(tx: Tx, external_id: str, account_id: int | None) -> list[dict[str, Any]]:
    named = (members.c.external_id == external_id) & (members.c.uniqueness_scope >= 0)
    query = select(members).where(named).order_by(members.c.id)
    if account_id is not None:
        query = query.where(members.c.account_id == account_id)
    return [dict(row) for row in tx.execute(query).mappings()]


def find_ever(tx: Tx, external_id: str, account_id: int | None) -> list[dict[str, Any]]:
    """Ids and accounts of all that ever carried the identifier, those that were withdrawn too."""
    query = select(members.c.id, members.c.account_id).where(members.c.external_id == external_id)
    if account_id is not None:
        query = query.where(members.c.account_id == account_id)
    return [dict(row) for row in tx.execute(query.order_by(members.c.id)).mappings()]


def history_of(tx: Tx, member_id: int) -> list[dict[str, Any]]:
    query = select(member_history).where(member_history.c.member_id == member_id)
    return [dict(row) for row in tx.execute(query.order_by(member_history.c.id)).mappings()]


def installed_uniqueness(tx: Tx) -> str | None:
    return tx.execute(select(installation.c.uniqueness)).scalar()
