"""`frontdesk serve` with its worker and a real relay: invitations leave at once, and the worker ends with the server."""

import os
import signal
from pathlib import Path

from frontdesk.clock import system_clock
from frontdesk.db import Database
from frontdesk.invitations import list_invitations
from tests.factories import make_customer, member_body
from tests.faults.callers import call
from tests.faults.server import Server, is_alive, mailing
from tests.mail.relay import Relay
from tests.patience import wait_until


def test_invitations_leave_by_themselves_by_a_worker_that_is_replaced_and_ends_with_its_server(
    database_url: str, db: Database, tmp_path: Path
) -> None:
    customer = make_customer(db, now=system_clock())

    def invite(numbers: range) -> None:
        for number in numbers:
            body = member_body(number, invite_immediately=True)
            path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
            assert call(server.port, "POST", path, body, customer.token)[0] == 201
            wait_until(lambda: relay.taken.total() == number + 1, "the relay to take it")  # noqa: B023 - used at once

    def states() -> set[str]:
        rows = db.ask(lambda tx: list_invitations(tx, account_id=None, state=None, limit=1000))
        return {row.state for row in rows}

    with (
        Relay() as relay,
        Server(database_url, tmp_path / "log", settings=mailing(relay.port), with_worker=True) as server,
    ):
        invite(range(10))
        wait_until(lambda: states() == {"sent"}, "all to be written down")
        [first] = server.children(b"\0worker")
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: server.children(b"\0worker") not in ([first], []), "another worker")
        invite(range(10, 12))
        [second] = server.children(b"\0worker")
        os.kill(server.pid, signal.SIGKILL)  # only the server itself: nobody tells the worker
        wait_until(lambda: not is_alive(second), "the worker to end by itself")
    assert len(relay.taken) == 12
