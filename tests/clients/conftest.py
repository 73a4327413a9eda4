"""What the tests of both clients share: a served instance with a customer, and what the examples of
each must do there.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple

import pytest

from frontdesk.access.model import Scope
from frontdesk.clock import system_clock
from frontdesk.db import open_database
from frontdesk.plans import get_plan
from frontdesk.plans.changes import change_plan
from frontdesk.reach import EVERY
from tests.factories import Customer, make_customer
from tests.faults.server import Server

CSV = """\
external_id,member_id,first_name,last_name,dob,gender,zipcode,effective_date
E-1,M-1,Noor,Sample,1977-01-11,female,02134,2026-01-01
"""
BAD_ROW = "E-2,M-2,Noor,Sample,1977-02-30,female,02134,2026-01-01\n"


class Service(NamedTuple):
    """A served instance with a worker, and its customer, one of whose plans is called gold-2027."""

    address: str
    customer: Customer

    @property
    def environment(self) -> dict[str, str]:
        """What a program of the customer is told."""
        return {
            "FRONTDESK_URL": self.address,
            "FRONTDESK_CLIENT_ID": self.customer.client_id,
            "FRONTDESK_CLIENT_SECRET": self.customer.client_secret,
        }

    def filled_in(self, example: str) -> str:
        """An example of a README as a reader completes it."""
        text = example.replace("https://sandbox.example.com", self.address)
        text = text.replace("CLIENT_ID", self.customer.client_id)
        return text.replace("CLIENT_SECRET", self.customer.client_secret)


@pytest.fixture
def service(sqlite_url: str, tmp_path: Path) -> Iterator[Service]:
    """No client sees which database its service has."""
    db = open_database(sqlite_url)
    scopes = frozenset(
        {Scope.CUSTOMER, Scope.ELIGIBILITY_READ, Scope.EVENTS_READ, Scope.WEBHOOKS_MANAGE}
    )
    customer = make_customer(db, plan_count=4, scopes=scopes, now=system_clock())
    with db.write() as tx:
        plan = get_plan(tx, EVERY, customer.plan_ids[0], lock=True)
        change_plan(tx, plan, {"external_id": "gold-2027", "name": "Gold"})
    db.close()
    with Server(sqlite_url, tmp_path / "log", with_worker=True) as server:
        yield Service(f"http://127.0.0.1:{server.port}", customer)


def check_daily_sync(
    program: str, sync: Callable[[Service], CompletedProcess[str]], service: Service, folder: Path
) -> str:
    """The program has thirty lines, and says what became of each file. Returns what it says to a
    wrong secret.
    """
    assert len([line for line in program.splitlines() if line]) <= 30
    more = "".join(CSV.splitlines(keepends=True)[1].replace("-1,", f"-1{n},") for n in range(40))
    statuses = []
    for content in (CSV + more, CSV + more + BAD_ROW, CSV, "not a file of members\n"):
        (folder / "members.csv").write_text(content)
        done = sync(service)
        assert done.stderr == ""
        statuses.append((done.returncode, done.stdout.splitlines()[1:]))
    hint = "must be a real date, YYYY-MM-DD, or an ISO 8601 timestamp; this day does not exist"
    assert statuses[:2] == [(0, []), (3, [f"row 43, E-2: dob {hint}"])]
    last = [(status, words[0].partition(":")[0]) for status, words in statuses[2:]]
    assert last == [(4, "too_many_lose_access"), (1, "no_header")]
    unknown = replace(service.customer, client_secret="wrong")
    refused = sync(service._replace(customer=unknown))
    assert refused.returncode == 1
    return refused.stderr
