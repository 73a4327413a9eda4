"""A whole invitation as a mail program reads it, and byte for byte."""

from dataclasses import replace
from email.utils import format_datetime
from pathlib import Path

import pytest

from frontdesk.db import Database
from frontdesk.errors import Invalid
from frontdesk.invitations.message import compose, derive_tokens, load_message_context, set_template
from frontdesk.invitations.model import ClaimedInvitation, MessageContext, SenderProfile
from frontdesk.mail.model import MailMessage
from tests.conftest import Api
from tests.factories import NOW, Customer
from tests.invitations.mails import LINKS, mailed, read, text_of

SECRET = "s" * 32
SENDER = SenderProfile(
    "Gold", "Example Health", "care@example.com", "https://join.example.com/start"
)


def written(
    db: Database, invitation: ClaimedInvitation, sender: SenderProfile = SENDER
) -> MailMessage:
    with db.write() as tx:
        context = load_message_context(tx, [invitation], link_secret=SECRET, now=NOW)
    stored = context.senders[invitation.plan_id]
    context = replace(
        context, senders={invitation.plan_id: sender._replace(template=stored.template)}
    )
    return compose(
        invitation, context, base_url="https://api.example.com", mail_from="mail@example.com"
    )


@pytest.fixture
def invitation(api: Api, db: Database, customer: Customer) -> ClaimedInvitation:
    mail = mailed(api, db, customer)
    ids = (mail.id, customer.account_id, customer.plan_ids[0], 1)
    return ClaimedInvitation(*ids, "immediate", mail.address, mail.message_id)


def test_a_copy_is_the_same_and_each_part_has_both_links(
    db: Database, invitation: ClaimedInvitation
) -> None:
    sent = written(db, invitation)
    assert sent == written(db, invitation)
    assert (sent.sender, sent.recipient) == ("mail@example.com", "robin.1@example.com")
    assert read(sent)["Message-ID"] == f"<{sent.message_id}>" == "<mail-1@mail.example.com>"
    wide = written(db, invitation._replace(address="röbin@bücher.example"))
    assert wide.recipient == "röbin@xn--bcher-kva.example"
    unsubscribe = str(read(sent)["List-Unsubscribe"]).strip("<>")
    for kind in ("plain", "html"):
        assert "https://join.example.com/start?invitation=" in text_of(sent, kind)
        assert unsubscribe in text_of(sent, kind)


def test_the_mail_is_the_one_in_the_file() -> None:
    """Who changes the words sees here what readers will see."""
    invitation = ClaimedInvitation(
        1, 1, 1, 1, "immediate", "robin@example.com", "4711@mail.example.com"
    )
    page = "https://join.example.com/start?from=mail"
    name = "Gold & Silver \u2013 2027"
    sender = SenderProfile(name, "Example Health", "care@example.com", page)
    tokens = {1: derive_tokens(SECRET, invitation.message_id)}
    context = MessageContext(tokens, {1: sender}, format_datetime(NOW))
    made = compose(
        invitation, context, base_url="https://api.example.com", mail_from="mail@example.com"
    )
    assert made.content == Path(__file__).with_name("invitation.eml").read_bytes()


def test_without_a_sender_the_installation_writes(
    db: Database, invitation: ClaimedInvitation
) -> None:
    sent = written(db, invitation, SenderProfile("Gold", None, None, None))
    message = read(sent)
    assert (message["From"], message["Subject"]) == ("mail@example.com", "You are invited to Gold")
    assert "https://api.example.com/register/" in text_of(sent)
    assert "Access to Gold has been set up for you." in text_of(sent)
    assert "behalf" not in text_of(sent) + text_of(sent, "html")


def test_an_accounts_own_templates_are_used(db: Database, invitation: ClaimedInvitation) -> None:
    with db.write() as tx:
        words = {"subject": "Willkommen bei {{ plan_name }} — schön!", "text": LINKS}
        set_template(tx, invitation.account_id, now=NOW, **words)
    message = read(written(db, invitation))
    assert message["Subject"] == "Willkommen bei Gold — schön!"
    assert message.get_content_type() == "text/plain"


def test_an_address_that_no_mail_can_carry_is_refused_and_not_repeated(
    db: Database, invitation: ClaimedInvitation
) -> None:
    with pytest.raises(Invalid) as caught:
        written(db, invitation._replace(address="a b@example.com"))
    assert "a b@example.com" not in str(caught.value.faults)
    assert caught.value.__cause__ is None
