"""An account whose audit trail is used up for the day: its pages are shown, what would be recorded is
refused.
"""

import pytest

from frontdesk.app import App
from frontdesk.audit import last_entry_id
from frontdesk.console.routes import PLACES
from frontdesk.files.model import EligibilityFile
from frontdesk.usage.counter import count
from frontdesk.users.model import Role
from tests.conftest import Api, SetClock
from tests.console.browsing import Browser
from tests.console.conftest import SignIn
from tests.console.drafted import begin, census
from tests.console.held import hold_file, path_of
from tests.factories import Customer, member_body
from tests.files.loading import Desk

MORE_THAN_A_DAY = 2**50  # bytes of history that an account may add

# Pages that are entries themselves: the trail, an open record, a list with open names.
OF_ACCOUNT = "/console/accounts/{account_id}"
RECORDING = {
    f"{OF_ACCOUNT}/trail",
    f"{OF_ACCOUNT}/people/{{member_id}}",
    f"{OF_ACCOUNT}/people/{{member_id}}/correct",
    f"{OF_ACCOUNT}/files/{{file_id}}/rows",
}


@pytest.fixture
def held(desk: Desk) -> EligibilityFile:
    return hold_file(desk)


@pytest.fixture
def member_id(api: Api, customer: Customer) -> int:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    return int(api.post(path, member_body(900)).json()["id"])


def use_up(app: App, customer: Customer, clock: SetClock) -> None:
    """Stored, as the service reads the day's totals anew every few seconds."""
    count(app.db.engine, customer.account_id, history=MORE_THAN_A_DAY)
    app.usage.save(app.db, clock())


def place_of(customer: Customer) -> str:
    return f"/console/accounts/{customer.account_id}"


def test_pages_that_record_nothing_are_shown_and_forms_refused(
    sign_in: SignIn,
    held: EligibilityFile,
    member_id: int,
    app: App,
    customer: Customer,
    clock: SetClock,
) -> None:
    browser = sign_in(Role.EDITOR)
    place = place_of(customer)
    use_up(app, customer, clock)
    for path in ("files", "people", "now", f"files/{held.id}", f"people/{member_id}"):
        assert browser.open(f"{place}/{path}").status == 200, path
    assert browser.open(f"{path_of(held)}/rows?list=would_lose").status == 200
    browser.open(path_of(held)).send(path_of(held) + "/cancel")
    assert browser.status == 429
    browser.open(f"{place}/people").send(f"{place}/people", external_id="E900")
    assert browser.status == 429


def open_record(browser: Browser, page: str) -> None:
    browser.open(page)
    browser.send(f"{page}/open", reason="complaint", case="4711")
    assert (browser.status, "Open until" in browser.page) == (200, True), browser.page


def test_a_look_at_an_open_record_is_refused(
    sign_in: SignIn, member_id: int, app: App, customer: Customer, clock: SetClock
) -> None:
    browser = sign_in(Role.EDITOR)
    page = f"{place_of(customer)}/people/{member_id}"
    open_record(browser, page)
    use_up(app, customer, clock)
    assert browser.open(page).status == 429
    clock.advance(16 * 60)
    use_up(app, customer, clock)
    assert browser.open(page).status == 200


def test_a_page_with_names_is_refused(
    sign_in: SignIn, held: EligibilityFile, app: App, customer: Customer, clock: SetClock
) -> None:
    browser = sign_in(Role.EDITOR)
    rows = f"{path_of(held)}/rows?list=would_lose"
    browser.open(rows).send(f"{path_of(held)}/names", reason="complaint", case="4711")
    assert "are open to you" in browser.page, browser.page
    use_up(app, customer, clock)
    assert browser.open(rows).status == 429


def test_every_page_that_is_an_entry_is_refused(
    sign_in: SignIn, desk: Desk, member_id: int, app: App, clock: SetClock
) -> None:
    customer = desk.customer
    held = hold_file(desk)
    browser = sign_in(Role.ADMIN, Role.EDITOR)
    open_record(browser, f"{place_of(customer)}/people/{member_id}")
    rows = f"{path_of(held)}/rows?list=would_lose"
    browser.open(rows).send(f"{path_of(held)}/names", reason="complaint", case="4711")
    ids = {
        "account_id": customer.account_id,
        "client_id": customer.client_id,
        "draft_id": begin(desk, census()).id,
        "file_id": held.id,
        "member_id": member_id,
        "plan_id": customer.plan_ids[0],
        "user_id": 1,
    }
    others = dict.fromkeys(("endpoint_id", "number"), 1)
    declared = (each for place in PLACES for each in place.endpoints)
    paths = {each.path for each in declared if each.method == "GET"}
    of_account = sorted(path for path in paths if path.startswith(OF_ACCOUNT))

    def visit(path: str) -> tuple[int, bool]:
        """The status, and whether there is another entry."""
        before = desk.db.ask(last_entry_id)
        query = "?list=would_lose" if path.endswith("/rows") else ""
        browser.open(path.format(**ids, **others) + query)
        return browser.status, desk.db.ask(last_entry_id) > before

    assert {path for path in of_account if visit(path)[1]} == RECORDING
    use_up(app, customer, clock)
    seen = {path: visit(path) for path in of_account}
    assert {path for path, (status, _) in seen.items() if status == 429} == RECORDING
    assert not any(is_recorded for _, is_recorded in seen.values())


def test_the_trail_of_all_is_read_whatever_one_account_has_used(
    sign_in: SignIn, app: App, customer: Customer, clock: SetClock
) -> None:
    auditor = sign_in(Role.AUDITOR)
    use_up(app, customer, clock)
    assert auditor.open("/console/trail").status == 200
    assert auditor.open(f"{place_of(customer)}/trail").status == 429
