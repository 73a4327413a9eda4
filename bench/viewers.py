"""What do 200 viewers of the console's Now cost a serving process?

Each viewer has a session of its own and refreshes the page every 5 s, in this process without a
network. Share of a core: the processor time of the process (event loop and threads), less that of the
same seconds without viewers. Sent anew: the share of the refreshes that were not 304. The rows: a queue
that stays as it is, one in which a patient joins or leaves every 2 s, the page of a plan with its
chart, and the first row with the viewers in 20 accounts.
"""

import argparse
import asyncio
import io
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from rich.progress import Progress

from bench.harness import Bench, Installation, Option, Row, chosen, databases
from frontdesk.app import App
from frontdesk.audit import Requester
from frontdesk.clock import system_clock
from frontdesk.config import read_config
from frontdesk.console.cookies import SESSION, cookie_name
from frontdesk.db import Database, open_database
from frontdesk.installation import build_asgi
from frontdesk.queues.ingest import ingest
from frontdesk.queues.model import EventType, QueueEvent
from frontdesk.users.demo import create_demo_user
from frontdesk.users.model import MOST_SESSIONS, NewUser, Role, Visitor
from frontdesk.users.sessions import open_session
from frontdesk.web.telemetry import Telemetry
from tests.factories import Customer, make_customer

EVERY_SECONDS = 5.0
DOCTORS = 10
PLANS = 5
WAITING = 30
PAST_VISITS = 300


class Viewer(NamedTuple):
    path: str
    cookie: bytes


class Spent(NamedTuple):
    """The processor time of some seconds, and the status of each answer."""

    seconds: float
    statuses: list[int]


def run(options: argparse.Namespace, progress: Progress) -> Iterator[Row]:
    for name in chosen(options):
        with databases(name) as kind, kind.installation(plans=PLANS) as installation:
            first = installation.customer
            others = [
                make_customer(installation.db, name=f"Other {n}", plan_count=PLANS)
                for n in range(19)
            ]
            for customer in [first, *others]:
                _fill(installation.db, customer)
            seats = _seats(installation, options.viewers, [first])
            far = _seats(installation, options.viewers, [first, *others])
            board = [Viewer(f"/console/accounts/{account}/now", each) for account, each in seats]
            plan = [Viewer(f"{each.path}/{first.plan_ids[0]}", each.cookie) for each in board]
            spread = [Viewer(f"/console/accounts/{account}/now", each) for account, each in far]
            for what, viewers, moves in (
                ("board, at rest", board, False),
                ("board, in motion", board, True),
                ("page of a plan, in motion", plan, True),
                ("board, at rest, 20 accounts", spread, False),
            ):
                progress.console.print(f"{name}: {what}")
                spent, idle = asyncio.run(
                    _watch(installation, viewers, seconds=options.seconds, moves=moves)
                )
                taken = spent.seconds - idle.seconds
                sent = sum(status == 200 for status in spent.statuses)
                yield {
                    "database": name,
                    "what": what,
                    "viewers": len(viewers),
                    "refreshes": len(spent.statuses),
                    "share of a core %": round(100 * taken / options.seconds, 2),
                    "µs a refresh": round(1e6 * taken / len(spent.statuses)),
                    "sent anew %": round(100 * sent / len(spent.statuses)),
                }


def _fill(db: Database, customer: Customer) -> None:
    """Doctors on duty, visits of the last hours, patients with doctors and patients who wait."""
    now = datetime.now(UTC)
    plans = customer.plan_ids
    events: list[QueueEvent] = []

    def add(type_: EventType, minutes: float, **fields: Any) -> None:
        at = now - timedelta(minutes=minutes)
        events.append(QueueEvent(f"e-{customer.account_id}-{len(events)}", type_, at, **fields))

    with db.write() as tx:
        sql = "SELECT provider_group_id FROM plans WHERE id = " + str(plans[0])
        group = tx.exec_driver_sql(sql).scalar_one()
    for number in range(DOCTORS):
        add(EventType.DOCTOR_ON_DUTY, 480, provider_group_id=group, doctor=f"dr-{number}")
    for number in range(PAST_VISITS):
        begun = 460 - 440 * number / PAST_VISITS
        visit = {"plan_id": plans[number % PLANS], "visit": f"past-{number}"}
        add(EventType.PATIENT_JOINED, begun + 9, **visit)
        add(EventType.VISIT_STARTED, begun, doctor=f"dr-{number % DOCTORS}", **visit)
        add(EventType.VISIT_ENDED, begun - 12, **visit)
    for number in range(DOCTORS):
        visit = {"plan_id": plans[number % PLANS], "visit": f"now-{number}"}
        add(EventType.PATIENT_JOINED, 15, **visit)
        add(EventType.VISIT_STARTED, 6, doctor=f"dr-{number}", **visit)
    for number in range(WAITING):
        visit = {"plan_id": plans[number % PLANS], "visit": f"waits-{number}"}
        add(EventType.PATIENT_JOINED, 10 - number / 4, **visit)
    with db.write() as tx:
        ingest(tx, events, now=now)


