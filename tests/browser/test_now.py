"""The console's Now in the browser: a board while patients come and go, and the day of a plan."""

from datetime import timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from frontdesk.db import Database
from frontdesk.users.demo import create_demo_user
from frontdesk.users.model import NewUser, Role
from tests.browser.checks import focus_is_seen, shows_well
from tests.browser.served import Served
from tests.browser.signing import sign_in
from tests.browser.window import TELEPHONE, Windows
from tests.conftest import SetClock
from tests.factories import NOW
from tests.queues.feed import (
    JOINED,
    LEFT,
    STARTED,
    Clinic,
    estimated,
    event,
    feed,
    make_clinic,
    on_duty,
    waited,
)

EMAIL = "ana@example.com"


@pytest.fixture
def clinic(db: Database) -> Clinic:
    """A doctor with a patient for the first plan, none for the second."""
    made = make_clinic(db)
    plan = made.plan_ids[0]
    feed(
        db,
        on_duty(made, "a", plan=0),
        event("j0", JOINED, -300, plan_id=plan, visit="v0"),
        event("s0", STARTED, -200, plan_id=plan, visit="v0", doctor="a"),
        now=NOW - timedelta(seconds=1),
    )
    return made


@pytest.fixture
def password(db: Database, clinic: Clinic) -> str:
    new = NewUser(EMAIL, clinic.account_id, frozenset({Role.VIEWER}))
    return create_demo_user(db, new, name="Ana Ruiz", now=NOW)[1]


def open_signed_in(page: Page, password: str, path: str) -> None:
    page.goto(path)
    sign_in(page, EMAIL, password)
    page.wait_for_url(f"**{path}")


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has_text=name)


def five_seconds_pass(page: Page, clock: SetClock) -> None:
    """For the service, and for the page's timer, which asks it then."""
    clock.advance(5.1)
    with page.expect_response(lambda answer: answer.url == page.url):
        page.clock.run_for(5000)


def test_a_board_is_watched_while_patients_come_and_go(
    windows: Windows, served: Served, db: Database, clock: SetClock, clinic: Clinic, password: str
) -> None:
    plan = clinic.plan_ids[0]
    page = windows.open()
    page.clock.install()
    open_signed_in(page, password, f"/console/accounts/{clinic.account_id}/now")
    expect(page.get_by_text("Nobody waits.")).to_be_visible()
    expect(page.get_by_text("as of 12:00:00, every 5 s")).to_be_visible()
    expect(row(page, "Plan 1")).to_contain_text("closed: no doctor on duty")
    shows_well(page)

    feed(db, event("j1", JOINED, 0, plan_id=plan, visit="v1"))
    link = page.get_by_role("link", name="Plan 0")
    link.focus()
    five_seconds_pass(page, clock)
    expect(row(page, "Plan 0")).to_contain_text("1 waiting")
    expect(page.get_by_text("Nobody waits.")).to_have_count(0)
    expect(page.get_by_text("as of 12:00:05")).to_be_visible()
    expect(link).to_be_focused()

    served.restart()
    five_seconds_pass(page, clock)
    expect(page.get_by_text("as of 12:00:10")).to_be_visible()

    page.get_by_role("button", name="Pause").click()
    feed(db, event("l1", LEFT, 0, plan_id=plan, visit="v1"), now=clock())
    clock.advance(5.1)
    asked = len(windows.requests)
    page.clock.run_for(60_000)
    expect(row(page, "Plan 0")).to_contain_text("1 waiting")
    assert len(windows.requests) == asked
    expect(page.get_by_text("as of 12:00:10")).to_be_visible()
    page.get_by_role("button", name="Go on").click()
    five_seconds_pass(page, clock)
    expect(page.get_by_text("Nobody waits.")).to_be_visible()

    page.route("**/now", lambda route: route.fulfill(status=503, body="away"))
    shown = page.get_by_text("as of").inner_text()
    five_seconds_pass(page, clock)
    expect(page.get_by_text("Nobody waits.")).to_be_visible()
    assert page.get_by_text("as of").inner_text() == shown
    page.unroute("**/now")

    clock.advance(30 * 60)
    page.clock.run_for(5000)
    page.wait_for_url("**/console/sign-in**")


def test_a_board_that_has_not_changed_is_left_alone(
    windows: Windows, db: Database, clock: SetClock, clinic: Clinic, password: str
) -> None:
    page = windows.open()
    page.clock.install()
    open_signed_in(page, password, f"/console/accounts/{clinic.account_id}/now")
    five_seconds_pass(page, clock)
    expect(page.get_by_text("as of 12:00:05")).to_be_visible()
    page.evaluate("document.querySelector('#now h2').dataset.mark = 'mine'")
    five_seconds_pass(page, clock)
    expect(page.get_by_text("as of 12:00:10")).to_be_visible()
    expect(page.locator("#now h2[data-mark=mine]")).to_have_count(1)


def test_the_day_of_a_plan_shows_well(
    windows: Windows, db: Database, clock: SetClock, clinic: Clinic, password: str
) -> None:
    plan = clinic.plan_ids[0]
    for minute in range(-300, 0, 5):
        estimated(db, plan, minute, seconds=600 + 2 * minute)
    times = [NOW + timedelta(minutes=minute) for minute in range(-290, -20, 7)]
    waited(db, clinic, [(at, 300.0 + 10 * number) for number, at in enumerate(times)])
    page = windows.open(width=TELEPHONE)
    open_signed_in(page, password, f"/console/accounts/{clinic.account_id}/now")
    page.get_by_role("link", name="Plan 0").click()
    expect(page.get_by_role("img", name="Plan 0: the wait of the last 24 hours")).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(6)
    shows_well(page)
    focus_is_seen(page)


def test_without_script_a_reload_shows_what_is_new(
    windows: Windows, db: Database, clock: SetClock, clinic: Clinic, password: str
) -> None:
    page = windows.open(with_script=False)
    open_signed_in(page, password, f"/console/accounts/{clinic.account_id}/now")
    expect(page.get_by_text("Reload to see more.")).to_be_visible()
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()
    expect(page.get_by_text("every 5 s")).to_be_hidden()
    feed(db, event("j1", JOINED, 0, plan_id=clinic.plan_ids[0], visit="v1"))
    clock.advance(5.1)
    page.reload()
    expect(row(page, "Plan 0")).to_contain_text("1 waiting")
    shows_well(page)
