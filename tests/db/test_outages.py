"""An outage of the database is told once when it begins and once when it ends."""

from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest

from frontdesk.db import open_database
from frontdesk.db.failures import QUIET_SECONDS, DatabaseOutage, DatabaseState, unavailable
from frontdesk.errors import Unavailable

LOST = Unavailable("The connection to the database was lost.", stale_connection=True)


@dataclass
class Told:
    """What an outage told, and its clock."""

    outage: DatabaseOutage
    seconds: float = 0.0
    events: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def tell(self, event: str, **values: Any) -> None:
        self.events.append(event)
        self.values.append(values.get("cause", values.get("seconds")))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    made = Told(DatabaseOutage())
    made.outage.tell = made.tell
    monkeypatch.setattr("frontdesk.db.failures.monotonic", lambda: made.seconds)
    return made


def test_many_failures_are_one_outage_with_the_cause_of_the_first(told: Told) -> None:
    for error in (unavailable(DatabaseState.BUSY), unavailable(DatabaseState.FULL), LOST):
        told.outage.failed(error)  # none of these is an outage
    told.outage.ended()
    told.outage.failed(unavailable(DatabaseState.NO_SERVER))
    told.outage.failed(unavailable(DatabaseState.STARTING))
    told.seconds += 60
    told.outage.ended()
    told.outage.ended()
    assert told.events == ["database_away", "database_back"]
    assert told.values == ["database_no_server", 60]


def test_a_server_that_takes_some_connections_only_is_told_now_and_then(told: Told) -> None:
    for _ in range(100):
        told.outage.failed(unavailable(DatabaseState.CROWDED))
        told.outage.ended()
    told.seconds += QUIET_SECONDS
    told.outage.failed(unavailable(DatabaseState.CROWDED))
    assert told.events == ["database_away", "database_back", "database_away"]


def test_a_database_tells_that_it_can_not_be_reached_and_that_it_answers(
    database_url: str, told: Told, tmp_path: Any
) -> None:
    missing = f"sqlite:///{tmp_path}/none.db" if database_url.startswith("sqlite") else database_url + "_none"
    for url, expected in ((missing, pytest.raises(Unavailable)), (database_url, nullcontext())):
        with closing(open_database(url)) as db, expected:
            db.outage = told.outage
            db.ask(lambda tx: tx.exec_driver_sql("SELECT 1").scalar())
    assert told.events == ["database_away", "database_back"]
    assert told.values[0] in ("database_missing", "database_unknown")
