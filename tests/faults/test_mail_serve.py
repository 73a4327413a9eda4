"""`frontdesk serve` with its worker and a real relay: invitations leave at once, and the worker ends with the server."""

import os
import signal
import time
from pathlib import Path

from frontdesk.clock import system_clock
from frontdesk.db import Database
from frontdesk.invitations import list_invitations
from tests.factories import Customer, make_customer, member_body
from tests.faults.callers import call
from tests.faults.server import Server
from tests.mail.relay import Relay
from tests.patience import wait_until

MESSAGES = 20


def settings(relay: Relay) -> dict[str, str]:
    return {
        "FRONTDESK_ENVIRONMENT": "production",
        "FRONTDESK_BASE_URL": "https://api.example.com",
        "FRONTDESK_MAIL_FROM": "invitations@example.com",
        "FRONTDESK_SMTP_URL": f"smtp://127.0.0.1:{relay.port}",
        "FRONTDESK_LINK_SECRET": "an invented secret for tests only",
    }


def invite(server: Server, customer: Customer, number: int) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
    body = member_body(number, invite_immediately=True)
    status, _ = call(server.port, "POST", path, body, customer.token)
    assert status == 201


def test_an_immediate_invitation_leaves_by_itself_soon_after_the_answer(
    database_url: str, db: Database, tmp_path: Path
) -> None:
    customer = make_customer(db, now=system_clock())
    taken: list[float] = []
    with (
        Relay() as relay,
        Server(database_url, tmp_path / "log", settings=settings(relay), with_worker=True) as server,
    ):
        invite(server, customer, 0)
        wait_until(lambda: relay.taken.total() == 1, "the worker to be up")
        for number in range(1, MESSAGES):
            invite(server, customer, number)
            started = time.monotonic()
            wait_until(lambda: relay.taken.total() == number + 1, "the relay to take it")  # noqa: B023 - used at once
            taken.append(time.monotonic() - started)
        wait_until(lambda: states(db) == {"sent"}, "all to be written down")
        server.stop()
    print(f"median {sorted(taken)[len(taken) // 2]:.3f} s, longest {max(taken):.3f} s")  # noqa: T201 - a figure
    assert len(relay.taken) == MESSAGES


def states(db: Database) -> set[str]:
    with db.read() as tx:
        return {row.state for row in list_invitations(tx, account_id=None, state=None, limit=1000)}


def workers_beside(server: Server) -> list[int]:
    """The processes whose parent the server is and that are workers."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if b"\0worker" in command and parent == server.pid:
            found.append(int(entry.name))
    return found


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_the_worker_is_started_again_when_it_dies_and_ends_with_its_server(
    database_url: str, db: Database, tmp_path: Path
) -> None:
    with (
        Relay() as relay,
        Server(database_url, tmp_path / "log", settings=settings(relay), with_worker=True) as server,
    ):
        wait_until(lambda: len(workers_beside(server)) == 1, "a worker")
        [first] = workers_beside(server)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: [pid for pid in workers_beside(server) if pid != first] != [], "another worker")
        [second] = [pid for pid in workers_beside(server) if pid != first]
        os.kill(server.pid, signal.SIGKILL)  # only the server itself: nobody tells the worker
        wait_until(lambda: not lives(second), "the worker to end by itself")
