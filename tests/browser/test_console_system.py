"""The console's Trail and System in the browser."""

from playwright.sync_api import expect

from frontdesk.users.model import Role
from tests.browser.checks import focus_is_seen, shows_well
from tests.browser.served import Served
from tests.browser.signing import Staff
from tests.conftest import Api, SetClock
from tests.factories import Customer, member_body


def test_an_admin_finds_out_who_looked_at_a_person(
    staff: Staff, service: Api, customer: Customer, served: Served
) -> None:
    answer = service.post(f"/v2/plans/{customer.plan_ids[0]}/eligibility", member_body(1))
    person = answer.json()["id"]
    page = staff.open(Role.ADMIN)
    page.get_by_role("link", name="Trail").click()
    expect(page.get_by_role("heading", name="Trail")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="signed in")).to_be_visible()
    shows_well(page)
    focus_is_seen(page)
    page.get_by_label("About a person, by number").fill(str(person))
    page.get_by_role("button", name="Show who looked").click()
    expect(page.get_by_role("row").filter(has_text="created a member")).to_be_visible()
    served.restart()
    page.reload()
    expect(page.get_by_role("row").filter(has_text="created a member")).to_be_visible()
    shows_well(page)
    page.go_back()
    expect(page.get_by_role("heading", name="Trail", exact=True)).to_be_visible()
    admin = page.get_by_role("option").filter(has_text="The admin (").first
    page.get_by_label("By a user").select_option(admin.get_attribute("value"))
    page.get_by_role("button", name="Show what this user did").click()
    expect(page.get_by_role("row").filter(has_text="read the trail").first).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="created a member")).to_have_count(0)


def test_an_auditor_reads_the_trail_without_script(staff: Staff, customer: Customer) -> None:
    page = staff.open(Role.AUDITOR, with_script=False)
    expect(page.get_by_role("heading", name="Trail")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Account")).to_be_visible()
    shows_well(page)


def test_an_operator_watches_the_system(
    staff: Staff, served: Served, service: Api, customer: Customer, clock: SetClock
) -> None:
    page = staff.windows.open("/console")
    page.clock.install()
    staff.sign_in(page, Role.OPERATOR)
    page.wait_for_url("**/console/system")
    expect(page.get_by_role("row").filter(has_text="Workers")).to_contain_text("none")
    expect(page.get_by_text("No file and no mail waits.")).to_be_visible()
    shows_well(page)
    focus_is_seen(page)

    body = member_body(1, invite_immediately=True)
    service.post(f"/v2/plans/{customer.plan_ids[0]}/eligibility", body)
    clock.advance(5.1)
    with page.expect_response(lambda answer: answer.url == page.url):
        page.clock.run_for(5000)
    link = page.locator("#system").get_by_role("link").first
    expect(link).to_be_visible()
    link.focus()
    service.post(
        f"/v2/plans/{customer.plan_ids[0]}/eligibility", member_body(2, invite_immediately=True)
    )
    clock.advance(5.1)
    with page.expect_response(lambda answer: answer.url == page.url):
        page.clock.run_for(5000)
    waits = page.get_by_role("region", name="Table: What waits, by account")
    expect(waits.get_by_role("cell").last).to_have_text("2")
    expect(link).to_be_focused()

    served.restart()
    page.get_by_role("button", name="Check everything").click()
    expect(page.get_by_role("heading", name="What the check found")).to_be_visible()
    shows_well(page)
    page.get_by_role("link", name="Back to the page").click()
    page.get_by_role("link", name="Accounts", exact=True).first.click()
    expect(page.get_by_role("heading", name="Accounts")).to_be_visible()
    shows_well(page)
