"""The load: N keep-alive connections, each of which sends its next request when the last one is
answered.

It runs on the processors that it measures, so rates are lower than a load from elsewhere would make
them. Processor time per request is not concerned.
"""

import json
import re
import select
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import repeat

from bench.harness import Installation, family, peak_mib

# More than any service here answers in a second: requests are made before the clock starts.
_MOST_PER_SECOND = 12_000
KNOWN = 1000  # members that are stored before a run
_LENGTH = re.compile(rb"content-length: *([0-9]+)", re.IGNORECASE)
_BODY = json.dumps(
    {
        "external_id": "AB %08d",
        "member_id": "M-%08d",
        "first_name": "Robin",
        "last_name": "%s",
        "dob": "1977-01-11",
        "gender": "female",
        "email": "robin.%d@example.com",
        "phone": "6175550100",
        "zipcode": "02134",
        "city": "Boston",
        "state": "MA",
        "effective_date": "2026-01-01",
        "expiry_date": "2027-12-31",
        "metadata": {"department": "north"},
    }
)


@dataclass(frozen=True, slots=True)
class Measured:
    """Times in seconds."""

    answered: int
    elapsed: float
    p50: float
    p99: float

    @property
    def per_second(self) -> float:
        return self.answered / self.elapsed


@dataclass(slots=True)
class Service:
    """A running HTTP service and the requests to it: its database, and the process that all of its
    processes descend from.

    Members 0 to `known` are stored, and half of the POSTs change one; `fresh` is the number of the
    next new one.
    """

    port: int
    token: str
    pid: int
    url: str
    known: int = 0
    fresh: int = 0

    def prepare(self) -> "Service":
        """Store the first members."""
        drive(self.port, 16, [self.post(number, "First") for number in range(KNOWN)])
        self.known = self.fresh = KNOWN
        return self

    def memory_mib(self, kind: str = "VmHWM") -> float:
        """The largest process's peak, or (`VmRSS`) its present memory."""
        return max(peak_mib(pid, kind) for pid in family(self.pid))

    def get(self, target: str = "/v2/plans") -> bytes:
        return self.request("GET", target, "")

    def post(self, number: int, last_name: str) -> bytes:
        return self.request(
            "POST", "/v2/plans/1/eligibility", _BODY % (number, number, last_name, number)
        )

    def posts(self, count: int) -> Iterator[bytes]:
        """Every other one is a new member; the others change a known one."""
        for n in range(count):
            if n % 2:
                yield self.post(n * 7919 % self.known, f"Name{time.monotonic_ns()}")
            else:
                yield self.post(self.fresh, "Sample")
                self.fresh += 1

    def measure(self, what: str, connections: int, seconds: float) -> Measured:
        """GETs of the plans or of a path, or POSTs of members, for so many seconds. Raises
        RuntimeError when a request failed.
        """
        if what != "POST":
            target = "/v2/plans" if what == "GET" else what
            return drive(self.port, connections, repeat(self.get(target)), seconds)
        requests = list(self.posts(int(seconds * _MOST_PER_SECOND) + connections))
        return drive(self.port, connections, requests, seconds)

    def request(self, method: str, target: str, body: str) -> bytes:
        return (
            f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n"
            f"Authorization: Bearer {self.token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        ).encode()


@contextmanager
def frontdesk(installation: Installation, workers: int = 1) -> Iterator[Service]:
    """Our service on the installation's database, with no member."""
    with installation.serve(workers=workers) as server:
        yield Service(server.port, installation.customer.token, server.pid, installation.url)


def drive(
    port: int, connections: int, requests: Iterable[bytes], seconds: float = 3600.0
) -> Measured:
    """Send the requests in order, until they run out or the seconds are over.

    Raises RuntimeError when a request is answered with anything but 200, 201 or 207.
    """
    source = iter(requests)
    waits = []
    with ExitStack() as stack:
        poller = stack.enter_context(select.epoll())
        callers = {}
        for _ in range(connections):
            connection = stack.enter_context(
                socket.create_connection(("127.0.0.1", port), timeout=30)
            )
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            callers[connection.fileno()] = _Caller(connection)
            poller.register(connection, select.EPOLLIN)
        started = now = time.perf_counter()
        busy = sum(caller.send(next(source, b""), now) for caller in callers.values())
        while busy:
            for fileno, _ in poller.poll(10):
                caller = callers[fileno]
                if caller.receive():
                    now = time.perf_counter()
                    waits.append(now - caller.sent_at)
                    busy -= now >= started + seconds or not caller.send(next(source, b""), now)
    waits.sort()
    return Measured(
        len(waits), now - started, waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    )


class _Caller:
    """One connection and the answer that it has received so far."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, request: bytes, now: float) -> bool:
        """Returns False if there is no request left."""
        self._received = b""
        self.sent_at = now
        if request:
            self._connection.sendall(request)
        return bool(request)

    def receive(self) -> bool:
        """Returns True when the answer is complete."""
        chunk = self._connection.recv(262_144)
        self._received += chunk
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not chunk or (
            end and not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201", b"HTTP/1.1 207"))
        ):
            raise RuntimeError(f"the service answered {self._received.decode(errors='replace')}")
        length = _LENGTH.search(head)
        return bool(end) and length is not None and len(body) >= int(length[1])
