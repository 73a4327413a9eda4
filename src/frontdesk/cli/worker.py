"""`frontdesk worker`: delivers invitations and loads files; any number may run. `serve` starts one as its child."""

import signal
import sys
from contextlib import ExitStack
from typing import Annotated

import typer

from frontdesk import PROGRAM
from frontdesk.cli.command_group import migrated_database
from frontdesk.cli.options import option
from frontdesk.cli.output import settings
from frontdesk.config import Environment
from frontdesk.db.notifications import WorkListener
from frontdesk.invitations.model import WorkerStatus
from frontdesk.log_output import LogOutput
from frontdesk.processes import stop_with_parent
from frontdesk.systemd import ServiceManager
from frontdesk.tracing import TRACES
from frontdesk.worker.background import FileLoader, LeftoverCleaner, QueuePruner, RetentionPruner, SignOfLife
from frontdesk.worker.delivery import CONNECTIONS, DeliveryWorker, WorkerOptions, make_mailer
from frontdesk.worker.webhooks import WebhookSender


def worker(
    connections: Annotated[int, option("Connections to the relay at most.", min=1, max=200)] = CONNECTIONS,
) -> None:
    """Deliver invitations and load eligibility files until Ctrl-C or SIGTERM; what has begun is finished first.

    Any number of workers, on any hosts, share the work. `frontdesk serve` starts one unless told --no-worker.

    Example: frontdesk worker --connections 4
    """
    config, manager, log = settings(), ServiceManager(), LogOutput(sys.stdout)
    TRACES.start()
    with migrated_database(config, index_scans=True, tell=log.write) as db:
        loader, sender = FileLoader(config, db), WebhookSender(config, db)
        tasks = (loader, sender, LeftoverCleaner(db), QueuePruner(db), RetentionPruner(config, db))
        delivery, status = None, WorkerStatus()
        if config.environment is Environment.PRODUCTION and config.smtp_url is None:
            typer.echo("Invitations are not delivered: FRONTDESK_SMTP_URL names no relay.", err=True)
        else:
            options = WorkerOptions(connections=connections)
            delivery = DeliveryWorker(config, db, make_mailer(config, db), options)
            status = delivery.status

        def stop(*_: object) -> None:
            manager.stopping()
            for task in tasks:
                task.stop()
            if delivery is not None:
                delivery.stop()

        def wake() -> None:
            loader.wake()
            sender.wake()
            if delivery is not None:
                delivery.wake()

        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, stop)
        stop_with_parent(stop)
        with ExitStack() as running:
            running.enter_context(SignOfLife(db, status))  # ends last
            for task in tasks:
                running.enter_context(task)
            running.enter_context(WorkListener(db.engine, wake))
            running.enter_context(manager.beating())
            log.write("worker_started", **PROGRAM, environment=config.environment, connections=connections)
            if delivery is None:
                loader.join()
            else:
                delivery.run()
        log.write("worker_stopped")
