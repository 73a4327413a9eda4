"""Signing in as a person does: the link of an invitation, the second factor, the next day's sign-in."""

import re
from collections.abc import Callable

import pyotp
import pytest

from frontdesk.audit import Requester
from frontdesk.db import Database
from frontdesk.reach import EVERY
from frontdesk.users.demo import create_demo_user
from frontdesk.users.links import invite_user, make_reset_link
from frontdesk.users.model import NewUser, Role
from tests.conftest import SetClock
from tests.console.browsing import Browser
from tests.console.conftest import SignIn
from tests.factories import NOW, Customer

EMAIL = "ana.ruiz@example.com"
PASSWORD = "seven quiet lanterns"
INVITED = NewUser(EMAIL, None, frozenset({Role.OPERATOR}))


def invite(db: Database, clock: SetClock, new: NewUser = INVITED) -> str:
    with db.write() as tx:
        secret = invite_user(tx, new, Requester("cli:root", "test", clock())).secret
    return f"/console/invitation/{secret}"


def code_of(browser: Browser, clock: SetClock) -> str:
    """The six digits that an authenticator would show for the key on the page."""
    return pyotp.TOTP(seed_of(browser)).at(clock())


def seed_of(browser: Browser) -> str:
    found = re.search(r"Key: <code>([A-Z2-7 ]+)</code>", browser.page)
    assert found is not None, browser.page
    return found[1].replace(" ", "")


@pytest.fixture
def invited(browsers: Callable[[], Browser], db: Database, clock: SetClock) -> Browser:
    """A browser of an operator on the page that sets up the second factor."""
    link = invite(db, clock)
    browser = browsers().open(link)
    browser.send(link, name="Ana Ruiz", password=PASSWORD)
    assert "Set up your second factor" in browser.page
    return browser


def test_an_invited_user_sets_a_factor_up_and_comes_back_the_next_day(
    invited: Browser, browsers: Callable[[], Browser], clock: SetClock
) -> None:
    seed = seed_of(invited)
    invited.send("/console/sign-in/set-up", code=code_of(invited, clock))
    assert len(re.findall(r"<li>[A-Za-z0-9-]{16,}</li>", invited.page)) == 10
    assert "<h1>System</h1>" in invited.open("/console").page
    clock.advance(24 * 3600)
    assert invited.open("/console").path.startswith("/console/sign-in")
    browser = browsers().open("/console/sign-in")
    browser.send("/console/sign-in", email=EMAIL.upper(), password=PASSWORD)
    assert "<h1>Your code</h1>" in browser.page
    browser.send("/console/sign-in/code", code="000000")
    assert (browser.status, "This code is not right" in browser.page) == (401, True)
    browser.send("/console/sign-in/code", code=pyotp.TOTP(seed).at(clock()))
    assert "<h1>System</h1>" in browser.page


def test_a_code_counts_once(
    invited: Browser, browsers: Callable[[], Browser], clock: SetClock
) -> None:
    code = code_of(invited, clock)
    invited.send("/console/sign-in/set-up", code=code)
    browser = browsers().open("/console/sign-in")
    browser.send("/console/sign-in", email=EMAIL, password=PASSWORD)
    browser.send("/console/sign-in/code", code=code)
    assert (browser.status, "used before" in browser.page) == (401, True)


def test_five_wrong_codes_end_the_sign_in(
    invited: Browser, browsers: Callable[[], Browser], clock: SetClock
) -> None:
    invited.send("/console/sign-in/set-up", code=code_of(invited, clock))
    browser = browsers().open("/console/sign-in")
    browser.send("/console/sign-in", email=EMAIL, password=PASSWORD)
    for _ in range(4):
        browser.send("/console/sign-in/code", code="000000")
        assert "<h1>Your code</h1>" in browser.page
    browser.send("/console/sign-in/code", code="000000")
    assert "Begin again" in browser.page
    assert "password" in browser.form("/console/sign-in")


def test_no_page_says_whether_a_user_exists(
    invited: Browser, browsers: Callable[[], Browser], clock: SetClock
) -> None:
    invited.send("/console/sign-in/set-up", code=code_of(invited, clock))
    answers = []
    for email in (EMAIL, "nobody@example.com"):
        browser = browsers().open("/console/sign-in")
        browser.send("/console/sign-in", email=email, password="not the password")
        page = re.sub(r'value="[0-9a-f]{64}"', "", browser.page.replace(email, ""))
        answers.append((browser.status, page))
    assert answers[0] == answers[1]
    assert answers[0][0] == 401


def test_a_common_password_is_refused_with_the_rule_and_what_was_typed(
    browsers: Callable[[], Browser], db: Database, clock: SetClock
) -> None:
    link = invite(db, clock)
    browser = browsers().open(link)
    browser.send(link, name="Ana Ruiz", password="password1234")
    assert browser.status == 422
    assert browser.form(link)["name"] == "Ana Ruiz"
    assert browser.send(link, name="Ana Ruiz", password=PASSWORD).status == 200


def test_an_invitation_works_once_and_for_72_hours(
    browsers: Callable[[], Browser], db: Database, clock: SetClock
) -> None:
    link = invite(db, clock)
    clock.advance(72 * 3600 + 1)
    late = browsers().open(link)
    assert (late.status, "was used, or has ended. Ask for another one" in late.page) == (404, True)
    assert late.form("/console/sign-in")
    used = invite(db, clock, NewUser("b@example.com", None, frozenset({Role.AUDITOR})))
    browser = browsers().open(used)
    browser.send(used, name="Bo", password=PASSWORD)
    assert browsers().open(used).status == 404


