"""Eight callers at once: one record, one 201, at most one invitation."""

import asyncio
import json
from typing import Any

import pytest

from frontdesk.app import App
from frontdesk.asgi import build_asgi
from frontdesk.config import Config
from frontdesk.db import Database, open_database
from frontdesk.web.telemetry import Telemetry
from tests.conftest import SetClock
from tests.factories import Customer, make_customer, member_body
from tests.faults.callers import times

CALLERS = 8
ROUNDS = times(
    84, long=2_950
)  # on each of two databases, for each of three keys: 504 in a run, 17,700 in the long one


@pytest.mark.parametrize("same", ["external_id", "member_id", "email"])
def test_of_eight_callers_with_the_same_key_one_creates(
    db: Database, config: Config, clock: SetClock, same: str
) -> None:
    customer = make_customer(db)
    statuses = asyncio.run(_rounds(config, clock, customer, same))
    others = 200 if same == "external_id" else 422
    assert statuses == [[201] + [others] * (CALLERS - 1)] * ROUNDS
    with db.read() as tx:
        counts = "SELECT (SELECT count(*) FROM members), (SELECT count(*) FROM invitations)"
        assert tuple(tx.exec_driver_sql(counts).one()) == (ROUNDS, ROUNDS)


async def _rounds(config: Config, clock: SetClock, customer: Customer, same: str) -> list[list[int]]:
    """Two Apps on one database, as two processes would be, with half of the callers each."""
    apps = [App(config, open_database(config.database_url), clock) for _ in range(2)]
    services = [build_asgi(app, Telemetry(_Nowhere())) for app in apps]  # type: ignore[arg-type]
    found = []
    for number in range(ROUNDS):
        bodies = []
        for caller in range(CALLERS):
            body = member_body(number * 100 + caller, invite_immediately=True)
            shared = {"external_id": {"external_id", "member_id", "email"}}.get(same, {same})
            bodies.append(body | {name: member_body(number * 100)[name] for name in shared})
        answers = [_post(services[n % 2], customer, body) for n, body in enumerate(bodies)]
        found.append(sorted(await asyncio.gather(*answers)))
        found[-1].sort(key=lambda status: status != 201)
    for app in apps:
        await app.close()
    return found


async def _post(service: Any, customer: Customer, body: dict[str, Any]) -> int:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    headers = [
        (b"authorization", f"Bearer {customer.token}".encode()),
        (b"content-type", b"application/json"),
    ]
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": headers,
        "root_path": "",
    }
    await service(scope, receive, send)
    return int(sent[0]["status"])


class _Nowhere:
    def write(self, _text: str) -> None:
        """Logs are not looked at here."""

    def flush(self) -> None:
        """Nothing gathers."""
