"""The HTTP interfaces as one ASGI application: every route, and the metrics that the database keeps."""

from importlib import import_module

from frontdesk.api.routes import ENDPOINTS as CUSTOMER_ENDPOINTS
from frontdesk.api.routes import ENTRANCE, PAGES
from frontdesk.app import App
from frontdesk.config import Environment
from frontdesk.operator.routes import ENDPOINTS as OPERATOR_ENDPOINTS
from frontdesk.web.endpoint import Asgi, routed
from frontdesk.web.stored_metrics import SEVERAL_READS, StoredMetrics
from frontdesk.web.telemetry import Telemetry


def build_asgi(app: App, telemetry: Telemetry | None = None) -> Asgi:
    """The service as an ASGI application. When its lifespan ends it finishes what is under way and closes the App."""
    telemetry = telemetry or Telemetry()
    telemetry.watch(app)
    for read, fresh_seconds in SEVERAL_READS:
        app.stored_metrics.register(StoredMetrics(app.db, app.clock, read, fresh_seconds))
    app.db.outage.tell = telemetry.event
    endpoints = ENTRANCE + CUSTOMER_ENDPOINTS + PAGES + OPERATOR_ENDPOINTS
    if app.config.environment is Environment.SANDBOX:
        # Loaded by name, because no module of the product imports the sandbox.
        endpoints += import_module("frontdesk.sandbox.door").open_door(app)
    return routed(app, telemetry, endpoints)
