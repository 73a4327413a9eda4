"""One whole report at a time is on its way to a client (docs/interface.md, Limits)."""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from frontdesk.app import App
from frontdesk.asgi import build_asgi
from frontdesk.db import Database
from frontdesk.web.telemetry import Telemetry
from tests.conftest import SetClock
from tests.factories import Customer, second_token
from tests.files.loading import Desk, csv_of, row


class Reader:
    """Reads a report over ASGI; `take` is called with each message and may make the service wait, or raise."""

    def __init__(self, asgi: Any, path: str, token: str) -> None:
        self.messages: list[Any] = []
        self._asgi, self._path, self._token = asgi, path, token

    async def read(self, take: Callable[[], Awaitable[Any]] | None = None, *, query: bytes = b"") -> int:
        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            self.messages.append(message)
            if take is not None and message["type"] == "http.response.body":
                await take()

        headers = [(b"host", b"api.example.com"), (b"authorization", f"Bearer {self._token}".encode())]
        scope = {
            "type": "http", "method": "GET", "path": self._path, "query_string": query, "root_path": "", "client": ("::1", 1),
            "headers": headers,
        }  # fmt: skip
        self.messages = []
        await self._asgi(scope, receive, send)
        return int(self.messages[0]["status"])


def test_a_second_report_waits_until_the_first_is_sent_or_its_reader_gone(
    app: App, db: Database, customer: Customer, clock: SetClock
) -> None:
    file = Desk(db, customer, clock).load(csv_of([row(1)]))
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility-files/{file.id}/report"
    other_client = second_token(db, customer.account_id)

    async def gone() -> None:
        raise ConnectionError

    async def run() -> None:
        asgi = build_asgi(app, Telemetry(io.StringIO()))
        slow, quick, other = (
            Reader(asgi, path, token) for token in (customer.token, customer.token, other_client)
        )
        begun, goes_on = asyncio.Event(), asyncio.Event()

        async def pause() -> None:
            begun.set()
            await goes_on.wait()

        first = asyncio.create_task(slow.read(pause))
        await begun.wait()
        assert await quick.read() == 429
        start, body = quick.messages
        assert (b"retry-after", b"5") in start["headers"]
        [fault] = json.loads(body["body"])["errors"]
        assert (fault["field"], fault["code"]) == ("report", "report_open")
        assert await quick.read(query=b"page%5Bsize%5D=10") == 200
        assert await other.read() == 200
        goes_on.set()
        assert await first == 200
        assert await quick.read() == 200
        with suppress(ConnectionError):
            await slow.read(gone)
        assert await quick.read() == 200
        await app.close()

    asyncio.run(run())
