"""The size of the house: lines, files, decisions, settings, rooms of a request. What needs more takes some away elsewhere."""

import asyncio
import json
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType

import pytest

from frontdesk.app import App
from frontdesk.asgi import build_asgi
from frontdesk.audit import Requester
from frontdesk.config import SETTINGS, Config, parse_relay
from frontdesk.db import Database, open_database
from frontdesk.files.check import check_file
from frontdesk.files.claims import claim_next
from frontdesk.files.load import ChunkWriter, parse_rows
from frontdesk.files.model import FileStep
from frontdesk.mail.smtp import SmtpMailer
from frontdesk.privacy.erasure import erase_person, find_persons
from frontdesk.queues import QueueSnapshots
from frontdesk.web.telemetry import Telemetry
from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_customer, member_body
from tests.faults.in_process import Nowhere, call_asgi
from tests.files.loading import Desk, csv_of, row
from tests.mail.relay import Relay
from tests.queues.feed import JOINED, ON, STARTED, event, feed, make_clinic
from tests.worker.conftest import Post

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/frontdesk"
ROOMS = {"POST": 22, "chunk": 20, "invitation": 15, "estimate": 14, "erasure": 11}
BENCH_KINDS = {".py", ".md", ".sql", ".js", ".lua"}


def sources(*folders: str) -> list[Path]:
    """The modules below folders of the package, without the sandbox."""
    found = (path for folder in folders for path in (PACKAGE / folder).rglob("*.py"))
    return [path for path in found if path.relative_to(PACKAGE).parts[0] != "sandbox"]


def lines(paths: Iterable[Path]) -> int:
    return sum(path.read_text().count("\n") for path in paths)


def constants(paths: Iterable[Path]) -> int:
    return sum(
        len(re.findall(r"^_?[A-Z][A-Z_0-9]*\b.* = ", path.read_text(), re.MULTILINE)) for path in paths
    )


BENCH = [
    path
    for path in (ROOT / "bench").rglob("*.*")
    if path.suffix in BENCH_KINDS and "node_modules" not in path.parts
]
SITE = {PACKAGE / "api" / f"{name}.py" for name in ("site", "codes", "collection")}
# What is counted, and its limit.
SIZES = {
    "lines, without those of the documentation's site": (lines({*sources("")} - SITE), 34_129),
    "lines of formats, mapping and files": (lines(sources("formats", "mapping", "files")), 7_000),
    "lines of eligibility": (lines(sources("eligibility")), 2_600),
    "files": (len(sources("")), 216),
    "constants of the estimate": (constants(sources("queues/estimate")), 40),
    "lines of tests": (lines((ROOT / "tests").rglob("*.py")), 34_500),
    "lines of benchmarks, with their peers and pages": (lines(BENCH), 2_200),
    "decisions": (len([*(ROOT / "docs/decisions").glob("0*.md")]), 40),
    "settings": (len(SETTINGS), 19),
}


@pytest.mark.parametrize("what", SIZES)
def test_the_house_is_no_larger_than_its_limits(what: str) -> None:
    found, limit = SIZES[what]
    assert 0 < found <= limit


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


@pytest.mark.parametrize("immediate", [True, False])
def test_an_invitation_visits_few_rooms(
    config: Config, db: Database, clock: SetClock, customer: Customer, *, immediate: bool
) -> None:
    post = Post(config, db, clock, customer)
    post.batches()
    with Relay() as relay, visited() as rooms:
        mailer = SmtpMailer(parse_relay(f"smtp://127.0.0.1:{relay.port}"))
        worker = DeliveryWorker(config, db, mailer, WorkerOptions(read_time=lambda _: clock()))
        for _ in range(2):
            post.enrol(immediate=immediate)
            clock.advance(61)
            rooms.clear()
            assert worker.turn() == 1
        worker.close()
    assert post.states() == ["sent", "sent"]
    assert len(rooms) <= ROOMS["invitation"], sorted(rooms)
