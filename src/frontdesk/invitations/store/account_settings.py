"""The SQL of what an account sets for its invitations: deliverability, limits, templates, senders."""

from collections.abc import Collection
from dataclasses import asdict, replace
from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select

from frontdesk.db import Tx
from frontdesk.db.sets import SameKey
from frontdesk.invitations import model
from frontdesk.invitations.tables import deliverability, invitation_templates
from frontdesk.plans.tables import plans


def get_deliverability(tx: Tx, account_id: int) -> model.DeliverabilitySettings:
    """The account's settings; the defaults (off) where none were ever set."""
    row = tx.execute(
        select(deliverability).where(deliverability.c.account_id == account_id)
    ).first()
    return model.DeliverabilitySettings(*row) if row else model.DeliverabilitySettings(account_id)


def set_deliverability(tx: Tx, account_id: int, **changes: object) -> model.DeliverabilitySettings:
    """Change the settings named in `changes`, keep the others."""
    settings = replace(get_deliverability(tx, account_id), **changes)  # type: ignore[arg-type]
    tx.execute(delete(deliverability).where(deliverability.c.account_id == account_id))
    tx.execute(insert(deliverability).values(asdict(settings)))
    return settings


_TEMPLATE = invitation_templates.c["subject", "text", "html"]
_SENDERS = (  # made once: to make a statement takes longer than to send it
    select(
        plans.c.id, *_TEMPLATE, plans.c.name, *deliverability.c[model.SenderProfile._fields[1:4]]
    )
    .outerjoin(deliverability, SameKey(deliverability.c.account_id, plans.c.account_id))
    .outerjoin(invitation_templates, SameKey(invitation_templates.c.account_id, plans.c.account_id))
    .where(plans.c.id.in_(bindparam("plan_ids", expanding=True)))
)


def find_senders(tx: Tx, plan_ids: Collection[int]) -> dict[int, model.SenderProfile]:
    """The plans' names with their accounts' senders and templates, by plan id."""
    rows = tx.execute(_SENDERS, {"plan_ids": sorted(plan_ids)})
    return {
        row[0]: model.SenderProfile._make((*row[4:], model.MessageTemplate(*row[1:4])))
        for row in rows
    }


def get_template(tx: Tx, account_id: int) -> model.MessageTemplate:
    """The account's own templates; all None where it has set none."""
    row = tx.execute(
        select(*_TEMPLATE).where(invitation_templates.c.account_id == account_id)
    ).first()
    return model.MessageTemplate(*row) if row else model.MessageTemplate()


def save_template(
    tx: Tx, account_id: int, template: model.MessageTemplate, *, now: datetime
) -> None:
    """Keep the account's own templates; nothing is kept when it has none."""
    tx.execute(delete(invitation_templates).where(invitation_templates.c.account_id == account_id))
    if template != model.MessageTemplate():
        row = asdict(template) | {"account_id": account_id, "updated_at": now}
        tx.execute(insert(invitation_templates).values(row))
