"""The part of `frontdesk demo` that makes a history: it delivers with a worker of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO

import typer

from frontdesk.cli.command_group import new_request
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.db.engine import write_alone
from frontdesk.installation import run_options
from frontdesk.invitations.hourly_window import HourlyWindows
from frontdesk.invitations.protocol import DeliveryContext
from frontdesk.log_output import LogOutput
from frontdesk.mailbox.catcher import MailCatcher
from frontdesk.sandbox.demo_data import Demo
from frontdesk.sandbox.demo_history import LENGTH, History, HistoryOptions, PastClock, begin_history
from frontdesk.sandbox.demo_users import DemoUser, set_up_demo_users
from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions, policy_of


def set_up_with_history(db: Database, config: Config) -> tuple[Demo, list[DemoUser]]:
    """A new demo account with two weeks of history. Says so on stderr if that takes a while."""
    requester = new_request()
    made = write_alone(db, lambda tx: begin_history(tx, requester))
    clock = PastClock(requester.now - LENGTH)
    users = set_up_demo_users(db, made.account.id, clock())
    with _post_office(db, config, clock) as deliver:
        options = HistoryOptions(run_options(config), clock, deliver, _tell_of_history)
        History(db, made, users, options).make()
    return made, users


def _tell_of_history() -> None:
    typer.echo("Making two weeks of history for the demo account ...", err=True)


@contextmanager
def _post_office(db: Database, config: Config, clock: PastClock) -> Iterator[Callable[[], None]]:
    """A function that delivers what is due by the clock. Every mail is caught, also where the
    sandbox has a relay.
    """
    windows = HourlyWindows(lambda: clock().timestamp())
    options = WorkerOptions(
        context=DeliveryContext(policy_of(config), windows),
        read_time=lambda _tx: clock(),
        log=LogOutput(StringIO()),
    )
    worker = DeliveryWorker(config, db, MailCatcher(db, clock), options)

    def deliver() -> None:
        while worker.turn():
            pass

    try:
        yield deliver
    finally:
        worker.close()
