"""The SQL of what stands around a mail: its links, the accounts' templates, delivery reports, suppressed addresses."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, exists, insert, select

from frontdesk.db import Tx
from frontdesk.db.sets import Row, find_set, insert_missing
from frontdesk.invitations.tables import (
    deliverability,
    delivery_reports,
    invitation_links,
    invitation_templates,
    invitations,
    suppressions,
)
from frontdesk.plans.tables import plans


def insert_links(tx: Tx, rows: Sequence[Row]) -> None:
    """Those that are kept already stay as they are."""
    insert_missing(tx, invitation_links, rows)


def find_landing(tx: Tx, registration_hash: str) -> dict[str, Any] | None:
    query = (
        select(plans.c.name, deliverability.c.registration_url)
        .select_from(invitation_links)
        .join(invitations, invitations.c.id == invitation_links.c.invitation_id)
        .join(plans, plans.c.id == invitations.c.plan_id)
        .outerjoin(deliverability, deliverability.c.account_id == invitations.c.account_id)
        .where(invitation_links.c.registration_hash == registration_hash)
    )
    row = tx.execute(query).mappings().first()
    return None if row is None else dict(row)


def find_unsubscriber(tx: Tx, unsubscribe_hash: str) -> dict[str, Any] | None:
    query = (
        select(invitations.c.id.label("invitation_id"), invitations.c.account_id, invitations.c.address)
        .join(invitation_links, invitations.c.id == invitation_links.c.invitation_id)
        .where(invitation_links.c.unsubscribe_hash == unsubscribe_hash)
    )
    row = tx.execute(query).mappings().first()
    return None if row is None else dict(row)


def find_by_message_id(tx: Tx, message_id: str) -> dict[str, Any] | None:
    """The invitation whose mail has, or ever had, this Message-ID; locked, so that its worker and a report take turns."""
    query = (
        select(invitations)
        .join(invitation_links, invitations.c.id == invitation_links.c.invitation_id)
        .where(invitation_links.c.message_id == message_id)
        .limit(1)
        .with_for_update(of=invitations, key_share=True)
    )
    row = tx.execute(query).mappings().first()
    return None if row is None else dict(row)


def find_templates(tx: Tx, account_ids: Collection[int]) -> list[dict[str, Any]]:
    columns = ("account_id", "subject", "text", "html")
    return find_set(tx, invitation_templates, "account_id", account_ids, columns=columns).rows


def save_template(tx: Tx, row: Row) -> None:
    tx.execute(delete(invitation_templates).where(invitation_templates.c.account_id == row["account_id"]))
    tx.execute(insert(invitation_templates).values(row))


def delete_template(tx: Tx, account_id: int) -> None:
    tx.execute(delete(invitation_templates).where(invitation_templates.c.account_id == account_id))


def insert_report(tx: Tx, row: Row) -> bool:
    """Whether it is the first report of its kind about the mail."""
    known = select(
        exists().where(
            delivery_reports.c.message_id == row["message_id"], delivery_reports.c.kind == row["kind"]
        )
    )
    if tx.execute(known).scalar():
        return False
    tx.execute(insert(delivery_reports).values(row))
    return True


def find_reports(tx: Tx, message_ids: Collection[str]) -> list[dict[str, Any]]:
    columns = ("message_id", "kind", "status")
    return find_set(tx, delivery_reports, "message_id", message_ids, columns=columns).rows


def find_suppression(tx: Tx, address_folded: str) -> dict[str, Any] | None:
    query = select(suppressions).where(suppressions.c.address_folded == address_folded)
    row = tx.execute(query).mappings().first()
    return None if row is None else dict(row)


def insert_suppression(tx: Tx, address_folded: str, *, reason: str, now: datetime) -> None:
    row = {"address_folded": address_folded, "reason": reason, "created_at": now}
    tx.execute(insert(suppressions).values(row))


def delete_suppression(tx: Tx, address_folded: str) -> bool:
    done = tx.execute(delete(suppressions).where(suppressions.c.address_folded == address_folded))
    return done.rowcount > 0


def list_suppressions(tx: Tx, *, after: str, limit: int) -> list[dict[str, Any]]:
    """In order of the addresses, from the one after `after`."""
    query = select(suppressions).where(suppressions.c.address_folded > after)
    query = query.order_by(suppressions.c.address_folded).limit(limit)
    return [dict(row) for row in tx.execute(query).mappings()]
