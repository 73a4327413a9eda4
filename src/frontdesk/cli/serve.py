"""`frontdesk serve`: the HTTP server in the foreground."""

import errno
import socket
import sys
import tempfile
from contextlib import suppress
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from frontdesk.cli.options import option
from frontdesk.cli.output import fail, settings
from frontdesk.config import is_this_machine
from frontdesk.log_output import LogOutput, event_line
from frontdesk.processes import DRAINING, Program, Supervisor
from frontdesk.systemd import sockets_of_systemd

MOST_EARLY_ENDS = 5  # in a row, for each serving process
SERVING_PAUSE_SECONDS = 0.5
# of `/readyz`
ASK_SECONDS = 2.0
ANSWER_BYTES = 16_384
WORKER = Program(
    "worker", (sys.executable, "-m", "frontdesk", "worker"), longest_pause_seconds=30.0
)


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

    After SIGTERM it first drains (FRONTDESK_DRAIN_SECONDS). A socket unit of systemd replaces
    --host and --port.

    Example: frontdesk serve --port 8000 --workers 2
    """
    config = settings()
    listeners = handed_over(workers) or listening_sockets(host, port, workers)
    _warn_of_port(config.base_url, listeners[0].getsockname()[1])
    serving = [serving_program(listener, workers) for listener in listeners]
    log = LogOutput(sys.stdout)
    with tempfile.TemporaryDirectory(prefix="frontdesk-metrics-") as folder:
        is_stopped = Supervisor(
            serving + [WORKER] * with_worker,
            log,
            first_command=(*serving[0].command, "--check"),
            variables={
                "FRONTDESK_METRICS": folder
            },  # where the serving processes add up their metrics
            drain_seconds=config.drain,
        ).run()
    if not is_stopped:
        fail(
            "The serving processes ended soon after each start; the log says how. Run: frontdesk check"
        )
    log.write("serve_stopped")


def _warn_of_port(base_url: str, port: int) -> None:
    """Warn, as the log does, that links lead elsewhere. An address of another machine is a proxy's,
    which has its own port.
    """
    parts = urlsplit(base_url)
    named = parts.port or {"http": 80, "https": 443}[parts.scheme.lower()]
    if named != port and is_this_machine(parts.hostname or ""):
        detail = (
            f"FRONTDESK_BASE_URL is {base_url}, so links lead to port {named}. Correct it, "
            f"or use --port {named}."
        )
        typer.echo(event_line("links_lead_elsewhere", port=port, detail=detail), nl=False, err=True)


def serving_program(listener: socket.socket, workers: int) -> Program:
    """One of `workers` serving processes, on a bound socket."""
    command = (sys.executable, "-m", "frontdesk.server", str(listener.fileno()), str(workers))
    most = MOST_EARLY_ENDS * workers
    return Program("serving", command, SERVING_PAUSE_SECONDS, most, reports=True, listener=listener)


def handed_over(workers: int) -> list[socket.socket]:
    """The sockets of systemd, one for each serving process, which may share them; none if systemd
    hands over none.
    """
    found = sockets_of_systemd()
    if len(found) > workers:
        fail(
            f"systemd hands over {len(found)} sockets: give --workers {len(found)}, or the unit fewer."
        )
    for listener in found:
        is_tcp = (
            listener.family in (socket.AF_INET, socket.AF_INET6)
            and listener.type == socket.SOCK_STREAM
        )
        if not is_tcp or not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            fail(
                "A socket of systemd is no listening TCP socket. Give the unit ListenStream=ADDRESS:PORT."
            )
    return [found[number % len(found)] for number in range(workers)] if found else []


def listening_sockets(host: str, port: int, workers: int) -> list[socket.socket]:
    """A bound socket for each serving process, which listens on it when it can serve. Ends the
    command when the address is not this machine's, or when the port is taken, unless by a server
    that drains.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        # localhost often has both; FRONTDESK_BASE_URL names the IPv4 address by default.
        family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
        if "%" in str(address[0]):
            fail(
                f"{host} can't be listened on: it is an address of one network link. Give another --host."
            )
        _check_free(family, address)
        return [_bound(family, address) for _ in range(workers)]
    except (OSError, UnicodeError) as error:
        reason = (
            error.strerror or "Address already in use"
            if isinstance(error, OSError)
            else "that is no host"
        )
        fail(
            f"{host} port {port} can't be listened on: {reason}. Choose another with --host or --port."
        )


def _check_free(family: int, address: Any) -> None:
    """Raises OSError when the address is not this machine's, or when a server listens there that
    does not drain.
    """
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not _is_draining(address):
                raise


def _bound(family: int, address: Any) -> socket.socket:
    """A socket that shares the port with others of this user."""
    made = socket.socket(family, socket.SOCK_STREAM)
    for shared in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        made.setsockopt(socket.SOL_SOCKET, shared, 1)
    made.bind(address)
    return made


def _is_draining(address: Any) -> bool:
    """Whether the server at the address drains; one that closes the connection has ended just now."""
    with (
        suppress(ConnectionError),
        socket.create_connection(address[:2], ASK_SECONDS) as connection,
    ):
        connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b""
        while len(answer) < ANSWER_BYTES and (piece := connection.recv(ANSWER_BYTES)):
            answer += piece
        return not answer or DRAINING.encode() in answer
    return True
