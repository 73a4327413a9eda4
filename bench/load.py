"""The load: N keep-alive connections, each sending its next request when the last one is answered.

`measure` drives it by wrk where that is installed (`GENERATOR` says so), because a load written in Python takes a good part of
a small machine from what it measures. Without wrk, and for a fixed list of requests, it is a process of ours: one thread,
epoll, and requests that are made ahead.
"""

import json
import multiprocessing
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_HEAD_END = b"\r\n\r\n"
_SCRIPT = Path(__file__).with_name("wrk.lua")
# More than any service here answers in a second, so that a list of requests never runs out.
_MOST_PER_SECOND = 12_000

GENERATOR = "wrk" if shutil.which("wrk") else "python"
_BODY = json.dumps(
    {
        "external_id": "AB %08d", "member_id": "M-%08d", "first_name": "Robin", "last_name": "%s", "dob": "1977-01-11",
        "gender": "female", "email": "robin.%d@example.com", "phone": "6175550100", "zipcode": "02134", "city": "Boston",
        "state": "MA", "effective_date": "2026-01-01", "expiry_date": "2027-12-31", "metadata": {"department": "north"},
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Load:
    """`requests` are complete HTTP/1.1 messages; they are sent in order until they run out or `seconds` are over."""

    port: int
    connections: int
    seconds: float
    requests: Sequence[bytes]
    repeat: bool = False


@dataclass(slots=True)
class Traffic:
    """The requests to one service. `known`: members 0 to `known` are stored. `fresh`: the number of the next new one."""

    port: int
    token: str
    known: int
    fresh: int

    def get(self) -> bytes:
        return http_request("GET", "/v2/plans", token=self.token)

    def post(self, number: int, last_name: str) -> bytes:
        body = (_BODY % (number, number, last_name, number)).encode()
        return http_request("POST", "/v2/plans/1/eligibility", token=self.token, body=body)

    def posts(self, count: int) -> Iterator[bytes]:
        """Every other one is a new member; the others change a known one."""
        for n in range(count):
            if n % 2:
                yield self.post(n * 7919 % self.known, f"Name{time.monotonic_ns()}")
            else:
                yield self.post(self.fresh, "Sample")
                self.fresh += 1


@dataclass(frozen=True, slots=True)
class Measured:
    """Times in seconds. `failed` counts the requests without an answer of success."""

    answered: int
    elapsed: float
    p50: float
    p99: float
    failed: int = 0

    @property
    def per_second(self) -> float:
        return self.answered / self.elapsed


def measure(traffic: Traffic, what: str, connections: int, seconds: float) -> Measured:
    """GETs of the plans or POSTs of members, for so many seconds. Raises RuntimeError when a request failed."""
    drive_it = _by_wrk if GENERATOR == "wrk" else _by_us
    measured = drive_it(traffic, what, connections, seconds)
    if measured.failed:
        raise RuntimeError(f"{measured.failed} of {measured.answered} requests failed")
    return measured


def _by_wrk(traffic: Traffic, what: str, connections: int, seconds: float) -> Measured:
    arguments = [traffic.token]
    target = "/v2/plans"
    if what == "POST":
        target = "/v2/plans/1/eligibility"
        arguments += [_BODY, str(traffic.known), str(traffic.fresh), f"Name{time.monotonic_ns()}x"]
    command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "-s", str(_SCRIPT)]
    command += [f"http://127.0.0.1:{traffic.port}{target}", "--", *arguments]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    measured = Measured(**json.loads(text.splitlines()[-1]))
    if what == "POST":
        traffic.fresh += measured.answered + connections  # some were sent and not waited for
    return measured


def _by_us(traffic: Traffic, what: str, connections: int, seconds: float) -> Measured:
    if what == "POST":
        requests = list(traffic.posts(int(seconds * _MOST_PER_SECOND) + connections))
        return run_load(Load(traffic.port, connections, seconds, requests))
    return run_load(Load(traffic.port, connections, seconds, [traffic.get()], repeat=True))


def run_load(load: Load) -> Measured:
    """Drive the load from a process of its own."""
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        return pool.apply(drive, (load,))


def drive(load: Load) -> Measured:
    """Drive the load from this process."""
    with select.epoll() as poller:
        connections = {}
        source = _source(load)
        for _ in range(load.connections):
            connection = _Connection(load.port)
            connections[connection.fileno] = connection
            poller.register(connection.fileno, select.EPOLLIN)
        started = time.perf_counter()
        return _exchange(poller, connections, source, started, started + load.seconds)


def _exchange(
    poller: select.epoll,
    connections: dict[int, "_Connection"],
    source: Iterator[bytes],
    started: float,
    end: float,
) -> Measured:
    waits: list[float] = []
    failed = 0
    clock: Callable[[], float] = time.perf_counter
    busy = sum(connection.send_next(source, clock()) for connection in connections.values())
    now = started
    while busy:
        for fileno, _ in poller.poll(10):
            connection = connections[fileno]
            status = connection.receive()
            if not status:
                continue
            now = clock()
            waits.append(now - connection.sent_at)
            failed += status not in (200, 201)
            if now >= end or not connection.send_next(source, now):
                busy -= 1
    for connection in connections.values():
        connection.close()
    waits.sort()
    count = len(waits)
    slowest_in_99 = waits[min(count - 1, count * 99 // 100)]
    return Measured(count, now - started, waits[count // 2], slowest_in_99, failed)


def _source(load: Load) -> Iterator[bytes]:
    while True:
        yield from load.requests
        if not load.repeat:
            return


class _Connection:
    __slots__ = ("_expected", "_received", "_socket", "fileno", "sent_at")

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(30)
        self.fileno = self._socket.fileno()
        self._received = b""
        self._expected = 0
        self.sent_at = 0.0

    def send_next(self, source: Iterator[bytes], now: float) -> bool:
        request = next(source, None)
        if request is None:
            return False
        self._received = b""
        self._expected = 0
        self.sent_at = now
        self._socket.sendall(request)
        return True

    def receive(self) -> int:
        """The answer's status once it is complete, 0 before."""
        chunk = self._socket.recv(262_144)
        if not chunk:
            raise ConnectionError("the server closed the connection")
        self._received = self._received + chunk if self._received else chunk
        if not self._expected:
            head = self._received.find(_HEAD_END)
            if head < 0:
                return 0
            lowered = self._received[:head].lower()
            at = lowered.find(b"content-length:")
            length = int(lowered[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            self._expected = head + 4 + length
        return int(self._received[9:12]) if len(self._received) >= self._expected else 0

    def close(self) -> None:
        self._socket.close()


def http_request(method: str, target: str, *, token: str = "", body: bytes = b"") -> bytes:
    """A complete request with the headers that the interface asks for."""
    lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", "Accept: application/json"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    lines.append("Content-Type: application/json")
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body
