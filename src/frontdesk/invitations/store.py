"""The SQL of invitations, deliverability settings and the suppression list."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, select

from frontdesk.db import Tx
from frontdesk.db.sets import Row, insert_set, present_among
from frontdesk.invitations.tables import deliverability, invitations, suppressions

if TYPE_CHECKING:
    from frontdesk.invitations.settings import Deliverability


def find_deliverability(tx: Tx, account_id: int) -> dict[str, Any] | None:
    row = tx.execute(select(deliverability).where(deliverability.c.account_id == account_id)).mappings().first()
    return dict(row) if row else None


def save_deliverability(tx: Tx, settings: "Deliverability") -> None:
    tx.execute(delete(deliverability).where(deliverability.c.account_id == settings.account_id))
    tx.execute(insert(deliverability).values(asdict(settings)))


def batches_enabled(tx: Tx, account_ids: Collection[int]) -> dict[int, bool]:
    """Whether batched invitations are on, for those of the accounts that have settings."""
    wanted = deliverability.c.account_id.in_(sorted(account_ids))
    return dict(tx.execute(select(deliverability.c.account_id, deliverability.c.enabled).where(wanted)).all())


def suppressed_among(tx: Tx, addresses: Collection[str]) -> set[str]:
    """Those of the folded addresses that must not be mailed."""
    return present_among(tx, suppressions, "address_folded", addresses)


def insert_invitations(tx: Tx, rows: Sequence[Row]) -> None:
    insert_set(tx, invitations, rows)


def list_invitations(tx: Tx, *, account_id: int | None, state: str | None, limit: int) -> list[dict[str, Any]]:
    query = select(invitations).order_by(invitations.c.id.desc()).limit(limit)
    if account_id is not None:
        query = query.where(invitations.c.account_id == account_id)
    if state is not None:
        query = query.where(invitations.c.state == state)
    return [dict(row) for row in tx.execute(query).mappings()]
