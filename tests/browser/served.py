"""The service at an address of this machine, in a thread of the test: it shares the test's clock."""

import io
import socket
import threading
from collections.abc import Callable
from typing import Self

import uvicorn

from frontdesk.app import App
from frontdesk.installation import build_asgi
from frontdesk.web.telemetry import Telemetry
from tests.patience import wait_until


class Served:
    """The service on one port, also after `restart`. `make_app` makes the App of each start."""

    def __init__(self, port: int, make_app: Callable[[], App]) -> None:
        self.port = port
        self.address = f"http://127.0.0.1:{port}"
        self.log = io.StringIO()
        self._make_app = make_app

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def restart(self) -> None:
        """End the service in order and start it anew, as an upgrade does. Open windows stay."""
        self._stop()
        self._start()

    def _start(self) -> None:
        self.app = self._make_app()
        asgi = build_asgi(self.app, Telemetry(self.log))
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._server = uvicorn.Server(
            uvicorn.Config(asgi, lifespan="on", log_config=None, timeout_graceful_shutdown=5)
        )
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],))
        self._thread.start()
        wait_until(lambda: self._server.started, "the service to be ready")

    def _stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()
