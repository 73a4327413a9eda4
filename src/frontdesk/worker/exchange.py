"""One webhook over HTTP/1.1: to an address that was checked, within limits of time and size
(docs/webhooks.md).

The name of an endpoint is resolved once, every address that it leads to is checked, and the
connection goes to a checked address: a second resolution could lead elsewhere. No redirect is
followed, and no proxy of the environment is used.

h11 writes the request and reads the answer (docs/decisions/0153-answers-of-receivers.md). A
receiver may answer anything: `post` returns a status or raises NotDelivered, whatever the bytes
are.
"""

import select
import socket
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass

import h11

from frontdesk.events.target import WebhookTarget, may_connect
from frontdesk.worker.pacing import ReceiverPaces

ANSWER_SECONDS = 10.0  # for connection, request and answer together
ANSWER_BYTES = 64 * 1024  # that are read of an answer
BODY_BYTES = 16 * 1024  # that are read of its body; a longer one costs the connection


class NotDelivered(Exception):
    """The webhook was not taken. The text is a word for the endpoint's owner; it holds nothing that
    was received.
    """


class _AnswerTooLarge(NotDelivered):
    """The answer has ANSWER_BYTES, and no end yet."""


class _IdleConnectionClosed(Exception):
    """The receiver closed the kept connection before it had the webhook: another connection may be
    tried.
    """


def seconds_left(deadline: float) -> float:
    """Raises TimeoutError when the deadline has passed."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _AnswerReader:
    """Reads from a socket until a deadline, and up to a number of bytes, however slowly they come."""

    def __init__(self, connected: socket.socket, deadline: float) -> None:
        self._socket = connected
        self._deadline = deadline
        self.received = 0

    def read(self) -> bytes:
        """The next bytes; b"" when the receiver has closed the connection. Raises OSError, and
        NotDelivered.
        """
        if self.received >= ANSWER_BYTES:
            raise _AnswerTooLarge("answer_too_large")
        self._socket.settimeout(seconds_left(self._deadline))
        data = self._socket.recv(ANSWER_BYTES - self.received)
        self.received += len(data)
        return data


@dataclass(slots=True)
class WebhookConnection:
    """A connection to one endpoint, kept for the events of a turn. `slowest`: the longest time of a
    webhook, in seconds.
    """

    target: WebhookTarget
    tls: ssl.SSLContext
    paces: ReceiverPaces
    slowest: float = 0.0
    _socket: socket.socket | None = None
    _address: str = ""

    def post(self, body: bytes, headers: dict[str, str], deadline: float | None = None) -> int:
        """The status of the answer. Raises NotDelivered."""
        self._keep_pace(self.target.host)
        if deadline is None:
            deadline = time.monotonic() + ANSWER_SECONDS
        protocol, request = self._written(body, headers)
        if self._socket is not None and _has_bytes(self._socket):
            # The receiver has closed it, or has sent what belongs to no request.
            self.close()
        if self._socket is not None:
            self._keep_pace(self._address)
            try:
                return self._attempt(self._socket, protocol, request, deadline, is_kept=True)
            except _IdleConnectionClosed:
                protocol, request = self._written(body, headers)
        self._socket = self._connect_or_fail(deadline)
        self._keep_pace(self._address)
        return self._attempt(self._socket, protocol, request, deadline, is_kept=False)

    def _keep_pace(self, receiver: str) -> None:
        """Programs on a developer's own machine need no protection."""
        if not self.target.may_be_local:
            self.paces.wait(receiver)

    def close(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.close()
            self._socket = None

    def _written(self, body: bytes, headers: dict[str, str]) -> tuple[h11.Connection, bytes]:
        """The state of a new exchange, and the bytes of its request."""
        protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=ANSWER_BYTES)
        of_message = {"Host": self.target.host_header, "Content-Length": str(len(body))}
        request = h11.Request(
            method="POST", target=self.target.path, headers=[*(of_message | headers).items()]
        )
        parts = [
            protocol.send(request),
            protocol.send(h11.Data(body)),
            protocol.send(h11.EndOfMessage()),
        ]
        return protocol, b"".join(part for part in parts if part)

    def _attempt(
        self,
        connected: socket.socket,
        protocol: h11.Connection,
        request: bytes,
        deadline: float,
        *,
        is_kept: bool,
    ) -> int:
        """The status of the answer; the connection stays open if another exchange can follow.

        Raises NotDelivered, and _IdleConnectionClosed if a kept connection ended before a byte of
        the answer.
        """
        reader = _AnswerReader(connected, deadline)
        try:
            # A receiver may answer and close before it has read the request: then the answer
            # counts.
            with suppress(ConnectionError):
                connected.settimeout(seconds_left(deadline))
                connected.sendall(request)
            status, is_complete = _read_answer(protocol, reader)
        except Exception as failure:  # noqa: BLE001 - whatever an answer makes h11 raise has a word
            self.close()
            is_silent = reader.received == 0 and isinstance(failure, OSError)
            if is_kept and is_silent and not isinstance(failure, TimeoutError):
                raise _IdleConnectionClosed from None
            raise _not_delivered(failure) from None
        if not is_complete or protocol.their_state is not h11.DONE or protocol.trailing_data[0]:
            # What stands behind the answer would be taken for the answer to the next webhook.
            self.close()
        return status

    def _connect_or_fail(self, deadline: float) -> socket.socket:
        """Raises NotDelivered."""
        try:
            return self._connect(deadline)
        except (OSError, NotDelivered) as failure:
            raise _not_delivered(failure) from None

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
                self._address = str(address[0])
                return connected
        raise error


def _has_bytes(connected: socket.socket) -> bool:
    """Whether the socket of an idle connection has something to read: its end, or bytes that no one
    asked for.
    """
    if isinstance(connected, ssl.SSLSocket) and connected.pending():
        return True
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return bool(poll.poll(0))


def _read_answer(protocol: h11.Connection, reader: _AnswerReader) -> tuple[int, bool]:
    """The status of the answer, and whether it was read to its end. Of a long body only the start
    is read: the status counts.

    Raises OSError, NotDelivered, and h11.RemoteProtocolError for what is no answer.
    """
    answer = _next_event(protocol, reader)
    while not isinstance(answer, h11.Response):  # 100 Continue and the like come before it
        answer = _next_event(protocol, reader)
    body_size = 0
    with suppress(_AnswerTooLarge):
        while body_size <= BODY_BYTES:
            event = _next_event(protocol, reader)
            if not isinstance(event, h11.Data):
                return answer.status_code, True
            body_size += len(event.data)
    return answer.status_code, False


def _next_event(protocol: h11.Connection, reader: _AnswerReader) -> h11.Event:
    while True:
        event = protocol.next_event()
        if isinstance(event, h11.Event):
            return event
        data = reader.read()
        protocol.receive_data(data)
        if not data:
            return _event_of_close(protocol)


def _event_of_close(protocol: h11.Connection) -> h11.Event:
    """The end of a body that lasts until the connection is closed. Raises ConnectionResetError in
    the middle of an answer.
    """
    with suppress(h11.RemoteProtocolError):
        event = protocol.next_event()
        if isinstance(event, h11.EndOfMessage):
            return event
    raise ConnectionResetError


def _not_delivered(failure: Exception) -> NotDelivered:
    if isinstance(failure, NotDelivered):
        return failure
    if isinstance(failure, TimeoutError):
        return NotDelivered("timeout")
    if isinstance(failure, ssl.SSLCertVerificationError):
        return NotDelivered("certificate")
    return NotDelivered("connection" if isinstance(failure, OSError) else "malformed_answer")
