"""A customer's members, those who look for them, and what the audit trail says of it."""

from collections.abc import Callable
from typing import Any

import pytest

from frontdesk.audit import list_entries
from frontdesk.db import Database
from frontdesk.reach import EVERY
from tests.conftest import Api
from tests.eligibility.finding import Finder
from tests.factories import Customer

Trail = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def finder(api: Api, db: Database, customer: Customer) -> Finder:
    return Finder(api, db, customer)


@pytest.fixture
def trail(db: Database) -> Trail:
    """The entries of an action, the oldest first."""

    def entries(action: str) -> list[dict[str, Any]]:
        found = db.ask(lambda tx: list_entries(tx, EVERY, limit=1000))
        return [entry for entry in reversed(found) if entry["action"] == action]

    return entries
