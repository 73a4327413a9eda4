"""Which way mail leaves: a sandbox mails nobody who was not named."""

import pytest

from frontdesk.config import Config, ConfigError, read_config
from frontdesk.db import Database
from frontdesk.errors import FrontdeskError
from frontdesk.mail.smtp import SmtpMailer
from frontdesk.mailbox import list_messages
from frontdesk.worker.delivery import AllowListMailer, make_mailer
from tests.mail.memory import MemoryMailer
from tests.mail.relay import message

RELAY = {"FRONTDESK_SMTP_URL": "smtps://user:secret@relay.example"}


def config_of(db: Database, **variables: str) -> Config:
    url = db.engine.url.render_as_string(hide_password=False)
    return read_config({"FRONTDESK_DATABASE_URL": url} | variables)


def test_a_sandbox_with_a_relay_does_not_start_unless_told_whom_it_may_mail(db: Database) -> None:
    with pytest.raises(ConfigError, match="FRONTDESK_SANDBOX_RECIPIENTS") as caught:
        config_of(db, **RELAY)
    assert "secret" not in str(caught.value)
    assert config_of(db, **RELAY, FRONTDESK_SANDBOX_RECIPIENTS="qa@example.com").smtp_url is not None


def test_a_sandbox_without_a_relay_catches_everything(db: Database) -> None:
    session = make_mailer(config_of(db), db).open()
    session.offer(message())
    session.finish()
    with db.read() as tx:
        [caught] = list_messages(tx)
    assert caught.recipient == "b@example.com"


def test_production_delivers_by_its_relay_and_not_at_all_without_one(db: Database) -> None:
    production = {"FRONTDESK_ENVIRONMENT": "production", "FRONTDESK_LINK_SECRET": "x" * 40}
    assert isinstance(make_mailer(config_of(db, **RELAY, **production), db), SmtpMailer)
    with pytest.raises(FrontdeskError, match="FRONTDESK_SMTP_URL"):
        make_mailer(config_of(db, **production), db)


def test_only_those_who_were_named_are_mailed_whatever_the_case() -> None:
    relay, caught = MemoryMailer(), MemoryMailer()
    session = AllowListMailer(("qa@example.com", "@test.example"), relay, caught).open()
    for address in ("QA@example.com", "any@test.example", "real@example.com", "qa@example.com.evil.example"):
        session.offer(message(recipient=address))
        session.finish()
    session.close()
    assert [one.recipient for one in relay.messages] == ["QA@example.com", "any@test.example"]
    assert [one.recipient for one in caught.messages] == ["real@example.com", "qa@example.com.evil.example"]
