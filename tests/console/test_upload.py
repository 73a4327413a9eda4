"""An upload's first half: the form with a file as it streams, the drafts that wait for a step, the
plan, and the end of a draft.
"""

import re
from collections.abc import Callable

import pytest

from frontdesk.db import Database
from frontdesk.files.drafts import unfinished_drafts
from frontdesk.files.drafts.store import list_drafts
from frontdesk.users.model import Role
from tests.console.browsing import Browser
from tests.console.conftest import SignIn
from tests.console.sending import send_file
from tests.factories import Customer
from tests.files.loading import csv_of, row

CENSUS = csv_of([row(1), row(2)])


@pytest.fixture
def uploads(customer: Customer) -> str:
    return f"/console/accounts/{customer.account_id}/uploads"


@pytest.fixture
def editor(sign_in: SignIn, uploads: str) -> Browser:
    return sign_in(Role.EDITOR).open(uploads)


@pytest.fixture
def drafts(db: Database, customer: Customer) -> Callable[[], list[int]]:
    """The ids of what is stored of uploads, also of one that is arriving."""
    return lambda: db.ask(lambda tx: unfinished_drafts(tx, customer.account_id))


def test_a_file_becomes_a_draft_and_leads_to_its_plan(
    editor: Browser, uploads: str, db: Database, customer: Customer
) -> None:
    send_file(editor, uploads, CENSUS)
    assert re.fullmatch(rf"{uploads}/\d+/plan", editor.path)
    assert "<h1>census.csv</h1>" in editor.page
    [draft] = db.ask(lambda tx: list_drafts(tx, customer.account_id))
    assert (draft.file_name, draft.size_bytes, draft.client) == (
        "census.csv",
        len(CENSUS),
        "user:1",
    )
    assert draft.sha256 is not None