def _seats(
    installation: Installation, viewers: int, customers: list[Customer]
) -> list[tuple[int, bytes]]:
    """The account and the cookie of each viewer, in turn of each customer."""
    config = read_config({"FRONTDESK_DATABASE_URL": installation.url})
    name = cookie_name(config, SESSION)
    now = system_clock()
    requester = Requester("bench", "request", now)
    seats = []
    for number in range(-(-viewers // MOST_SESSIONS)):
        account = customers[number % len(customers)].account_id
        email = f"viewer-{len(customers)}-{number}@example.com"
        new = NewUser(email, account, frozenset({Role.VIEWER}))
        user, _ = create_demo_user(installation.db, new, name="Viewer", now=now)
        for _ in range(MOST_SESSIONS):
            with installation.db.write() as tx:
                visitor = Visitor("203.0.113.7", None, requester)
                signed_in = open_session(tx, visitor, user, factor_at=None)
            seats.append((account, f"{name}={signed_in.secret}".encode()))
    return seats[:viewers]


async def _watch(
    installation: Installation, viewers: list[Viewer], *, seconds: float, moves: bool
) -> tuple[Spent, Spent]:
    """What the viewers cost, and what the same seconds cost without them."""
    config = read_config({"FRONTDESK_DATABASE_URL": installation.url})
    app = App(config, open_database(config.database_url))
    asgi = build_asgi(app, Telemetry(io.StringIO()))
    try:
        tags: dict[bytes, bytes] = {}
        await _refreshes(asgi, viewers, tags, seconds=EVERY_SECONDS)  # all of them have the page
        mover = asyncio.create_task(_move(installation) if moves else asyncio.sleep(0))
        began = time.process_time()
        statuses = await _refreshes(asgi, viewers, tags, seconds=seconds)
        spent = Spent(time.process_time() - began, statuses)
        began = time.process_time()
        await asyncio.sleep(seconds)
        idle = Spent(time.process_time() - began, [])
        mover.cancel()
        return spent, idle
    finally:
        await app.close()


async def _move(installation: Installation) -> None:
    number = 0
    plan_id = installation.customer.plan_ids[0]
    while True:
        number += 1
        type_ = EventType.PATIENT_JOINED if number % 2 else EventType.PATIENT_LEFT
        event = QueueEvent(
            f"moved-{time.time_ns()}", type_, system_clock(), plan_id=plan_id, visit="mover"
        )
        with installation.db.write() as tx:
            ingest(tx, [event], now=system_clock())
        await asyncio.sleep(2)


async def _refreshes(
    asgi: Any, viewers: list[Viewer], tags: dict[bytes, bytes], *, seconds: float
) -> list[int]:
    """The refreshes of so many seconds, evenly in time, each 5 s after the viewer's last one."""
    pause = EVERY_SECONDS / len(viewers)
    began = time.monotonic()
    tasks = []
    for number in range(round(seconds / pause)):
        await asyncio.sleep(max(0.0, began + number * pause - time.monotonic()))
        viewer = viewers[number % len(viewers)]
        tasks.append(asyncio.create_task(_refresh(asgi, viewer, tags)))
    return [await task for task in tasks]


async def _refresh(asgi: Any, viewer: Viewer, tags: dict[bytes, bytes]) -> int:
    headers = [
        (b"host", b"127.0.0.1:8000"),
        (b"accept", b"*/*"),
        (b"cookie", viewer.cookie),
        (b"sec-fetch-site", b"same-origin"),
        (b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/131.0"),
        (b"x-frontdesk-refresh", b"timer"),
    ]
    if viewer.cookie in tags:
        headers.append((b"if-none-match", tags[viewer.cookie]))
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": viewer.path,
        "raw_path": viewer.path.encode(),
        "query_string": b"",
        "headers": headers,
        "client": ("203.0.113.7", 40000),
        "server": ("127.0.0.1", 8000),
    }
    status = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            found = dict(message["headers"])
            if b"etag" in found:
                tags[viewer.cookie] = found[b"etag"]

    await asgi(scope, receive, send)
    return status


BENCH = Bench(
    __doc__,
    run,
    Option("viewers", 200, 20, "of all accounts together"),
    Option("seconds", 30.0, 3.0, "for each row"),
)
