import pytest

from frontdesk.db import Database
from tests.conftest import SetClock
from tests.factories import Customer, make_customer
from tests.files.loading import Desk


@pytest.fixture
def desk(db: Database, customer: Customer, clock: SetClock) -> Desk:
    return Desk(db, customer, clock)


@pytest.fixture
def other(db: Database, clock: SetClock) -> Desk:
    """The desk of another account."""
    return Desk(db, make_customer(db, name="Other"), clock)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker looks up as often as it can."""
    monkeypatch.setattr("frontdesk.files.claims.LOOK_SECONDS", 0.01)
    monkeypatch.setattr("frontdesk.files.claims.RENEW_SECONDS", 0.01)
    monkeypatch.setattr("frontdesk.formats.workbook.LOOK_MILLISECONDS", 10)
