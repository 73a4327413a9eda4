"""Production does not write links that could be guessed."""

import pytest

from frontdesk.config import Config, ConfigError, read_config
from frontdesk.db import Database
from frontdesk.db.checks import problems
from frontdesk.errors import FrontdeskError
from frontdesk.worker.delivery import make_mailer

SECRET = "a secret of thirty-two characters"


def production(url: str, **settings: str) -> Config:
    variables = {f"FRONTDESK_{name.upper()}": value for name, value in settings.items()}
    base = {"FRONTDESK_DATABASE_URL": url, "FRONTDESK_ENVIRONMENT": "production"}
    base |= {"FRONTDESK_BASE_URL": "https://api.example.com", "FRONTDESK_MAIL_FROM": "desk@example.com"}
    return read_config(base | {"FRONTDESK_SMTP_URL": "smtp://127.0.0.1:2525"} | variables)


def test_production_asks_for_a_link_secret_and_says_how_to_make_one(db: Database, database_url: str) -> None:
    [problem] = problems(db, production(database_url))
    assert "FRONTDESK_LINK_SECRET" in problem.what
    assert "openssl rand" in problem.remedy
    with pytest.raises(FrontdeskError, match="FRONTDESK_LINK_SECRET"):
        make_mailer(production(database_url), db)
    assert problems(db, production(database_url, link_secret=SECRET)) == []
    make_mailer(production(database_url, link_secret=SECRET), db)


def test_a_short_secret_is_refused_without_being_told(database_url: str) -> None:
    with pytest.raises(ConfigError, match="at least 32 characters") as caught:
        production(database_url, link_secret="short-but-secret")
    assert "short-but-secret" not in str(caught.value)
