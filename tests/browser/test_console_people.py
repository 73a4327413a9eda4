"""Stories of a support desk in the browser: no mail came, two people of one name, a session that ends
in a half-filled form.
"""

import re

import pytest
from playwright.sync_api import expect

from frontdesk.audit import list_entries
from frontdesk.db import Database
from frontdesk.invitations import suppress
from frontdesk.invitations.model import SuppressionReason
from frontdesk.reach import EVERY
from frontdesk.users.model import Role
from tests.browser.checks import TWO_LOOKS, first_view_bytes, focus_is_seen, shows_well
from tests.browser.served import Served
from tests.browser.signing import Staff
from tests.conftest import Api, SetClock
from tests.factories import Customer, member_body

PAGE_BYTES = 100_000


@pytest.fixture
def people(service: Api, customer: Customer) -> list[int]:
    """Two people of one name and birth date, in two plans."""
    ids = []
    for number, plan_id in enumerate(customer.plan_ids, 1):
        body = member_body(number, last_name="Sample", invite_immediately=True)
        answer = service.post(f"/v2/plans/{plan_id}/eligibility", body)
        ids.append(answer.json()["id"])
    return ids


@pytest.mark.parametrize("with_script", [True, False])
def test_a_person_who_got_no_mail_is_helped_without_opening_the_record(
    staff: Staff, people: list[int], db: Database, clock: SetClock, *, with_script: bool
) -> None:
    address = member_body(1)["email"]
    with db.write() as tx:
        suppress(tx, address, SuppressionReason.HARD_BOUNCE, now=clock(), account_id=staff.account)
    page = staff.open(Role.SUPPORT, "people", with_script=with_script)
    page.get_by_label("external_id").fill("AB 000001")
    page.get_by_role("button", name="Find").nth(1).click()
    expect(page).to_have_url(re.compile(rf"/people/{people[0]}$"))
    expect(page.get_by_role("main")).to_contain_text("A mail bounced, so the address is blocked")
    page.get_by_role("button", name="It works again").click()
    expect(page.get_by_role("main")).not_to_contain_text("A mail bounced")
    page.go_back()
    page.reload()
    actions = {entry["action"] for entry in db.ask(lambda tx: list_entries(tx, EVERY))}
    assert "suppression.removed" in actions
    assert actions.isdisjoint({"member.opened", "member.read"})


def test_a_caller_is_found_among_two_of_one_name_and_checked(
    staff: Staff, people: list[int], served: Served
) -> None:
    page = staff.open(Role.SUPPORT, "people")
    shows_well(page, TWO_LOOKS)
    focus_is_seen(page)
    page.get_by_label("Birth date").fill("1977-01-11")
    page.get_by_label("Last name, or its first letters").fill("samp")
    page.get_by_role("button", name="Find").first.click()
    expect(page).to_have_url(re.compile(r"/people/found/[\w-]{20,}$"))
    expect(page.get_by_role("row")).to_have_count(3)
    shows_well(page, TWO_LOOKS)
    served.restart()
    page.reload()
    page.get_by_role("link", name=str(people[1])).click()
    expect(page).to_have_title(f"Person {people[1]} · frontdesk")
    page.get_by_label("Ask for").select_option("zipcode")
    page.get_by_label("The answer").fill("00000")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status")).to_have_text("Zip code: differs")
    expect(page.get_by_role("status").locator("svg.sign.bad")).to_be_visible()
    page.reload()
    expect(page.get_by_role("main")).to_contain_text("9 of 10 checks")
    shows_well(page)
    focus_is_seen(page)
    page.get_by_label("Reason").select_option("The person is on the line")
    page.get_by_label("Case number").fill("CALL-17")
    page.get_by_role("button", name="Open the record").click()
    expect(page.get_by_role("main")).to_contain_text("Open until")
    expect(page.get_by_role("main")).to_contain_text("Sample")
    shows_well(page, TWO_LOOKS)
    assert first_view_bytes(page, page.url) < PAGE_BYTES


def test_a_session_that_ends_in_a_half_filled_form_loses_no_word(
    staff: Staff, clock: SetClock
) -> None:
    page = staff.open(Role.EDITOR)
    page.goto("/console/me")
    shows_well(page, TWO_LOOKS)
    page.get_by_label("Your name").fill("Robin Lee")
    clock.advance(31 * 60)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was done")
    shows_well(page, TWO_LOOKS)
    staff.sign_in(page, Role.EDITOR)
    expect(page.get_by_role("heading")).to_have_text("Your form")
    expect(page.get_by_label("name")).to_have_value("Robin Lee")
    shows_well(page, TWO_LOOKS)
    page.get_by_role("button", name="Send it now").click()
    expect(page.get_by_label("Your name")).to_have_value("Robin Lee")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    shows_well(page)
    focus_is_seen(page)
    page.go_back()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
