import pytest

from frontdesk.db import Database
from tests.conftest import SetClock
from tests.factories import Customer
from tests.files.loading import Desk


@pytest.fixture
def desk(db: Database, customer: Customer, clock: SetClock) -> Desk:
    return Desk(db, customer, clock)
