"""One serving process: `python -m frontdesk.server ADDRESS PORT PROCESSES` runs the application in granian's embedded server.

`frontdesk serve --workers N` starts N of them. They share the port. The first process gets a further argument, `--check`: it
checks the installation before it serves. It has imported the modules for the check, and the command has not."""

import gc

if __name__ == "__main__":
    gc.disable()  # nothing that is loaded below is garbage, and the search for it took an eighth of the time to start

import asyncio
import os
import resource
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

import uvloop
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from frontdesk.app import App
from frontdesk.asgi import build_asgi
from frontdesk.config import Config, read_config
from frontdesk.db import Database, open_database
from frontdesk.db.checks import problems, wait_for_server
from frontdesk.errors import FrontdeskError
from frontdesk.log_output import LogOutput
from frontdesk.processes import report_ready, report_refusal, stop_with_parent
from frontdesk.web.telemetry import Telemetry

# Requests make few reference cycles; with the default thresholds a third of the time went into the search for them.
COLLECT_AFTER = (50_000, 20, 50)

ORPHAN_SECONDS = 5.0  # a process whose parent is gone may finish what is under way
BACKLOG = 1024

# Open connections of all serving processes together (granian would take no more than its backlog). Each costs some kB.
CONNECTIONS = 8192
FILES_BESIDE = 256  # of a process, that are no connections of callers
LISTENING_SECONDS = 0.005
UNREAD_MILLISECONDS = 30_000  # for a caller that does not read its response


def main() -> None:
    """Serve until SIGTERM or SIGINT, or until the parent is gone."""
    stop_with_parent(_end)
    address, port, processes, *first = sys.argv[1:]
    try:
        config = read_config(os.environ)
        db = _checked_database(config) if first else open_database(config.database_url)
        app = App(config, db)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(app, address, int(port), int(processes)))
    except Exception as error:  # noqa: BLE001  # the log is all that the operator sees of it
        Telemetry().failed_to_start(error)
        raise SystemExit(1) from None


def _checked_database(config: Config) -> Database:
    """The database of a checked installation. With a problem the process ends, and the supervisor reports it."""
    try:
        db = open_database(config.database_url)
    except FrontdeskError as error:
        report_refusal(error.detail)
        raise SystemExit(1) from None
    log = LogOutput(sys.stdout)
    wait_for_server(db, log.write)
    found = problems(db, config)
    if refused := [problem for problem in found if not problem.is_warning]:
        report_refusal("\n".join(f"{problem.what} {problem.remedy}" for problem in refused))
        raise SystemExit(1)
    for each in found:
        log.write("installation_warning", what=each.what, remedy=each.remedy)
    log.finish()
    return db


async def _serve(app: App, address: str, port: int, processes: int) -> None:
    server = Server(
        build_asgi(app, Telemetry()),
        address=address,
        port=port,
        interface=Interfaces.ASGI,
        http=HTTPModes.http1,
        # granian has no limit on slow headers by default.
        http1_settings=HTTP1Settings(header_read_timeout=5000, max_buffer_size=32768),
        websockets=False,
        backlog=BACKLOG,
        backpressure=_connections(processes),
        log_enabled=False,  # granian's lines are not JSON
    )
    loop = asyncio.get_running_loop()

    def stop() -> None:
        app.shorten_waits()
        server.stop()

    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, stop)
    loop.call_soon(_drop_unread, loop)
    gc.collect()
    gc.freeze()  # later collections skip the objects that are loaded now
    gc.set_threshold(*COLLECT_AFTER)
    gc.enable()
    await server.serve()


def _connections(processes: int) -> int:
    """How many connections this process may hold: its share, within the files that the system lets it open."""
    share = max(1, CONNECTIONS // processes)
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = share + FILES_BESIDE
    if files < wanted:
        files = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    return max(1, min(share, files - FILES_BESIDE))


def _drop_unread(loop: asyncio.AbstractEventLoop) -> None:
    """Let the system close a connection when its caller does not read the response; granian keeps it for ever."""
    if hasattr(socket, "TCP_USER_TIMEOUT") and not _limit_unread(socket.TCP_USER_TIMEOUT):
        loop.call_later(LISTENING_SECONDS, _drop_unread, loop)
    else:
        report_ready()  # not earlier: a proxy, or systemd, then sends callers


def _limit_unread(option: int) -> bool:
    """Set the option on granian's listening socket, found among the open files; accepted connections inherit it. False if it does
    not listen yet."""
    is_found = False
    for file in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # no TCP socket, or closed since
            found = socket.socket(fileno=int(file.name))
            try:
                if found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    found.setsockopt(socket.IPPROTO_TCP, option, UNREAD_MILLISECONDS)
                    is_found = True
            finally:
                found.detach()
    return is_found


def _end() -> None:
    """Stop in order, then by force: this process holds the port."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
