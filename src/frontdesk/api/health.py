"""Health probes and metrics: `/healthz`, `/readyz`, `/metrics`."""

import json

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from frontdesk.app import App
from frontdesk.db.checks import HEAD, revision_of
from frontdesk.errors import Unavailable
from frontdesk.web.request import Request
from frontdesk.web.response import Response

_NO_STORE = ((b"cache-control", b"no-store"),)


async def is_alive(_app: App, _request: Request) -> Response:
    """Check that the process runs. Answers without asking the database."""
    return Response(200, b'{"status":"ok"}', _NO_STORE)


async def is_ready(app: App, _request: Request) -> Response:
    """Check that the service can serve. Asks the database whether it answers and has this version's schema."""
    revision = await app.probe(lambda: revision_of(app.db))
    if revision != HEAD:
        raise Unavailable("The database needs migrating: run frontdesk migrate.")
    return Response(200, json.dumps({"status": "ready", "revision": revision}).encode(), _NO_STORE)


async def metrics(app: App, _request: Request) -> Response:
    """Read the metrics for Prometheus. Counts and durations by route, without personal data."""
    text = await app.read_in_thread(lambda: generate_latest(app.registry))
    return Response(200, text, _NO_STORE, CONTENT_TYPE_LATEST.encode())
