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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from frontdesk import __version__, events
from frontdesk.config import Config, Environment
from frontdesk.db import Database, Tx
from frontdesk.db.engine import database_time, write_alone
from frontdesk.errors import Unavailable
from frontdesk.events import delivery
from frontdesk.events.model import Event, WebhookEndpoint
from frontdesk.events.signature import signed_headers
from frontdesk.events.target import NOWHERE, WebhookTarget, may_connect, parse_target
from frontdesk.worker.background import IDLE_SECONDS, BackgroundTask

THREADS = 24
MOST_SLOW = 12  # threads for endpoints that were slow last time, so that they don't take them all
SLOW_SECONDS = 2.0
ANSWER_SECONDS = 10.0  # for connection, request and answer together
ANSWER_BYTES, BODY_BYTES = 64 * 1024, 16 * 1024  # that are read, of the whole answer and of its body
COMMIT_EVENTS, COMMIT_SECONDS = 20, 1.0
TURN_SECONDS = 3.0  # of an endpoint; then others have theirs, and a suspended account has no more
USER_AGENT = f"frontdesk-webhooks/{__version__}"


class NotDelivered(Exception):
    """The webhook was not taken. The text is a word for the endpoint's owner; it holds nothing that was received."""


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
    """A connection to one endpoint, kept for the events of a turn. `slowest`: the longest time of a webhook, in seconds."""

    target: WebhookTarget
    tls: ssl.SSLContext
    slowest: float = 0.0
    _socket: socket.socket | None = None

    def post(self, body: bytes, headers: dict[str, str], deadline: float | None = None) -> int:
        """The status of the answer. Raises NotDelivered."""
        deadline = deadline or time.monotonic() + ANSWER_SECONDS
        was_open = self._socket is not None
        try:
            return self._exchange(body, headers, deadline)
        except (OSError, http.client.HTTPException, NotDelivered) as failure:
            self.close()
            if was_open and isinstance(failure, ConnectionError):  # the other end closed an idle connection
                return self.post(body, headers, deadline)
            raise _not_delivered(failure) from None

    def close(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.close()
            self._socket = None

    def _exchange(self, body: bytes, headers: dict[str, str], deadline: float) -> int:
        if self._socket is None:
            self._socket = self._connect(deadline)
        connection = http.client.HTTPConnection("unused")  # the headers have the Host
        stream: Any = DeadlineSocket(self._socket, deadline)
        connection.sock = stream
        connection.request("POST", self.target.path, body, headers | {"Host": self.target.host_header})
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


def _not_delivered(failure: Exception) -> NotDelivered:
    if isinstance(failure, NotDelivered):
        return failure
    if isinstance(failure, TimeoutError):
        return NotDelivered("timeout")
    return NotDelivered("certificate" if isinstance(failure, ssl.SSLCertVerificationError) else "connection")


class WebhookSender(BackgroundTask):
    """Sends what is due, each endpoint in a thread; a slow one takes no thread that others need."""

    first_seconds, poll_seconds = 0.0, IDLE_SECONDS
    failure_event = "webhooks_failed"

    def __init__(
        self,
        config: Config,
        db: Database,
        *,
        read_time: Callable[[Tx], datetime] = database_time,
        **options: Any,
    ) -> None:
        super().__init__(db, **options)
        self._link_secret = config.link_secret
        self._is_sandbox = config.environment is Environment.SANDBOX
        self._tls = ssl.create_default_context()
        self._read_time = read_time
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="webhook")
        self._lock = threading.Lock()
        self._running, self._slow = set[int](), set[int]()  # ids of endpoints

    def run(self) -> None:
        super().run()
        self.close()

    def close(self) -> None:
        """End the turns under way."""
        self._is_stopping = True
        self._threads.shutdown()

    def step(self) -> bool:
        """Begin the turns of endpoints that are due."""
        due = self._db.ask(lambda tx: events.find_due(tx, self._read_time(tx), THREADS * 10))
        if chosen := self._choose(due):
            claimed = write_alone(self._db, lambda tx: events.claim_due(tx, chosen, self._read_time(tx)))
            for endpoint in claimed:
                with self._lock:
                    self._running.add(endpoint.id)
                self._threads.submit(self._take_turn, endpoint)
        return False

    def _choose(self, due: list[int]) -> list[int]:
        """The endpoints that get a thread now."""
        with self._lock:
            waiting = [id_ for id_ in due if id_ not in self._running]
            slow = [id_ for id_ in waiting if id_ in self._slow]
            left_out = slow[MOST_SLOW - len(self._running & self._slow) :]
            return [id_ for id_ in waiting if id_ not in left_out][: THREADS - len(self._running)]

    def _take_turn(self, claimed: WebhookEndpoint) -> None:
        """Send to the endpoint until it has no event left, one fails, or its turn is over."""
        endpoint: WebhookEndpoint | None = claimed
        try:
            target = parse_target(claimed.url, is_sandbox=self._is_sandbox)
        except ValueError:  # it was stored under other settings
            target = NOWHERE
        connection = WebhookConnection(target, self._tls)
        ends_at = time.monotonic() + TURN_SECONDS
        try:
            with closing(connection):
                while endpoint is not None:
                    endpoint = self._send_some(connection, endpoint, is_last=time.monotonic() > ends_at)
        except Unavailable:
            pass  # the lease ends, and another turn begins: events since the last commit are sent again
        except Exception as error:  # noqa: BLE001 - see failure_event
            self._log.write(self.failure_event, error=type(error).__name__)
        with self._lock:
            self._running.remove(claimed.id)
            (self._slow.add if connection.slowest > SLOW_SECONDS else self._slow.discard)(claimed.id)
        self.wake()

    def _send_some(
        self, connection: WebhookConnection, endpoint: WebhookEndpoint, *, is_last: bool
    ) -> WebhookEndpoint | None:
        """Send up to a commit, and commit. Returns the endpoint, None when its turn has ended. Raises Unavailable."""
        now, following = self._db.ask(lambda tx: (self._read_time(tx), delivery.next_events(tx, endpoint)))
        place, sent, began = endpoint.place, 0, time.monotonic()
        failed, error = None, None
        for event in following:
            if endpoint.wants(event):
                error = self._send(connection, endpoint, event, now)
                if error is not None:
                    failed = event
                    break
                sent += 1
            place = event.place
            if sent == COMMIT_EVENTS or time.monotonic() - began > COMMIT_SECONDS:
                break
        progress = delivery.Progress(place, sent > 0, failed, error)
        has_more = len(following) == delivery.READ_TOGETHER or (following and place != following[-1].place)
        ends = failed is not None or is_last or self._is_stopping or not has_more

        def save(tx: Tx) -> WebhookEndpoint | None:
            return delivery.save(tx, endpoint, progress, now=self._read_time(tx), ends=ends)

        saved = write_alone(self._db, save)
        return None if ends else saved

    def _send(
        self, connection: WebhookConnection, endpoint: WebhookEndpoint, event: Event, now: datetime
    ) -> str | None:
        """The error, or None when the endpoint has the event."""
        began = time.monotonic()
        body = orjson.dumps(event.content())
        keys = delivery.secrets_of(endpoint, self._link_secret, now)
        timestamp = int(now.timestamp())
        headers = signed_headers(keys, event_id=event.event_id, timestamp=timestamp, body=body)
        headers |= {"Content-Type": "application/json", "User-Agent": USER_AGENT}
        try:
            status = connection.post(body, headers)
        except NotDelivered as failure:
            return str(failure)
        finally:
            connection.slowest = max(connection.slowest, time.monotonic() - began)
        return None if 200 <= status < 300 else f"status_{status}"
