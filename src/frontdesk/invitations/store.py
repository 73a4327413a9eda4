"""The SQL of invitations: settings, what is enqueued, links, senders, templates, delivery reports, suppressed addresses."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import delete, insert, select, update

from frontdesk.db import Tx
from frontdesk.db.sets import Found, SameKey, SetTransaction, find_set
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations.model import (
    DeliverabilitySettings,
    DeliveryReport,
    Invitation,
    InvitationState,
    LinkPurpose,
    LinkTarget,
    MessageTemplate,
    ReportEvent,
    SenderProfile,
    Suppression,
    SuppressionReason,
)
from frontdesk.invitations.tables import (
    deliverability,
    delivery_reports,
    invitation_links,
    invitation_templates,
    invitations,
    suppressions,
)
from frontdesk.plans.tables import plans
from frontdesk.text import fold_email


def get_deliverability(tx: Tx, account_id: int) -> DeliverabilitySettings:
    """The account's settings; the defaults (off) where none were ever set."""
    row = tx.execute(select(deliverability).where(deliverability.c.account_id == account_id)).first()
    return DeliverabilitySettings(*row) if row else DeliverabilitySettings(account_id)


def set_deliverability(tx: Tx, account_id: int, **changes: object) -> DeliverabilitySettings:
    """Change the settings named in `changes`, keep the others. Raises Invalid when a number is not positive."""
    settings = replace(get_deliverability(tx, account_id), **changes)  # type: ignore[arg-type]
    faults = [
        Fault(name, "not_positive", "must be a whole number of at least 1")
        for name in ("batch_size", "batch_interval_seconds", "hourly_limit")
        if getattr(settings, name) < 1
    ]
    if faults:
        raise Invalid(faults)
    tx.execute(delete(deliverability).where(deliverability.c.account_id == account_id))
    tx.execute(insert(deliverability).values(asdict(settings)))
    return settings


class SuppressedAddresses:
    """A set read's rows, each with the address that was asked for."""

    def __init__(self, found: Found, asked: Mapping[str, str]) -> None:
        self._found, self._asked = found, asked

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row | {"address_folded": self._asked[row["address_folded"]]} for row in self._found.rows]


def find_suppressed(tx: SetTransaction, addresses: Collection[str]) -> SuppressedAddresses:
    """Rows (address, account) of the folded addresses that must not be mailed. Of an erased member the list has a hash."""
    key = _hash_key(tx)
    asked = {_hashed(address, key): address for address in addresses} | {each: each for each in addresses}
    found = find_set(tx, suppressions, "address_folded", asked, columns=("address_folded", "account_id"))
    return SuppressedAddresses(found, asked)


def hash_suppressions(tx: Tx, addresses: Collection[str]) -> int:
    """Keep only keyed hashes of those of the folded addresses that are suppressed; how many there were."""
    key, column = _hash_key(tx), suppressions.c.address_folded
    plain = tx.execute(select(column).where(column.in_(sorted(addresses)))).scalars().all()
    for address in plain:
        # Its hash is on the list already when the address was suppressed again after an erasure.
        tx.execute(delete(suppressions).where(column == _hashed(address, key)))
        tx.execute(update(suppressions).where(column == address).values(address_folded=_hashed(address, key)))
    return len(plain)


def _hashed(address: str, key: bytes) -> str:
    """No address looks like it: it has no `@`."""
    return "#" + blake2b(address.encode(), key=key, digest_size=32, person=b"suppression").hexdigest()


# The installation's key by engine: read once, it never changes.
_hash_keys: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()


def _hash_key(tx: SetTransaction) -> bytes:
    if (key := _hash_keys.get(tx.engine)) is None:
        # A pipeline's answers are JSON.
        column = "row_digest_key" if tx.dialect.name == "sqlite" else "to_json(row_digest_key)"
        [text] = tx.exec_driver_sql(f"SELECT {column} FROM installation").one()  # noqa: S608
        key = _hash_keys[tx.engine] = bytes.fromhex(text)
    return key


def list_invitations(
    tx: Tx, *, account_id: int | None, state: InvitationState | None, limit: int
) -> list[Invitation]:
    """The newest `limit` invitations of the account and in the state (None: any), newest first."""
    query = select(invitations).order_by(invitations.c.id.desc()).limit(limit)
    if account_id is not None:
        query = query.where(invitations.c.account_id == account_id)
    if state is not None:
        query = query.where(invitations.c.state == state)
    return [Invitation._make(row) for row in tx.execute(query)]


