"""Requests to the service inside this event loop, so that many can be under way at once; it knows no endpoint."""

import io
from typing import Any


class Nowhere(io.StringIO):
    """A log that nobody looks at."""

    def write(self, text: str) -> int:
        return len(text)


async def call_asgi(service: Any, method: str, path: str, token: str | None, body: bytes = b"") -> int:
    """The status of the answer."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    if token is not None:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": headers,
        "root_path": "",
    }
    await service(scope, receive, send)
    return int(sent[0]["status"])
