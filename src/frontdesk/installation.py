"""The root: puts an installation together from its settings, with what a sandbox adds.

No other module knows both the doors and the sandbox. The doors of HTTP are imported when they are
built, because the command line and workers do without them.
"""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from frontdesk.app import App
from frontdesk.config import Config, Environment
from frontdesk.files.claims import RunOptions
from frontdesk.liveness import RequestsInWork

if TYPE_CHECKING:
    from frontdesk.web.endpoint import Asgi
    from frontdesk.web.telemetry import Telemetry


def build_asgi(
    app: App, telemetry: "Telemetry | None" = None, in_work: RequestsInWork | None = None
) -> "Asgi":
    """The HTTP doors as one ASGI application, with the metrics that the database keeps. When its
    lifespan ends it finishes what is under way and closes the App.

    Each request is noted in `in_work` while it lasts. In a sandbox, the outcome of some records
    is scripted by their external_id from now on (docs/sandbox.md).
    """
    from frontdesk.api.routes import ENDPOINTS, ENTRANCE, PAGES, REMEDIES
    from frontdesk.console.routes import ENDPOINTS as CONSOLE_ENDPOINTS
    from frontdesk.operator.routes import ENDPOINTS as OPERATOR_ENDPOINTS
    from frontdesk.web.endpoint import OwnHost, routed
    from frontdesk.web.stored_metrics import SEVERAL_READS, StoredMetrics
    from frontdesk.web.telemetry import Telemetry

    telemetry = telemetry or Telemetry()
    telemetry.watch(app)
    for read, fresh_seconds in SEVERAL_READS:
        app.stored_metrics.register(StoredMetrics(app.db, app.clock, read, fresh_seconds))
    app.db.outage.tell = telemetry.event
    endpoints = [*ENTRANCE, *ENDPOINTS, *PAGES, *OPERATOR_ENDPOINTS, *CONSOLE_ENDPOINTS]
    if app.config.environment is Environment.SANDBOX:
        from frontdesk.sandbox import door, scripted

        app.enrolments.intercept = scripted.enrol
        endpoints += door.ENDPOINTS
    own_host = None
    if app.config.console_url:
        own_host = OwnHost(urlsplit(app.config.console_url).netloc.lower(), "/console")
    return routed(app, telemetry, endpoints, in_work or RequestsInWork(), REMEDIES, own_host)


def run_options(config: Config, **more: Any) -> RunOptions:
    """The options for work on files. In a sandbox the outcome of some files is scripted by
    their names (docs/sandbox.md).
    """
    is_sandbox = config.environment is Environment.SANDBOX
    if is_sandbox:
        from frontdesk.sandbox import scripted

        more["before_rows"] = scripted.check_file
    return RunOptions(config.uniqueness, applies_tests=is_sandbox, **more)
