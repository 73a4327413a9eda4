"""The commands and programs of the guides are run as a reader would paste them, against a server
with its worker.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from frontdesk.access.model import Scope
from frontdesk.clock import system_clock
from frontdesk.db import open_database
from frontdesk.plans import get_plan
from frontdesk.plans.changes import change_plan
from frontdesk.reach import EVERY
from tests.factories import EVERY_SCOPE, make_customer
from tests.faults.server import Server
from tests.promises.examples import GUIDES, part_of

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```(sh|python)\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
TOKEN = next(text for _, text, _ in BLOCK.findall((ROOT / "docs/guides/first-call.md").read_text()))
PATIENCE = 30


@pytest.fixture
def fill_in(guide: Path, sqlite_url: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """What stands in the guides for the address and the credentials of the reader, with their
    values. The client has the scopes that the first call asks for, and later all.
    """
    db = open_database(sqlite_url)
    scopes = {Scope.CUSTOMER, Scope.ELIGIBILITY_READ} if guide.stem == "first-call" else EVERY_SCOPE
    customer = make_customer(db, plan_count=1, scopes=frozenset(scopes), now=system_clock())
    with db.write() as tx:
        plan = get_plan(tx, EVERY, customer.plan_ids[0], lock=True)
        change_plan(tx, plan, {"external_id": "gold-2027", "name": "Gold"})
    db.close()
    with Server(sqlite_url, tmp_path / "log", with_worker=True) as server:
        yield {
            "https://api.example.com": f"http://127.0.0.1:{server.port}",
            "your-client-id": customer.client_id,
            "your-client-secret": customer.client_secret,
            '"CLIENT_ID"': f'"{customer.client_id}"',
            '"CLIENT_SECRET"': f'"{customer.client_secret}"',
        }


@pytest.mark.parametrize(
    "guide",
    [each for each in GUIDES if BLOCK.search(each.read_text())],
    ids=lambda guide: guide.stem,
)
def test_the_commands_of_a_guide_print_what_it_says(
    guide: Path, fill_in: dict[str, str], tmp_path: Path
) -> None:
    blocks = BLOCK.findall(guide.read_text())
    assert guide.read_text().count("```text\n") == sum(bool(shown) for _, _, shown in blocks)
    exports = [TOKEN]
    for language, text, shown in blocks:
        is_python = language == "python"
        script = text if is_python else "\n".join([*exports, "echo ----", text])
        for name, value in fill_in.items():
            script = script.replace(name, value)
        until = time.monotonic() + (PATIENCE if " -d " not in text and not is_python else 0)
        printed = run(script, tmp_path, is_python=is_python)
        while not says(printed, shown, is_python=is_python) and time.monotonic() < until:
            time.sleep(0.2)  # the mail and its report are under way
            printed = run(script, tmp_path, is_python=is_python)
        assert says(printed, shown, is_python=is_python), (text, printed)
        if not is_python and "export " in text:
            exports += [text.partition("\ncurl ")[0]]


def run(script: str, folder: Path, *, is_python: bool) -> str:
    command = [sys.executable, "-W", "error", "-"] if is_python else ["bash", "-eu"]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "clients/python/src")}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=script,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "/problems#" not in done.stdout, done.stdout
    return done.stdout if is_python else done.stdout.rpartition("----\n")[2]


def says(printed: str, shown: str, *, is_python: bool) -> bool:
    """Whether the output has what the guide shows of it: the status, headers, and a part of the
    JSON.
    """
    if is_python:
        return printed == shown
    head, _, body = shown.partition("\n{") if shown.startswith("HTTP") else ("", "", shown[1:])
    lines = {line.strip().lower() for line in printed.splitlines()}
    has_head = all(line.lower() in lines for line in head.split("\n") if line)
    return has_head and (
        not body or part_of(json.loads("{" + body), json.loads(printed.splitlines()[-1]))
    )
