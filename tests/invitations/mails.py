"""Invitations that were mailed, made through the product's own functions; only the relay is
simulated.
"""

import email
import email.policy
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from typing import Any

from sqlalchemy import select, update

from frontdesk.config import Uniqueness
from frontdesk.db import Database, Tx
from frontdesk.eligibility import enrol, parse_member
from frontdesk.eligibility.model import Enrolled, Submission
from frontdesk.invitations.message import issue_tokens
from frontdesk.invitations.model import InvitationState, LinkTokens
from frontdesk.invitations.tables import invitations, suppressions
from frontdesk.mail.model import MailMessage
from tests.conftest import Api
from tests.factories import NOW, Customer, member_body


def enrol_members(
    tx: Tx,
    customer: Customer,
    bodies: Iterable[dict[str, Any]],
    *,
    now: datetime,
    plan: int | None = None,
    file_id: int | None = None,
) -> None:
    """Members of a plan, the account's first unless told; each record may ask for an invitation."""
    place = (customer.account_id, plan or customer.plan_ids[0])
    records = [parse_member(body, today=now.date().isoformat()) for body in bodies]
    submissions = [
        Submission(*place, record, "client", "request", file_id=file_id) for record in records
    ]
    results = enrol(tx, submissions, now=now, uniqueness=Uniqueness.SERVICE)
    assert all(isinstance(result, Enrolled) for result in results)


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


LINKS = "{{ registration_link }} {{ unsubscribe_link }}"


def read(sent: MailMessage) -> EmailMessage:
    message = email.message_from_bytes(sent.content, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def text_of(sent: MailMessage, kind: str = "plain") -> str:
    part = read(sent).get_body((kind,))
    assert part is not None
    return str(part.get_content())


def links_of(message: MailMessage) -> list[str]:
    """The registration link and the unsubscribe link, without our base URL."""
    found = re.findall(r"https://\S+", text_of(message))
    return [link.removeprefix("https://api.example.com") for link in found]
