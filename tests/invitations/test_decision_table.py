"""The interface's four invitation rules as one table, tried row by row through the API.

`invite_immediately` is tried true, false and absent; an address is valid when its syntax is and it is not suppressed. The
account's settings are those of its deliverability: batched invitations switched on or off.
"""

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
known  | none       | off      | none not_new    | none not_new    | none not_new
known  | valid      | on       | none not_new    | none not_new    | none not_new
known  | valid      | off      | none not_new    | none not_new    | none not_new
known  | suppressed | on       | none not_new    | none not_new    | none not_new
known  | suppressed | off      | none not_new    | none not_new    | none not_new
"""

Row = tuple[str, str, str, str, str]


def cases() -> list[Row]:
    """(member, e-mail, settings, asked, outcome), one for each cell of the table."""
    _, _, *rows = TABLE.strip().splitlines()
    split = [[cell.strip() for cell in row.split("|")] for row in rows]
    found = [
        (member, email, settings, asked, outcome)
        for member, email, settings, *outcomes in split
        for asked, outcome in zip(ASKED, outcomes, strict=True)
    ]
    assert len({case[:4] for case in found}) == len(found) == 2 * 3 * 2 * 3
    return found


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
                reason, account_id = SuppressionReason.HARD_BOUNCE, customer.account_id
                suppress(tx, address, reason, now=NOW, account_id=account_id)
        if member == "known":
            # Known, and without an address until now: even the first address that it gets invites nobody.
            assert api.post(path, body | {"email": None}).status_code == 201
        answer = api.post(path, body | ASKED[asked])
        row = f"{member}, e-mail {email}, settings {settings}, invite_immediately {asked}"
        assert as_cell(answer.headers["Invitation"]) == outcome, row
        assert answer.status_code == (201 if member == "new" else 200), row
        assert stored_deliveries(db, answer.json()["id"]) == {
            "immediate": ["immediate"],
            "queued": ["batched"],
        }.get(outcome, []), row


@pytest.mark.parametrize("asked", ASKED)
def test_an_account_that_never_agreed_on_settings_has_them_off_and_an_expired_member_gets_no_mail(
    api: Api, customer: Customer, asked: str
) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    answer = api.post(path, member_body() | ASKED[asked])
    assert as_cell(answer.headers["Invitation"]) == ("immediate" if asked == "true" else "none not_requested")
    expired = api.post(path, member_body(2, expiry_date="2026-11-19") | ASKED[asked])
    assert as_cell(expired.headers["Invitation"]) == "none expired"


def as_cell(header: str) -> str:
    """`none; reason=x` as the table writes it."""
    return header.replace("; reason=", " ")


def stored_deliveries(db: Database, member_id: int) -> list[str]:
    """How the member's invitations leave, as they are stored."""
    with db.read() as tx:
        query = select(invitations.c.delivery).where(invitations.c.member_id == member_id)
        return list(tx.execute(query).scalars())
