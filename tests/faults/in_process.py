"""Requests to the service inside this event loop, so that many can be under way at once; it knows
no endpoint.
"""

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from frontdesk.app import App
from frontdesk.config import Config
from frontdesk.db import open_database
from frontdesk.installation import build_asgi
from frontdesk.web.telemetry import Telemetry
from tests.conftest import SetClock


class Nowhere(io.StringIO):
    """A log that nobody looks at."""

    def write(self, text: str) -> int:
        return len(text)


@dataclass(frozen=True)
class Service:
    app: App
    asgi: Any

    async def call(self, method: str, path: str, token: str | None = None, body: Any = None) -> int:
        """The status of the answer; `body` is sent as JSON."""
        content = b"" if body is None else json.dumps(body).encode()
        return await call_asgi(self.asgi, method, path, token, content)


@asynccontextmanager
async def serving(config: Config, clock: SetClock, count: int = 2) -> AsyncIterator[list[Service]]:
    """So many Apps on one database, as so many processes would be."""
    apps = [App(config, open_database(config.database_url), clock) for _ in range(count)]
    try:
        yield [Service(app, build_asgi(app, Telemetry(Nowhere()))) for app in apps]
    finally:
        for app in apps:
            await app.close()


async def call_asgi(
    service: Any, method: str, path: str, token: str | None, body: bytes = b""
) -> int:
    """The status of the answer."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    if token is not None:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    scope = {"type": "http", "method": method, "path": path, "headers": headers}
    await service(scope | {"query_string": b"", "root_path": ""}, receive, send)
    return int(sent[0]["status"])
