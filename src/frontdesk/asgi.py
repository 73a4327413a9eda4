"""The HTTP interfaces as one ASGI application: every route, and the service's start and end."""

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
from frontdesk.web.request import BODY_DEADLINE_SECONDS, Message, Receive, Send
from frontdesk.web.telemetry import Telemetry

Asgi = Callable[[Message, Receive, Send], Awaitable[None]]
Found = tuple[Asgi, dict[str, str]]

# Paths that were found are cached, since plans are few. Longer ones are not: they would fill the memory.
CACHED_PATHS, LONGEST_CACHED = 1024, 200


def build_asgi(app: App, telemetry: Telemetry | None = None) -> Asgi:
    """The service as an ASGI application. When its lifespan ends it finishes what is under way and closes the App."""
    telemetry = telemetry or Telemetry()
    for collector in (telemetry, QueueAccuracy(app), DeliveryMetrics(app.db, app.clock)):
        app.registry.register(collector)
    deadlines = Deadlines(BODY_DEADLINE_SECONDS)
    endpoints = CUSTOMER_ENDPOINTS + PAGES + OPERATOR_ENDPOINTS
    routes = [
        Route(path, Resource(app, telemetry, deadlines, list(methods)))
        for path, methods in groupby(endpoints, lambda endpoint: endpoint.path)
    ]
    find = _path_finder(routes, Resource(app, telemetry, deadlines, ()))

    async def asgi(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _run_lifespan(app, telemetry, receive, send)
        else:
            resource, scope["path_params"] = find(scope["path"])
            await resource(scope, receive, send)

    return asgi


def _path_finder(routes: Sequence[Route], not_found: Asgi) -> Callable[[str], Found]:
    """A function that gives the resource of a path and the parameters in it."""

    def find(path: str) -> Found:
        for route in routes:
            match, found = route.matches({"type": "http", "method": "GET", "path": path})
            if match is Match.FULL:
                return found["endpoint"], found["path_params"]
        return not_found, {}

    find_cached = lru_cache(maxsize=CACHED_PATHS)(find)
    return lambda path: find(path) if len(path) > LONGEST_CACHED else find_cached(path)


async def _run_lifespan(app: App, telemetry: Telemetry, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await app.close()
    telemetry.close()
    await send({"type": "lifespan.shutdown.complete"})
