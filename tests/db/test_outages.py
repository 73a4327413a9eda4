"""An outage of the database is told once when it begins and once when it ends."""

from contextlib import nullcontext
from typing import Any

import pytest

from frontdesk.db import Database, open_database
from frontdesk.db.failures import QUIET_SECONDS, DatabaseOutage, DatabaseState, unavailable
from frontdesk.errors import Unavailable

LOST = Unavailable("The connection to the database was lost.", stale_connection=True)


class Outage(DatabaseOutage):
    """With a clock of its own, and what was told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.seconds = 0.0
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.tell = lambda event, **values: self.told.append((event, values))
        monkeypatch.setattr("frontdesk.db.failures.monotonic", lambda: self.seconds)

    @property
    def events(self) -> list[str]:
        return [event for event, _ in self.told]


@pytest.fixture
def outage(monkeypatch: pytest.MonkeyPatch) -> Outage:
    return Outage(monkeypatch)


def test_many_failures_are_one_outage_with_the_cause_of_the_first(outage: Outage) -> None:
    outage.answered()
    outage.failed(unavailable(DatabaseState.NO_SERVER))
    outage.failed(unavailable(DatabaseState.STARTING))
    outage.seconds += 60
    outage.answered()
    outage.answered()
    [(_, away), (_, back)] = outage.told
    assert outage.events == ["database_away", "database_back"]
    assert (away["cause"], back["seconds"]) == ("database_no_server", 60)


def test_a_lock_a_full_disk_and_a_connection_that_is_replaced_are_no_outage(outage: Outage) -> None:
    for error in (unavailable(DatabaseState.BUSY), unavailable(DatabaseState.FULL), LOST):
        outage.failed(error)
    assert outage.told == []


def test_a_server_that_takes_some_connections_only_is_told_now_and_then(outage: Outage) -> None:
    for _ in range(100):
        outage.failed(unavailable(DatabaseState.CROWDED))
        outage.answered()
    assert outage.events == ["database_away", "database_back"]
    outage.seconds += QUIET_SECONDS
    outage.failed(unavailable(DatabaseState.CROWDED))
    assert outage.events == ["database_away", "database_back", "database_away"]


def test_a_database_tells_that_it_can_not_be_reached_and_that_it_answers(
    database_url: str, outage: Outage, tmp_path: Any
) -> None:
    missing = f"sqlite:///{tmp_path}/none.db" if database_url.startswith("sqlite") else database_url + "_none"
    for url, expected in ((missing, pytest.raises(Unavailable)), (database_url, nullcontext())):
        db: Database = open_database(url)
        db.outage = outage
        with expected:
            db.ask(lambda tx: tx.exec_driver_sql("SELECT 1").scalar())
        db.close()
    assert outage.events == ["database_away", "database_back"]
    assert outage.told[0][1]["cause"] in ("database_missing", "database_unknown")
