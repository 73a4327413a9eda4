"""Health probes and metrics: `/healthz`, `/readyz`, `/metrics`."""

import json

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from frontdesk.app import App
from frontdesk.db.checks import HEAD, revision_of
from frontdesk.errors import Unavailable
from frontdesk.web.request import Request
from frontdesk.web.response import Response

_PLAIN = ((b"cache-control", b"no-store"),)


async def alive(_app: App, _request: Request) -> Response:
    """200 as long as the process answers."""
    return Response(200, b'{"status":"ok"}', _PLAIN)


async def ready(app: App, _request: Request) -> Response:
    """200 when the database answers and has this version's schema. Raises Unavailable."""
    revision = await app.probes.get("revision", lambda: revision_of(app.db))
    if revision != HEAD:
        raise Unavailable("The database needs migrating: run frontdesk migrate.")
    return Response(200, json.dumps({"status": "ready", "revision": revision}).encode(), _PLAIN)


async def metrics(app: App, _request: Request) -> Response:
    """Prometheus text, added up over the serving processes of this `frontdesk serve`."""
    return Response(
        200,
        await app.read_in_thread(lambda: generate_latest(app.registry)),
        _PLAIN,
        CONTENT_TYPE_LATEST.encode(),
    )
