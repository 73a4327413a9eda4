"""Workers as processes of their own, to be killed: forked in milliseconds from a process that has
loaded everything.
"""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.process import BaseProcess
from typing import Any

from frontdesk.clock import system_clock
from frontdesk.config import Uniqueness, parse_relay, read_config
from frontdesk.db import open_database
from frontdesk.errors import Unavailable
from frontdesk.files.claims import RunOptions
from frontdesk.files.turns import FileTurns
from frontdesk.invitations.protocol import DeliveryContext
from frontdesk.log_output import LogOutput
from frontdesk.mail.smtp import SmtpMailer, SmtpTimeouts
from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions, policy_of
from frontdesk.worker.webhooks import WebhookSender

CHUNK_ROWS = 50
FILE_LEASE_SECONDS = 0.2
IMPATIENT = SmtpTimeouts(
    connect=5, greeting=2, command=2, data=2, content=2, verdict=2, goodbye=0.5
)

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__])


@contextmanager
def workers(work: Callable[..., None], *arguments: Any) -> Iterator[Callable[[], BaseProcess]]:
    """Starts a process that works until it is killed, whenever it is called; at the end all are
    killed.
    """
    started = []

    def start() -> BaseProcess:
        process = _context.Process(target=work, args=arguments, daemon=True)
        process.start()
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.join()


def load(url: str) -> None:
    """Takes one file after the other."""
    options = RunOptions(
        Uniqueness.SERVICE, chunk_rows=CHUNK_ROWS, lease_seconds=FILE_LEASE_SECONDS
    )
    turns = FileTurns(open_database(url), system_clock, options, slice_seconds=0.0)
    while True:
        try:
            worked = turns.take()
        except Unavailable:
            worked = False
        if not worked:
            time.sleep(FILE_LEASE_SECONDS / 4)


def deliver(url: str, relay_port: int, lease_seconds: float, hold_seconds: float) -> None:
    """Delivers with short leases and without patience."""
    config = read_config(
        {
            "FRONTDESK_DATABASE_URL": url,
            "FRONTDESK_LINK_SECRET": "an invented secret for tests only",
        }
    )
    policy = replace(
        policy_of(config),
        lease_seconds=lease_seconds,
        offer_lease_seconds=lease_seconds,
        ambiguous_hold_seconds=hold_seconds,
        max_attempts=1000,
        first_retry_seconds=0.05,
    )
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        options = WorkerOptions(
            connections=3,
            prefetch=2,
            poll_seconds=0.02,
            idle_seconds=0.02,
            context=DeliveryContext(policy),
            log=LogOutput(nowhere),
        )
        mailer = SmtpMailer(parse_relay(f"smtp://127.0.0.1:{relay_port}"), timeouts=IMPATIENT)
        DeliveryWorker(config, open_database(url), mailer, options).run()


def send_webhooks(url: str) -> None:
    """Sends webhooks, as a sandbox does, to receivers on this machine too."""
    config = read_config(
        {
            "FRONTDESK_DATABASE_URL": url,
            "FRONTDESK_LINK_SECRET": "an invented secret for tests only",
            "FRONTDESK_ENVIRONMENT": "sandbox",
        }
    )
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        WebhookSender(config, open_database(url), log=LogOutput(nowhere)).run()
