"""The HTTP doors as one ASGI application, and how a serving process makes it from the environment (`make_asgi`)."""

import gc
import os
import sys
from collections.abc import Awaitable, Callable
from itertools import groupby
from pathlib import Path

from starlette.routing import Route, Router

from frontdesk.api.routes import ENDPOINTS as CUSTOMER_ENDPOINTS
from frontdesk.api.routes import PAGES
from frontdesk.app import App
from frontdesk.config import read_config
from frontdesk.db import open_database
from frontdesk.operator.routes import ENDPOINTS as OPERATOR_ENDPOINTS
from frontdesk.web.delivery_figures import DeliveryFigures
from frontdesk.web.door import Resource
from frontdesk.web.exchange import Message, Receive
from frontdesk.web.telemetry import Telemetry

Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Message, Receive, Send], Awaitable[None]]

# Where the processes of one server add up their counts; `frontdesk serve` makes the folder.
METRICS_FOLDER = "FRONTDESK_METRICS_FOLDER"

# A lane of the group commit that comes back from the database should not wait 5 ms for a busy event loop to let go.
SWITCH_SECONDS = 0.005

# Requests make few cycles; with the default thresholds a third of the time went into looking for them.
COLLECT_AFTER = (50_000, 20, 50)


def make_asgi() -> Asgi:
    """The application of one serving process."""
    sys.setswitchinterval(SWITCH_SECONDS)
    config = read_config(os.environ)
    app = App(config, open_database(config.database_url))
    folder = os.environ.get(METRICS_FOLDER)
    asgi = build_asgi(app, Telemetry(folder=Path(folder) if folder else None))
    gc.collect()
    gc.freeze()  # what is loaded now stays: later collections need not look at it
    gc.set_threshold(*COLLECT_AFTER)
    return asgi


def build_asgi(app: App, telemetry: Telemetry | None = None) -> Asgi:
    """The service as an ASGI application; when its lifespan ends, what is under way is finished and the App closed."""
    telemetry = telemetry or Telemetry()
    app.registry.register(telemetry)
    app.registry.register(DeliveryFigures(app.db, app.clock))
    routes = [
        Route(path, Resource(app, telemetry, list(endpoints)))
        for path, endpoints in groupby(
            CUSTOMER_ENDPOINTS + PAGES + OPERATOR_ENDPOINTS, lambda endpoint: endpoint.path
        )
    ]
    router = Router(routes, redirect_slashes=False, default=Resource(app, telemetry, ()))

    async def asgi(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(app, telemetry, receive, send)
        else:
            await router(scope, receive, send)

    return asgi


async def _live(app: App, telemetry: Telemetry, receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await app.close()
            telemetry.flush()
            await send({"type": "lifespan.shutdown.complete"})
            return