def test_a_reset_link_changes_the_password_and_keeps_the_factor(
    invited: Browser, browsers: Callable[[], Browser], db: Database, clock: SetClock
) -> None:
    seed = seed_of(invited)
    invited.send("/console/sign-in/set-up", code=code_of(invited, clock))
    with db.write() as tx:
        link = make_reset_link(tx, EVERY, 1, Requester("cli:root", "test", clock()))
    path = f"/console/reset/{link.secret}"
    browser = browsers().open(path)
    browser.send(path, password="eight quiet lanterns")
    assert "The password is changed" in browser.page
    assert invited.open("/console/me").path.startswith("/console/sign-in")
    browser.send("/console/sign-in", email=EMAIL, password="eight quiet lanterns")
    clock.advance(60)
    browser.send("/console/sign-in/code", code=pyotp.TOTP(seed).at(clock()))
    assert "<h1>System</h1>" in browser.page


def test_the_same_user_finds_the_form_filled_after_the_sign_in(
    invited: Browser, clock: SetClock
) -> None:
    seed = seed_of(invited)
    invited.send("/console/sign-in/set-up", code=code_of(invited, clock))
    invited.open("/console/me")
    fields = invited.form("/console/me") | {"name": "Robin Lee"}
    clock.advance(31 * 60)
    invited.post("/console/me", fields)
    assert "Nothing was done" in invited.page
    invited.send("/console/sign-in", email=EMAIL, password=PASSWORD)
    assert "Robin Lee" in invited.page
    invited.send("/console/sign-in/code", code=pyotp.TOTP(seed).at(clock()))
    assert invited.form("/console/me")["name"] == "Robin Lee"
    assert "Robin Lee" not in invited.http.get("/console/me", headers=invited.headers).text
    invited.send("/console/me")
    assert "Robin Lee" in invited.page


def resumed(browser: Browser, db: Database, customer: Customer, path: str, **fields: str) -> None:
    """The admin sends a form without a session, and signs in again."""
    new = NewUser("ana@example.com", customer.account_id, frozenset({Role.ADMIN}))
    user, password = create_demo_user(db, new, name="Ana Ruiz", now=NOW)
    browser.post(path, {"user": str(user.id), **fields})
    assert "Nothing was done" in browser.page
    browser.send("/console/sign-in", email=new.email, password=password)
    assert "<h1>Your form</h1>" in browser.page


def test_a_check_box_that_is_emptied_after_the_sign_in_is_off(
    browsers: Callable[[], Browser], db: Database, customer: Customer
) -> None:
    path = f"/console/accounts/{customer.account_id}/account/clients"
    browser = browsers()
    ticks = {"scope.customer": "yes", "scope.plans:read": "yes"}
    resumed(browser, db, customer, path, name="Nightly", number="n" * 24, **ticks)
    assert browser.page.count('type="checkbox"') == 2
    assert browser.page.count('type="hidden" name="number"') == 1
    assert browser.form(path).items() >= ({"name": "Nightly"} | ticks).items()


@pytest.mark.parametrize("seen", ["confirmed", "is_mailed", "again"])
def test_what_a_user_has_seen_is_asked_again_after_the_sign_in(
    browsers: Callable[[], Browser], db: Database, customer: Customer, seen: str
) -> None:
    path = f"/console/accounts/{customer.account_id}/people/1/end"
    browser = browsers()
    resumed(browser, db, customer, path, on="2026-12-31", version="7", **{seen: "yes"})
    fields = browser.form(path)
    assert (fields["on"], fields["version"], seen in fields) == ("2026-12-31", "7", False)


def test_a_button_alone_is_not_pressed_by_a_page_that_does_not_say_what_it_does(
    browsers: Callable[[], Browser], db: Database, customer: Customer
) -> None:
    user = f"/console/accounts/{customer.account_id}/account/users/1"
    browser = browsers()
    resumed(browser, db, customer, f"{user}/end", number="n" * 24)
    assert f'href="{user}/end"' in browser.page
    assert "Send it now" not in browser.page
    assert browser.open(f"{user}/end").path == user


def test_another_user_does_not_see_the_form_of_the_first(invited: Browser, clock: SetClock) -> None:
    seed = seed_of(invited)
    invited.send("/console/sign-in/set-up", code=code_of(invited, clock))
    fields = invited.open("/console/me").form("/console/me") | {"name": "Of Another"}
    clock.advance(31 * 60)
    invited.post("/console/me", fields | {"user": "999"})
    invited.send("/console/sign-in", email=EMAIL, password=PASSWORD)
    invited.send("/console/sign-in/code", code=pyotp.TOTP(seed).at(clock()))
    assert (invited.status, "Of Another" in invited.page) == (200, False)


def test_a_sign_in_takes_the_place_of_the_browsers_session(
    invited: Browser, browsers: Callable[[], Browser], clock: SetClock
) -> None:
    seed = seed_of(invited)
    invited.send("/console/sign-in/set-up", code=code_of(invited, clock))
    stolen = browsers()
    stolen.http.cookies.update(dict(invited.http.cookies))
    assert stolen.open("/console/me").path == "/console/me"
    clock.advance(60)
    invited.open("/console/sign-in")
    invited.send("/console/sign-in", email=EMAIL, password=PASSWORD)
    invited.send("/console/sign-in/code", code=pyotp.TOTP(seed).at(clock()))
    assert invited.open("/console/me").path == "/console/me"
    assert stolen.open("/console/me").path.startswith("/console/sign-in")


def test_signing_out_twice_leads_to_the_sign_in(sign_in: SignIn) -> None:
    browser = sign_in(Role.VIEWER).open("/console/me")
    fields = browser.form("/console/sign-out")
    kept = dict(browser.http.cookies)
    browser.post("/console/sign-out", fields)
    browser.http.cookies.update(kept)
    browser.post("/console/sign-out", fields)
    assert "password" in browser.form("/console/sign-in")
