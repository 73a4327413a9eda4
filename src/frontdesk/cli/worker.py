"""`frontdesk worker`: delivers invitations and loads files, beside any number of others; `serve` starts one as its child."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from frontdesk.cli.installation import migrated_database
from frontdesk.cli.output import settings
from frontdesk.config import Config, Environment
from frontdesk.worker import DeliveryWorker, FileLoader, QueueForgetter
from frontdesk.worker.mailer_factory import make_mailer

PARENT = "FRONTDESK_WORKER_PARENT"  # the process whose child a worker is: it ends with it
WATCH_SECONDS = 0.5
STOP_SECONDS = 3.0  # less than the 5 s in which `serve` promises to stop
RESTART_SECONDS, LONGEST_RESTART_SECONDS = 1.0, 30.0
EARLY_SECONDS = 10.0  # a worker that ends sooner has not started well, and the next one is waited for longer


def worker(
    connections: Annotated[
        int | None,
        typer.Option(
            min=1, max=200, help="Connections to the relay at most, instead of FRONTDESK_SMTP_CONNECTIONS."
        ),
    ] = None,
) -> None:
    """Deliver invitations and load eligibility files until Ctrl-C or SIGTERM; what is in hand is finished first.

    Any number of workers, on any hosts, share the work. `frontdesk serve` starts one unless told --no-worker.

    Example: frontdesk worker --connections 4
    """
    config = settings()
    if connections is not None:
        os.environ["FRONTDESK_SMTP_CONNECTIONS"] = str(connections)
        config = settings()
    with migrated_database(config) as db:
        loader, forgetter = FileLoader(config, db), QueueForgetter(db)
        delivery = DeliveryWorker(config, db, make_mailer(config, db)) if _delivers(config) else None

        def stop(*_: object) -> None:
            loader.stop()
            forgetter.stop()
            if delivery is not None:
                delivery.stop()

        _stop_when_told(stop)
        loader.start()
        forgetter.start()
        if delivery is not None:
            delivery.run()
        loader.join()
        forgetter.join()


def _delivers(config: Config) -> bool:
    """Production without a relay loads files and delivers nothing, and says so."""
    if config.environment is Environment.PRODUCTION and config.smtp_url is None:
        typer.echo("Invitations are not delivered: FRONTDESK_SMTP_URL names no relay.", err=True)
        return False
    return True


def _stop_when_told(stop: Callable[..., None]) -> None:
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, stop)
    parent = os.environ.get(PARENT)
    if parent is not None:
        threading.Thread(target=_stop_with, args=(int(parent), stop), daemon=True).start()


@contextmanager
def worker_beside() -> Iterator[Callable[[], None]]:
    """A worker as a child process for as long as the block runs; one that ends by itself is started again.

    Gives a function that tells it to stop and does not wait for that.
    """
    ended = threading.Event()
    keeper = threading.Thread(target=_keep, args=(ended,), daemon=True)
    keeper.start()
    try:
        yield ended.set
    finally:
        ended.set()
        keeper.join(STOP_SECONDS + WATCH_SECONDS)


def _keep(ended: threading.Event) -> None:
    pause = RESTART_SECONDS
    while not ended.is_set():
        started = time.monotonic()
        # With `close_fds` it would wait for a pipe to close that a serving process, forked at that moment, keeps open.
        child = subprocess.Popen(
            [sys.executable, "-m", "frontdesk", "worker"],
            env={**os.environ, PARENT: str(os.getpid())},
            close_fds=False,
        )
        while child.poll() is None and not ended.wait(0.05):
            pass
        if ended.is_set():
            _stop(child)
            return
        is_early = time.monotonic() - started < EARLY_SECONDS
        pause = min(pause * 2, LONGEST_RESTART_SECONDS) if is_early else RESTART_SECONDS
        ended.wait(pause)


def _stop(child: "subprocess.Popen[bytes]") -> None:
    """What it has in hand it may finish; what a kill cuts off is ambiguous, and is treated so."""
    child.terminate()
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _stop_with(parent: int, stop: Callable[[], None]) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    stop()
