"""Texts that a customer has chosen, on pages: with visible characters only, each isolated."""

import pytest
import sqlalchemy as sa

from frontdesk.access.tables import accounts, api_clients
from frontdesk.db import Database
from frontdesk.files.tables import eligibility_files
from frontdesk.plans.tables import plans
from frontdesk.users.model import Role
from frontdesk.users.tables import users
from frontdesk.web.page import stated
from tests.console.conftest import SignIn
from tests.factories import Customer
from tests.files.loading import Desk, csv_of, row

TURNED = "\u202e"
UNSEEN = "\u200b"
MARKER = f"sv{TURNED}vsc{UNSEEN}.exe"
SHOWN = "sv[U+202E]vsc[U+200B].exe"


@pytest.mark.parametrize("place", ["files", "files/{}", "files/{}/undo", "files/{}/rows?list=lost"])
def test_no_page_of_files_shows_a_character_that_nobody_sees(
    desk: Desk, sign_in: SignIn, customer: Customer, db: Database, place: str
) -> None:
    file = desk.load(csv_of([row(1)]), file_name="list.csv")
    browser = sign_in(Role.EDITOR)
    with db.write() as tx:
        tx.execute(sa.update(eligibility_files).values(file_name=MARKER))
        for table in (api_clients, users, plans):
            tx.execute(sa.update(table).values(name=MARKER))
    browser.open(f"/console/accounts/{customer.account_id}/{place.format(file.id)}")
    assert browser.status == 200
    assert TURNED not in browser.page
    assert UNSEEN not in browser.page
    assert f"<bdi>{SHOWN}</bdi>" in browser.page
    assert browser.page.count(SHOWN) == browser.page.count(f"<bdi>{SHOWN}")


@pytest.mark.parametrize("place", ["now", "now/{}"])
def test_no_page_of_waits_shows_a_character_that_nobody_sees(
    sign_in: SignIn, customer: Customer, db: Database, place: str
) -> None:
    browser = sign_in(Role.VIEWER)
    with db.write() as tx:
        tx.execute(sa.update(plans).values(name=MARKER))
    path = place.format(customer.plan_ids[0])
    browser.open(f"/console/accounts/{customer.account_id}/{path}")
    assert browser.status == 200
    assert TURNED not in browser.page
    assert UNSEEN not in browser.page
    assert f"<bdi>{SHOWN}</bdi>" in browser.page


@pytest.mark.parametrize(
    ("role", "path"),
    [
        (Role.ADMIN, "/console/accounts/{account}/account"),
        (Role.ADMIN, "/console/accounts/{account}/account/clients"),
        (Role.ADMIN, "/console/accounts/{account}/account/clients/{client}"),
        (Role.ADMIN, "/console/accounts/{account}/account/users"),
        (Role.ADMIN, "/console/accounts/{account}/account/users/1"),
        (Role.ADMIN, "/console/accounts/{account}/trail"),
        (Role.OPERATOR, "/console/system"),
        (Role.OPERATOR, "/console/system/accounts"),
        (Role.AUDITOR, "/console/trail"),
    ],
)
def test_no_page_of_who_looks_after_access_shows_a_character_that_nobody_sees(
    desk: Desk, sign_in: SignIn, customer: Customer, db: Database, role: Role, path: str
) -> None:
    desk.hand_in(csv_of([row(1)]))
    browser = sign_in(role)
    with db.write() as tx:
        for table in (accounts, api_clients, users):
            tx.execute(sa.update(table).values(name=MARKER))
    browser.open(path.format(account=customer.account_id, client=customer.client_id))
    assert browser.status == 200
    assert TURNED not in browser.page
    assert UNSEEN not in browser.page
    assert f"<bdi>{SHOWN}" in browser.page


def test_a_long_name_is_shown_with_its_end_and_the_whole_as_title() -> None:
    name = "W" * 200 + " of March.csv.exe"
    text = str(stated(name))
    assert f'title="{name}"' in text
    assert text.endswith("…of March.csv.exe</bdi>")
    assert len(text) < 60 + len(f'<bdi title="{name}"></bdi>') + 1
    assert stated(name, 255) == f"<bdi>{name}</bdi>"


def test_a_stated_text_is_no_markup() -> None:
    assert stated("<b>") == "<bdi>&lt;b&gt;</bdi>"
    assert "<b>" not in stated("<b>" * 30)
