"""The HTTP interfaces as one ASGI application: every route, and the metrics that the database keeps."""

from importlib import import_module

from frontdesk.api.routes import ENDPOINTS as CUSTOMER_ENDPOINTS
from frontdesk.api.routes import ENTRANCE, PAGES
from frontdesk.app import App
from frontdesk.config import Environment
from frontdesk.operator.routes import ENDPOINTS as OPERATOR_ENDPOINTS
from frontdesk.web.endpoint import Asgi, routed
from frontdesk.web.stored_metrics import StoredMetrics, accuracy_metrics, delivery_metrics, probe_metrics
from frontdesk.web.telemetry import Telemetry


def build_asgi(app: App, telemetry: Telemetry | None = None) -> Asgi:
    """The service as an ASGI application. When its lifespan ends it finishes what is under way and closes the App."""
    telemetry = telemetry or Telemetry()
    app.metrics.register(telemetry)
    app.stored_metrics.register(StoredMetrics(app.db, app.clock, accuracy_metrics))
    app.stored_metrics.register(StoredMetrics(app.db, app.clock, delivery_metrics, fresh_seconds=5.0))
    app.stored_metrics.register(StoredMetrics(app.db, app.clock, probe_metrics))
    app.db.outage.tell = telemetry.event
    endpoints = ENTRANCE + CUSTOMER_ENDPOINTS + PAGES + OPERATOR_ENDPOINTS
    if app.config.environment is Environment.SANDBOX:
        # Loaded by name, because no module of the product imports the sandbox.
        endpoints += import_module("frontdesk.sandbox.door").open_door(app)
    return routed(app, telemetry, endpoints)
