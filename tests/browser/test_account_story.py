"""Stories of an account's admin in the browser: a secret that is rolled and whose form is sent again, a
session that ends in that form, a user who joins and leaves.
"""

import pytest
from playwright.sync_api import Page, expect

from frontdesk.access.accounts import list_secrets
from frontdesk.db import Database
from frontdesk.reach import EVERY
from frontdesk.users.model import Role
from tests.browser.checks import TWO_LOOKS, first_view_bytes, focus_is_seen, shows_well
from tests.browser.served import Served
from tests.browser.signing import Staff
from tests.conftest import SetClock
from tests.factories import Customer

PAGE_BYTES = 100_000


def count_secrets(db: Database, customer: Customer) -> int:
    return len(db.ask(lambda tx: list_secrets(tx, EVERY, customer.client_id)))


def roll(page: Page) -> None:
    page.get_by_label("still works").check()
    page.get_by_role("button", name="Roll the secret").click()


@pytest.mark.parametrize("with_script", [True, False])
def test_a_rolled_secret_is_shown_once_whatever_the_browser_does(
    staff: Staff, served: Served, db: Database, customer: Customer, *, with_script: bool
) -> None:
    page = staff.open(Role.ADMIN, "account", with_script=with_script)
    page.get_by_role("link", name="API clients").click()
    page.get_by_role("row").nth(1).get_by_role("link").click()
    roll(page)
    expect(page.get_by_role("main")).to_contain_text("client_secret")
    secret = page.locator("dd code").nth(1).inner_text()
    assert count_secrets(db, customer) == 2
    page.reload()
    expect(page.get_by_role("heading")).to_have_text("Shown already")
    served.restart()
    page.reload()
    expect(page.get_by_role("heading")).to_have_text("Shown already")
    assert secret not in page.content()
    page.go_back()
    expect(page.get_by_role("heading", name="Roll the secret")).to_be_visible()
    assert secret not in page.content()
    served.restart()
    page.reload()
    expect(page.get_by_role("heading", name="Roll the secret")).to_be_visible()
    assert secret not in page.content()
    assert count_secrets(db, customer) == 2


def test_a_session_that_ends_in_the_form_of_a_secret_rolls_nothing_by_itself(
    staff: Staff, db: Database, customer: Customer, clock: SetClock, served: Served
) -> None:
    page = staff.open(Role.ADMIN, f"account/clients/{customer.client_id}")
    page.get_by_label("ends after days").fill("90")
    clock.advance(31 * 60)
    roll(page)
    expect(page.get_by_role("alert")).to_contain_text("Nothing was done")
    served.restart()
    staff.sign_in(page, Role.ADMIN)
    expect(page.get_by_role("heading")).to_have_text("Your form")
    expect(page.get_by_label("days")).to_have_value("90")
    shows_well(page)
    assert count_secrets(db, customer) == 1
    page.get_by_role("button", name="Send it now").click()
    expect(page.get_by_role("main")).to_contain_text("client_secret")
    shows_well(page, TWO_LOOKS)
    assert count_secrets(db, customer) == 2
    page.reload()
    expect(page.get_by_role("heading")).to_have_text("Shown already")
    shows_well(page)
    assert count_secrets(db, customer) == 2


def test_the_pages_of_an_admin_show_well(staff: Staff, customer: Customer) -> None:
    page = staff.open(Role.ADMIN, "account")
    for place in ("", "/clients", "/webhooks", "/users", "/invitations", "/looks"):
        page.goto(f"/console/accounts/{staff.account}/account{place}")
        shows_well(page, TWO_LOOKS)
        assert first_view_bytes(page, page.url) < PAGE_BYTES
    page.goto(f"/console/accounts/{staff.account}/account/clients/{customer.client_id}")
    shows_well(page)
    focus_is_seen(page)
    page.goto(f"/console/accounts/{staff.account}/account/webhooks")
    page.get_by_label("Address").fill("https://hooks.example.com/frontdesk")
    page.get_by_label("Begin paused").check()
    page.get_by_role("button", name="Create the endpoint").click()
    expect(page.get_by_role("main")).to_contain_text("whsec_")
    page.get_by_role("link", name="go on").click()
    expect(page.get_by_role("main")).to_contain_text("somebody paused it")
    shows_well(page)
    focus_is_seen(page)


def test_a_user_is_invited_joins_and_is_ended(staff: Staff) -> None:
    page = staff.open(Role.ADMIN, "account/users")
    page.get_by_role("link", name="Invite another user").click()
    page.get_by_label("E-mail").fill("tom@example.com")
    page.get_by_label("editor:").check()
    page.get_by_role("button", name="Make the invitation").click()
    link = page.locator("dd code").nth(1).inner_text()
    shows_well(page)
    guest = staff.windows.open(link[link.index("/console") :])
    guest.get_by_label("Your name").fill("Tom Okafor")
    guest.get_by_label("Password").fill("correct-battery-staple")
    guest.get_by_role("button", name="Go on").click()
    expect(guest.get_by_role("heading")).to_have_text("Set up your second factor")
    page.goto(f"/console/accounts/{staff.account}/account/users")
    page.get_by_role("link", name="Tom Okafor").click()
    shows_well(page, TWO_LOOKS)
    focus_is_seen(page)
    page.get_by_text("End this user", exact=True).click()
    page.get_by_role("button", name="End this user for good").click()
    expect(page.get_by_role("main")).to_contain_text("Ended")
    shows_well(page)
    page.go_back()
    page.reload()
    expect(page.get_by_role("main")).to_contain_text("Ended")
