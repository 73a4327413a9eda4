"""Whether the process lives, whether it can serve, and what it has counted."""

import json

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from frontdesk.app import App
from frontdesk.db import migrate
from frontdesk.errors import Unavailable
from frontdesk.web.request import Request
from frontdesk.web.response import Response

_PLAIN = ((b"cache-control", b"no-store"),)


async def alive(_app: App, _request: Request) -> Response:
    """The process answers; nothing else is asked."""
    return Response(200, b'{"status":"ok"}', _PLAIN)


async def ready(app: App, _request: Request) -> Response:
    """The database answers and has the schema that this version needs. Raises Unavailable."""
    revision = await app.probes.get("revision", lambda: migrate.current(app.db))
    if revision != migrate.head():
        raise Unavailable("The database needs migrating: run frontdesk migrate.")
    return Response(200, json.dumps({"status": "ready", "revision": revision}).encode(), _PLAIN)


async def metrics(app: App, _request: Request) -> Response:
    """Prometheus text, added up over all worker processes of this server."""
    return Response(
        200,
        await app.read_in_thread(lambda: generate_latest(app.registry)),
        _PLAIN,
        CONTENT_TYPE_LATEST.encode(),
    )
