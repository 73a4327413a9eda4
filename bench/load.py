"""The load: N keep-alive connections, each sending its next request when the last one is answered; it knows no service.

One process, one thread, epoll and raw sockets with requests that are made ahead, so that the load itself takes as little
as it can of a small machine. Run in a process of its own: `run_load` does so.
"""

import multiprocessing
import select
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_HEAD_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Load:
    """`requests` are complete HTTP/1.1 messages; they are sent in order until they run out or `seconds` are over."""

    port: int
    connections: int
    seconds: float
    requests: Sequence[bytes]
    repeat: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """Times in seconds. `statuses` counts the answers by status."""

    answered: int
    elapsed: float
    p50: float
    p99: float
    statuses: dict[int, int]

    @property
    def per_second(self) -> float:
        return self.answered / self.elapsed


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
    statuses: Counter[int] = Counter()
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
            statuses[status] += 1
            if now >= end or not connection.send_next(source, now):
                busy -= 1
    for connection in connections.values():
        connection.close()
    waits.sort()
    count = len(waits)
    return Measured(
        count, now - started, waits[count // 2], waits[min(count - 1, count * 99 // 100)], dict(statuses)
    )


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
