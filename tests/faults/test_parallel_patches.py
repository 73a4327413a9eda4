"""Parallel changes of one plan by callers who sent no If-Match: each is made, none is told of a conflict."""

import asyncio
import json
from typing import Any

from frontdesk.app import App
from frontdesk.asgi import build_asgi
from frontdesk.config import Config
from frontdesk.db import Database, open_database
from frontdesk.plans import get_plan
from frontdesk.web.telemetry import Telemetry
from tests.conftest import SetClock
from tests.factories import Customer, make_customer
from tests.faults.callers import times
from tests.faults.in_process import Nowhere, call_asgi

CALLERS = 8
PATCHES = times(25, long=250)


def test_parallel_patches_without_if_match_are_all_made(
    db: Database, config: Config, clock: SetClock
) -> None:
    customer = make_customer(db)
    statuses = asyncio.run(_patched_by_many(config, clock, customer))
    assert statuses == [200] * (CALLERS * PATCHES)
    with db.read() as tx:
        assert get_plan(tx, None, customer.plan_ids[0]).version == CALLERS * PATCHES + 1


async def _patched_by_many(config: Config, clock: SetClock, customer: Customer) -> list[int]:
    """Two Apps on one database, as two processes would be, with half of the callers each."""
    apps = [App(config, open_database(config.database_url), clock) for _ in range(2)]
    services = [build_asgi(app, Telemetry(Nowhere())) for app in apps]

    async def caller(number: int) -> list[int]:
        field = ("name", "description")[number % 2]
        return [
            await _patch(services[number // 2 % 2], customer, {field: f"{number}-{count}"})
            for count in range(PATCHES)
        ]

    found = await asyncio.gather(*map(caller, range(CALLERS)))
    for app in apps:
        await app.close()
    return [status for statuses in found for status in statuses]


async def _patch(service: Any, customer: Customer, body: dict[str, str]) -> int:
    path = f"/v2/plans/{customer.plan_ids[0]}"
    return await call_asgi(service, "PATCH", path, customer.token, json.dumps(body).encode())
