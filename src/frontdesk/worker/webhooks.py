"""Sends webhooks: an endpoint at a time in each thread, over connections to addresses that were checked (docs/webhooks.md).

The name of an endpoint is resolved once, every address that it leads to is checked, and the connection goes to a checked address:
a second resolution could lead elsewhere. No redirect is followed, and no proxy of the environment is used.
"""

import http.client
import io
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from frontdesk import __version__
from frontdesk.config import Config, Environment
from frontdesk.db import Database, Tx
from frontdesk.db.engine import database_time, write_alone
from frontdesk.errors import Unavailable
from frontdesk.events import delivery
from frontdesk.events.model import Event, WebhookEndpoint
from frontdesk.events.signature import signed_headers
from frontdesk.events.target import WebhookTarget, may_connect, parse_target
from frontdesk.worker.background import IDLE_SECONDS, BackgroundTask

THREADS = 24
MOST_OF_ACCOUNT = 4  # threads, so that no account takes them all
MOST_SLOW = 12  # threads for endpoints that were slow last time
SLOW_SECONDS = 2.0
ANSWER_SECONDS = 10.0  # for connection, request and answer together
ANSWER_BYTES, BODY_BYTES = 64 * 1024, 16 * 1024  # that are read, of the whole answer and of its body
COMMIT_EVENTS, COMMIT_SECONDS = 20, 1.0
TURN_SECONDS = 1.0  # of an endpoint while others wait for a thread
USER_AGENT = f"frontdesk-webhooks/{__version__}"


class NotDelivered(Exception):
    """The webhook was not taken. `error` is a word for the endpoint's owner; it holds nothing that was received."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class DeadlineSocket(io.RawIOBase):
    """Reads the answer of a socket until a deadline, and up to a number of bytes, however slowly it comes."""

    def __init__(self, connected: socket.socket, deadline: float) -> None:
        self._socket, self._deadline, self._left = connected, deadline, ANSWER_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._left <= 0:
            raise NotDelivered("answer_too_large")
        self._socket.settimeout(seconds_left(self._deadline))
        count = self._socket.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        return count

    def sendall(self, data: bytes) -> None:
        self._socket.settimeout(seconds_left(self._deadline))
        self._socket.sendall(data)

    def makefile(self, *_: object) -> io.BufferedReader:
        """As http.client wants it of a socket."""
        return io.BufferedReader(self)


def seconds_left(deadline: float) -> float:
    """Raises TimeoutError when the deadline has passed."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


