"""The SQL of invitations, deliverability settings and the suppression list."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, select

from frontdesk.db import Tx
from frontdesk.db.sets import Found, Row, find_set, insert_set, update_set
from frontdesk.invitations.tables import deliverability, invitations, suppressions

if TYPE_CHECKING:
    from frontdesk.invitations.settings import Deliverability


def find_deliverability(tx: Tx, account_id: int) -> dict[str, Any] | None:
    row = (
        tx.execute(select(deliverability).where(deliverability.c.account_id == account_id)).mappings().first()
    )
    return dict(row) if row else None


def save_deliverability(tx: Tx, settings: "Deliverability") -> None:
    tx.execute(delete(deliverability).where(deliverability.c.account_id == settings.account_id))
    tx.execute(insert(deliverability).values(asdict(settings)))


def find_batches_enabled(tx: Tx, account_ids: Collection[int]) -> Found:
    """Rows (account id, whether batched invitations are on), for those of the accounts that have settings."""
    return find_set(tx, deliverability, "account_id", account_ids, columns=("account_id", "enabled"))


def find_suppressed(tx: Tx, addresses: Collection[str]) -> Found:
    """Rows (address) of those of the folded addresses that must not be mailed."""
    return find_set(tx, suppressions, "address_folded", addresses, columns=("address_folded",))


def insert_invitations(tx: Tx, rows: Sequence[Row]) -> None:
    insert_set(tx, invitations, rows)


def find_of_members(tx: Tx, member_ids: Collection[int]) -> Found:
    """The invitations of the members."""
    columns = ("id", "member_id", "epoch", "state", "attempts", "losses")
    return find_set(tx, invitations, "member_id", member_ids, columns=columns)


def update_plans(tx: Tx, rows: Sequence[Row]) -> None:
    """Rows (id, plan id)."""
    update_set(tx, invitations, rows)


def list_invitations(
    tx: Tx, *, account_id: int | None, state: str | None, limit: int
) -> list[dict[str, Any]]:
    query = select(invitations).order_by(invitations.c.id.desc()).limit(limit)
    if account_id is not None:
        query = query.where(invitations.c.account_id == account_id)
    if state is not None:
        query = query.where(invitations.c.state == state)
    return [dict(row) for row in tx.execute(query).mappings()]
