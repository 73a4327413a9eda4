"""The service on SQLite and PostgreSQL at once, called without a network: every request goes to
both, which must agree.
"""

import asyncio
import io
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from frontdesk.app import App
from frontdesk.config import read_config
from frontdesk.db import open_database
from frontdesk.installation import build_asgi
from frontdesk.web.telemetry import Telemetry
from tests.conftest import SetClock, emptied
from tests.factories import NOW, Customer, make_customer

# What a refused request could have left behind.
# A refusal is told in the audit trail.
STORED = """SELECT (SELECT count(*) FROM members), (SELECT count(*) FROM member_history),
    (SELECT count(*) FROM audit_entries WHERE action NOT IN ('token.refused', 'token.limited')),
    (SELECT count(*) FROM invitations), (SELECT sum(version) FROM plans),
    (SELECT count(*) FROM access_tokens)"""
# What two databases number and draw for themselves.
THEIR_OWN = {"id", "access_token"}


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[str, str] = field(compare=False)
    body: Any
    told: dict[str, str]

    @property
    def faults(self) -> dict[str, str]:
        return {fault["field"]: fault["code"] for fault in self.body.get("errors", ())}


class Service:
    """The service on one database."""

    def __init__(self, url: str) -> None:
        db = open_database(url)
        self.customer: Customer = make_customer(db)
        db.close()
        config = read_config(
            {"FRONTDESK_DATABASE_URL": url, "FRONTDESK_BASE_URL": "https://api.example.com"}
        )
        self.app = App(config, open_database(config.database_url), SetClock(NOW))
        self._asgi = build_asgi(self.app, Telemetry(io.StringIO()))

    async def ask(
        self,
        method: str,
        path: str,
        raw: bytes,
        headers: Mapping[str, str],
        *,
        peer: str,
        trickle: bool,
    ) -> Reply:
        pieces = [raw[n : n + 1] for n in range(len(raw))] if trickle else [raw]
        messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
        waiting = iter([*messages, {"type": "http.request", "body": b"", "more_body": False}])
        sent: list[Any] = []

        async def receive() -> Any:
            return next(waiting)

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": b"",
            "root_path": "",
            "client": (peer, 1),
            "headers": [
                (name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()
            ],
        }
        await self._asgi(scope, receive, send)
        told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        body = json.loads(sent[1]["body"] or b"{}")
        if isinstance(body, dict):
            body = {name: value for name, value in body.items() if name not in THEIR_OWN}
        compared = {
            name: told[name] for name in told if name not in ("x-request-id", "content-length")
        }
        return Reply(sent[0]["status"], told, body, compared)

    def stored(self) -> tuple[Any, ...]:
        return tuple(self.app.db.ask(lambda tx: tx.exec_driver_sql(STORED).one()))


class Both:
    """`ask` sends one request to both services, asserts that they answer alike, and gives the
    answer.

    `trickle` sends the body a byte at a time.
    """

    def __init__(self, services: list[Service], runner: asyncio.Runner) -> None:
        self._services = services
        self._runner = runner
        self._peers = count(1)
        self.plan = f"/v2/plans/{services[0].customer.plan_ids[0]}"

    def ask(
        self,
        method: str,
        path: str,
        raw: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        token: bool = True,
        trickle: bool = False,
    ) -> Reply:
        number = next(self._peers)  # an address of its own, so that failures don't add up
        peer = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        replies = []
        for service in self._services:
            all_headers = {"Content-Type": "application/json", "X-Request-Id": "both"} | dict(
                headers or {}
            )
            if token:
                all_headers["Authorization"] = f"Bearer {service.customer.token}"
            asked = service.ask(method, path, raw, all_headers, peer=peer, trickle=trickle)
            replies.append(self._runner.run(asked))
        first, second = replies
        assert first == second
        return first

    @contextmanager
    def storing_nothing(self) -> Iterator[None]:
        """What is done in the block must leave nothing behind in either database."""
        before = [service.stored() for service in self._services]
        yield
        assert [service.stored() for service in self._services] == before


@contextmanager
def serving_both(sqlite_template: Path, postgres_url: str, folder: Path) -> Iterator[Both]:
    path = folder / "frontdesk.db"
    shutil.copy(sqlite_template, path)
    with asyncio.Runner() as runner:
        services = [Service(f"sqlite:///{path}"), Service(emptied(postgres_url))]
        try:
            yield Both(services, runner)
        finally:
            for service in services:
                runner.run(service.app.close())
