"""Which way mail leaves: a sandbox mails nobody who was not named, production writes no link that
could be guessed.
"""

import pytest

from frontdesk.config import ConfigError, read_config
from frontdesk.db import Database
from frontdesk.errors import FrontdeskError
from frontdesk.mail.allow_list import AllowListMailer
from frontdesk.mail.smtp import SmtpMailer
from frontdesk.mailbox import list_messages
from frontdesk.worker.delivery import make_mailer
from tests.mail.memory import MemoryMailer
from tests.mail.relay import message

RELAY = {"FRONTDESK_SMTP_URL": "smtps://user:secret@relay.example"}
PRODUCTION = {
    "FRONTDESK_ENVIRONMENT": "production",
    "FRONTDESK_BASE_URL": "https://api.example.com",
    "FRONTDESK_MAIL_FROM": "desk@example.com",
}
SECRET = {"FRONTDESK_LINK_SECRET": "a secret of thirty-two characters"}


def test_a_sandbox_with_a_relay_does_not_start_unless_told_whom_it_may_mail() -> None:
    with pytest.raises(ConfigError, match="FRONTDESK_SANDBOX_RECIPIENTS") as caught:
        read_config(RELAY)
    assert "secret" not in str(caught.value)
    assert (
        read_config(RELAY | {"FRONTDESK_SANDBOX_RECIPIENTS": "qa@example.com"}).smtp_url is not None
    )


def test_a_sandbox_without_a_relay_catches_everything(db: Database) -> None:
    session = make_mailer(read_config({"FRONTDESK_DATABASE_URL": db.url}), db).open()
    session.offer(message())
    session.finish()
    [caught] = db.ask(list_messages)
    assert caught.recipient == "b@example.com"


def test_production_delivers_by_its_relay_and_with_its_link_secret_or_not_at_all(
    db: Database,
) -> None:
    production = {"FRONTDESK_DATABASE_URL": db.url} | PRODUCTION
    assert isinstance(make_mailer(read_config(production | SECRET | RELAY), db), SmtpMailer)
    for lacking, named in ((production | SECRET, "SMTP_URL"), (production | RELAY, "LINK_SECRET")):
        with pytest.raises(FrontdeskError, match=f"FRONTDESK_{named}"):
            make_mailer(read_config(lacking), db)


def test_only_those_who_were_named_are_mailed_whatever_the_case() -> None:
    relay = MemoryMailer()
    caught = MemoryMailer()
    session = AllowListMailer(("qa@example.com", "@test.example"), relay, caught).open()
    for address in (
        "QA@example.com",
        "any@test.example",
        "real@example.com",
        "qa@example.com.evil.example",
    ):
        session.offer(message(recipient=address))
        session.finish()
    session.close()
    assert [one.recipient for one in relay.messages] == ["QA@example.com", "any@test.example"]
    assert [one.recipient for one in caught.messages] == [
        "real@example.com",
        "qa@example.com.evil.example",
    ]
