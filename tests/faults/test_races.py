"""Eight callers at once: one record, one 201, at most one invitation; of changes of one plan each
is made.
"""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from frontdesk.clock import system_clock
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.plans import get_plan
from frontdesk.reach import EVERY
from tests.conftest import SetClock
from tests.factories import make_customer, member_body
from tests.faults.callers import call, times
from tests.faults.in_process import serving
from tests.faults.server import Server

CALLERS = 8
# On each of two databases, for each of three keys: 504 rounds in a run, 20,100 in the long one.
ROUNDS = times(84, long=3_350)
PATCHES = times(25, long=250)
# of two serving processes: 120 in a run, 2,400 in the long one
PROCESS_ROUNDS = times(20, long=400)
SAME = {
    "external_id": ("external_id", "member_id", "email"),  # the same member, sent eight times
    "member_id": ("member_id",),
    "email": ("email",),
}


def bodies_of_round(number: int, same: str) -> list[dict[str, Any]]:
    shared = member_body(number * CALLERS)
    bodies = [member_body(number * CALLERS + n, invite_immediately=True) for n in range(CALLERS)]
    return [body | {name: shared[name] for name in SAME[same]} for body in bodies]


@pytest.mark.parametrize("same", SAME)
def test_of_eight_callers_with_the_same_key_one_creates(
    db: Database, config: Config, clock: SetClock, same: str
) -> None:
    customer = make_customer(db)
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"

    async def rounds() -> list[list[int]]:
        found = []
        async with serving(config, clock) as services:
            for number in range(ROUNDS):
                bodies = enumerate(bodies_of_round(number, same))
                posts = [
                    services[n % 2].call("POST", path, customer.token, body) for n, body in bodies
                ]
                found.append(await asyncio.gather(*posts))
        return found

    others = 200 if same == "external_id" else 422
    found = asyncio.run(rounds())
    assert all(Counter(statuses) == {201: 1, others: CALLERS - 1} for statuses in found)
    counts = "SELECT (SELECT count(*) FROM members), (SELECT count(*) FROM invitations)"
    assert tuple(db.ask(lambda tx: tx.exec_driver_sql(counts).one())) == (ROUNDS, ROUNDS)


@pytest.mark.parametrize("same", SAME)
def test_of_eight_callers_of_two_processes_one_creates(
    db: Database, database_url: str, tmp_path: Path, same: str
) -> None:
    customer = make_customer(db, now=system_clock())
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    others = 200 if same == "external_id" else 422
    with (
        Server(database_url, tmp_path / "log", workers=2) as server,
        ThreadPoolExecutor(CALLERS) as threads,
    ):

        def post(body: dict[str, Any]) -> tuple[int, Any]:
            """On a connection of its own; again after a 503, since a disk that stalls puts a write
            off.
            """
            while (answer := call(server.port, "POST", path, body, customer.token))[0] == 503:
                pass
            return answer

        for number in range(PROCESS_ROUNDS):
            answers = list(threads.map(post, bodies_of_round(number, same)))
            assert Counter(status for status, _ in answers) == {201: 1, others: CALLERS - 1}
            faults = [body["errors"] for status, body in answers if status == 422]
            assert all(
                (fault["field"], fault["code"]) == (same, "not_unique") for [fault] in faults
            )
            assert len({body["id"] for status, body in answers if status != 422}) == 1
    counts = "SELECT (SELECT count(*) FROM members), (SELECT count(*) FROM invitations)"
    assert tuple(db.ask(lambda tx: tx.exec_driver_sql(counts).one())) == (
        PROCESS_ROUNDS,
        PROCESS_ROUNDS,
    )


def test_parallel_patches_without_if_match_are_all_made(
    db: Database, config: Config, clock: SetClock
) -> None:
    customer = make_customer(db)
    path = f"/v2/plans/{customer.plan_ids[0]}"

    async def patched_by_many() -> list[list[int]]:
        async def caller(number: int) -> list[int]:
            service = services[number // 2 % 2]
            field = ("name", "description")[number % 2]
            return [
                await service.call("PATCH", path, customer.token, {field: f"{number}-{count}"})
                for count in range(PATCHES)
            ]

        async with serving(config, clock) as services:
            return await asyncio.gather(*map(caller, range(CALLERS)))

    assert asyncio.run(patched_by_many()) == [[200] * PATCHES] * CALLERS
    plan = db.ask(lambda tx: get_plan(tx, EVERY, customer.plan_ids[0]))
    assert plan.version == CALLERS * PATCHES + 1
