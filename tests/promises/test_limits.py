"""The size of the house: lines, files, decisions, rooms that a request or a chunk visits. What needs more takes some away."""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

from frontdesk.app import App
from frontdesk.asgi import build_asgi
from frontdesk.audit import Requester
from frontdesk.config import Config
from frontdesk.db import Database, open_database
from frontdesk.files.check import check_file
from frontdesk.files.claims import claim_next
from frontdesk.files.load import ChunkWriter, parse_rows
from frontdesk.files.model import FileStep
from frontdesk.privacy.erasure import erase_person, find_persons
from frontdesk.queues import QueueSnapshots
from frontdesk.web.telemetry import Telemetry
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_customer, member_body
from tests.faults.in_process import Nowhere, call_asgi
from tests.files.loading import Desk, csv_of, row
from tests.queues.feed import JOINED, ON, STARTED, event, feed, make_clinic

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/frontdesk"
# Lines of Python below the folders; of the package without the sandbox.
LINES = {"": 31_050, "formats mapping files": 7_000, "eligibility": 2_300}
MOST_FILES = 194
MOST_DECISIONS = 40
ROOMS = {"POST": 22, "chunk": 20, "estimate": 14, "erasure": 11}
BENCH_LINES = 2_200  # of the benchmarks, with their peers and pages
BENCH_KINDS = {".py", ".md", ".sql", ".js", ".lua"}


def sources(folder: str) -> list[Path]:
    found = (PACKAGE / folder).rglob("*.py")
    return [path for path in found if path.relative_to(PACKAGE).parts[0] != "sandbox"]


@pytest.mark.parametrize("folders", LINES)
def test_the_package_has_no_more_lines_than_its_limit(folders: str) -> None:
    found = [path for folder in folders.split() or [""] for path in sources(folder)]
    assert 0 < sum(path.read_text().count("\n") for path in found) <= LINES[folders]


def test_the_package_has_no_more_files_than_its_limit() -> None:
    assert len(sources("")) <= MOST_FILES


def test_there_are_no_more_decisions_than_their_limit() -> None:
    assert len(list((ROOT / "docs/decisions").glob("0*.md"))) <= MOST_DECISIONS


def test_the_benchmarks_have_no_more_lines_than_their_limit() -> None:
    files = (path for path in (ROOT / "bench").rglob("*") if path.suffix in BENCH_KINDS and path.is_file())
    ours = [path for path in files if "node_modules" not in path.parts]
    assert sum(path.read_text().count("\n") for path in ours) <= BENCH_LINES


@contextmanager
def visited() -> Iterator[set[str]]:
    """The modules of the package of which a function runs in this thread, or in one that begins meanwhile."""
    rooms: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and str(PACKAGE) in frame.f_code.co_filename:
            rooms.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield rooms
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_chunk_visits_few_rooms(db: Database, clock: SetClock) -> None:
    desk = Desk(db, make_customer(db), clock)
    file = desk.hand_in(csv_of(row(number, email=f"r{number}@example.com") for number in range(12)))
    claim = claim_next(db, clock, replace(desk.options, chunk_rows=4), only=file.id)
    assert claim is not None
    check = check_file(claim)
    claim.update(step=FileStep.APPLY, rows_total=check.rows, file_date=check.file_date)
    writer = ChunkWriter(claim, None)
    chunks = parse_rows(claim, check, lambda: None)
    writer.write(next(chunks))
    with visited() as rooms:
        writer.write(next(chunks))
    assert len(rooms) <= ROOMS["chunk"], sorted(rooms)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_post_visits_few_rooms(config: Config, kept_customer: Customer, clock: SetClock) -> None:
    async def post_twice() -> set[str]:
        app = App(config, open_database(config.database_url), clock)
        service, path = (
            build_asgi(app, Telemetry(Nowhere())),
            f"/v2/plans/{kept_customer.plan_ids[0]}/eligibility",
        )
        bodies = [json.dumps(member_body(number)).encode() for number in range(2)]
        assert await call_asgi(service, "POST", path, kept_customer.token, bodies[0]) == 201
        with visited() as rooms:
            assert await call_asgi(service, "POST", path, kept_customer.token, bodies[1]) == 201
        await app.close()
        return rooms

    rooms = asyncio.run(post_twice())
    assert len(rooms) <= ROOMS["POST"], sorted(rooms)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_an_estimate_visits_few_rooms(db: Database, clock: SetClock) -> None:
    """From an expired snapshot to the one that takes its place, with patients in a visit and in the line."""
    clinic = make_clinic(db)
    plan = clinic.plan_ids[0]
    on = event("on", ON, 0, provider_group_id=clinic.group_id, doctor="dr-1")
    joined = (event(f"j{visit}", JOINED, visit, plan_id=plan, visit=f"v{visit}") for visit in range(3))
    feed(db, on, *joined, event("started", STARTED, 5, plan_id=plan, visit="v0", doctor="dr-1"))
    with closing(QueueSnapshots(clock, 15)) as snapshots:
        assert snapshots.read(db, clinic.account_id, clinic.plan_ids)
    clock.advance(20)
    with visited() as rooms, closing(QueueSnapshots(clock, 15)) as snapshots:
        found = snapshots.read(db, clinic.account_id, clinic.plan_ids)
    assert found is not None
    assert found.queues[plan].queue_length == 2
    assert len(rooms) <= ROOMS["estimate"], sorted(rooms)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_an_erasure_visits_few_rooms(api: Api, db: Database, clock: SetClock, customer: Customer) -> None:
    path, requester = (
        f"/v2/plans/{customer.plan_ids[0]}/eligibility",
        Requester("cli:test", "request-1", clock()),
    )
    for number in range(2):
        assert api.post(path, member_body(number, invite_immediately=True)).status_code == 201
    first, second = (
        db.ask(partial(find_persons, external_id=member_body(number)["external_id"], account_id=None))
        for number in range(2)
    )
    erase_person(db, first, requester, clock)
    with visited() as rooms:
        [erased] = erase_person(db, second, requester, clock)
    assert erased.is_new
    assert len(rooms) <= ROOMS["erasure"], sorted(rooms)
