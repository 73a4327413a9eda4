"""One serving process: `python -m frontdesk.server SOCKET PROCESSES` runs the application in
granian's embedded server.

`frontdesk serve --workers N` starts N of them, each on a bound socket that it hands over by number;
the sockets share the port. The first process gets a further argument, `--check`: it checks the
installation before it serves. It has imported the modules for the check, and the command has not.

SIGTERM and SIGINT end the process in order. `DRAIN` does so after FRONTDESK_DRAIN_SECONDS, in which
the service goes on and tells callers and proxies to go elsewhere.
"""

import gc

if __name__ == "__main__":
    # Nothing that is loaded below is garbage, and the search for it took an eighth of the start.
    gc.disable()

import asyncio
import errno
import os
import resource
import signal
import socket
import sys
import time
from array import array
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from struct import pack
from typing import Any

import uvloop
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.net import SocketHolder  # type: ignore[attr-defined]  # it is exported with another name only
from granian.server.embed import Server

from frontdesk import PROGRAM
from frontdesk.app import App
from frontdesk.config import Config, read_config
from frontdesk.db import Database, open_database
from frontdesk.db.checks import problems, wait_for_server
from frontdesk.errors import FrontdeskError
from frontdesk.installation import build_asgi
from frontdesk.liveness import BEAT_SECONDS
from frontdesk.log_output import LogOutput
from frontdesk.processes import (
    DRAIN,
    report_alive,
    report_ready,
    report_refusal,
    requests_in_work,
    stop_with_parent,
)
from frontdesk.tracing import TRACES
from frontdesk.web.endpoint import Asgi
from frontdesk.web.telemetry import Telemetry

# Requests make few reference cycles; with the default thresholds a third of the time went into the
# search for them.
COLLECT_AFTER = (50_000, 20, 50)

ORPHAN_SECONDS = 5.0  # after the end of its parent a process may finish what is under way
BACKLOG = 1024

# Open connections of all serving processes together (granian would take no more than its backlog).
# Each costs some kB.
CONNECTIONS = 8192
FILES_BESIDE = 256  # of a process, that are no connections of callers
FILES_SECONDS = 30.0  # between two counts of the open files
NEARLY_ALL = 0.9  # of the files that the process may open
UNREAD_MILLISECONDS = 30_000  # for a caller that does not read its response
# of Linux; Python has no names for them
SO_ATTACH_REUSEPORT_CBPF = 51
SO_DETACH_REUSEPORT_BPF = 68
FOLLOWED_SECONDS = (
    70.0  # until the server that this one follows has ended: longer than the longest drain
)


def main() -> None:
    """Serve until SIGTERM or SIGINT, or until the parent is gone."""
    stop_with_parent(_end)
    number, processes, *first = sys.argv[1:]
    listener = socket.socket(fileno=int(number))
    try:
        config = read_config(os.environ)
        TRACES.start()
        db = _checked_database(config) if first else opened_database(config)
        if first:
            address, port = listener.getsockname()[:2]
            known = {**PROGRAM, "environment": config.environment, "address": address, "port": port}
            LogOutput(sys.stdout).write("serve_started", **known)
        app = App(config, db)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(app, listener, int(processes)))
    except Exception as error:  # noqa: BLE001  # the log is all that the operator sees of it
        Telemetry().failed_to_start(error)
        raise SystemExit(1) from None


def _checked_database(config: Config) -> Database:
    """The database of a checked installation. With a problem the process ends, and the supervisor
    reports it.
    """
    try:
        db = opened_database(config)
    except FrontdeskError as error:
        report_refusal(error.detail)
        raise SystemExit(1) from None
    log = LogOutput(sys.stdout)
    wait_for_server(db, log.write, waiting=report_alive)
    found = problems(db, config)
    if refused := [problem for problem in found if not problem.is_warning]:
        report_refusal("\n".join(f"{problem.what} {problem.remedy}" for problem in refused))
        raise SystemExit(1)
    for each in found:
        log.write("installation_warning", what=each.what, remedy=each.remedy)
    log.finish()
    return db


def opened_database(config: Config) -> Database:
    return open_database(config.database_url, pool_size=config.pool_connections)


class SocketServer(Server):
    """granian's embedded server on a socket that is bound already. The one that granian makes for
    itself never listens.
    """

    def __init__(self, asgi: Asgi, listener: socket.socket, *, connections: int) -> None:
        super().__init__(
            asgi,
            address="127.0.0.1",  # of that other socket
            port=0,
            interface=Interfaces.ASGI,
            http=HTTPModes.http1,
            # granian has no limit on slow headers by default.
            http1_settings=HTTP1Settings(header_read_timeout=5000, max_buffer_size=32768),
            websockets=False,
            backlog=BACKLOG,
            backpressure=connections,
            log_enabled=False,  # granian's lines are not JSON
        )
        self._listener = listener

    def startup(self, spawn_target: Callable[..., Any], target_loader: Any) -> None:
        """Listen, and report that callers may come: a proxy, or systemd, then sends them."""
        number = os.dup(self._listener.fileno())  # granian closes it
        holder = SocketHolder(number, False, BACKLOG)  # type: ignore[call-arg]  # its stub knows no constructor

        def spawn(worker: int, signal: object, asgi: Asgi, _own: object, *others: object) -> Any:
            return spawn_target(worker, signal, asgi, (None, holder), *others)

        self._listener.listen(BACKLOG)
        super().startup(spawn, target_loader)  # type: ignore[no-untyped-call]
        report_ready()


