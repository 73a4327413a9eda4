"""Callers that keep posting members whatever happens to the server, and remember what they were promised."""

import http.client
import json
import os
import random
import threading
import time
from typing import Any, Self

from tests.factories import member_body
from tests.patience import PATIENCE_SECONDS, wait_until

# How often faults are tried: "" in each run of the suite, "nightly" by `make nightly`, "long" by `make faults`.
LEVEL = os.environ.get("FRONTDESK_FAULTS", "")
NIGHTLY = 4  # times as often as in each run


def times(every_run: int, *, long: int) -> int:
    """How often a fault is tried: in each run of the suite, and in the long one."""
    return {"": every_run, "nightly": min(NIGHTLY * every_run, long), "long": long}[LEVEL]


def call(port: int, method: str, path: str, body: Any = None, token: str = "") -> tuple[int, Any]:
    """One request on a connection of its own. Raises OSError when the server goes away."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    try:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if content else None
    except http.client.HTTPException as error:
        raise ConnectionError(type(error).__name__) from None
    finally:
        connection.close()


class Callers:
    """Threads that post members until told to stop; `acknowledged` is the last name that each member was promised."""

    def __init__(self, port: int, path: str, token: str, *, threads: int = 16) -> None:
        self.acknowledged: dict[str, str] = {}
        self.statuses: set[int] = set()
        self._port, self._path, self._token = port, path, token
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(threads)]

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
        """Each caller has members of its own, so the last acknowledged value of each is known."""
        chance, count = random.Random(number), 0
        while not self._stopping.is_set():
            count += chance.random() < 0.6 or count == 0
            member = 100_000 * (number + 1) + (count if chance.random() < 0.7 else chance.randint(1, count))
            name = f"Name{chance.randint(0, 10**9)}"
            body = member_body(member, last_name=name, invite_immediately=True)
            self._until_answered(body, name)

    def _until_answered(self, body: dict[str, Any], name: str) -> None:
        while True:
            try:
                status, _ = call(self._port, "POST", self._path, body, self._token)
                self.statuses.add(status)
            except OSError:
                status = 0
                time.sleep(0.01)
            if status in (200, 201):
                self.acknowledged[body["external_id"]] = name
                return
            if self._stopping.is_set():
                self.acknowledged.pop(body["external_id"], None)  # what became of this one is not known
                return
