"""Stories of changes of one person in the browser: a wrong address that is corrected after three facts
matched, and an access that ends.
"""

import pytest
from playwright.sync_api import Page, expect

from frontdesk.db import Database
from frontdesk.eligibility.search import get_kept
from frontdesk.eligibility.store import list_history
from frontdesk.invitations import find_of_members
from frontdesk.reach import EVERY
from frontdesk.users.model import Role
from tests.browser.checks import TWO_LOOKS, first_view_bytes, focus_is_seen, shows_well
from tests.browser.served import Served
from tests.browser.signing import Staff
from tests.conftest import Api
from tests.factories import Customer, member_body

PAGE_BYTES = 100_000
FACTS = {"dob": "1977-01-11", "zipcode": "02134", "last_name": "Sample"}
LABELS = {"dob": "Birth date", "zipcode": "Zip code", "last_name": "Last name"}


@pytest.fixture
def person(service: Api, customer: Customer) -> int:
    """A person who was invited at an address that is wrong."""
    body = member_body(1, last_name="Sample", invite_immediately=True)
    answer = service.post(f"/v2/plans/{customer.plan_ids[0]}/eligibility", body)
    return int(answer.json()["id"])


def match(page: Page, *fields: str) -> None:
    for field in fields:
        page.get_by_label("Ask for").select_option(field)
        page.get_by_label("The answer").fill(FACTS[field])
        page.get_by_role("button", name="Check").click()
        expect(page.get_by_role("status")).to_contain_text(f"{LABELS[field]}: matches")
        page.reload()


def mailed_to(db: Database, person: int) -> tuple[str, str]:
    [invitation] = db.ask(lambda tx: find_of_members(tx, [person]))
    return invitation.state.value, invitation.address


@pytest.mark.parametrize("with_script", [True, False])
def test_a_wrong_address_is_corrected_after_three_facts_matched(
    staff: Staff, person: int, db: Database, served: Served, *, with_script: bool
) -> None:
    page = staff.open(Role.SUPPORT, f"people/{person}", with_script=with_script)
    match(page, "dob", "zipcode")
    page.goto(f"/console/accounts/{staff.account}/people/{person}")
    page.get_by_role("link", name="Another address").click()
    main = page.get_by_role("main")
    expect(main).to_contain_text("No mail will go to the new address")
    expect(main).to_contain_text("1 more is needed")
    if with_script:
        shows_well(page, TWO_LOOKS)
        focus_is_seen(page)
        assert first_view_bytes(page, page.url) < PAGE_BYTES
    page.get_by_role("link", name="ask the caller").click()
    served.restart()
    match(page, "last_name")
    page.goto(f"/console/accounts/{staff.account}/people/{person}/address")
    expect(main).to_contain_text("Matched on this call: Birth date, Last name, Zip code")
    page.get_by_role("link", name="back to the person").click()
    page.go_back()
    page.reload()
    page.get_by_label("New e-mail address").fill("robin at example.com")
    page.get_by_role("button", name="Change the address and send").click()
    expect(page.get_by_label("New e-mail address")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("New e-mail address")).to_have_value("robin at example.com")
    if with_script:
        shows_well(page, TWO_LOOKS)
    page.get_by_label("New e-mail address").fill("robin@example.com")
    page.get_by_role("button", name="Change the address and send").click()
    expect(page).to_have_title(f"Person {person} · frontdesk")
    expect(main).to_contain_text("The mail waits.")
    page.reload()
    expect(main).to_contain_text("The mail waits.")
    assert mailed_to(db, person) == ("pending", "robin@example.com")
    assert len(db.ask(lambda tx: list_history(tx, person))) == 2


def test_an_access_ends_after_a_second_step_and_is_corrected_back(
    staff: Staff, person: int, db: Database, served: Served
) -> None:
    page = staff.open(Role.EDITOR, f"people/{person}")
    page.get_by_role("link", name="End the access").click()
    shows_well(page, TWO_LOOKS)
    page.get_by_role("button", name="Show what this does").click()
    main = page.get_by_role("main")
    expect(main).to_contain_text("Nothing was done yet")
    shows_well(page, TWO_LOOKS)
    focus_is_seen(page)
    page.go_back()
    served.restart()
    page.get_by_role("button", name="Show what this does").click()
    page.get_by_role("button", name="Confirm: no access from").click()
    expect(page).to_have_title(f"Person {person} · frontdesk")
    assert db.ask(lambda tx: get_kept(tx, EVERY, person))["expiry_date"] is not None
    page.get_by_label("Reason").select_option("A correction")
    page.get_by_label("Case number").fill("CALL-17")
    page.get_by_role("button", name="Open the record").click()
    page.get_by_role("link", name="Correct", exact=True).click()
    shows_well(page, TWO_LOOKS)
    assert first_view_bytes(page, page.url) < PAGE_BYTES
    page.get_by_label("Last day of access").fill("")
    page.get_by_role("button", name="Correct").click()
    page.get_by_role("button", name="Confirm the days of access").click()
    expect(page).to_have_title(f"Person {person} · frontdesk")
    assert db.ask(lambda tx: get_kept(tx, EVERY, person))["expiry_date"] is None