def find_link_target(tx: Tx, purpose: LinkPurpose, token_hash: str) -> LinkTarget | None:
    columns = (invitations.c.id, invitations.c.account_id, invitations.c.address)
    query = (
        select(*columns, plans.c.name, deliverability.c.registration_url)
        .join(invitation_links, SameKey(invitations.c.id, invitation_links.c.invitation_id))
        .join(plans, SameKey(plans.c.id, invitations.c.plan_id))
        .outerjoin(deliverability, SameKey(deliverability.c.account_id, invitations.c.account_id))
        .where(invitation_links.c[f"{purpose}_hash"] == token_hash)
    )
    row = tx.execute(query).first()
    return LinkTarget(*row) if row else None


def lock_by_message_id(tx: Tx, message_id: str) -> Invitation | None:
    """The invitation of the message that has, or ever had, this Message-ID; locked against its worker and other reports."""
    query = (
        select(invitations)
        .join(invitation_links, SameKey(invitations.c.id, invitation_links.c.invitation_id))
        .where(invitation_links.c.message_id == message_id)
        .limit(1)
        .with_for_update(of=invitations, key_share=True)
    )
    row = tx.execute(query).first()
    return Invitation._make(row) if row else None


def find_senders(tx: Tx, plan_ids: Collection[int]) -> dict[int, SenderProfile]:
    """The plans' names and their accounts' senders, by plan id."""
    columns = (
        deliverability.c.sender_name,
        deliverability.c.sender_address,
        deliverability.c.registration_url,
    )
    query = (
        select(plans.c.id, plans.c.name, *columns)
        .outerjoin(deliverability, SameKey(deliverability.c.account_id, plans.c.account_id))
        .where(plans.c.id.in_(sorted(plan_ids)))
    )
    return {id_: SenderProfile(*profile) for id_, *profile in tx.execute(query)}


def find_templates(tx: Tx, account_ids: Collection[int]) -> dict[int, MessageTemplate]:
    """The templates of those of the accounts that have their own, by account id. One set read."""
    columns = ("account_id", "subject", "text", "html")
    rows = find_set(tx, invitation_templates, "account_id", account_ids, columns=columns).rows
    return {row["account_id"]: MessageTemplate(row["subject"], row["text"], row["html"]) for row in rows}


def save_template(tx: Tx, account_id: int, template: MessageTemplate, *, now: datetime) -> None:
    """Keep the account's own templates; nothing is kept when it has none."""
    tx.execute(delete(invitation_templates).where(invitation_templates.c.account_id == account_id))
    if template != MessageTemplate():
        row = asdict(template) | {"account_id": account_id, "updated_at": now}
        tx.execute(insert(invitation_templates).values(row))


def insert_report(tx: Tx, report: DeliveryReport, *, invitation_id: int, now: datetime) -> bool:
    """False if a report of this kind about the message is stored already."""
    if any(known.event is report.event for known in find_reports(tx, [report.message_id])):
        return False
    row = (report.message_id, report.event, invitation_id, report.status, now)
    tx.execute(insert(delivery_reports).values(row))
    return True


def find_reports(tx: Tx, message_ids: Collection[str]) -> list[DeliveryReport]:
    """The stored reports about the messages; each without `permanent`, which is not stored."""
    columns = ("message_id", "kind", "status")
    rows = find_set(tx, delivery_reports, "message_id", message_ids, columns=columns).rows
    return [DeliveryReport(row["message_id"], ReportEvent(row["kind"]), row["status"]) for row in rows]


def suppress(
    tx: Tx, address: str, reason: SuppressionReason, *, now: datetime, account_id: int | None = None
) -> bool:
    """Suppress the address in any spelling. False if it was on the list; its first reason stays.

    `account_id` is the account that mailed the address: only this account is told when it names the address again.
    """
    folded = fold_email(address)
    if find_suppressed(tx, {folded}).rows:
        return False
    row = {"address_folded": folded, "reason": reason, "created_at": now, "account_id": account_id}
    tx.execute(insert(suppressions).values(row))
    return True


def unsuppress(tx: Tx, address: str) -> bool:
    """Take the address off the list. False if it was not on it."""
    folded = fold_email(address)
    column = suppressions.c.address_folded
    done = tx.execute(delete(suppressions).where(column.in_((folded, _hashed(folded, _hash_key(tx))))))
    return done.rowcount > 0


def list_suppressions(tx: Tx, *, limit: int) -> list[Suppression]:
    """The first `limit` in order of the addresses."""
    query = (
        select(*suppressions.c["address_folded", "reason", "created_at"])
        .order_by(suppressions.c.address_folded)
        .limit(limit)
    )
    return [Suppression._make(row) for row in tx.execute(query)]
