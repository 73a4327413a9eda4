"""The story of a first upload: an HR export as people send it, from the file to the applied members."""

import re

import pytest
from playwright.sync_api import FilePayload, Page, expect

from frontdesk.db import Database
from frontdesk.users.model import Role
from tests.browser.checks import TWO_LOOKS, first_view_bytes, focus_is_seen, shows_well
from tests.browser.served import Served
from tests.browser.signing import Staff
from tests.conftest import SetClock
from tests.console.drafted import VALUES, census
from tests.factories import Customer
from tests.files.loading import Desk

PAGE_BYTES = 100_000
A_REFRESH = 20_000  # milliseconds: the script asks every 5 s


@pytest.fixture
def desk(db: Database, customer: Customer, clock: SetClock) -> Desk:
    return Desk(db, customer, clock)


def choose_file(page: Page, content: bytes) -> None:
    payload = FilePayload(name="census.csv", mimeType="text/csv", buffer=content)
    page.get_by_label("Choose a file").set_input_files(payload)
    page.get_by_role("button", name="Upload", exact=True).click()


def choose_plan(page: Page) -> None:
    page.get_by_label("Plan", exact=True).select_option(index=1)
    page.get_by_role("radio", name="Changes only").check()
    page.get_by_role("button", name="Go on to the columns").click()
    expect(page).to_have_url(re.compile("/columns$"))


def answer_and_order(page: Page, served: Served) -> None:
    """Begin the dry run without an answer, then with one; and again with the dates as they are."""
    main = page.get_by_role("main")
    page.get_by_role("button", name="Dry run of all rows").click()
    expect(main).to_contain_text("Answer this question: it says who has access.")
    shows_well(page, TWO_LOOKS)
    page.get_by_label('Ends the members of rows with "terminated"').check()
    order = page.get_by_label("Order of the dates of Birth Date")
    order.select_option("day first: 03/04/1980 is April 3")
    served.restart()
    page.get_by_role("button", name="Dry run of all rows").click()
    expect(page).to_have_url(re.compile("/dry-run$"))
    expect(main).to_contain_text("Dry run: waiting")
    shows_well(page, TWO_LOOKS)
    page.get_by_role("link", name="Columns").click()
    expect(page.get_by_label("Order of the dates of Birth Date")).to_have_value("day")
    order = page.get_by_label("Order of the dates of Birth Date")
    order.select_option("month first: 03/04/1980 is March 4")
    page.get_by_role("button", name="Dry run of all rows").click()
    expect(main).to_contain_text("Dry run: waiting")


def look_at_rows(page: Page) -> None:
    """Open the rows of a fault and of a number, and come back to the upload."""
    page.get_by_role("link", name="Rows with required").click()
    expect(page.get_by_role("row")).to_have_count(3)
    assert covers(page)
    page.go_back()
    page.get_by_role("link", name="43 would be created").click()
    page.get_by_role("link", name=re.compile("File [0-9]+")).click()
    page.get_by_role("link", name="Go on with the upload").click()


def covers(page: Page) -> bool:
    shown = page.content() + page.url + page.title()
    return not [value for value in VALUES if value in shown]


def test_an_hr_export_is_uploaded_understood_tried_and_applied(
    staff: Staff, desk: Desk, served: Served
) -> None:
    page = staff.open(Role.EDITOR, "uploads")
    choose_file(page, census(60, without_zip=3))
    choose_plan(page)
    main = page.get_by_role("main")
    expect(main).to_contain_text("3 lack zipcode: choose a column for it, or ask the sender.")
    shows_well(page, TWO_LOOKS)
    focus_is_seen(page)
    assert first_view_bytes(page, page.url) < PAGE_BYTES
    answer_and_order(page, served)
    assert desk.work_on_any()
    # The page follows by itself.
    created = page.get_by_role("link", name="43 would be created")
    expect(created).to_be_visible(timeout=A_REFRESH)
    expect(main).to_contain_text("2 refused")
    shows_well(page, TWO_LOOKS)
    focus_is_seen(page)
    assert covers(page)
    look_at_rows(page)
    page.get_by_role("link", name="Go on: apply it").click()
    shows_well(page, TWO_LOOKS)
    focus_is_seen(page)
    assert desk.members() == {}
    page.reload()
    page.get_by_role("button", name="nobody loses access").click()
    expect(page).to_have_url(re.compile("/files/[0-9]+$"))
    expect(page.get_by_text("you, Nov 20")).to_be_visible()
    applied = page.url
    page.go_back()
    page.reload()
    expect(page).to_have_url(applied)
    assert desk.work_on_any()
    expect(page.get_by_role("link", name="43 created")).to_be_visible(timeout=A_REFRESH)
    assert len(desk.members()) == 43
    assert not desk.work_on_any()


def test_the_same_without_script_and_with_the_mapping_of_last_month(
    staff: Staff, desk: Desk
) -> None:
    page = staff.open(Role.EDITOR, "uploads", with_script=False)
    choose_file(page, census(20))
    choose_plan(page)
    page.get_by_label('Ends the members of rows with "terminated"').check()
    page.get_by_text("Save this mapping for other files").click()
    page.get_by_label("Name", exact=True).fill("hr-export")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("This mapping is saved as hr-export.")).to_be_visible()
    page.get_by_text("The mapping as a text", exact=True).click()
    shows_well(page, TWO_LOOKS)
    page.goto(f"/console/accounts/{staff.account}/uploads")
    choose_file(page, census(30))
    choose_plan(page)
    page.get_by_text("Use a saved mapping").click()
    page.get_by_role("button", name="Use it").click()
    expect(page.get_by_label('Ends the members of rows with "terminated"')).to_be_checked()
    page.get_by_role("button", name="Dry run of all rows").click()
    assert desk.work_on_any()
    page.reload()
    page.get_by_role("link", name="Go on: apply it").click()
    page.get_by_role("button", name="nobody loses access").click()
    expect(page).to_have_url(re.compile("/files/[0-9]+$"))
    assert desk.work_on_any()
    assert len(desk.members()) == 22


def test_a_file_of_200_columns_is_found_through(staff: Staff) -> None:
    names = [f"Column {n}" for n in range(198)]
    lines = [",".join(["Employee ID", "Last Name", *names])]
    lines += [",".join([f"E{n}", "Sample", *["text"] * 198]) for n in range(20)]
    page = staff.open(Role.EDITOR, "uploads")
    choose_file(page, "\n".join([*lines, ""]).encode())
    choose_plan(page)
    assert first_view_bytes(page, page.url) < PAGE_BYTES
    page.get_by_text("160 more columns, not used").click()
    page.get_by_label("Field of Column 150").fill("zipcode")
    shows_well(page, TWO_LOOKS)
    page.get_by_role("button", name="Dry run of all rows").click()
    expect(page).to_have_url(re.compile("/dry-run$"))
