"""`frontdesk serve`: the HTTP server in the foreground."""

import socket
import sys
import tempfile
from typing import Annotated
from urllib.parse import urlsplit

import typer

from frontdesk.cli.options import option
from frontdesk.cli.output import fail, settings
from frontdesk.config import is_this_machine
from frontdesk.log_output import LogOutput, event_line
from frontdesk.processes import Program, Supervisor

MOST_EARLY_ENDS = 5  # in a row, for each serving process
SERVING_PAUSE_SECONDS = 0.5
WORKER = Program("worker", (sys.executable, "-m", "frontdesk", "worker"), longest_pause_seconds=30.0)


def serve(
    host: Annotated[
        str, option("Address or name to listen on; of a name with both, the IPv4 address.")
    ] = "127.0.0.1",
    port: Annotated[int, option("Port to listen on.", min=1, max=65535)] = 8000,
    workers: Annotated[int, option("Serving processes.", min=1, max=64)] = 1,
    with_worker: Annotated[
        bool, option("Deliver invitations and load files beside serving.", "--worker/--no-worker")
    ] = True,
) -> None:
    """Serve the interface until Ctrl-C or SIGTERM; requests under way are finished first.

    Example: frontdesk serve --port 8000 --workers 2
    """
    config = settings()
    address = listening_address(host, port)
    _warn_of_port(config.base_url, port)
    serving = serving_program(address, port, workers)
    with tempfile.TemporaryDirectory(prefix="frontdesk-metrics-") as folder:
        is_stopped = Supervisor(
            [serving] * workers + [WORKER] * with_worker,
            LogOutput(sys.stdout),
            first_command=(*serving.command, "--check"),
            variables={"FRONTDESK_METRICS": folder},  # where the serving processes add up their metrics
        ).run()
    if not is_stopped:
        fail("The serving processes ended soon after each start; the log says how. Run: frontdesk check")


def _warn_of_port(base_url: str, port: int) -> None:
    """Warn, as the log does, that links lead elsewhere. An address of another machine is a proxy's, which has its own port."""
    parts = urlsplit(base_url)
    named = parts.port or {"http": 80, "https": 443}[parts.scheme.lower()]
    if named != port and is_this_machine(parts.hostname or ""):
        detail = f"FRONTDESK_BASE_URL is {base_url}, so links lead to port {named}. Correct it, or use --port {named}."
        typer.echo(event_line("links_lead_elsewhere", port=port, detail=detail), nl=False, err=True)


def serving_program(address: str, port: int, workers: int) -> Program:
    """One of `workers` serving processes."""
    command = (sys.executable, "-m", "frontdesk.server", address, str(port), str(workers))
    return Program("serving", command, SERVING_PAUSE_SECONDS, MOST_EARLY_ENDS * workers, reports=True)


def listening_address(host: str, port: int) -> str:
    """The IP address of `host`. Ends the command when the address is not this machine's or the port is taken.

    granian does not notice a taken port: it shares it, and callers would reach either server.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        # localhost often has both; FRONTDESK_BASE_URL names the IPv4 address by default.
        family, kind, protocol, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "that is no host"
        fail(f"{host} port {port} can't be listened on: {reason}. Choose another with --host or --port.")
    ip = str(address[0])
    if "%" in ip:
        fail(f"{host} can't be listened on: it is an address of one network link. Give another --host.")
    return ip
