"""The HTTP doors as one ASGI application."""

from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from itertools import groupby

from starlette.routing import Match, Route

from frontdesk.api.routes import ENDPOINTS as CUSTOMER_ENDPOINTS
from frontdesk.api.routes import PAGES
from frontdesk.app import App
from frontdesk.deadlines import Deadlines
from frontdesk.operator.routes import ENDPOINTS as OPERATOR_ENDPOINTS
from frontdesk.web.delivery_metrics import DeliveryMetrics
from frontdesk.web.endpoint import Resource
from frontdesk.web.queue_metrics import QueueAccuracy
from frontdesk.web.request import BODY_DEADLINE_SECONDS, Message, Receive
from frontdesk.web.telemetry import Telemetry

Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Message, Receive, Send], Awaitable[None]]

REMEMBERED_PATHS, REMEMBERED_LENGTH = 1024, 200


def build_asgi(app: App, telemetry: Telemetry | None = None) -> Asgi:
    """The service as an ASGI application; when its lifespan ends, what is under way is finished and the App closed."""
    telemetry = telemetry or Telemetry()
    app.registry.register(telemetry)
    deadlines = Deadlines(BODY_DEADLINE_SECONDS)
    app.registry.register(QueueAccuracy(app))
    app.registry.register(DeliveryMetrics(app.db, app.clock))
    routes = [
        Route(path, Resource(app, telemetry, deadlines, list(endpoints)))
        for path, endpoints in groupby(
            CUSTOMER_ENDPOINTS + PAGES + OPERATOR_ENDPOINTS, lambda endpoint: endpoint.path
        )
    ]
    find = _finder(routes, Resource(app, telemetry, deadlines, ()))

    async def asgi(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(app, telemetry, receive, send)
        else:
            resource, scope["path_params"] = find(scope["path"])
            await resource(scope, receive, send)

    return asgi


def _finder(routes: Sequence[Route], nothing: Asgi) -> Callable[[str], tuple[Asgi, dict[str, str]]]:
    """Which resource a path leads to, and the parameters in it; what was found is remembered, for plans are few."""

    @lru_cache(maxsize=REMEMBERED_PATHS)
    def find(path: str) -> tuple[Asgi, dict[str, str]]:
        for route in routes:
            match, found = route.matches({"type": "http", "method": "GET", "path": path})
            if match is Match.FULL:
                return found["endpoint"], found["path_params"]
        return nothing, {}

    return lambda path: find(path) if len(path) <= REMEMBERED_LENGTH else find.__wrapped__(path)


async def _live(app: App, telemetry: Telemetry, receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await app.close()
            telemetry.close()
            await send({"type": "lifespan.shutdown.complete"})
            return
