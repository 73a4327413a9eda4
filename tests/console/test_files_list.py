"""The list of files: what needs somebody, what runs, what has ended, and where the next page is."""

import re
from datetime import timedelta

import pytest

from frontdesk.app import App
from frontdesk.db import Database
from frontdesk.files.claims import claim_next
from frontdesk.files.overview import MOST_SHOWN
from frontdesk.files.tables import eligibility_files
from frontdesk.users.model import Role
from tests.conftest import SetClock
from tests.console.browsing import section
from tests.console.conftest import SignIn
from tests.console.held import hold_file
from tests.db.statements import statements
from tests.factories import Customer, make_customer
from tests.files.loading import Desk, csv_of, row

UNREADABLE = b"PK\x03\x04 no workbook"


def list_path(customer: Customer) -> str:
    return f"/console/accounts/{customer.account_id}/files"


def test_an_account_without_files_is_told_how_to_send_one(
    sign_in: SignIn, customer: Customer
) -> None:
    browser = sign_in(Role.VIEWER).open(list_path(customer))
    assert "No files yet. Send one by POST (API)." in browser.page
    assert "<h2>" not in browser.page
    assert 'curl -X POST "$BASE_URL/v2/plans/' in browser.page


def test_files_are_sorted_by_what_they_need(
    desk: Desk, sign_in: SignIn, customer: Customer, clock: SetClock, db: Database
) -> None:
    held = hold_file(desk, 30)
    failed = desk.load(UNREADABLE, file_name="census.xlsx")
    rows = [row(n) for n in range(100, 103)] + [row(103, dob="never")]
    desk.load(csv_of(rows), file_name="rehires.csv", plan=1)
    waiting = desk.hand_in(csv_of([row(200)]), file_name="silver.csv")
    clock.advance(3600)
    browser = sign_in(Role.VIEWER).open(list_path(customer))
    needs = section(browser, "Needs you")
    assert needs.index("gold-11-28.csv") < needs.index("census.xlsx")
    assert (
        "Held: 30 people would lose access gold-11-28.csv Example Health Plan 0 Benefits" in needs
    )
    assert "30 would lose access 60 min" not in needs
    assert "30 would lose access 1 h" in needs
    assert "Failed census.xlsx" in needs
    assert "Waiting silver.csv" in section(browser, "Running")
    ended = section(browser, "30 days")
    assert "Done, 1 row refused rehires.csv Example Health Plan 1 Benefits feed 3 created" in ended
    assert "0 changed 0 lost 1 refused 1 h" in ended
    for file in (held, failed, waiting):
        assert f'href="{list_path(customer)}/{file.id}"' in browser.page
    assert claim_next(db, clock, desk.options, only=waiting.id)
    assert "Checking silver.csv" in section(browser.open(list_path(customer)), "Running")


def test_a_file_is_from_you_from_a_user_or_from_an_operator(
    desk: Desk, sign_in: SignIn, customer: Customer
) -> None:
    editor = sign_in(Role.EDITOR)
    desk.client = "user:1"
    desk.load(csv_of([row(1)]))
    desk.client = "cli:maria"
    desk.load(csv_of([row(2)]), plan=1)
    assert "Example Health Plan 0 you 1 created" in section(
        editor.open(list_path(customer)), "30 days"
    )
    viewer = sign_in(Role.VIEWER).open(list_path(customer))
    assert "Example Health Plan 0 Ana Ruiz (editor@example.com) 1 created" in section(
        viewer, "30 days"
    )
    assert "Example Health Plan 1 an operator 1 created" in section(viewer, "30 days")
    assert "maria" not in viewer.page


def test_old_files_are_on_later_pages_and_a_page_follows_the_other(
    desk: Desk, sign_in: SignIn, customer: Customer, clock: SetClock
) -> None:
    number = MOST_SHOWN + 3
    for n in range(number):
        desk.load(csv_of([row(n)]), file_name=f"list-{n:02}.csv")
    old = desk.load(UNREADABLE, file_name="old-failure.csv")
    clock.advance(timedelta(days=20).total_seconds())
    browser = sign_in(Role.VIEWER).open(list_path(customer))
    assert "No file needs you." in section(browser, "Needs you")
    first = re.findall(r">(list-\d\d|old-failure)\.csv<", browser.page)
    assert first[0] == "old-failure"
    assert len(first) == MOST_SHOWN
    [older] = re.findall(r'href="([^"]+)">Earlier files', browser.page)
    rest = re.findall(r">(list-\d\d|old-failure)\.csv<", browser.open(older).page)
    assert sorted(first + rest) == sorted([f"list-{n:02}" for n in range(number)] + ["old-failure"])
    assert f'<a href="{list_path(customer)}">First page</a>' in browser.page
    assert "Next page" not in browser.page
    clock.advance(timedelta(days=11).total_seconds())
    browser = sign_in(Role.EDITOR).open(list_path(customer))
    assert section(browser, "30 days").startswith("No other file has come")
    [older] = re.findall(r'href="([^"]+)">Earlier files', browser.page)
    assert older == f"{list_path(customer)}?before={old.id + 1}"
    assert browser.open(older).page.count(".csv</bdi></a>") == MOST_SHOWN


