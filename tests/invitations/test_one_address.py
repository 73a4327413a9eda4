"""One mailbox is one address, in whatever spelling: unique once, suppressed once, and looked up again as it is mailed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select, text

from frontdesk.audit.tables import audit_entries
from frontdesk.db import Database, migrate
from frontdesk.eligibility.tables import members
from frontdesk.eligibility.values import parse_email
from frontdesk.invitations import list_suppressions, suppress
from frontdesk.invitations.mime import mailable
from frontdesk.invitations.model import SuppressionReason
from frontdesk.invitations.tables import invitations, suppressions
from frontdesk.text import Rejected, fold_email
from tests.conftest import Api
from tests.factories import NOW, Customer, member_body

SPELLINGS = [
    ("Alice@Example.COM", "alice@example.com"),
    ("alice@ⓔxample.com", "alice@example.com"),
    ("alice@\uff25\uff38\uff21\uff2d\uff30\uff2c\uff25.com", "alice@example.com"),
    ("alice@exampl\u212f.com", "alice@example.com"),
    ("alice@BÜCHER.de", "alice@xn--bcher-kva.de"),
    ("alice@bu\u0308cher.de", "alice@xn--bcher-kva.de"),
    ("alice@XN--BCHER-KVA.de", "alice@xn--bcher-kva.de"),
    ("alice@faß.de", "alice@xn--fa-hia.de"),  # another domain than fass.de, as UTS 46 has it
    ("Zoe\u0308@Example.com", "zo\u00eb@example.com"),
    ("alice@☃.example", "alice@☃.example"),  # no domain name
]


@pytest.mark.parametrize(("spelling", "folded"), SPELLINGS)
def test_a_spelling_is_folded_to_the_domain_that_is_asked_for_it(spelling: str, folded: str) -> None:
    assert fold_email(spelling) == folded


@given(st.text(st.characters(min_codepoint=33, exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_what_is_mailed_is_folded_as_what_was_stored(label: str) -> None:
    try:
        address = parse_email(f"a@{label}.com")
    except Rejected:
        return
    assert fold_email(address) == fold_email(mailable(address))
    assert fold_email(fold_email(address)) == fold_email(address)


def test_no_two_members_have_one_address(api: Api, customer: Customer) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    assert api.post(path, member_body(1, email="alice@example.com")).status_code == 201
    for number, (spelling, _) in enumerate(SPELLINGS[1:4], 2):
        answer = api.post(path, member_body(number, email=spelling))
        assert [(fault["field"], fault["code"]) for fault in answer.json()["errors"]] == [
            ("email", "not_unique")
        ]
    answer = api.post(path, {"external_id": member_body(1)["external_id"], "email": "alice@ⓔxample.com"})
    assert answer.headers["Eligibility-Changed"] == "email"  # it is its own address


def test_whoever_unsubscribed_is_not_invited_in_another_spelling(
    api: Api, db: Database, owner: Database, customer: Customer
) -> None:
    with db.write() as tx:
        suppress(
            tx, "alice@bücher.de", SuppressionReason.UNSUBSCRIBE, now=NOW, account_id=customer.account_id
        )
    body = member_body(email="alice@xn--bcher-kva.de", invite_immediately=True)
    answer = api.post(f"/v2/plans/{customer.plan_ids[0]}/eligibility", body)
    assert answer.headers["Invitation"] == "none; reason=suppressed"


def test_stored_foldings_are_made_anew_and_what_collides_is_told_and_kept(
    api: Api, db: Database, owner: Database, customer: Customer
) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    before = [
        "alice@bücher.de",
        "alice@ⓔxample.com",
        "alice@example.com",
        "zoë@example.com",
        "alice@xn--bcher-kva.de",
    ]
    for number in range(len(before)):
        answer = api.post(path, member_body(number, email=f"{number}@example.com", invite_immediately=True))
        assert answer.status_code == 201
    migrate.downgrade(owner, "0012")
    with db.write() as tx:
        for number, email in enumerate(before):
            row = {"email": email, "id": number + 1}
            tx.execute(text("UPDATE members SET email = :email, email_folded = :email WHERE id = :id"), row)
            tx.execute(
                text(
                    "UPDATE invitations SET address = :email, address_folded = :email WHERE member_id = :id"
                ),
                row,
            )
    told: list[str] = []
    assert migrate.upgrade(owner, tell=told.append)[0] == "0013"
    with db.read() as tx:
        folded = tx.execute(select(members.c.email_folded).order_by(members.c.id)).scalars().all()
        mailed = (
            tx.execute(select(invitations.c.address_folded).order_by(invitations.c.member_id)).scalars().all()
        )
        entries = select(audit_entries).where(audit_entries.c.action == "member.address_shared")
        shared = [(row["subject_id"], row["detail"]) for row in tx.execute(entries).mappings()]
    assert folded == ["alice@bücher.de", "alice@ⓔxample.com", *before[2:]]
    assert mailed == [fold_email(email) for email in before]
    assert shared == [(1, {"member_id": 5}), (2, {"member_id": 3})]
    assert told[0].startswith("2 members have an e-mail address that is another member's")
    kept = api.post(path, {"external_id": member_body(0)["external_id"], "last_name": "Kept"})
    assert (kept.status_code, kept.headers["Eligibility-Outcome"]) == (200, "updated")
    refused = api.post(path, {"external_id": member_body(0)["external_id"], "email": "alice@bücher.de"})
    assert refused.json()["errors"][0]["code"] == "not_unique"


def test_a_stored_suppression_holds_after_the_migration_and_the_first_reason_stays(
    db: Database, owner: Database
) -> None:
    migrate.downgrade(owner, "0012")
    rows = [
        ("alice@bücher.de", "unsubscribe", 1),
        ("alice@xn--bcher-kva.de", "hard_bounce", 2),
        ("bob@ⓔxample.com", "complaint", 4),
        ("bob@example.com", "unsubscribe", 3),
        ("eve@\uff45xample.com", "by_hand", 5),
    ]
    with db.write() as tx:
        for address, reason, hour in rows:
            row: dict[str, Any] = {
                "address_folded": address,
                "reason": reason,
                "created_at": NOW.replace(hour=hour),
            }
            tx.execute(suppressions.insert().values(row))
    migrate.upgrade(owner)
    with db.read() as tx:
        found = [
            (each.address, each.reason, each.created_at.hour) for each in list_suppressions(tx, limit=10)
        ]
    assert found == [
        ("alice@xn--bcher-kva.de", "unsubscribe", 1),
        ("bob@example.com", "unsubscribe", 3),
        ("eve@example.com", "by_hand", 5),
    ]
