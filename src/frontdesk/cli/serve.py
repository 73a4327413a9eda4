"""`frontdesk serve`: the HTTP server in the foreground."""

import os
import signal
import socket
import tempfile
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Annotated, Any

import typer

from frontdesk.cli.output import fail, settings
from frontdesk.cli.worker import worker_beside
from frontdesk.db import open_database
from frontdesk.db.checks import problems

STOP_SECONDS = 3


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8000,
    workers: Annotated[int, typer.Option(help="Serving processes.", min=1, max=64)] = 1,
    with_worker: Annotated[
        bool, typer.Option("--worker/--no-worker", help="Deliver invitations and load files beside serving.")
    ] = True,
) -> None:
    """Serve the interface until Ctrl-C or SIGTERM; requests under way are finished first.

    Example: frontdesk serve --port 8000 --workers 2
    """
    config = settings()
    refuse_taken_port(host, port)
    db = open_database(config.database_url)
    found = problems(db, config)
    db.close()
    if found:
        fail("\n".join(f"{problem.what} {problem.mend}" for problem in found))
    with tempfile.TemporaryDirectory(prefix="frontdesk-metrics-") as folder:
        os.environ["FRONTDESK_METRICS_FOLDER"] = folder
        with worker_beside() if with_worker else nullcontext(_nothing) as stop_worker:
            run_server(host, port, workers, on_stop=stop_worker)


def refuse_taken_port(host: str, port: int) -> None:
    """The server's own listening can't tell: it shares the port, and callers would meet either of the two."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        fail(
            f"{host} port {port} can't be listened on: {error.strerror}. Choose another with --host or --port."
        )


def _nothing() -> None:
    """What there is to stop where no worker runs."""


def run_server(host: str, port: int, workers: int, *, on_stop: Callable[[], None]) -> None:
    """Granian with the limits that it lacks by default: it cuts callers that send their headers slowly.

    `on_stop` is called when it is told to stop, before it waits for the requests under way.
    """
    from granian import Granian
    from granian.constants import HTTPModes, Interfaces, Loops
    from granian.http import HTTP1Settings

    class Stoppable(Granian):  # type: ignore[misc,valid-type]
        def signal_handler_interrupt(self, *arguments: Any, **options: Any) -> None:
            on_stop()
            for worker in self.wrks:
                with suppress(ProcessLookupError):
                    os.kill(worker.inner.pid, signal.SIGUSR2)  # no wait for the database may outlast the stop
            super().signal_handler_interrupt(*arguments, **options)

    Stoppable(
        "frontdesk.asgi:make_asgi",
        factory=True,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        workers=workers,
        loop=Loops.uvloop,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=5000, max_buffer_size=32768),
        websockets=False,
        workers_kill_timeout=STOP_SECONDS,
        log_enabled=False,
    ).serve()
