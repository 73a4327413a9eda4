"""Callers that keep sending whatever happens to the server, and remember what they were promised."""

import http.client
import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Self

from frontdesk.clock import system_clock
from frontdesk.db import Database
from tests.factories import member_body
from tests.patience import PATIENCE_SECONDS, wait_until

# How often faults are tried: "" in each run of the suite, "nightly" by `make nightly`, "long" by
# `make faults`.
LEVEL = os.environ.get("FRONTDESK_FAULTS", "")
NIGHTLY = 8  # times as often as in each run
# of random input; a nightly run draws one and prints it
SEED = int(os.environ.get("FRONTDESK_TEST_SEED", "0"))


def times(every_run: int, *, long: int) -> int:
    """How often a fault is tried: in each run of the suite, and in the long one."""
    return {"": every_run, "nightly": min(NIGHTLY * every_run, long), "long": long}[LEVEL]


def call(
    port: int,
    method: str,
    path: str,
    body: Any = None,
    token: str = "",
    *,
    kind: str = "application/json",
) -> tuple[int, Any]:
    """One request on a connection of its own. Bytes are sent as they are, and an answer that is no
    JSON is text.

    Raises OSError when the server goes away.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    content = body if body is None or isinstance(body, bytes) else json.dumps(body)
    try:
        headers = {"Content-Type": kind} | ({"Authorization": f"Bearer {token}"} if token else {})
        connection.request(method, path, content, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        return answer.status, json.loads(text) if "json" in answer.headers["Content-Type"] else text
    except http.client.HTTPException as error:
        raise ConnectionError(type(error).__name__) from None
    finally:
        connection.close()


def members(caller: int) -> Iterator[dict[str, Any]]:
    """Each caller has members of its own, so the last acknowledged name of each is known."""
    chance = random.Random(caller)
    count = 0
    while True:
        count += chance.random() < 0.6 or count == 0
        member = 100_000 * (caller + 1) + (
            count if chance.random() < 0.7 else chance.randint(1, count)
        )
        yield member_body(
            member, last_name=f"Name{chance.randint(0, 10**9)}", invite_immediately=True
        )


def promised(body: Any) -> dict[str, str]:
    """What an acknowledgement says is stored: a member's last name by its id, or the visits of
    queue events by theirs.
    """
    if isinstance(body, list):
        return {event["id"]: event["visit"] for event in body}
    return {body["external_id"]: body["last_name"]}


class Callers:
    """Threads that send each of their bodies until it is answered; `acknowledged` holds the last
    promise about each id.
    """

    def __init__(
        self,
        port: int,
        path: str,
        token: str,
        bodies: Callable[[int], Iterator[Any]] = members,
        *,
        threads: int = 16,
    ) -> None:
        self.acknowledged: dict[str, str] = {}
        self.statuses: set[int] = set()
        self._port = port
        self._path = path
        self._token = token
        self._bodies = bodies
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number,)) for number in range(threads)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        for thread in self._threads:
            thread.join()

    def stop(self) -> None:
        """Let each caller end after its present call, answered or not."""
        self._stopping.set()

    def wait_for(self, more: int) -> None:
        """Return when that many more records have been acknowledged."""
        enough = len(self.acknowledged) + more
        wait_until(lambda: len(self.acknowledged) >= enough, "callers to be answered")

    def _run(self, number: int) -> None:
        for body in self._bodies(number):
            while not (is_answered := self._send(body)) and not self._stopping.is_set():
                pass
            if is_answered:
                self.acknowledged |= promised(body)
            elif isinstance(body, dict):
                # what became of this one is not known
                self.acknowledged.pop(body["external_id"], None)
            if self._stopping.is_set():
                return

    def _send(self, body: Any) -> bool:
        try:
            status, _ = call(self._port, "POST", self._path, body, self._token)
        except OSError:
            time.sleep(0.01)
            return False
        self.statuses.add(status)
        return status in (200, 201, 207)


def check_promises(db: Database, callers: Callers) -> None:
    """Every acknowledged record is there with its acknowledged name, once, with one invitation."""
    query = """
        SELECT m.external_id, m.last_name,
            (SELECT count(*) FROM invitations i WHERE i.member_id = m.id),
            (SELECT count(*) FROM member_history h
             WHERE h.member_id = m.id AND h.outcome = 'created')
        FROM members m
    """
    rows = db.ask(lambda tx: tx.exec_driver_sql(query).all())
    stored = {row[0]: row[1] for row in rows}
    assert len(stored) == len(rows)
    assert callers.acknowledged.items() <= stored.items()
    assert {(row[2], row[3]) for row in rows} == {(1, 1)}
    assert {201} <= callers.statuses <= {200, 201, 503}


def visits(plan_ids: list[int], feeder: int) -> Iterator[list[dict[str, Any]]]:
    """Batches of ten visits, of which each feeder tells one part, so that batches of the feeders
    meet.
    """
    type_ = ("patient.joined", "visit.started", "visit.ended", "patient.left")[feeder]
    chance = random.Random(feeder)
    began = system_clock() - timedelta(hours=1)
    batch = 0
    while True:
        events = [
            {
                "id": f"{type_}-{visit}",
                "type": type_,
                "at": (began + timedelta(milliseconds=visit + feeder)).isoformat(),
                "plan_id": plan_ids[visit % len(plan_ids)],
                "visit": f"visit-{visit}",
                "doctor": f"dr-{visit % 5}",
            }
            for visit in range(batch, batch + 10)
        ]
        chance.shuffle(events)
        yield events
        batch += 10
