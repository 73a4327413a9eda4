"""Eight callers at once on a server of two processes: one record, one 201, at most one invitation."""

import http.client
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from frontdesk.clock import system_clock
from frontdesk.db import Database
from tests.factories import Customer, make_customer, member_body
from tests.faults.callers import times
from tests.faults.server import Server
from tests.patience import PATIENCE_SECONDS

CALLERS = 8
ROUNDS = times(
    20, long=400
)  # for each of three keys, on each of two databases: 120 in a run, 2,400 in the long one
SAME = {
    "external_id": ("external_id", "member_id", "email"),  # the same member, sent eight times
    "member_id": ("member_id",),
    "email": ("email",),
}

Answers = list[tuple[int, object]]


@pytest.fixture
def customer(db: Database) -> Customer:
    return make_customer(db, now=system_clock())


@pytest.fixture
def server(database_url: str, customer: Customer, tmp_path: Path) -> Iterator[Server]:
    with Server(database_url, tmp_path / "log", workers=2) as running:
        yield running


@pytest.mark.parametrize("same", SAME)
def test_of_eight_callers_of_two_processes_one_creates(
    server: Server, db: Database, customer: Customer, same: str
) -> None:
    with ThreadPoolExecutor(CALLERS) as threads:
        start = Barrier(CALLERS, timeout=PATIENCE_SECONDS)
        calls = [
            threads.submit(call_each_round, server.port, customer, same, n, start) for n in range(CALLERS)
        ]
        rounds = list(zip(*(call.result() for call in calls), strict=True))
    others = 200 if same == "external_id" else 422
    for answers in rounds:
        assert Counter(status for status, _ in answers) == {201: 1, others: CALLERS - 1}
        assert {told for status, told in answers if status == 422} <= {(same, "not_unique")}
        assert len({told for status, told in answers if status != 422}) == 1
    counts = "SELECT (SELECT count(*) FROM members), (SELECT count(*) FROM invitations)"
    assert tuple(db.ask(lambda tx: tx.exec_driver_sql(counts).one())) == (ROUNDS, ROUNDS)


def call_each_round(port: int, customer: Customer, same: str, caller: int, start: Barrier) -> Answers:
    """One caller's answers: the record's id for a good one, (field, code) of the fault for a refused one."""
    found: Answers = []
    try:
        for number in range(ROUNDS):
            shared = member_body(number * CALLERS)
            body = member_body(number * CALLERS + caller, invite_immediately=True)
            body |= {name: shared[name] for name in SAME[same]}
            found.append(call_with_the_others(port, customer, body, start))
    except BaseException:
        start.abort()  # the others would wait for this one
        raise
    return found


def call_with_the_others(
    port: int, customer: Customer, body: dict[str, Any], start: Barrier
) -> tuple[int, object]:
    """One request on a connection of its own: the system spreads those over the processes that share the port.

    It is sent again after a 503: a disk that stalls for a second puts a write off.
    """
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    headers = {"Authorization": f"Bearer {customer.token}", "Content-Type": "application/json"}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)) as connection:
        connection.connect()
        start.wait()
        while True:
            connection.request("POST", path, json.dumps(body), headers)
            answer = connection.getresponse()
            content = json.loads(answer.read())
            if answer.status != 503:
                return answer.status, told(content)


def told(content: Any) -> object:
    if "errors" not in content:
        return content.get("id")
    [fault] = content["errors"]
    return fault["field"], fault["code"]
