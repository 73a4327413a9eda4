"""Health probes and metrics: `/healthz`, `/readyz`, `/metrics`."""

import asyncio

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest

from frontdesk.access.model import Scope
from frontdesk.api.paths import Path
from frontdesk.app import App
from frontdesk.codes import Kind
from frontdesk.db.checks import HEAD, can_use, revision_of
from frontdesk.errors import Unavailable
from frontdesk.interface.operations import Answer, Content, Group
from frontdesk.interface.types import problems as types
from frontdesk.processes import DRAINING
from frontdesk.web.request import Request
from frontdesk.web.response import NO_STORE, Response, json_response

GROUP = Group("Operation", "For operators of the service.")

_UP = (
    "1 while the database answers this process; 0 while it does not, and no metric is read from it."
)


@GROUP.get(Path.HEALTH, answers={200: Answer("The process runs.", types.Health)})
async def is_alive(_app: App, _request: Request) -> Response:
    """Check that the process runs.

    Answers without asking the database.
    """
    return json_response({"status": "ok"})


@GROUP.get(
    Path.READINESS,
    answers={200: Answer("The database answers and is up to date.", types.Health)},
    problems=[Kind.UNAVAILABLE],
)
async def is_ready(app: App, _request: Request) -> Response:
    """Check that the service can serve.

    Asks the database whether it answers, has this version's schema and stores what is written. A
    process that is to end is not ready: it is `draining`.
    """

    def probe() -> tuple[str | None, bool]:
        revision = revision_of(app.db)
        if is_usable := can_use(app.db, revision):
            app.write_probe.verify()
        return revision, is_usable

    if app.is_draining:
        raise Unavailable(DRAINING)
    revision, is_usable = await app.probe("ready", probe)
    if revision is None or revision < HEAD:
        raise Unavailable("The database needs migrating.")
    if not is_usable:
        raise Unavailable("A newer version of the service has migrated the database.")
    return json_response({"status": "ready", "revision": revision})


@GROUP.get(
    Path.METRICS,
    scope=Scope.OPERATOR,
    outlives_database=True,
    answers={200: Answer("Prometheus text.", Content(("text/plain",)))},
)
async def metrics(app: App, _request: Request) -> Response:
    """Read the metrics for Prometheus.

    Counts and durations by route, without personal data. While the database is away, those that are
    kept in memory.
    """
    availability = CollectorRegistry()
    stored = b""
    up = Gauge("frontdesk_database_up", _UP, registry=availability)
    try:
        await app.probe("up", lambda: revision_of(app.db))
        stored = await app.read_in_thread(lambda: generate_latest(app.stored_metrics))
        up.set(1)
    except Unavailable:
        up.set(0)
    in_memory = await asyncio.to_thread(generate_latest, app.metrics)
    text = generate_latest(availability) + in_memory + stored
    return Response(200, text, (NO_STORE,), CONTENT_TYPE_LATEST.encode())
