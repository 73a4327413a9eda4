"""A receiver may answer anything: each answer is a delivery or an error with a word, a pause and an
end.
"""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.events import delivery
from frontdesk.events.signature import signed_headers
from frontdesk.events.target import parse_target
from frontdesk.worker import webhooks
from frontdesk.worker.exchange import ANSWER_BYTES, NotDelivered, WebhookConnection
from frontdesk.worker.pacing import ReceiverPaces
from tests.events.desk import Desk
from tests.events.raw import GOOD, Answer, Ending, RawReceiver, answering_raw

CLOSED = Ending.CLOSED
KEPT = Ending.KEPT
RESET = Ending.RESET
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"

DELIVERED = {
    "204 of HTTP/1.0 that closes": Answer(b"HTTP/1.0 204 No Content\r\n\r\n", CLOSED),
    "empty answer that says it closes": Answer(
        OK + b"Connection: close\r\nContent-Length: 0\r\n\r\n", CLOSED
    ),
    "empty answer that closes without a word": Answer(OK + b"Content-Length: 0\r\n\r\n", CLOSED),
    "reset after a whole answer": Answer(OK + b"Content-Length: 0\r\n\r\n", RESET),
    "answer with a body": Answer(OK + b"Content-Length: 2\r\n\r\nok"),
    "body until the connection ends": Answer(b"HTTP/1.0 200 OK\r\n\r\nthank you", CLOSED),
    "no body until the connection ends": Answer(OK + b"\r\n", CLOSED),
    "chunks": Answer(CHUNKED + b"2\r\nok\r\n0\r\n\r\n"),
    "chunks with extensions and trailers": Answer(
        CHUNKED + b"2;a=b\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n"
    ),
    "100 Continue before the answer": Answer(b"HTTP/1.1 100 Continue\r\n\r\n" + GOOD),
    "early hints before the answer": Answer(HINTS * 3 + GOOD),
    "folded header": Answer(OK + b"X-Long: a\r\n b\r\n\tc\r\nContent-Length: 0\r\n\r\n"),
    "header without a value": Answer(OK + b"X-Empty:\r\nContent-Length: 0\r\n\r\n"),
    "letters beyond ASCII": Answer(
        "HTTP/1.1 200 Schön\r\nX: ü\r\nContent-Length: 0\r\n\r\n".encode()
    ),
    "lines that end with LF": Answer(b"HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
    "no reason": Answer(b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"),
    "garbage behind the answer": Answer(GOOD + b"\x00\xff garbage"),
    "second answer behind the first": Answer(
        GOOD + b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n"
    ),
    "204 that announces a body": Answer(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"),
    "204 with a body": Answer(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
    "long body": Answer(OK + b"Content-Length: 1000000\r\n\r\n" + b"z" * 200_000),
    "endless body": Answer(OK + b"\r\n" + b"z" * 200_000, CLOSED),
    "endless chunks of a byte": Answer(CHUNKED + b"1\r\nz\r\n" * 30_000),
    "endless trailers": Answer(CHUNKED + b"0\r\n" + b"X: z\r\n" * 30_000),
    "length of a number with many digits": Answer(
        OK + b"Content-Length: " + b"9" * 19 + b"\r\n\r\n" + b"z" * 200_000
    ),
}
FAILED = {
    "status_301": Answer(
        b"HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n"
    ),
    "status_500": Answer(b"HTTP/1.1 500 Broken\r\nContent-Length: 4\r\n\r\nsick"),
    "status_999": Answer(b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n"),
    "connection: nothing": Answer(b"", CLOSED),
    "connection: reset": Answer(b"", RESET),
    "connection: half of a line": Answer(b"HTTP/1.", CLOSED),
    "connection: half of the head": Answer(OK + b"X-A: b\r\n", CLOSED),
    "connection: half of the body": Answer(OK + b"Content-Length: 9\r\n\r\nhalf", CLOSED),
    "connection: half of a chunk": Answer(CHUNKED + b"9\r\nhalf", RESET),
    "connection: chunks without an end": Answer(CHUNKED + b"4\r\nhalf\r\n", CLOSED),
    "connection: only 1xx": Answer(HINTS, CLOSED),
    "answer_too_large: endless header": Answer(OK + b"X: " + b"z" * 200_000),
    "answer_too_large: endless headers": Answer(OK + b"X: z\r\n" * 30_000),
    "answer_too_large: endless 1xx": Answer(HINTS * 5_000),
    "malformed_answer: no HTTP": Answer(b"hello\r\n\r\n", CLOSED),
    "malformed_answer: TLS": Answer(b"\x15\x03\x01\x00\x02\x02\x28"),
    "malformed_answer: HTTP/2": Answer(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03"),
    "malformed_answer: status of two digits": Answer(b"HTTP/1.1 20 OK\r\n\r\n"),
    "malformed_answer: status in Arabic digits": Answer("HTTP/1.1 ٢٠٠ OK\r\n\r\n".encode()),
    "malformed_answer: switched protocols": Answer(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"
    ),
    "malformed_answer: negative length": Answer(OK + b"Content-Length: -1\r\n\r\n"),
    "malformed_answer: two lengths": Answer(
        OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nzz"
    ),
    "malformed_answer: length of 5,000 digits": Answer(
        OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n"
    ),
    "malformed_answer: length that is no number": Answer(OK + b"Content-Length: many\r\n\r\n"),
    "malformed_answer: negative chunk": Answer(CHUNKED + b"-1\r\nz\r\n"),
    "malformed_answer: chunk without a size": Answer(CHUNKED + b"\r\nz\r\n"),
    "malformed_answer: chunk longer than its size": Answer(CHUNKED + b"1\r\nzzzz\r\n0\r\n\r\n"),
    "malformed_answer: header without a name": Answer(OK + b": x\r\nContent-Length: 0\r\n\r\n"),
    "malformed_answer: header without a colon": Answer(
        OK + b"nonsense\r\nContent-Length: 0\r\n\r\n"
    ),
    "malformed_answer: NUL in a header": Answer(OK + b"X: a\x00b\r\nContent-Length: 0\r\n\r\n"),
    "malformed_answer: folded first header": Answer(OK + b" x\r\nContent-Length: 0\r\n\r\n"),
    "malformed_answer: unknown coding": Answer(OK + b"Transfer-Encoding: gzip\r\n\r\nzz"),
}
TLS = ssl.create_default_context()
WORDS = {"connection", "answer_too_large", "malformed_answer", "timeout"}


@pytest.fixture
def receiver() -> Iterator[RawReceiver]:
    with answering_raw() as found:
        yield found


def numbers_of(receiver: RawReceiver) -> list[int]:
    return [json.loads(body)["data"]["eligibility_id"] for body in receiver.bodies]


def seconds_until_retry(desk: Desk, shown: Any) -> float:
    return (datetime.fromisoformat(shown["next_attempt_at"]) - desk.clock()).total_seconds()


@pytest.mark.parametrize("name", DELIVERED)
def test_a_whole_answer_is_a_delivery_however_odd_it_is(
    desk: Desk, receiver: RawReceiver, name: str
) -> None:
    receiver.answer = lambda number: DELIVERED[name] if number == 0 else Answer(GOOD)
    endpoint = desk.create(receiver.url)
    desk.happen(1, 2)
    desk.turn()
    assert numbers_of(receiver) == [1, 2]
    shown = desk.show(endpoint)
    assert (shown["last_error"], shown["attempts"]) == (None, 0)
    assert desk.log.getvalue() == ""


@pytest.mark.parametrize("name", FAILED)
def test_any_other_answer_is_a_failure_with_a_word_and_a_pause(
    desk: Desk, receiver: RawReceiver, name: str
) -> None:
    receiver.answer = lambda number: FAILED[name] if number < 2 else Answer(GOOD)
    endpoint = desk.create(receiver.url)
    desk.happen(1, 2)
    desk.turn()
    shown = desk.show(endpoint)
    assert (shown["last_error"], shown["attempts"]) == (name.partition(":")[0], 1)
    assert 0 <= seconds_until_retry(desk, shown) <= 1
    desk.turn()  # too early
    assert numbers_of(receiver) == [1]
    desk.clock.advance(10)
    desk.turn()
    shown = desk.show(endpoint)
    assert shown["attempts"] == 2
    assert 1 <= seconds_until_retry(desk, shown) <= 2
    desk.clock.advance(20)
    desk.turn()
    assert numbers_of(receiver) == [1, 1, 1, 2]
    shown = desk.show(endpoint)
    assert (shown["last_error"], shown["attempts"], shown["failing_since"]) == (None, 0, None)
    assert desk.log.getvalue() == ""


def test_a_connection_that_was_closed_while_it_was_idle_is_made_anew(
    desk: Desk, receiver: RawReceiver
) -> None:
    """Once, and without an attempt: nothing of an answer came, so the receiver may not have the
    webhook.
    """
    receiver.answer = lambda number: Answer(GOOD, CLOSED if number % 2 else KEPT)
    desk.create(receiver.url)
    desk.happen(*range(6))
    desk.turn()
    assert numbers_of(receiver) == [*range(6)]
    assert receiver.connections == 3


def test_bytes_behind_an_answer_end_the_connection(desk: Desk, receiver: RawReceiver) -> None:
    receiver.answer = lambda number: Answer(GOOD + b"garbage" if number == 0 else GOOD)
    desk.create(receiver.url)
    desk.happen(1, 2, 3)
    desk.turn()
    assert (numbers_of(receiver), receiver.connections) == ([1, 2, 3], 2)


def test_a_late_second_answer_is_not_that_of_the_next_webhook() -> None:
    with connection_with([GOOD, GOOD]) as connection:
        assert connection.post(b"{}", {}) == 204
        connection.close()
        ours, theirs = socket.socketpair()
        with theirs:
            connection._socket = ours
            theirs.sendall(b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n")
            assert connection.post(b"{}", {}) == 204


def test_a_kept_connection_that_ends_without_an_answer_is_tried_again_once(
    desk: Desk, receiver: RawReceiver
) -> None:
    silent = Answer(b"", CLOSED)
    receiver.answer = lambda number: Answer(GOOD) if number == 0 else silent
    endpoint = desk.create(receiver.url)
    desk.happen(1, 2)
    desk.turn()
    assert numbers_of(receiver) == [1, 2, 2]
    assert desk.show(endpoint)["last_error"] == "connection"


def test_a_part_of_an_answer_on_a_kept_connection_is_not_tried_again_at_once(
    desk: Desk, receiver: RawReceiver
) -> None:
    receiver.answer = lambda number: Answer(GOOD) if number == 0 else Answer(b"H", CLOSED)
    desk.create(receiver.url)
    desk.happen(1, 2)
    desk.turn()
    assert numbers_of(receiver) == [1, 2]


@pytest.mark.parametrize("what", ["next_events", "save"])
def test_a_turn_that_breaks_costs_the_endpoint_an_attempt(
    desk: Desk, receiver: RawReceiver, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Otherwise the same webhooks would go out each minute, for ever and in silence."""
    endpoint = desk.create(receiver.url)
    desk.happen(1)
    works = getattr(delivery, what)
    calls: list[int] = []

    def breaks(*values: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError
        return works(*values, **options)

    with monkeypatch.context() as patched:
        patched.setattr(delivery, what, breaks)
        desk.turn()
        before = len(receiver.bodies)
        desk.turn()  # too early
        assert len(receiver.bodies) == before
    shown = desk.show(endpoint)
    assert (shown["last_error"], shown["attempts"]) == ("internal_error", 1)
    assert 0 <= seconds_until_retry(desk, shown) <= 1
    assert "ZeroDivisionError" in desk.log.getvalue()
    desk.clock.advance(10)
    desk.turn()
    assert numbers_of(receiver)[-1] == 1
    assert desk.show(endpoint)["last_error"] is None


def test_a_turn_that_always_breaks_ends_with_a_pause(
    desk: Desk, receiver: RawReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = desk.create(receiver.url)
    desk.happen(1)
    monkeypatch.setattr(delivery, "next_events", lambda *_: 1 / 0)
    desk.turn()
    desk.clock.advance(delivery.PAUSE_AFTER.total_seconds() + 1)
    desk.turn()
    shown = desk.show(endpoint)
    assert (shown["state"], shown["paused_reason"], shown["attempts"]) == ("paused", "failing", 2)


def test_an_event_that_cannot_be_sent_is_given_up_like_others(
    desk: Desk, receiver: RawReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign = signed_headers

    def break_for_the_first(*values: Any, **options: Any) -> dict[str, str]:
        if b'"eligibility_id":1' in options["body"]:
            raise ZeroDivisionError
        return sign(*values, **options)

    monkeypatch.setattr(webhooks, "signed_headers", break_for_the_first)
    endpoint = desk.create(receiver.url)
    desk.happen(1, 2)
    desk.turn()
    shown = desk.show(endpoint)
    assert (shown["last_error"], shown["attempts"]) == ("internal_error", 1)
    desk.clock.advance(delivery.GIVE_UP_AFTER.total_seconds() + 1)
    desk.turn()
    desk.turn()
    assert numbers_of(receiver) == [2]


@contextmanager
def connection_with(contents: list[bytes]) -> Iterator[WebhookConnection]:
    """A connection of which each socket has one of these answers, and then ends."""
    waiting = iter(contents)
    receivers: list[socket.socket] = []

    def connect(_: WebhookConnection, _deadline: float) -> socket.socket:
        ours, theirs = socket.socketpair()
        receivers.append(theirs)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * ANSWER_BYTES)
        theirs.sendall(next(waiting))
        theirs.shutdown(socket.SHUT_WR)
        return ours

    target = parse_target("http://127.0.0.1:1/", allows_loopback=True)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(WebhookConnection, "_connect", connect)
        with closing(WebhookConnection(target, TLS, ReceiverPaces())) as connection:
            yield connection
    for theirs in receivers:
        theirs.close()


def outcome_of(connection: WebhookConnection) -> int | str:
    try:
        return connection.post(b"{}", {})
    except NotDelivered as failure:
        return str(failure)


ANSWERS = [
    answer.content
    for answer in (*DELIVERED.values(), *FAILED.values())
    if len(answer.content) < ANSWER_BYTES
]
TOKENS = [
    b"\r\n",
    b"\n",
    b"\r",
    b":",
    b" ",
    b"\t",
    b"\x00",
    b"0\r\n\r\n",
    b"-",
    b"HTTP/1.1 ",
    b"Content-Length: ",
    b"\xff",
]


@st.composite
def damaged_answers(draw: st.DrawFn) -> bytes:
    """An answer of which parts are cut out, repeated and replaced by others."""
    content = draw(st.sampled_from(ANSWERS)) + draw(st.sampled_from([b"", *ANSWERS]))
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 20)))
        middle = draw(st.sampled_from([*TOKENS, content[start:end] * 2]) | st.binary(max_size=8))
        content = content[:start] + middle + content[end:]
    return content[:ANSWER_BYTES]


@settings(max_examples=400, deadline=None)
@given(damaged_answers(), st.binary(max_size=200))
def test_whatever_comes_back_is_a_status_or_a_word(damaged: bytes, noise: bytes) -> None:
    for content in (damaged, noise):
        with connection_with([content, GOOD, GOOD]) as connection:
            outcome = outcome_of(connection)
            assert outcome in WORDS or outcome in range(200, 1000)
            assert outcome_of(connection) == 204  # the next webhook gets its own answer


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
def test_pythons_server_takes_webhooks(desk: Desk, version: str) -> None:
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = version

        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        endpoint = desk.create(f"http://127.0.0.1:{server.server_address[1]}")
        desk.happen(*range(5))
        desk.turn()
        server.shutdown()
        thread.join()
    assert [json.loads(body)["data"]["eligibility_id"] for body in bodies] == [*range(5)]
    assert desk.show(endpoint)["last_error"] is None


def test_uvicorn_takes_webhooks(desk: Desk) -> None:
    bodies: list[bytes] = []

    async def receive(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        bodies.append(message["body"])
        status = 200 if len(bodies) % 2 else 204
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"ok" if status == 200 else b""})

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(receive, lifespan="off", log_config=None))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        endpoint = desk.create(f"http://127.0.0.1:{listening.getsockname()[1]}")
        desk.happen(*range(5))
        desk.turn()
        server.should_exit = True
        thread.join()
    assert [json.loads(body)["data"]["eligibility_id"] for body in bodies] == [*range(5)]
    assert desk.show(endpoint)["last_error"] is None
