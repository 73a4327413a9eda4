"""Invitations that were mailed, made through the product's own functions; only the relay is simulated."""

from dataclasses import dataclass

from sqlalchemy import select, update

from frontdesk.db import Database
from frontdesk.invitations.message import issue_tokens
from frontdesk.invitations.model import InvitationState, LinkTokens
from frontdesk.invitations.tables import invitations, suppressions
from tests.conftest import Api
from tests.factories import NOW, Customer, member_body


@dataclass(frozen=True, slots=True)
class MailedInvitation:
    """An invitation whose mail has left, in one state or another."""

    id: int
    message_id: str
    address: str
    tokens: LinkTokens


def mailed(
    api: Api,
    db: Database,
    customer: Customer,
    *,
    number: int = 1,
    state: InvitationState = InvitationState.SENT,
    losses: int = 0,
) -> MailedInvitation:
    """A new member was invited, and the mail `<mail-N@mail.example.com>` is in the state."""
    body = member_body(number, invite_immediately=True)
    answer = api.post(f"/v2/plans/{customer.plan_ids[0]}/eligibility", body)
    assert answer.headers["Invitation"] == "immediate"
    message_id = f"mail-{number}@mail.example.com"
    with db.write() as tx:
        found = invitations.c.member_id == answer.json()["id"]
        id_ = tx.execute(select(invitations.c.id).where(found)).scalar_one()
        row = {"message_id": message_id, "state": state.value, "losses": losses}
        tx.execute(update(invitations).where(invitations.c.id == id_).values(row))
        tokens = issue_tokens(tx, {id_: message_id}, link_secret="s" * 32, now=NOW)[id_]
    return MailedInvitation(id_, message_id, body["email"], tokens)


def state_of(db: Database, mail: MailedInvitation) -> InvitationState:
    with db.read() as tx:
        return InvitationState(
            tx.execute(select(invitations.c.state).where(invitations.c.id == mail.id)).scalar_one()
        )


def suppressed(db: Database) -> dict[str, str]:
    """The suppression list: reason by address."""
    with db.read() as tx:
        rows = tx.execute(select(suppressions.c.address_folded, suppressions.c.reason))
        return {row.address_folded: row.reason for row in rows}
