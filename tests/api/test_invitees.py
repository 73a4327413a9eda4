"""Where the links in an invitation lead, for the person who has it and for whoever has not."""

import base64
import hashlib
import re
from typing import Any

import pytest

from frontdesk.db import Database
from frontdesk.invitations import set_deliverability
from tests.api.conftest import Trail
from tests.conftest import Api
from tests.factories import Customer
from tests.invitations.mails import MailedInvitation, mailed, suppressed

ONE_CLICK = {"List-Unsubscribe": "One-Click"}


@pytest.fixture
def mail(api: Api, db: Database, customer: Customer) -> MailedInvitation:
    return mailed(api, db, customer)


@pytest.fixture
def anybody(api: Api) -> Api:
    return api.as_(None)


def test_one_click_unsubscribes(
    mail: MailedInvitation, anybody: Api, db: Database, trail: Trail
) -> None:
    for _ in range(3):
        assert (
            anybody.post(f"/unsubscribe/{mail.tokens.unsubscribe}", data=ONE_CLICK).status_code
            == 200
        )
    assert suppressed(db) == {mail.address: "unsubscribe"}
    [entry] = trail("suppression.added")
    assert (entry["actor"], entry["subject_id"]) == ("unsubscribe-link", mail.id)


@pytest.mark.parametrize(
    "form",
    [
        {"files": {"List-Unsubscribe": (None, "One-Click")}},
        {"content": b""},
        {"content": b"{}", "headers": {"Content-Type": "application/json"}},
        {"data": ONE_CLICK, "headers": {"Accept": "text/html"}},
    ],
)
def test_a_mail_program_sends_any_form(
    mail: MailedInvitation, anybody: Api, db: Database, form: Any
) -> None:
    answer = anybody.post(f"/unsubscribe/{mail.tokens.unsubscribe}", **form)
    assert (answer.status_code, suppressed(db)) == (200, {mail.address: "unsubscribe"})


def test_looking_changes_and_tells_nothing(
    mail: MailedInvitation, anybody: Api, db: Database
) -> None:
    tokens = (mail.tokens.unsubscribe, "x" * 43, "x", "%00", "ä", mail.tokens.registration)
    for method in ("HEAD", "GET", "POST"):
        assert suppressed(db) == {}
        answers = [anybody.request(method, f"/unsubscribe/{token}") for token in tokens]
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.content for answer in answers}) == 1
        if method == "GET":
            assert re.search(r'<form method="post">.*<button type="submit">', answers[0].text)
            assert "action=" not in answers[0].text
    assert suppressed(db) == {mail.address: "unsubscribe"}
    for token in tokens[1:5]:
        assert anybody.get(f"/register/{token}").status_code == 404


def test_pages_carry_no_script_load_nothing_and_are_not_kept(
    mail: MailedInvitation, anybody: Api
) -> None:
    urls = (
        f"/unsubscribe/{mail.tokens.unsubscribe}",
        f"/register/{mail.tokens.registration}",
        "/register/x",
    )
    for url in urls:
        answer = anybody.get(url)
        assert anybody.as_("unknown").get(url).content == answer.content, (
            "no bearer token is looked at"
        )
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        policy = answer.headers["Content-Security-Policy"]
        [style] = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        wanted = ("default-src 'none'", "frame-ancestors 'none'", f"style-src 'sha256-{digest}'")
        assert [part for part in wanted if part not in policy] == []
        assert "unsafe" not in policy
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"
        for secret in ("<script", mail.tokens.unsubscribe, mail.tokens.registration):
            assert secret not in answer.text


def test_a_registration_link_of_ours_leads_on_once_the_account_has_a_page(
    mail: MailedInvitation, api: Api, anybody: Api, db: Database, customer: Customer
) -> None:
    path = f"/register/{mail.tokens.registration}"
    waiting = anybody.get(path)
    assert (waiting.status_code, "Example Health Plan 0" in waiting.text) == (200, True)
    api.patch(f"/v2/plans/{customer.plan_ids[0]}", {"name": "<script>alert(1)</script>"})
    assert "&lt;script&gt;" in anybody.get(path).text
    with db.write() as tx:
        set_deliverability(
            tx, customer.account_id, registration_url="https://join.example.com/start"
        )
    answer = anybody.get(path, follow_redirects=False)
    target = f"https://join.example.com/start?invitation={mail.tokens.registration}"
    assert (answer.status_code, answer.headers["Location"]) == (303, target)
    assert answer.headers["Referrer-Policy"] == "no-referrer"
