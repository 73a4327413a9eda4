"""How much slower does one customer's request get while another customer does the worst that the
interface allows?

Customer B sends, on eight connections, a POST of one member, a GET of the plans and a GET of one
member, each every 30 ms, to a service as an operator starts it (`serve --workers 2`). Customer A
makes one attack at a time, on a few connections that send their next request as soon as the last is
answered. p99: of B's requests, in ms. quiet: the same while A sends one light request every 20 ms,
measured in turn with the attack. x: the worst of the three ratios of p99 attacked to p99 quiet.
hold: the longest processor time, in ms, that one such request of A kept the event loop without a
pause, alone in one process. A's answers: requests answered per second.
"""

import argparse
import asyncio
import gc
import http.client
import io
import json
import multiprocessing
import select
import socket
import time
from asyncio import events
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from typing import Any

from rich.progress import Progress

from bench.attacks import ATTACKS, Attack, Target, request_bytes
from bench.harness import README, Bench, Databases, Installation, Option, Row, chosen, databases
from bench.load import drive
from frontdesk.app import App
from frontdesk.config import read_config
from frontdesk.db import open_database
from frontdesk.installation import build_asgi
from frontdesk.server import COLLECT_AFTER
from frontdesk.web.telemetry import Telemetry
from tests.factories import EVERY_SCOPE, make_customer, member_body
from tests.population import copy_members

CONNECTIONS = 8  # of customer B; the system spreads them over the serving processes
EVERY_SECONDS = 0.01  # one of the three kinds of requests
LIGHT_SECONDS = 0.02  # between two requests of the quiet customer A
LIMITS = {"FRONTDESK_REQUESTS_PER_MINUTE": "300000"}  # the default
ROUNDS = 3  # quiet and attacked in turn, since other programs of the machine come and go
WARM_SECONDS = 0.5
FIRST_SECONDS = 3.0  # until each process has its connections and statements
KINDS = ("POST", "plans", "member")
SLOW_ANSWER_SECONDS = 60.0
FRESH = 50_000_000  # the first number of B's new members

Waits = dict[str, list[float]]


def run(options: argparse.Namespace, progress: Progress) -> Iterator[Row]:
    parts = options.attack.split("|")
    wanted = [attack for attack in ATTACKS if any(part in attack.name for part in parts)]
    task = progress.add_task("measuring", total=len(wanted) * len(chosen(options)))
    for name in chosen(options):
        with databases(name) as kind:
            for row in _measure_database(kind, wanted, options):
                progress.advance(task)
                first: Row = {"database": name}
                yield first | row


def _measure_database(
    kind: Databases, wanted: Sequence[Attack], options: argparse.Namespace
) -> Iterator[Row]:
    with kind.installation() as installation, ExitStack() as stack:
        attacked, neighbour = _fill(installation, options.members)
        holds = {attack.name: _longest_hold(installation, attack, attacked) for attack in wanted}
        server = stack.enter_context(
            installation.serve(workers=2, with_worker=True, settings=LIMITS)
        )
        caller = Neighbour(server.port, neighbour)
        caller.measure(FIRST_SECONDS)
        for attack in wanted:
            quiet: Waits = defaultdict(list)
            attacked_waits: Waits = defaultdict(list)
            answered = Counter[int]()
            for _ in range(ROUNDS):
                waits, _light_answers = _beside(
                    caller, server.port, LIGHT, attacked, options.seconds / ROUNDS
                )
                _add(quiet, waits)
                waits, answers = _beside(
                    caller, server.port, attack, attacked, options.seconds / ROUNDS
                )
                _add(attacked_waits, waits)
                answered += answers
            per_second = sum(answered.values()) / options.seconds
            yield _row(attack.name, quiet, attacked_waits, holds[attack.name], per_second, answered)


def _add(waits: Waits, more: Waits) -> None:
    for kind in KINDS:
        waits[kind] += more[kind]


def _row(
    name: str, quiet: Waits, waits: Waits, hold: float, per_second: float, answered: Counter[int]
) -> Row:
    row: Row = {"attack": name}
    ratios = []
    for kind in KINDS:
        before = _p99(quiet[kind])
        after = _p99(waits[kind])
        row |= {f"{kind} quiet": round(before, 1), f"{kind} p99": round(after, 1)}
        ratios.append(after / before)
    statuses = " ".join(f"{status}" for status, _ in answered.most_common(3))
    return row | {
        "x": round(max(ratios), 1),
        "hold": round(hold, 1),
        "A's answers": round(per_second, 1),
        "statuses": statuses,
    }