def test_the_address_selects_a_state_and_a_plan(
    desk: Desk, sign_in: SignIn, customer: Customer
) -> None:
    desk.load(csv_of([row(1)]), file_name="gold.csv")
    desk.load(csv_of([row(2)]), file_name="silver.csv", plan=1)
    desk.load(UNREADABLE, file_name="broken.csv", plan=1)
    browser = sign_in(Role.VIEWER)
    plan = customer.plan_ids[1]
    for query, names in (
        ("state=failed", ["broken"]),
        ("state=done", ["silver", "gold"]),
        (f"plan={plan}", ["broken", "silver"]),
        (f"state=done&plan={plan}", ["silver"]),
        ("state=cancelled", []),
    ):
        browser.open(f"{list_path(customer)}?{query}")
        assert re.findall(r">(\w+)\.csv<", browser.page) == names, query
    assert "There is no such file." in browser.page
    browser.open(f"{list_path(customer)}?state=done&plan={plan}")
    assert f'{list_path(customer)}?plan={plan}">All states' in browser.page


@pytest.mark.parametrize(
    "query", ["state=odd", "plan=x", "before=-1", "before=99999999999999999999"]
)
def test_an_address_that_selects_nothing_sensible_is_refused(
    sign_in: SignIn, customer: Customer, query: str
) -> None:
    browser = sign_in(Role.VIEWER).open(f"{list_path(customer)}?{query}")
    assert (browser.status, "must be" in browser.page) == (422, True)


def test_a_plan_of_another_account_is_not_found(
    desk: Desk, db: Database, sign_in: SignIn, customer: Customer
) -> None:
    other = make_customer(db, name="Other Health")
    browser = sign_in(Role.VIEWER)
    pages = [
        browser.open(f"{list_path(customer)}?plan={plan}").page
        for plan in (other.plan_ids[0], 999_999)
    ]
    assert browser.status == 404
    assert re.sub("Request [0-9a-f]+", "", pages[0]) == re.sub("Request [0-9a-f]+", "", pages[1])


def test_nothing_new_is_told_in_one_word(
    desk: Desk, sign_in: SignIn, customer: Customer, clock: SetClock
) -> None:
    desk.load(csv_of([row(1)]))
    browser = sign_in(Role.VIEWER).open(list_path(customer))
    tag = browser.answer.headers["etag"]
    assert f"data-tag='{tag}'" in browser.page
    clock.advance(90)
    browser.open(list_path(customer))
    tag = browser.answer.headers["etag"]
    timer = {"X-Frontdesk-Refresh": "timer", "If-None-Match": tag}
    clock.advance(20)  # the time of the page changes, the ages in minutes don't
    assert browser.open(list_path(customer), **timer).status == 304
    assert browser.answer.content == b""
    desk.hand_in(csv_of([row(2)]))
    assert browser.open(list_path(customer), **timer).status == 200


def test_the_page_reads_as_much_however_many_files_have_failed(
    desk: Desk, sign_in: SignIn, customer: Customer, app: App
) -> None:
    """A program that sends a broken file every minute."""
    desk.load(csv_of([row(1)]), file_name="good.csv")
    broken = desk.load(UNREADABLE, file_name="broken.csv")
    browser = sign_in(Role.VIEWER)
    with statements(app.db, "FROM eligibility_files") as once:
        browser.open(list_path(customer))
    names = ", ".join(column.name for column in eligibility_files.columns if column.name != "id")
    copy = f"INSERT INTO eligibility_files ({names}) SELECT {names} FROM eligibility_files "  # noqa: S608 - our own words
    with app.db.write() as tx:
        for _ in range(120):
            tx.exec_driver_sql(f"{copy} WHERE id = {broken.id}")
    with statements(app.db, "FROM eligibility_files") as often:
        browser.open(list_path(customer))
    assert "good.csv" in section(browser, "30 days")
    assert "broken.csv" not in section(browser, "30 days")
    assert len(often) == len(once) > 5
