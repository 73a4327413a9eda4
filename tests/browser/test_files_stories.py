"""Stories of a benefit team: a nightly file that would cut off 187 people."""

from collections.abc import Callable
from datetime import datetime

import pytest
from playwright.sync_api import Locator, Page, expect

from frontdesk.db import Database
from frontdesk.users.demo import create_demo_user
from frontdesk.users.model import NewUser, Role
from tests.browser.checks import TWO_LOOKS, shows_well
from tests.browser.window import HEIGHTS, TELEPHONE, Windows
from tests.conftest import SetClock
from tests.console.held import hold_file, path_of
from tests.factories import Customer
from tests.files.loading import Desk

CUT_OFF = 187
A_REFRESH = 20_000  # milliseconds: the script asks every 5 s

SignInAs = Callable[..., Page]


@pytest.fixture
def desk(db: Database, customer: Customer, clock: SetClock) -> Desk:
    made = Desk(db, customer, clock)
    made.client = customer.client_id
    return made


@pytest.fixture
def sign_in_as(windows: Windows, db: Database, customer: Customer, clock: SetClock) -> SignInAs:
    """Signs a user with a name and a role in, in a window of its own."""

    def signed_in(name: str, *roles: Role, with_script: bool = True, since: datetime) -> Page:
        email = f"{name.split(maxsplit=1)[0].lower()}@example.com"
        new = NewUser(email, customer.account_id, frozenset(roles))
        _, password = create_demo_user(db, new, name=name, now=since)
        page = windows.open("/console", with_script=with_script)
        page.get_by_label("E-mail").fill(email)
        page.get_by_label("Password", exact=True).fill(password)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Files")).to_be_visible()
        return page

    return signed_in


def state_of(page: Page) -> Locator:
    return page.locator("#file .state").first


def test_the_list_of_files_is_read_on_a_telephone_without_scrolling_sideways(
    desk: Desk, sign_in_as: SignInAs, clock: SetClock
) -> None:
    file = hold_file(desk, 20)
    page = sign_in_as("Ana Ruiz", Role.EDITOR, since=clock())
    page.set_viewport_size({"width": TELEPHONE, "height": HEIGHTS[TELEPHONE]})
    row = page.get_by_role("link", name=str(file.file_name)).locator("xpath=ancestor::tr")
    cells = row.locator("td").filter(visible=True)
    expect(cells.nth(0)).to_have_text("Held: 20 people would lose access")
    assert cells.count() == 6
    for box in [cell.bounding_box() for cell in cells.all()]:
        assert box is not None
        assert (box["x"] >= 0, box["x"] + box["width"] <= TELEPHONE) == (True, True)


def test_a_state_has_its_sign_whatever_the_font_has(
    desk: Desk, sign_in_as: SignInAs, clock: SetClock
) -> None:
    hold_file(desk, 20)
    page = sign_in_as("Ana Ruiz", Role.EDITOR, since=clock())
    signs = page.locator("main .state svg.sign")
    assert signs.count() > 0
    for box in [sign.bounding_box() for sign in signs.all()]:
        assert box is not None
        assert (box["width"] > 8, box["height"] > 8) == (True, True)
    states = page.locator("main .state").all_inner_texts()
    assert all(text.strip().isascii() for text in states)


def test_a_nightly_file_that_would_cut_off_187_people_is_looked_at_and_cancelled(
    desk: Desk, sign_in_as: SignInAs, clock: SetClock
) -> None:
    held = hold_file(desk, CUT_OFF)
    page = sign_in_as("Ana Ruiz", Role.EDITOR, since=clock())
    shows_well(page, TWO_LOOKS)
    expect(page.get_by_text("Held: 187 people would lose access")).to_be_visible()
    page.get_by_role("link", name="gold-11-28.csv").click()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    shows_well(page, TWO_LOOKS)
    page.get_by_role("link", name="187 would lose access").click()
    expect(page.get_by_role("row")).to_have_count(26)
    assert "Robin" not in page.content()
    shows_well(page, TWO_LOOKS)
    page.get_by_label("Reason").select_option("A correction")
    page.get_by_label("Case number").fill("HR-17")
    page.get_by_role("button", name="Show the names").click()
    expect(page.get_by_text("Robin Sample 7 · 1980-02-03")).to_be_visible()
    page.get_by_role("link", name="Next page").click()
    expect(page.get_by_text("Robin Sample 30 · 1980-02-03")).to_be_visible()
    assert "Robin" not in page.url + page.title()
    shows_well(page, TWO_LOOKS)
    page.reload()
    expect(page.get_by_text("Robin Sample 30 · 1980-02-03")).to_be_visible()
    clock.advance(16 * 60)
    page.go_back()
    expect(page.get_by_role("cell", name="R. S. · 1980").first).to_be_visible()
    assert "Robin" not in page.content()
    page.get_by_role("link", name=f"File {held.id}").click()
    page.get_by_role("button", name="Cancel the file").click()
    expect(state_of(page)).to_contain_text("Cancelled")
    page.reload()
    page.go_back()
    assert desk.reread(held).state == "cancelled"
    assert set(desk.ends().values()) == {None}


def test_the_same_file_is_approved_by_a_second_person_and_undone(
    desk: Desk, sign_in_as: SignInAs, clock: SetClock
) -> None:
    held = hold_file(desk, CUT_OFF)
    editor = sign_in_as("Ana Ruiz", Role.EDITOR, since=clock())
    tom = sign_in_as("Tom Okafor", Role.APPROVER, with_script=False, since=clock())
    editor.goto(path_of(held))
    expect(editor.get_by_text("Tom Okafor can approve")).to_be_visible()
    tom.get_by_role("link", name="gold-11-28.csv").click()
    tom.get_by_role("button", name="Approve: 187 people lose access").click()
    expect(tom.get_by_text("Approved, waits for a worker")).to_be_visible()
    # Ana's page follows by itself.
    expect(state_of(editor)).to_contain_text("Approved", timeout=A_REFRESH)
    tom.go_back()
    tom.reload()
    desk.work(held)
    expect(editor.get_by_role("link", name="187 lost access")).to_be_visible(timeout=A_REFRESH)
    assert {*desk.ends().values()} == {"2026-11-20"}
    shows_well(editor, TWO_LOOKS)
    editor.get_by_role("link", name="Undo the file").click()
    expect(editor.get_by_text("187 would get access back")).to_be_visible()
    shows_well(editor, TWO_LOOKS)
    editor.get_by_role("button", name="Undo it").click()
    expect(editor.get_by_role("heading", name=f"Undo of file {held.id}")).to_be_visible()
    editor.reload()
    undo_id = int(editor.url.rpartition("/")[2])
    assert undo_id == held.id + 1
    assert desk.work_on_any()
    expect(state_of(editor)).to_contain_text("Done", timeout=A_REFRESH)
    assert {*desk.ends().values()} == {None}
    editor.goto(path_of(held))
    expect(state_of(editor)).to_contain_text("Undone")
