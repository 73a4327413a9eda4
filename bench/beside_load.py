"""How long do a POST and the mail that it asks for take while a file loads, and while none does?

A POST with an immediate invitation every 50 ms, each on a connection of its own; the same worker
loads the file and delivers. Mail: from the 201 until the relay has taken the message.
"""

import argparse
import statistics
import time
from collections.abc import Iterator

from rich.progress import Progress

from bench.files import hand_in, stored_file, write_members
from bench.harness import Bench, Installation, Option, Row, chosen, databases
from frontdesk.files.model import FileState
from tests.factories import member_body
from tests.faults.callers import call
from tests.faults.server import Server
from tests.mail.relay import Relay
from tests.patience import wait_until

EVERY_SECONDS = 0.05
FIRST_NUMBER = 10_000_000  # beyond those in the file
# POSTs beside a load
LEAST = 20
MOST = 100_000


class Poster:
    """Posts members with an immediate invitation, to an installation whose worker mails by `relay`."""

    def __init__(self, installation: Installation) -> None:
        self.relay = Relay(plan=self._note)
        self._installation = installation
        self._taken_at: list[float] = []  # in the order of the relay's recipients
        self._posted: dict[str, tuple[float, float]] = {}  # by address, from when to when
        self._next = FIRST_NUMBER

    def _note(self, step: str) -> None:
        if step == "content":
            self._taken_at.append(time.monotonic())

    def post(self, port: int) -> None:
        body = member_body(self._next, invite_immediately=True)
        customer = self._installation.customer
        started = time.monotonic()
        path = f"/v2/plans/{customer.plan_ids[0]}/eligibility"
        status, answer = call(port, "POST", path, body, customer.token)
        if status != 201:
            raise RuntimeError(f"a POST was answered with {status}: {answer}")
        self._posted[body["email"]] = started, time.monotonic()
        self._next += 1

    def row(self) -> Row:
        """Of what was posted since the last row."""
        posted = self._posted
        self._posted = {}
        wait_until(
            lambda: posted.keys() <= set(self.relay.recipients), "the relay to take the last mail"
        )
        taken = dict(zip(self.relay.recipients, self._taken_at, strict=False))
        posts = [answered - started for started, answered in posted.values()]
        mails = [max(0.0, taken[address] - answered) for address, (_, answered) in posted.items()]
        row: Row = {"POSTs": len(posts)}
        for name, seconds in (("POST", posts), ("mail", mails)):
            cuts = statistics.quantiles(seconds, n=100)
            row |= {
                f"{name} p{which}, ms": round(cuts[which - 1] * 1000, 1) for which in (50, 95, 99)
            }
        return row


def run(options: argparse.Namespace, progress: Progress) -> Iterator[Row]:
    for name in chosen(options):
        task = progress.add_task(f"loading into {name}", total=options.rows)
        with databases(name) as kind, kind.installation() as installation:
            poster = Poster(installation)
            path = kind.folder / "members.csv"
            write_members(path, options.rows)
            with poster.relay as relay, _serve(installation, relay) as server:
                poster.post(server.port)
                poster.post(server.port)
                poster.row()  # the worker is up
                for _ in _in_time(round(options.seconds / EVERY_SECONDS)):
                    poster.post(server.port)
                yield {"database": name, "meanwhile": "nothing", **poster.row()}
                file_id = hand_in(installation.db, installation.customer.plan_ids[0], path)
                for number in _in_time(MOST):
                    poster.post(server.port)
                    file = stored_file(installation.db, file_id)
                    progress.update(task, completed=file.rows_done)
                    if number >= LEAST and file.state is FileState.DONE:
                        break
                yield {
                    "database": name,
                    "meanwhile": f"a file of {options.rows:,} rows",
                    **poster.row(),
                }


def _serve(installation: Installation, relay: Relay) -> Server:
    """The service with a worker that mails by the relay."""
    settings = {
        "FRONTDESK_ENVIRONMENT": "production",
        "FRONTDESK_BASE_URL": "https://frontdesk.example",
        "FRONTDESK_MAIL_FROM": "frontdesk@frontdesk.example",
        "FRONTDESK_SMTP_URL": f"smtp://127.0.0.1:{relay.port}",
        "FRONTDESK_LINK_SECRET": "an invented secret for a benchmark",
    }
    return installation.serve(with_worker=True, settings=settings)


def _in_time(count: int) -> Iterator[int]:
    started = time.monotonic()
    for number in range(count):
        yield number
        time.sleep(max(0.0, started + (number + 1) * EVERY_SECONDS - time.monotonic()))


BENCH = Bench(
    __doc__,
    run,
    Option("rows", 100_000, 10_000, "of the file"),
    Option("seconds", 15.0, 3.0, "of the measurement without a file"),
)
