"""The interface's four invitation rules as one table, tried row by row through the API.

`invite_immediately` is tried true, false and absent; an address is valid when its syntax is and it
is not suppressed. The account's settings are those of its deliverability: batched invitations
switched on or off.
"""

from typing import Any

import pytest
from sqlalchemy import select

from frontdesk.db import Database
from frontdesk.invitations import set_deliverability, suppress
from frontdesk.invitations.model import SuppressionReason
from frontdesk.invitations.tables import invitations
from tests.conftest import Api
from tests.factories import NOW, Customer, member_body

# The three ways to say whether to invite at once, in the order of the table's columns.
ASKED = {"true": {"invite_immediately": True}, "false": {"invite_immediately": False}, "absent": {}}

TABLE = """
member | e-mail     | settings | true            | false           | absent
-------|------------|----------|-----------------|-----------------|----------------
new    | none       | on       | none no_email   | none no_email   | none no_email
new    | none       | off      | none no_email   | none no_email   | none no_email
new    | valid      | on       | immediate       | queued          | queued
new    | valid      | off      | immediate       | none disabled   | none disabled
new    | suppressed | on       | none suppressed | none suppressed | none suppressed
new    | suppressed | off      | none suppressed | none suppressed | none suppressed
known  | none       | on       | none not_new    | none not_new    | none not_new
known  | valid      | on       | none not_new    | none not_new    | none not_new
known  | suppressed | off      | none not_new    | none not_new    | none not_new
"""


def cases() -> list[tuple[str, ...]]:
    """(member, e-mail, settings, asked, outcome), one for each cell of the table."""
    _, _, *rows = TABLE.strip().splitlines()
    split = [[cell.strip() for cell in row.split("|")] for row in rows]
    return [
        (*row[:3], asked, outcome)
        for row in split
        for asked, outcome in zip(ASKED, row[3:], strict=True)
    ]


@pytest.mark.parametrize("settings", ["on", "off"])
def test_who_is_invited_and_how(api: Api, db: Database, customer: Customer, settings: str) -> None:
    with db.write() as tx:
        set_deliverability(tx, customer.account_id, enabled=settings == "on")
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    for number, (member, email, of_settings, asked, outcome) in enumerate(cases()):
        if of_settings != settings:
            continue
        address = f"row.{number}@example.com"
        body = member_body(number, email=... if email == "none" else address)
        if email == "suppressed":
            with db.write() as tx:
                reason = SuppressionReason.HARD_BOUNCE
                suppress(tx, address, reason, now=NOW, account_id=customer.account_id)
        if member == "known":
            # Known, and without an address until now: even the first address that it gets invites
            # nobody.
            assert api.post(path, body | {"email": None}).status_code == 201
        answer = api.post(path, body | ASKED[asked])
        row = f"{member}, e-mail {email}, settings {settings}, invite_immediately {asked}"
        assert as_cell(answer) == outcome, row
        assert answer.status_code == (201 if member == "new" else 200), row
        query = select(invitations.c.delivery).where(invitations.c.member_id == answer.json()["id"])
        with db.read() as tx:
            stored = tx.execute(query).scalars().all()
        assert stored == {"immediate": ["immediate"], "queued": ["batched"]}.get(outcome, []), row


@pytest.mark.parametrize("asked", ASKED)
def test_an_account_without_settings_has_batches_off(
    api: Api, customer: Customer, asked: str
) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    answer = api.post(path, member_body() | ASKED[asked])
    assert as_cell(answer) == ("immediate" if asked == "true" else "none not_requested")


@pytest.mark.parametrize("asked", ASKED)
def test_an_expired_member_is_not_invited(api: Api, customer: Customer, asked: str) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    expired = api.post(path, member_body(2, expiry_date="2026-11-19") | ASKED[asked])
    assert as_cell(expired) == "none expired"


def as_cell(answer: Any) -> str:
    """`none; reason=x` as the table writes it."""
    return str(answer.headers["Invitation"]).replace("; reason=", " ")