async def _serve(app: App, listener: socket.socket, processes: int) -> None:
    _prepare(listener)
    telemetry = Telemetry()
    asgi = build_asgi(app, telemetry, requests_in_work())
    connections = _connections(processes)
    server: Server = SocketServer(asgi, listener, connections=connections)
    loop = asyncio.get_running_loop()
    _beat(loop)
    _watch_files(loop, OpenFiles(telemetry.event))

    def stop() -> None:
        app.is_draining = True
        app.shorten_waits()
        server.stop()

    def drain() -> None:
        app.is_draining = True
        followed.cancel()
        leave_to_successor(listener, processes)
        loop.call_later(app.config.drain, stop)

    for sign, handler in ((signal.SIGTERM, stop), (signal.SIGINT, stop), (DRAIN, drain)):
        loop.add_signal_handler(sign, handler)
    followed = loop.call_later(FOLLOWED_SECONDS, choose_as_usual, listener)
    gc.collect()
    gc.freeze()  # later collections skip the objects that are loaded now
    gc.set_threshold(*COLLECT_AFTER)
    gc.enable()
    await server.serve()


def _beat(loop: asyncio.AbstractEventLoop) -> None:
    """Show the supervisor that the event loop goes round, now and from then on. A loop that is
    blocked does not beat.
    """
    report_alive()
    loop.call_later(BEAT_SECONDS, _beat, loop)


class OpenFiles:
    """Logs once that the process has opened nearly as many files as it may: beyond that it accepts no
    connection. Logs it again after the number has fallen below that.
    """

    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell = tell
        self._is_told = False

    def look(self) -> None:
        """Count the open files, in some milliseconds for thousands."""
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        try:
            count = sum(1 for _ in Path("/proc/self/fd").iterdir())
        except (
            OSError
        ) as error:  # EMFILE: none is left for the folder; else there is no such folder
            if error.errno != errno.EMFILE:
                return
            count = most
        is_near = most != resource.RLIM_INFINITY and count >= NEARLY_ALL * most
        if is_near and not self._is_told:
            self._tell("open_files_warning", pid=os.getpid(), open=count, limit=most)
        self._is_told = is_near


def _watch_files(loop: asyncio.AbstractEventLoop, files: OpenFiles) -> None:
    loop.run_in_executor(None, files.look)
    loop.call_later(FILES_SECONDS, _watch_files, loop, files)


def _connections(processes: int) -> int:
    """How many connections this process may hold: its share, within the files that the system lets
    it open.
    """
    share = max(1, CONNECTIONS // processes)
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = share + FILES_BESIDE
    if files < needed:
        files = needed if most == resource.RLIM_INFINITY else min(needed, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    return max(1, min(share, files - FILES_BESIDE))


def _prepare(listener: socket.socket) -> None:
    """Set what accepted connections inherit, and undo what the last server did to systemd's socket
    when it drained.
    """
    options = {"TCP_NODELAY": 1, "TCP_USER_TIMEOUT": UNREAD_MILLISECONDS, "TCP_DEFER_ACCEPT": 0}
    for name in options.keys() & vars(socket).keys():
        listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), options[name])


def leave_to_successor(listener: socket.socket, processes: int) -> None:
    """Have the system send new connections to the processes of another `frontdesk serve`, as soon
    as they listen on the port.

    Linux resets what waits in a listening socket that is closed, and granian closes connections
    that have sent nothing yet. So nothing new may arrive when this process stops. The sockets of a
    port are numbered, those of the next server from `processes` on; a program chooses a number at
    random, and for a number without a socket the system chooses as usual. Connections that come to
    this process all the same (systemd's socket has no successor yet) are accepted once their
    request has arrived.
    """
    if hasattr(socket, "TCP_DEFER_ACCEPT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 1)
        # Load a random number, modulo, add, return (bpf(4), linux/filter.h).
        steps = ((0x20, 0xFFFFF038), (0x94, processes), (0x04, processes), (0x16, 0))
        program = array("B", b"".join(pack("HBBI", code, 0, 0, value) for code, value in steps))
        with suppress(OSError):  # the socket shares no port
            at = pack("HP", len(steps), program.buffer_info()[0])
            listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, at)


def choose_as_usual(listener: socket.socket) -> None:
    """Take back the program of the server that this one has followed; it could leave out a process
    of this one.
    """
    with suppress(OSError):  # there is none
        listener.setsockopt(socket.SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, 0)


def _end() -> None:
    """Stop in order, then by force: this process holds the port."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
