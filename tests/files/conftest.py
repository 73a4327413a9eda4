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
