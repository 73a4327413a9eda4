"""An account with webhook endpoints. Receivers run on this machine, so the service has its address
there too.
"""

from collections.abc import Iterator

import pytest

from frontdesk.config import Config
from frontdesk.db import Database
from tests.conftest import Api, SetClock
from tests.events.desk import Desk
from tests.events.receiver import Receiver, receiving
from tests.factories import Customer


@pytest.fixture
def base_address() -> str:
    return "http://127.0.0.1:8000"


@pytest.fixture
def desk(api: Api, db: Database, customer: Customer, clock: SetClock, config: Config) -> Desk:
    return Desk(api, db, customer, clock, config)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found
