"""The HTTP doors as one ASGI application, and how a serving process makes it from the environment (`make_asgi`)."""

import asyncio
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from starlette.routing import Match, Route

from frontdesk.api.routes import ENDPOINTS as CUSTOMER_ENDPOINTS
from frontdesk.api.routes import PAGES
from frontdesk.app import App
from frontdesk.config import read_config
from frontdesk.db import open_database
from frontdesk.deadlines import Deadlines
from frontdesk.operator.routes import ENDPOINTS as OPERATOR_ENDPOINTS
from frontdesk.web.delivery_metrics import DeliveryMetrics
from frontdesk.web.endpoint import Resource
from frontdesk.web.queue_metrics import QueueAccuracy
from frontdesk.web.request import BODY_DEADLINE_SECONDS, Message, Receive
from frontdesk.web.telemetry import Telemetry

Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Message, Receive, Send], Awaitable[None]]

# Where the processes of one server add up their counts; `frontdesk serve` makes the folder.
METRICS_FOLDER = "FRONTDESK_METRICS_FOLDER"

# A lane of the group commit that comes back from the database should not wait 5 ms for a busy event loop to let go.
SWITCH_SECONDS = 0.005

# Requests make few cycles; with the default thresholds a third of the time went into looking for them.
COLLECT_AFTER = (50_000, 20, 50)

PARENT_SECONDS = 0.5
ORPHAN_SECONDS = 5.0  # what is under way then may be finished

REMEMBERED_PATHS, REMEMBERED_LENGTH = 1024, 200


def make_asgi() -> Asgi:
    """The application of one serving process, which ends when its parent does."""
    parent = multiprocessing.parent_process()
    watched = os.getppid() if parent is None or parent.pid is None else parent.pid
    threading.Thread(target=_end_with, args=(watched,), name="parent", daemon=True).start()
    try:
        return _make_asgi()
    except Exception as error:  # noqa: BLE001  # whoever starts it again has only the log to look at
        Telemetry().failed_to_start(error)
        raise SystemExit(1) from None


def _make_asgi() -> Asgi:
    sys.setswitchinterval(SWITCH_SECONDS)
    config = read_config(os.environ)
    app = App(config, open_database(config.database_url))
    folder = os.environ.get(METRICS_FOLDER)
    asgi = build_asgi(app, Telemetry(folder=Path(folder) if folder else None))
    _hurry_when_told(app)
    gc.collect()
    gc.freeze()  # what is loaded now stays: later collections need not look at it
    gc.set_threshold(*COLLECT_AFTER)
    return asgi


def _end_with(parent: int) -> None:
    """Stop this process when its parent is gone without a word, which holds the port until all have stopped.

    A thread looks, not the event loop: one that is held up must end as well.
    """
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_SECONDS)
    os._exit(1)


def _hurry_when_told(app: App) -> None:
    """`frontdesk serve` sends this signal before the one to stop, which the server takes for itself: it ends nothing by
    itself, and before there is a loop there is nothing to hurry."""

    def hurry(*_: object) -> None:
        with suppress(RuntimeError):
            asyncio.get_running_loop().call_soon_threadsafe(app.hurry)

    signal.signal(signal.SIGUSR2, hurry)


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
