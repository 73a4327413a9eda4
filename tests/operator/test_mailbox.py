"""The page of the sandbox's mailbox: who may see it, and that no mail can act in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.policy import SMTP

import pytest
from starlette.testclient import TestClient

from frontdesk.app import App
from frontdesk.config import Config, read_config
from frontdesk.db import Database, open_database
from frontdesk.installation import build_asgi
from frontdesk.mail.model import MailMessage
from frontdesk.mailbox.catcher import MailCatcher
from tests.conftest import Api, SetClock
from tests.factories import make_operator

PAGE = "/sandbox/mailbox"
SCRIPT = "<script>alert(1)</script>"
EVIL = EmailMessage()
EVIL["To"] = "robin@example.com"
EVIL["Subject"] = SCRIPT
EVIL.set_content(f"</pre>{SCRIPT}\n")
EVIL.add_alternative(f'{SCRIPT}<img src="https://example.com/x.png"><p>Hello\n', subtype="html")


def catch(db: Database, clock: SetClock, mail: EmailMessage = EVIL, number: int = 1) -> None:
    conversation = MailCatcher(db, clock).open()
    ids = ("mail@example.com", "robin@example.com", f"mail-{number}@example.com")
    conversation.offer(MailMessage(*ids, mail.as_bytes(policy=SMTP)))
    assert conversation.finish()[0] == 250


@pytest.fixture
def operator(api: Api, db: Database) -> Api:
    return api.as_(make_operator(db).token)


@contextmanager
def browser(config: Config, clock: SetClock, **settings: str) -> Iterator[TestClient]:
    """A browser on the machine of the installation itself, which is a developer's sandbox unless
    settings say otherwise.
    """
    variables = {
        "FRONTDESK_DATABASE_URL": config.database_url,
        "FRONTDESK_BASE_URL": "http://127.0.0.1:8000",
    }
    variables |= {f"FRONTDESK_{name.upper()}": value for name, value in settings.items()}
    app = App(read_config(variables), open_database(config.database_url), clock)
    with TestClient(
        build_asgi(app), base_url="http://localhost:8000", client=("127.0.0.1", 50000)
    ) as http:
        yield http


def test_an_operator_sees_what_was_caught(operator: Api, db: Database, clock: SetClock) -> None:
    assert "Nothing has been caught yet" in operator.get(PAGE, headers={"Accept": "text/html"}).text
    catch(db, clock)
    listed = operator.get(PAGE).text
    assert "robin@example.com" in listed
    assert f'href="{PAGE}/1"' in listed
    shown = operator.get(f"{PAGE}/1").text
    assert f'src="{PAGE}/1/html"' in shown
    assert "Content-Type" in shown


def test_nothing_in_a_mail_acts_in_the_page(operator: Api, db: Database, clock: SetClock) -> None:
    catch(db, clock)
    for path in (PAGE, f"{PAGE}/1", f"{PAGE}/1/html"):
        answer = operator.get(path)
        is_frame = path.endswith("html")
        assert ("<script" in answer.text) is is_frame
        assert ("&lt;script&gt;" in answer.text) is not is_frame
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        assert ("unsafe" in policy) is ("; sandbox;" in policy) is is_frame


def test_only_a_browser_on_the_machine_needs_no_token(
    config: Config, db: Database, clock: SetClock
) -> None:
    catch(db, clock)
    with browser(config, clock) as local:
        assert "robin@example.com" in local.get(PAGE).text
        assert local.get(f"{PAGE}/1").status_code == 200
        wrong = [{"Host": "evil.example.com"}, {"Host": "127.0.0.1.evil.example.com:8000"}]
        wrong += [{"X-Forwarded-For": "203.0.113.9"}, {"Forwarded": "for=203.0.113.9"}]
        for headers in (*wrong, {"Authorization": "Bearer nonsense"}):
            for path in (PAGE, f"{PAGE}/1", f"{PAGE}/1/html"):
                assert local.get(path, headers=headers).status_code == 401
    with browser(config, clock, base_url="https://api.example.com") as public:
        assert public.get(PAGE).status_code == 401


def test_a_customer_may_not_look(api: Api) -> None:
    assert api.get(PAGE).status_code == 403
    assert api.as_(None).get(PAGE).status_code == 401


def test_production_has_no_such_page(config: Config, db: Database, clock: SetClock) -> None:
    operator = {"Authorization": f"Bearer {make_operator(db).token}"}
    with browser(config, clock, environment="production") as http:
        for path in (PAGE, f"{PAGE}/1", f"{PAGE}/1/html"):
            for headers in ({}, operator):
                assert http.get(path, headers=headers).status_code == 404


def test_what_is_not_there_is_not_found(operator: Api, db: Database, clock: SetClock) -> None:
    text = EmailMessage()
    text.set_content("Hello\n")
    catch(db, clock, text)
    for path in (f"{PAGE}/2", f"{PAGE}/x", f"{PAGE}/{'9' * 30}", f"{PAGE}/1/html", f"{PAGE}/-1"):
        assert operator.get(path).status_code == 404
    assert "<iframe" not in operator.get(f"{PAGE}/1").text


def test_older_mails_are_a_page_further(operator: Api, db: Database, clock: SetClock) -> None:
    for number in range(1, 53):
        catch(db, clock, number=number)
    first = operator.get(PAGE).text
    assert first.count("<tr>") == 51
    assert f'href="{PAGE}?before=3"' in first
    second = operator.get(f"{PAGE}?before=3").text
    assert second.count("<tr>") == 3
    assert "before=" not in second
    assert operator.get(f"{PAGE}?before=x").text == first
    assert operator.get(f"{PAGE}?before=3&before=2").status_code == 422
