"""The SQL of members and their history."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import select

from frontdesk.db import Tx
from frontdesk.db.sets import Found, Row, find_set, insert_set, lock_set, next_ids, update_set
from frontdesk.eligibility.fields import STORED_COLUMNS
from frontdesk.eligibility.tables import installation, member_history, members

_READ = ("id", "account_id", "plan_id", "uniqueness_scope", *STORED_COLUMNS)


def lock_members(tx: Tx, scope: int, keys: Mapping[str, set[str]]) -> Found:
    """The members of one uniqueness scope that hold any of the keys, by column, locked in id order. A set read."""
    return lock_set(tx, members, keys, columns=_READ, within={"uniqueness_scope": scope})


def stored_values(row: dict[str, Any]) -> dict[str, Any]:
    """A found member's values by column (SQLite keeps JSON as text)."""
    if isinstance(row["metadata"], str):
        row["metadata"] = json.loads(row["metadata"])
    return row


def new_member_ids(tx: Tx, count: int) -> list[int]:
    return next_ids(tx, members, count)


def insert_members(tx: Tx, rows: Sequence[Row]) -> None:
    insert_set(tx, members, rows)


def update_members(tx: Tx, rows: Sequence[Row]) -> None:
    update_set(tx, members, rows)


def insert_history(tx: Tx, rows: Sequence[Row]) -> None:
    insert_set(tx, member_history, rows)


def find_expired(tx: Tx, member_ids: Collection[int], today: str) -> set[int]:
    """Those of the members whose access ended before today (`YYYY-MM-DD`)."""
    found = find_set(tx, members, "id", member_ids, columns=("id", "expiry_date"))
    return {row["id"] for row in found.rows if row["expiry_date"] is not None and row["expiry_date"] < today}


def find_members(tx: Tx, external_id: str, account_id: int | None) -> list[dict[str, Any]]:
    query = select(members).where(members.c.external_id == external_id).order_by(members.c.id)
    if account_id is not None:
        query = query.where(members.c.account_id == account_id)
    return [dict(row) for row in tx.execute(query).mappings()]


def history_of(tx: Tx, member_id: int) -> list[dict[str, Any]]:
    query = select(member_history).where(member_history.c.member_id == member_id)
    return [dict(row) for row in tx.execute(query.order_by(member_history.c.id)).mappings()]


def installed_uniqueness(tx: Tx) -> str | None:
    return tx.execute(select(installation.c.uniqueness)).scalar()
