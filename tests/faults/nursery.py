"""Workers as processes that come up in milliseconds: this process has everything loaded and forks one for each line it reads.

`python -m tests.faults.nursery DATABASE_URL RELAY_PORT LEASE_SECONDS HOLD_SECONDS`; it answers each line
with the child's pid. A child is a whole worker: its own database connections, its own conversations with the relay.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from typing import Self

from frontdesk.config import parse_relay, read_config
from frontdesk.db import open_database
from frontdesk.invitations.protocol import DeliveryContext
from frontdesk.log_output import LogOutput
from frontdesk.mail.smtp import SmtpMailer, SmtpTimeouts
from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions, policy_of
from tests.patience import PATIENCE_SECONDS

PATIENCE = SmtpTimeouts(connect=5, greeting=2, command=2, data=2, content=2, verdict=2, goodbye=0.5)
CONNECTIONS = 3


class Nursery:
    """Brings up workers, and kills, suspends and resumes them."""

    def __init__(
        self, database_url: str, relay_port: int, *, lease_seconds: float, hold_seconds: float
    ) -> None:
        numbers = [str(number) for number in (relay_port, lease_seconds, hold_seconds)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.nursery", database_url, *numbers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._alive: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in list(self._alive):
            self.kill(pid)
        if self._process.stdin is not None and self._process.stdout is not None:
            self._process.stdin.close()
            self._process.wait(PATIENCE_SECONDS)
            self._process.stdout.close()

    def start(self) -> int:
        """A worker, by its pid."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the nursery has no pipes")
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        pid = int(self._process.stdout.readline())
        self._alive.add(pid)
        return pid

    def kill(self, pid: int) -> None:
        self._alive.discard(pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def suspend(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)

    def resume(self, pid: int) -> None:
        os.kill(pid, signal.SIGCONT)


def deliver(database_url: str, relay_port: int, lease_seconds: float, hold_seconds: float) -> None:
    """A worker with short leases and no patience, until it is killed."""
    config = read_config(
        {"FRONTDESK_DATABASE_URL": database_url, "FRONTDESK_LINK_SECRET": "an invented secret for tests only"}
    )
    base = policy_of(config)
    policy = type(base)(
        base.message_domain,
        lease_seconds=lease_seconds,
        offer_lease_seconds=lease_seconds,
        ambiguous_hold_seconds=hold_seconds,
        max_attempts=1000,
        first_retry_seconds=0.05,
    )
    mailer = SmtpMailer(parse_relay(f"smtp://127.0.0.1:{relay_port}"), timeouts=PATIENCE)
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        options = WorkerOptions(
            connections=CONNECTIONS,
            prefetch=2,
            poll_seconds=0.02,
            idle_seconds=0.02,
            context=DeliveryContext(policy),
            log=LogOutput(nowhere),
        )
        DeliveryWorker(config, open_database(database_url), mailer, options).run()


def main() -> None:
    database_url, relay_port, lease_seconds, hold_seconds = sys.argv[1:]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the system
    if threading.active_count() != 1:
        raise RuntimeError("only a process with one thread may fork")
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            deliver(database_url, int(relay_port), float(lease_seconds), float(hold_seconds))
            os._exit(0)
        print(pid, flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
