"""Account: the weekly list of who opened records, and the overview."""

import re

from frontdesk import audit
from frontdesk.audit import Requester
from frontdesk.db import Database
from frontdesk.reach import EVERY
from frontdesk.users import directory
from frontdesk.users.model import Role
from tests.conftest import SetClock
from tests.console.conftest import SignIn
from tests.factories import Customer, make_customer

WEEK = 7 * 24 * 3600


def open_records(
    db: Database, account_id: int, email: str, clock: SetClock, *, count: int, reason: str
) -> None:
    """As the page of a person records it."""
    users = db.ask(lambda tx: directory.list_users(tx, EVERY, with_ended=True))
    [user] = [each for each in users if each.email == email]
    requester = Requester(user.actor, "request", clock())
    with db.write() as tx:
        for number in range(count):
            detail = {"reason": reason, "case": "CALL-1"}
            audit.record_action(tx, requester, "member.opened", account_id, number + 1, **detail)
        audit.record_action(tx, requester, "people.searched", account_id, found=1)
        audit.record_action(tx, requester, "member.checked", account_id, 1, field="dob")
        audit.record_action(
            tx, requester, "file.names_opened", account_id, 1, reason=reason, case="CALL-1"
        )


def rows_of(page: str) -> list[str]:
    table = page[page.index("<tbody>") : page.index("</tbody>")]
    return [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", row)) for row in table.split("</tr>")[:-1]]


def test_the_list_has_each_users_openings_by_week_and_reason(
    sign_in: SignIn, customer: Customer, db: Database, clock: SetClock
) -> None:
    other = make_customer(db, name="Other Health")
    for role in (Role.EDITOR, Role.SUPPORT):
        sign_in(role)
    own = customer.account_id
    open_records(db, own, "editor@example.com", clock, count=9, reason="audit")
    clock.advance(5 * WEEK)
    for role in (Role.EDITOR, Role.SUPPORT):
        sign_in(role)
    open_records(db, own, "editor@example.com", clock, count=2, reason="complaint")
    clock.advance(WEEK)
    for role in (Role.EDITOR, Role.SUPPORT):
        sign_in(role)
    open_records(db, own, "editor@example.com", clock, count=1, reason="correction")
    open_records(db, own, "support@example.com", clock, count=3, reason="caller_on_the_line")
    open_records(db, other.account_id, "support@example.com", clock, count=7, reason="audit")
    browser = sign_in(Role.ADMIN)
    page = browser.open(f"/console/accounts/{own}/account/looks").page
    first, second, third = rows_of(page)
    assert re.search(r"of the service\) 3 The person is on the line: 3 1 1 1 ", first), first
    assert "support@example.com" not in page
    assert re.search(r"\(editor@example.com\) 1 A correction: 1 1 1 1 ", second), second
    assert re.search(r"\(editor@example.com\) 2 A complaint: 2 1 1 1 ", third), third
    assert f"/console/accounts/{own}/trail?user=" not in first
    links = re.findall(r"/trail[?]user=\d+", page)
    assert len(links) == 2, "none of the service's user, whose entries an account reads by person"
    assert all(browser.open(f"/console/accounts/{own}{each}").status == 200 for each in links)


def test_an_admins_rail_and_overview_lead_to_the_pages(sign_in: SignIn, customer: Customer) -> None:
    browser = sign_in(Role.ADMIN).open(f"/console/accounts/{customer.account_id}/files")
    place = f"/console/accounts/{customer.account_id}/account"
    assert f'href="{place}"' in browser.page
    page = browser.open(place).page
    assert "1 works" in page
    for name in ("clients", "webhooks", "users", "invitations", "looks"):
        assert f'href="{place}/{name}"' in page
        assert browser.open(f"{place}/{name}").status == 200
        assert 'aria-current="page">Account' in browser.page