def _p99(waits: Sequence[float]) -> float:
    ordered = sorted(waits)
    return ordered[len(ordered) * 99 // 100] * 1000


LIGHT = Attack(
    "light requests", 1, lambda target: iter(_light(target)), pause_seconds=LIGHT_SECONDS
)


def _light(target: Target) -> Iterator[bytes]:
    while True:
        yield request_bytes("GET", "/v2/plans", token=target.token)
        yield request_bytes(
            "POST", target.members, json.dumps(member_body(1)).encode(), token=target.token
        )


def _fill(installation: Installation, count: int) -> tuple[Target, Target]:
    """Both customers, with so many members each."""
    targets = []
    for number, customer in enumerate(
        (
            installation.customer,
            make_customer(installation.db, name="Neighbour", scopes=EVERY_SCOPE, now=_now()),
        ),
        1,
    ):
        target = Target(customer.token, customer.plan_ids[0], customer.client_id, 0, number)
        with installation.serve() as server:
            first = member_body(number * 10_000_000, external_id=f"first {number}")
            connection = http.client.HTTPConnection("127.0.0.1", server.port)
            with closing(connection):
                headers = {
                    "Authorization": f"Bearer {customer.token}",
                    "Content-Type": "application/json",
                }
                connection.request("POST", target.members, json.dumps(first), headers)
                member_id = json.loads(connection.getresponse().read())["id"]
            target.member_id = member_id
            if number == 1:
                drive(server.port, 8, target.long_history())
        start = number * 1_000_000
        copy_members(installation.db, member_id, numbers=range(start, start + count))
        targets.append(target)
    return targets[0], targets[1]


def _now() -> datetime:
    return datetime.now(UTC)


def _beside(
    caller: "Neighbour", port: int, attack: Attack, target: Target, seconds: float
) -> tuple[Waits, Counter[int]]:
    """B's waits while A attacks from a process of its own, and A's answers by status."""
    context = multiprocessing.get_context("fork")
    answers: Any = context.SimpleQueue()
    stop = context.Event()
    attacker = context.Process(
        target=_attack, args=(port, attack, target, stop, answers), daemon=True
    )
    attacker.start()
    time.sleep(WARM_SECONDS)
    waits = caller.measure(seconds)
    stop.set()
    answered: Counter[int] = answers.get()
    attacker.join()
    time.sleep(WARM_SECONDS)  # what is under way ends
    return waits, answered


def _attack(port: int, attack: Attack, target: Target, stop: Any, answers: Any) -> None:
    """Send the attack's requests on its connections until told to stop."""
    requests = attack.requests(target)
    answered: Counter[int] = Counter()
    with select.epoll() as poller, ExitStack() as stack:
        open_connections: dict[int, _Connection] = {}

        def connect() -> None:
            connection = _Connection(port)
            stack.callback(connection.close)
            open_connections[connection.fileno] = connection
            poller.register(connection.fileno, select.EPOLLIN)
            connection.send(next(requests))

        for _ in range(attack.connections):
            connect()
        while not stop.is_set():
            for fileno, _ in poller.poll(0.05):
                connection = open_connections[fileno]
                status = connection.receive()
                if status is None:
                    continue
                answered[status] += 1
                if attack.pause_seconds:
                    time.sleep(attack.pause_seconds)
                if connection.is_open:
                    connection.send(next(requests))
                else:
                    poller.unregister(fileno)
                    del open_connections[fileno]
                    connection.close()
                    connect()
    answers.put(answered)


class _Connection:
    """One connection of the attacker: its request, and the answer so far. It keeps no body."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=SLOW_ANSWER_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.fileno = self._socket.fileno()
        self.is_open = True
        self._head = b""
        self._left = 0
        self._status: int | None = None

    def send(self, request: bytes) -> None:
        self._head = b""
        self._status = None
        try:
            self._socket.sendall(request)
        except OSError:
            self.is_open = False  # it was refused by its head

    def receive(self) -> int | None:
        """The status once the answer is complete, 0 for a closed connection; None until then."""
        try:
            chunk = self._socket.recv(1_048_576)
        except OSError:
            chunk = b""
        if not chunk:
            self.is_open = False
            return self._status or 0
        if self._status is None:
            self._head += chunk
            head, end, body = self._head.partition(b"\r\n\r\n")
            if not end:
                return None
            self._status = int(head[9:12])
            length = [
                line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
            ]
            self.is_open = b"connection: close" not in head.lower() and bool(length)
            self._left = int(length[0].partition(b":")[2]) if length else 0
            chunk = body
        self._left -= len(chunk)
        return self._status if self._left <= 0 else None

    def close(self) -> None:
        self._socket.close()


class Neighbour:
    """Customer B: keeps its connections, and sends each request at its time whether or not the last
    was answered.
    """

    def __init__(self, port: int, target: Target) -> None:
        self._target = target
        self._fresh = FRESH
        self._connections = [
            http.client.HTTPConnection("127.0.0.1", port, timeout=30) for _ in range(CONNECTIONS)
        ]

    def measure(self, seconds: float) -> Waits:
        """How long each request took, by its kind, counted from the time at which it was due."""
        free = list(map(self._connect, self._connections))
        busy: dict[int, tuple[socket.socket, str, float]] = {}
        waits: Waits = defaultdict(list)
        due = time.perf_counter()
        ends_at = due + seconds
        turn = 0
        late: list[tuple[str, float]] = []
        with select.epoll() as poller:
            while True:
                now = time.perf_counter()
                while due <= now and due < ends_at:
                    late.append((KINDS[turn % len(KINDS)], due))
                    turn += 1
                    due += EVERY_SECONDS
                while late and free:
                    kind, since = late.pop(0)
                    connection = free.pop(0)
                    connection.sendall(self._request(kind))
                    busy[connection.fileno()] = (connection, kind, since)
                    poller.register(connection.fileno(), select.EPOLLIN)
                if now > ends_at and not busy and not late:
                    break
                for fileno, _ in poller.poll(max(0.0, min(due - time.perf_counter(), 0.05))):
                    connection, kind, since = busy.pop(fileno)
                    poller.unregister(fileno)
                    self._check(connection.recv(262_144))
                    waits[kind].append(time.perf_counter() - since)
                    free.append(connection)
        return waits

    def _connect(self, connection: http.client.HTTPConnection) -> socket.socket:
        connection.close()
        connection.connect()
        return connection.sock

    def _request(self, kind: str) -> bytes:
        target = self._target
        if kind == "plans":
            return request_bytes("GET", "/v2/plans", token=target.token)
        if kind == "member":
            return request_bytes(
                "GET",
                f"/v2/plans/{target.plan_id}/eligibility/{target.member_id}",
                token=target.token,
            )
        self._fresh += 1
        return request_bytes(
            "POST",
            target.members,
            json.dumps(member_body(self._fresh)).encode(),
            token=target.token,
        )

    def _check(self, answer: bytes) -> None:
        if not answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            raise RuntimeError(
                f"the neighbour's request was refused: {answer[:500].decode(errors='replace')}"
            )


def _longest_hold(installation: Installation, attack: Attack, target: Target) -> float:
    """The processor time of the longest callback of the event loop, in ms, while this process
    answers one request.
    """
    raw = next(iter(attack.requests(target)))
    settings = {
        "FRONTDESK_DATABASE_URL": installation.url,
        "FRONTDESK_REQUESTS_PER_MINUTE": "1000000",
    }
    config = read_config(settings)
    longest = 0.0
    handle_run = events.Handle._run  # noqa: SLF001 - there is no public place to measure a callback

    def measured(handle: events.Handle) -> None:
        nonlocal longest
        began = time.thread_time()
        handle_run(handle)
        longest = max(longest, time.thread_time() - began)

    async def scene() -> None:
        nonlocal longest
        app = App(config, open_database(config.database_url))
        asgi = build_asgi(app, Telemetry(io.StringIO()))
        await _call(asgi, request_bytes("GET", "/v2/plans", token=target.token))
        gc.collect()
        gc.freeze()  # as a serving process does it
        gc.set_threshold(*COLLECT_AFTER)
        await asyncio.sleep(0)
        longest = 0.0
        await _call(asgi, raw)
        found = longest
        await app.close()
        longest = found

    events.Handle._run = measured  # type: ignore[method-assign,assignment]  # noqa: SLF001
    try:
        asyncio.run(scene())
    finally:
        events.Handle._run = handle_run  # type: ignore[method-assign]  # noqa: SLF001
    return longest * 1000


async def _call(asgi: Any, raw: bytes) -> None:
    """One request straight to the application."""
    head, _, body = raw.partition(b"\r\n\r\n")
    line, *fields = head.split(b"\r\n")
    method, target, _ = line.decode().split(" ")
    path, _, query = target.partition("?")
    headers = [
        (name.lower(), value.strip())
        for name, _, value in (field.partition(b":") for field in fields)
    ]
    scope = {
        "type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": headers,
        "http_version": "1.1", "client": ("127.0.0.1", 1),
    }  # fmt: skip
    pieces = [body[start : start + 65_536] for start in range(0, len(body), 65_536)] or [b""]

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0)
        return {
            "type": "http.request",
            "body": pieces.pop(0) if pieces else b"",
            "more_body": bool(pieces),
        }

    async def send(_message: Any) -> None:
        await asyncio.sleep(0)

    await asgi(scope, receive, send)


BENCH = Bench(
    __doc__,
    run,
    Option("seconds", 8.0, 1.5, "of each measurement"),
    Option("members", 20_000, 2_000, "of each customer"),
    Option(
        "attack",
        "",
        "",
        "only attacks with this in their name, or one of several texts with | between them",
    ),
    page=README.parents[1] / "docs/faults.md",
)
