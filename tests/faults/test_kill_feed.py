"""kill -9 of the server while a clinical system feeds it: no acknowledged event is lost, none is counted twice."""

import random
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from frontdesk.clock import system_clock
from frontdesk.db import Database
from frontdesk.queues.tables import encounters, queue_events
from frontdesk.queues.upkeep import rebuild
from tests.factories import Operator, make_customer, make_operator
from tests.faults.callers import call, times
from tests.faults.server import Server
from tests.patience import wait_until

PATH = "/operator/v1/queue-events"
KILLS = times(2, long=100)
FEEDERS = 4


class Feeders:
    """Threads that tell of visits in batches, and tell each batch again until it is answered; `told` are the stored ids."""

    def __init__(self, port: int, operator: Operator, plan_ids: list[int]) -> None:
        self.told: dict[str, str] = {}
        self.statuses: set[int] = set()
        self._port, self._operator, self._plan_ids = port, operator, plan_ids
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(FEEDERS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more: int) -> None:
        enough = len(self.told) + more
        wait_until(lambda: len(self.told) >= enough, "events to be acknowledged")

    def _run(self, feeder: int) -> None:
        """Visits are shared by the feeders: each tells one part of every visit, so their batches meet."""
        chance, batch = random.Random(feeder), 0
        types = ("patient.joined", "visit.started", "visit.ended", "patient.left")
        while not self._stopping.is_set():
            visits = range(batch * 10, batch * 10 + 10)
            batch += 1
            events = [self._event(types[feeder], visit, feeder) for visit in visits]
            chance.shuffle(events)
            self._until_answered(events)

    def _event(self, type_: str, visit: int, feeder: int) -> dict[str, Any]:
        at = self._began + timedelta(milliseconds=visit + feeder)
        plans = self._plan_ids
        return {
            "id": f"{type_}-{visit}",
            "type": type_,
            "at": at.isoformat(),
            "plan_id": plans[visit % len(plans)],
            "visit": f"visit-{visit}",
            "doctor": f"dr-{visit % 5}",
        }

    _began = system_clock() - timedelta(hours=1)

    def _until_answered(self, events: list[dict[str, Any]]) -> None:
        while True:
            try:
                status, answer = call(self._port, "POST", PATH, events, self._operator.token)
                self.statuses.add(status)
            except OSError:
                status, answer = 0, None
                time.sleep(0.01)
            if status == 207:
                for event, result in zip(events, answer["results"], strict=True):
                    assert result["outcome"] in ("stored", "duplicate")
                    self.told[event["id"]] = event["visit"]
                return
            if self._stopping.is_set():
                return


def test_a_killed_server_loses_no_event_that_it_acknowledged_and_counts_none_twice(
    database_url: str, db: Database, tmp_path: Path
) -> None:
    customer = make_customer(db, now=system_clock())
    operator = make_operator(db, now=system_clock())
    chance = random.Random(7)
    with (
        Server(database_url, tmp_path / "log") as server,
        Feeders(server.port, operator, customer.plan_ids) as feeders,
    ):
        for _ in range(KILLS):
            feeders.wait_for(chance.randint(1, 120))
            server.kill()
            server.start()
        feeders.wait_for(1)
    with db.write() as tx:
        stored = [(row.event_id, row.visit) for row in tx.execute(queue_events.select()) if row.visit]
        assert len(stored) == len(set(stored))
        assert feeders.told.items() <= dict(stored).items()
        visits = [row.visit for row in tx.execute(encounters.select())]
        assert sorted(visits) == sorted({visit for _, visit in stored})
        assert rebuild(tx).corrected == 0
    assert feeders.statuses <= {207, 503}
