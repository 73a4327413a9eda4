"""`frontdesk worker`: delivers invitations and loads files, beside any number of others; `serve` starts one as its child."""

import os
import signal
from collections.abc import Callable
from typing import Annotated

import typer

from frontdesk.cli.installation import migrated_database
from frontdesk.cli.output import settings
from frontdesk.config import Config, Environment
from frontdesk.processes import stop_with_parent
from frontdesk.worker import DeliveryWorker, FileLoader, QueuePruner
from frontdesk.worker.mailer_factory import make_mailer


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
    with migrated_database(config, index_scans=True) as db:
        loader, pruner = FileLoader(config, db), QueuePruner(db)
        delivery = DeliveryWorker(config, db, make_mailer(config, db)) if _delivers(config) else None

        def stop(*_: object) -> None:
            loader.stop()
            pruner.stop()
            if delivery is not None:
                delivery.stop()

        _stop_when_told(stop)
        loader.start()
        pruner.start()
        if delivery is not None:
            delivery.run()
        loader.join()
        pruner.join()


def _delivers(config: Config) -> bool:
    """Production without a relay loads files and delivers nothing, and says so."""
    if config.environment is Environment.PRODUCTION and config.smtp_url is None:
        typer.echo("Invitations are not delivered: FRONTDESK_SMTP_URL names no relay.", err=True)
        return False
    return True


def _stop_when_told(stop: Callable[..., None]) -> None:
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, stop)
    stop_with_parent(stop)
