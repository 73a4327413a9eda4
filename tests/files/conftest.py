import pytest

from frontdesk.db import Database
from tests.conftest import SetClock
from tests.factories import Customer, make_customer
from tests.files.loading import Desk


@pytest.fixture(autouse=True)
def _two_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    """On PostgreSQL, however few processors there are; loads of processes of their own have as many as the machine gives."""
    monkeypatch.setattr("frontdesk.files.load.POSTGRESQL_THREADS", 2)


@pytest.fixture
def desk(db: Database, customer: Customer, clock: SetClock) -> Desk:
    return Desk(db, customer, clock)


@pytest.fixture
def other(db: Database, clock: SetClock) -> Desk:
    """The desk of another account."""
    return Desk(db, make_customer(db, name="Other"), clock)
