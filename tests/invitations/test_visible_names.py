"""A customer renames a plan to an advertisement: the mail from the operator's domain doesn't carry
it.
"""

import email
import email.policy

import pytest

from frontdesk.db import Database
from frontdesk.invitations.message import compose, load_message_context
from frontdesk.invitations.model import ClaimedInvitation
from frontdesk.invitations.visible_names import NEUTRAL_NAME, visible_name
from frontdesk.mailbox.model import decode_message
from tests.conftest import Api
from tests.factories import NOW, Customer
from tests.invitations.mails import mailed

ADDRESSES = [
    "Your account is locked, see https://evil.example/login",
    "HTTP://EVIL.EXAMPLE",
    "hxxp://evil",
    "go to WWW.evil",
    "write to help@evil",
    "evil.com/login",
    "Sign in: login.evil.co.uk now",
    "evil\uff0ecom",
    "evil\u3002com",
    "evil\uff61com",
    "evil\u2024com",
    "help\uff20evil",
    "https\uff1a//evil",
    "//evil/login",
    r"\\evil\share",
    "\uff57\uff57\uff57.evil",
    "пример.рф",
    "пример.xn--p1ai",
    "call 192.0.2.7",
    "=?utf-8?q?evil?=",
]
HIDDEN = [
    "Gold\r\nBcc: robin",
    "Gold\tplan",
    "Gold\x00",
    "Gold\u2028plan",
    "\u202eevil",
    "\u2066evil\u2069",
    "Go\u200bld",
    "Go\u00adld",
    "\u3164",
    "Gold\ue000",
    "\U000e0041",
    "   ",
    "Gold " * 40,
]
ORDINARY = [
    "Gold",
    "Gold 2.0",
    "Acme, Inc. (PPO/HMO)",
    "St. Mary's & Sons, 100 %",
    "Plan No.1: U.S. employees",
    "Krankenkasse Süd",
    "健康保険プラン",
    "خطة الصحة",
]


@pytest.mark.parametrize("name", [*ADDRESSES, *HIDDEN])
def test_a_name_that_could_be_followed_or_deceives_is_replaced(name: str) -> None:
    assert visible_name(name) == NEUTRAL_NAME


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_name_is_shown_as_it_is(name: str) -> None:
    assert visible_name(name) == name


def test_a_renamed_plan_reaches_neither_subject_nor_header_nor_body(
    api: Api, db: Database, customer: Customer
) -> None:
    mail = mailed(api, db, customer)
    sentence = "Your account is locked: evil.example/login"
    renamed = api.patch(f"/v2/plans/{customer.plan_ids[0]}", {"name": sentence})
    assert renamed.status_code == 200
    place = (mail.id, customer.account_id, customer.plan_ids[0], 1)
    invitation = ClaimedInvitation(*place, "immediate", mail.address, mail.message_id)
    with db.write() as tx:
        context = load_message_context(tx, [invitation], link_secret="s" * 32, now=NOW)
    sent = compose(
        invitation, context, base_url="https://api.example.com", mail_from="mail@example.com"
    )
    headers = email.message_from_bytes(sent.content, policy=email.policy.default)
    assert headers["Subject"] == f"You are invited to {NEUTRAL_NAME}"
    decoded = decode_message(sent.content)
    everything = f"{decoded.headers} {decoded.text} {decoded.html}"
    assert "evil" not in everything
    assert api.get(f"/v2/plans/{customer.plan_ids[0]}").json()["data"][0]["name"] == sentence
