"""Where the links in an invitation lead, for the person who has it and for whoever has not."""

import base64
import hashlib
import json
import re
from typing import Any

import pytest

from frontdesk.audit import list_entries
from frontdesk.db import Database
from frontdesk.invitations import set_deliverability
from tests.conftest import Api
from tests.factories import Customer
from tests.invitations.mails import mailed, suppressed

ONE_CLICK = {"List-Unsubscribe": "One-Click"}


@pytest.fixture
def anybody(api: Api) -> Api:
    return api.as_(None)


def test_one_click_unsubscribes_the_address_and_a_second_changes_nothing(
    api: Api, anybody: Api, db: Database, customer: Customer
) -> None:
    mail = mailed(api, db, customer)
    answers = [
        anybody.request("POST", f"/unsubscribe/{mail.tokens.unsubscribe}", data=ONE_CLICK) for _ in range(3)
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert suppressed(db) == {mail.address: "unsubscribe"}
    with db.read() as tx:
        entries = [entry for entry in list_entries(tx) if entry["action"] == "suppression.added"]
    assert [(entry["actor"], entry["subject_id"]) for entry in entries] == [("unsubscribe-link", mail.id)]


def test_a_mail_program_may_send_its_form_as_it_likes(
    api: Api, anybody: Api, db: Database, customer: Customer
) -> None:
    forms: list[dict[str, Any]] = [
        {"data": ONE_CLICK},
        {"files": {"List-Unsubscribe": (None, "One-Click")}},
        {"content": b""},
        {"content": b"{}", "headers": {"Content-Type": "application/json"}},
        {"data": ONE_CLICK, "headers": {"Accept": "text/html"}},
    ]
    for number, form in enumerate(forms):
        mail = mailed(api, db, customer, number=number)
        answer = anybody.request("POST", f"/unsubscribe/{mail.tokens.unsubscribe}", **form)
        assert (answer.status_code, suppressed(db)[mail.address]) == (200, "unsubscribe")


def test_looking_at_the_page_changes_nothing_and_its_button_asks_the_same_address(
    api: Api, anybody: Api, db: Database, customer: Customer
) -> None:
    mail = mailed(api, db, customer)
    for method in ("GET", "HEAD"):
        answer = anybody.request(method, f"/unsubscribe/{mail.tokens.unsubscribe}")
        assert answer.status_code == 200
    page = anybody.get(f"/unsubscribe/{mail.tokens.unsubscribe}").text
    assert re.search(r'<form method="post">.*<button type="submit">', page)
    assert "action=" not in page
    assert suppressed(db) == {}


def test_who_guesses_learns_nothing(api: Api, anybody: Api, db: Database, customer: Customer) -> None:
    mail = mailed(api, db, customer)
    tokens = [mail.tokens.unsubscribe, "x" * 43, "x", "%00", "ä", mail.tokens.registration]
    for method in ("GET", "POST"):
        answers = [anybody.request(method, f"/unsubscribe/{token}") for token in tokens]
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.content for answer in answers}) == 1
    assert suppressed(db) == {mail.address: "unsubscribe"}


def test_pages_carry_no_script_load_nothing_and_are_not_kept(
    api: Api, anybody: Api, db: Database, customer: Customer
) -> None:
    token = mailed(api, db, customer).tokens
    for path in (f"/unsubscribe/{token.unsubscribe}", f"/register/{token.registration}", "/register/x"):
        answer = anybody.get(path)
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "<script" not in answer.text
        assert token.unsubscribe not in answer.text
        assert token.registration not in answer.text


def test_the_style_is_the_one_that_the_policy_allows(anybody: Api) -> None:
    answer = anybody.get("/unsubscribe/x")
    [style] = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in answer.headers["Content-Security-Policy"]


def test_a_registration_link_of_ours_leads_on_once_the_account_has_a_page(
    api: Api, anybody: Api, db: Database, customer: Customer
) -> None:
    mail = mailed(api, db, customer)
    path = f"/register/{mail.tokens.registration}"
    waiting = anybody.get(path)
    assert (waiting.status_code, "Example Health Plan 0" in waiting.text) == (200, True)
    with db.write() as tx:
        set_deliverability(tx, customer.account_id, registration_url="https://join.example.com/start")
    answer = anybody.request("GET", path, follow_redirects=False)
    assert answer.status_code == 303
    assert (
        answer.headers["Location"] == f"https://join.example.com/start?invitation={mail.tokens.registration}"
    )
    assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_an_unknown_registration_link_leads_nowhere(anybody: Api) -> None:
    for token in ("x" * 43, "x", "%00", "ä"):
        assert anybody.get(f"/register/{token}").status_code == 404


def test_a_plans_name_is_escaped(api: Api, anybody: Api, db: Database, customer: Customer) -> None:
    mail = mailed(api, db, customer)
    api.patch(f"/v2/plans/{customer.plan_ids[0]}", {"name": "<script>alert(1)</script>"})
    page = anybody.get(f"/register/{mail.tokens.registration}").text
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_no_token_is_logged(api: Api, anybody: Api, db: Database, customer: Customer) -> None:
    tokens = mailed(api, db, customer).tokens
    anybody.request("POST", f"/unsubscribe/{tokens.unsubscribe}", data=ONE_CLICK)
    anybody.get(f"/register/{tokens.registration}")
    api.http.__exit__(None, None, None)
    api.http.__enter__()
    lines = [json.loads(line) for line in api.log.getvalue().splitlines()]
    assert {"/unsubscribe/{token}", "/register/{token}"} <= {line["route"] for line in lines}
    assert tokens.unsubscribe not in api.log.getvalue()
    assert tokens.registration not in api.log.getvalue()
