"""Health probes and metrics: `/healthz`, `/readyz`, `/metrics`."""

import asyncio
import json

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from frontdesk.app import App
from frontdesk.db.checks import HEAD, other_schema, revision_of
from frontdesk.errors import Unavailable
from frontdesk.web.request import Request
from frontdesk.web.response import Response
from frontdesk.web.stored_metrics import DatabaseUp

_NO_STORE = ((b"cache-control", b"no-store"),)


async def is_alive(_app: App, _request: Request) -> Response:
    """Check that the process runs. Answers without asking the database.

    200 Health: The process runs.
    """
    return Response(200, b'{"status":"ok"}', _NO_STORE)


async def is_ready(app: App, _request: Request) -> Response:
    """Check that the service can serve. Asks the database whether it answers, has this version's schema and stores what is
    written.

    200 Health: The database answers and is up to date.
    Problems: unavailable
    """

    def probe() -> str | None:
        revision = revision_of(app.db)
        if revision == HEAD:
            app.write_probe.verify()
        return revision

    revision = await app.probe("ready", probe)
    if revision is None or revision < HEAD:
        raise Unavailable("The database needs migrating: run frontdesk migrate.")
    if revision != HEAD:
        raise Unavailable(other_schema(revision).remedy)
    return Response(200, json.dumps({"status": "ready", "revision": revision}).encode(), _NO_STORE)


async def metrics(app: App, _request: Request) -> Response:
    """Read the metrics for Prometheus. Counts and durations by route, without personal data. While the database is away,
    those that are kept in memory.

    200 text/plain: Prometheus text.
    """
    is_up, stored = True, b""
    try:
        await app.probe("up", lambda: revision_of(app.db))
        stored = await app.read_in_thread(lambda: generate_latest(app.stored_metrics))
    except Unavailable:
        is_up = False
    in_memory = await asyncio.to_thread(generate_latest, app.metrics)
    text = generate_latest(DatabaseUp(is_up=is_up)) + in_memory + stored
    return Response(200, text, _NO_STORE, CONTENT_TYPE_LATEST.encode())
