"""The HTTP door: /v2, /oauth, the reference, health; the only place (with the other HTTP doors) that knows the web framework."""

from collections.abc import Awaitable, Callable
from itertools import groupby

from starlette.routing import Route, Router

from frontdesk.api.door import Resource
from frontdesk.api.exchange import Message, Receive
from frontdesk.api.routes import ENDPOINTS
from frontdesk.api.telemetry import Telemetry
from frontdesk.app import App

Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Message, Receive, Send], Awaitable[None]]


def build_asgi(app: App, telemetry: Telemetry | None = None) -> Asgi:
    """The service as an ASGI application; when its lifespan ends, what is under way is finished and the App closed."""
    telemetry = telemetry or Telemetry()
    app.registry.register(telemetry)
    routes = [
        Route(path, Resource(app, telemetry, list(endpoints)))
        for path, endpoints in groupby(ENDPOINTS, lambda endpoint: endpoint.path)
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
