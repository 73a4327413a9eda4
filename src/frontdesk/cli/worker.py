"""`frontdesk worker`: delivers invitations and loads files; any number may run. `serve` starts one
as its child.
"""

import signal
import sys
from contextlib import ExitStack
from typing import Annotated

import typer

from frontdesk import PROGRAM
from frontdesk.cli.command_group import migrated_database
from frontdesk.cli.options import option
from frontdesk.cli.output import settings
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.db.notifications import WorkListener
from frontdesk.installation import run_options
from frontdesk.invitations.model import WorkerStatus
from frontdesk.liveness import BEAT_SECONDS, LoopBeats
from frontdesk.log_output import LogOutput
from frontdesk.processes import report_alive, stop_with_parent
from frontdesk.systemd import ServiceManager
from frontdesk.tracing import TRACES
from frontdesk.worker.background import (
    CoverageDeriver,
    FileLoader,
    LapsedDutyEnder,
    LeftoverCleaner,
    QueuePruner,
    RetentionPruner,
    SignOfLife,
    UsageSaver,
)
from frontdesk.worker.delivery import CONNECTIONS, DeliveryWorker, WorkerOptions, make_mailer
from frontdesk.worker.webhooks import WebhookSender


def worker(
    connections: Annotated[
        int, option("Connections to the relay at most.", min=1, max=200)
    ] = CONNECTIONS,
) -> None:
    """Deliver invitations and load eligibility files until Ctrl-C or SIGTERM; what has begun is
    finished first.

    Any number of workers, on any hosts, share the work. `frontdesk serve` starts one unless told
    --no-worker.

    Example: frontdesk worker --connections 4
    """
    config = settings()
    manager = ServiceManager()
    log = LogOutput(sys.stdout)
    beats = _beats_of(manager, log)
    TRACES.start()
    with migrated_database(config, index_scans=True, tell=log.write) as db:
        loader = FileLoader(db, run_options(config), beats=beats)
        sender = WebhookSender(config, db, beats=beats)
        tasks = (
            loader,
            sender,
            LeftoverCleaner(db, beats=beats),
            QueuePruner(db, beats=beats),
            LapsedDutyEnder(db, beats=beats),
            CoverageDeriver(db, beats=beats),
            RetentionPruner(config, db, beats=beats),
        )
        delivery = _delivery(config, db, WorkerOptions(connections=connections, beats=beats))
        status = WorkerStatus() if delivery is None else delivery.status

        def stop(*_: object) -> None:
            manager.stopping()
            for each in tasks if delivery is None else (*tasks, delivery):
                each.stop()

        def wake() -> None:
            for each in (loader, sender) if delivery is None else (loader, sender, delivery):
                each.wake()

        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, stop)
        stop_with_parent(stop)
        with ExitStack() as running:
            running.enter_context(SignOfLife(db, status, beats=beats))  # ends last
            # ends after the loader, because its last chunk counts
            running.enter_context(UsageSaver(db, beats=beats))
            for task in tasks:
                running.enter_context(task)
            running.enter_context(WorkListener(db.engine, wake))
            log.write(
                "worker_started", **PROGRAM, environment=config.environment, connections=connections
            )
            if delivery is None:
                loader.join()
            else:
                delivery.run()
        log.write("worker_stopped")


def _delivery(config: Config, db: Database, options: WorkerOptions) -> DeliveryWorker | None:
    """The worker that delivers invitations; None, with a sentence, where no relay is named."""
    if not config.sends_mail:
        typer.echo("Invitations are not delivered: FRONTDESK_SMTP_URL names no relay.", err=True)
        return None
    return DeliveryWorker(config, db, make_mailer(config, db), options)


def _beats_of(manager: ServiceManager, log: LogOutput) -> LoopBeats:
    """The worker's beats, to its supervisor and to systemd, whichever there is."""

    def beat() -> None:
        report_alive()
        manager.beat()

    seconds = min(BEAT_SECONDS, manager.beat_seconds or BEAT_SECONDS)
    return LoopBeats(beat, log.write, beat_seconds=seconds)
