"""The examples of the Python client are run as a reader would run them."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from frontdesk.access.model import Scope
from frontdesk.clock import system_clock
from frontdesk.db import open_database
from frontdesk.plans import get_plan
from frontdesk.plans.changes import change_plan
from tests.factories import Customer, make_customer
from tests.faults.server import Server

CLIENT = Path(__file__).parents[2] / "clients/python"
README = (CLIENT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```(?:\n\n```\n(.*?)```)?", README, re.DOTALL)
SYNC = CLIENT / "examples/daily_sync.py"
CSV = """\
external_id,member_id,first_name,last_name,dob,gender,zipcode,effective_date
E-1,M-1,Noor,Sample,1977-01-11,female,02134,2026-01-01
"""
BAD_ROW = "E-2,M-2,Noor,Sample,1977-02-30,female,02134,2026-01-01\n"


class Desk(NamedTuple):
    address: str
    customer: Customer
    folder: Path

    def run(self, *command: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
        """What a program of the customer does in its folder."""
        environment = {
            "PYTHONPATH": str(CLIENT / "src"),
            "FRONTDESK_URL": self.address,
            "FRONTDESK_CLIENT_ID": self.customer.client_id,
            "FRONTDESK_CLIENT_SECRET": self.customer.client_secret,
        }
        return subprocess.run(
            [sys.executable, "-W", "error", *command],
            cwd=self.folder,
            env=environment,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def desk(sqlite_template: Path, tmp_path: Path) -> Iterator[Desk]:
    url = f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'frontdesk.db')}"
    db = open_database(url)
    scopes = frozenset({Scope.CUSTOMER, Scope.ELIGIBILITY_READ})
    customer = make_customer(db, scopes=scopes, now=system_clock())
    with db.write() as tx:
        plan = get_plan(tx, customer.account_id, customer.plan_ids[0], lock=True)
        change_plan(tx, plan, {"external_id": "gold-2027", "name": "Gold"})
    db.close()
    with Server(url, tmp_path / "log", with_worker=True) as server:
        yield Desk(f"http://127.0.0.1:{server.port}", customer, tmp_path)


def test_the_examples_of_the_readme_print_what_they_say(desk: Desk) -> None:
    (desk.folder / "members.csv").write_text(CSV + BAD_ROW)
    assert len(EXAMPLES[0][0].strip().splitlines()) <= 10
    assert sum(bool(output) for _, output in EXAMPLES) == 4
    secrets = {"CLIENT_ID": desk.customer.client_id, "CLIENT_SECRET": desk.customer.client_secret}
    for code, output in EXAMPLES:
        text = code.replace("https://sandbox.example.com", desk.address)
        for name, value in secrets.items():
            text = text.replace(name, value)
        done = desk.run("-", text=text)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == output or not output


def test_the_daily_sync_has_thirty_lines_and_says_what_became_of_the_file(desk: Desk) -> None:
    lines = SYNC.read_text().partition('"""\n\n')[2].splitlines()
    assert len([line for line in lines if line]) <= 30
    more = "".join(CSV.splitlines(keepends=True)[1].replace("-1,", f"-1{n},") for n in range(40))
    statuses = []
    for content in (CSV + more, CSV + more + BAD_ROW, CSV, "not a file of members\n"):
        (desk.folder / "members.csv").write_text(content)
        done = desk.run(SYNC, "gold-2027", "members.csv")
        assert done.stderr == ""
        statuses.append((done.returncode, done.stdout.splitlines()[1:]))
    hint = "must be a real date, YYYY-MM-DD, or an ISO 8601 timestamp; this day does not exist"
    assert statuses[:2] == [(0, []), (3, [f"row 43, E-2: dob {hint}"])]
    assert [(status, words[0].partition(":")[0]) for status, words in statuses[2:]] == [
        (4, "too_many_ends"),
        (1, "no_header"),
    ]
    unknown = replace(desk.customer, client_secret="wrong")
    refused = desk._replace(customer=unknown).run(SYNC, "gold-2027", "members.csv")
    assert refused.returncode == 1
    assert refused.stderr.startswith("AuthenticationFailed: invalid_client")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("gold-2028", "members.csv"), "There is no plan gold-2028. The account has: gold-2027, plan-1\n"),
        (
            ("gold-2027", "no-such.csv"),
            "FileNotFoundError: [Errno 2] No such file or directory: 'no-such.csv'\n",
        ),
        (("gold-2027",), "Load the full list of a plan's members, every night: python daily_sync.py "),
    ],
)
def test_the_daily_sync_tells_what_it_was_started_with_wrongly(
    desk: Desk, arguments: tuple[str, ...], told: str
) -> None:
    (desk.folder / "members.csv").write_text(CSV)
    done = desk.run(SYNC, *arguments)
    assert done.returncode == 1
    assert done.stderr.startswith(told)


def test_the_daily_sync_sends_the_name_of_the_file(desk: Desk) -> None:
    (desk.folder / "sandbox-held-too_many_ends.csv").write_text(CSV)
    done = desk.run(SYNC, "gold-2027", "sandbox-held-too_many_ends.csv")
    assert done.returncode == 4
    assert "too_many_ends" in done.stdout