@dataclass(slots=True)
class WebhookConnection:
    """A connection to one endpoint, kept for the events of a turn."""

    target: WebhookTarget
    tls: ssl.SSLContext
    _socket: socket.socket | None = None

    def post(self, body: bytes, headers: dict[str, str]) -> int:
        """The status of the answer. Raises NotDelivered."""
        deadline = time.monotonic() + ANSWER_SECONDS
        was_open = self._socket is not None
        try:
            try:
                return self._exchange(body, headers, deadline)
            except (ConnectionError, http.client.RemoteDisconnected):
                self.close()
                if not was_open:
                    raise
                return self._exchange(body, headers, deadline)  # the other end has closed an idle connection
        except TimeoutError:
            error = "timeout"
        except ssl.SSLCertVerificationError:
            error = "certificate"
        except (OSError, http.client.HTTPException):
            error = "connection"
        except NotDelivered:
            self.close()
            raise
        self.close()
        raise NotDelivered(error)

    def close(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.close()
            self._socket = None

    def _exchange(self, body: bytes, headers: dict[str, str], deadline: float) -> int:
        if self._socket is None:
            self._socket = self._connect(deadline)
        connection = http.client.HTTPConnection("unused")  # the Host is sent below
        stream: Any = DeadlineSocket(self._socket, deadline)
        connection.sock = stream
        connection.putrequest("POST", self.target.path, skip_host=True, skip_accept_encoding=True)
        for name, value in (("Host", self.target.host_header), *headers.items()):
            connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        response.read(BODY_BYTES)
        if response.will_close or not response.isclosed():
            self.close()
        return response.status

    def _connect(self, deadline: float) -> socket.socket:
        """Every address of the name is checked: one that is not allowed may stand among others."""
        target = self.target
        try:
            found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise NotDelivered("unknown_host") from None
        if not found or not all(may_connect(target, str(address[0])) for *_, address in found):
            raise NotDelivered("forbidden_address")
        error: OSError = ConnectionError()
        for family, kind, protocol, _, address in found:
            connected = socket.socket(family, kind, protocol)
            try:
                connected.settimeout(seconds_left(deadline))
                connected.connect(address)
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if target.is_tls:
                    connected.settimeout(seconds_left(deadline))
                    connected = self.tls.wrap_socket(connected, server_hostname=target.host)
            except OSError as failure:
                connected.close()
                error = failure
            else:
                return connected
        raise error


@dataclass(slots=True)
class EndpointTurn:
    """A claimed endpoint in its thread, until it has no event left, one fails, or others wait."""

    db: Database
    endpoint: WebhookEndpoint
    link_secret: str
    is_sandbox: bool
    tls: ssl.SSLContext
    read_time: Callable[[Tx], datetime]
    must_end: Callable[[float], bool]  # given the seconds that the turn has taken
    sent: int = 0
    slowest: float = 0.0
    _began: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """Raises Unavailable; events since the last commit are sent again."""
        try:
            target = parse_target(self.endpoint.url, is_sandbox=self.is_sandbox)
        except ValueError:  # it was stored under other settings
            target = WebhookTarget(is_tls=True, host="", port=0, path="/", host_header="", may_be_local=False)
        with closing(WebhookConnection(target, self.tls)) as connection:
            events = self._events()
            while not self._send_some(connection, events):
                pass

    def _events(self) -> Iterator[Event]:
        """The events after the endpoint's place, as they are needed."""
        place = self.endpoint.place
        while found := self.db.ask(lambda tx: delivery.next_events(tx, self.endpoint, place)):  # noqa: B023
            yield from found
            place = found[-1].place

    def _send_some(self, connection: WebhookConnection, events: Iterator[Event]) -> bool:
        """Send up to a commit, and commit. True when the turn has ended."""
        place, sent, began = self.endpoint.place, 0, time.monotonic()
        failed, error, is_last = None, None, True
        now = self.db.ask(self.read_time)
        for event in events:
            if self.endpoint.wants(event):
                error = self._send(connection, event, now)
                if error is not None:
                    failed = event
                    break
                sent += 1
            place = event.place
            elapsed = time.monotonic() - began
            if sent == COMMIT_EVENTS or elapsed > COMMIT_SECONDS:
                is_last = self.must_end(time.monotonic() - self._began)
                break
        self.sent += sent
        progress = delivery.Progress(place, sent > 0, failed, error)
        return self._commit(progress, ends=is_last or failed is not None)

    def _commit(self, progress: delivery.Progress, *, ends: bool) -> bool:
        def save(tx: Tx) -> WebhookEndpoint | None:
            return delivery.save(tx, self.endpoint, progress, now=self.read_time(tx), ends=ends)

        saved = write_alone(self.db, save)
        if saved is not None:
            self.endpoint = saved
        return ends or saved is None

    def _send(self, connection: WebhookConnection, event: Event, now: datetime) -> str | None:
        """The error, or None when the endpoint has the event."""
        began = time.monotonic()
        body = orjson.dumps(event.content())
        keys = delivery.secrets_of(self.endpoint, self.link_secret, now)
        timestamp = int(now.timestamp())
        headers = signed_headers(keys, event_id=event.event_id, timestamp=timestamp, body=body)
        headers |= {"Content-Type": "application/json", "User-Agent": USER_AGENT}
        headers["Content-Length"] = str(len(body))
        try:
            status = connection.post(body, headers)
        except NotDelivered as failure:
            return failure.error
        finally:
            self.slowest = max(self.slowest, time.monotonic() - began)
        return None if 200 <= status < 300 else f"status_{status}"


class WebhookSender(BackgroundTask):
    """Sends what is due, each endpoint in a thread; a slow one takes no thread that others need."""

    first_seconds, poll_seconds = 0.0, IDLE_SECONDS
    failure_event = "webhooks_failed"

    def __init__(
        self,
        config: Config,
        db: Database,
        *,
        tls: ssl.SSLContext | None = None,
        read_time: Callable[[Tx], datetime] = database_time,
        **options: Any,
    ) -> None:
        super().__init__(db, **options)
        self._link_secret = config.link_secret
        self._is_sandbox = config.environment is Environment.SANDBOX
        self._tls = tls or ssl.create_default_context()
        self._read_time = read_time
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="webhook")
        self._lock = threading.Lock()
        self._running: dict[int, int] = {}  # accounts by endpoint
        self._slow: set[int] = set()  # endpoints
        self._is_crowded = False

    def run(self) -> None:
        super().run()
        self.close()

    def close(self) -> None:
        """End the turns under way."""
        self._is_stopping = True
        self._threads.shutdown()

    def step(self) -> bool:
        """Begin the turns of endpoints that are due."""
        found = self._db.ask(lambda tx: delivery.find_due(tx, self._read_time(tx), THREADS * 10))
        chosen = self._choose(found)
        self._is_crowded = len(chosen) < len(found)
        if not chosen:
            return False
        for endpoint in write_alone(self._db, lambda tx: delivery.claim(tx, chosen, now=self._read_time(tx))):
            turn = EndpointTurn(
                self._db,
                endpoint,
                self._link_secret,
                self._is_sandbox,
                self._tls,
                self._read_time,
                self._must_end,
            )
            with self._lock:
                self._running[endpoint.id] = endpoint.account_id
            self._threads.submit(self._take, turn)
        return False

    def _choose(self, found: list[tuple[int, int]]) -> list[int]:
        """The endpoints that get a thread now."""
        with self._lock:
            running = dict(self._running)
        of_account, slow = Counter(running.values()), len(self._slow & running.keys())
        chosen: list[int] = []
        for id_, account_id in found:
            is_slow = id_ in self._slow
            is_free = id_ not in running and of_account[account_id] < MOST_OF_ACCOUNT
            if len(running) + len(chosen) == THREADS or not is_free or (is_slow and slow == MOST_SLOW):
                continue
            of_account[account_id] += 1
            slow += is_slow
            chosen.append(id_)
        return chosen

    def _must_end(self, seconds: float) -> bool:
        return self._is_stopping or (self._is_crowded and seconds > TURN_SECONDS)

    def _take(self, turn: EndpointTurn) -> None:
        try:
            turn.run()
        except Unavailable:
            pass  # the lease ends, and another turn begins
        except Exception as error:  # noqa: BLE001 - see failure_event
            self._log.write(self.failure_event, error=type(error).__name__)
        finally:
            id_ = turn.endpoint.id
            with self._lock:
                del self._running[id_]
                self._slow.discard(id_)
                if turn.slowest > SLOW_SECONDS:
                    self._slow.add(id_)
            self.wake()
