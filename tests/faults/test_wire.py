"""The HTTP form on the wire, by raw sockets: what the server's library lets through is answered and
logged like the rest.

Requests with bytes changed by chance get an answer below 500, or none.
"""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from frontdesk.api.routes import ENDPOINTS, PAGES
from frontdesk.clock import system_clock
from frontdesk.db import open_database
from frontdesk.operator.routes import ENDPOINTS as OPERATORS
from frontdesk.sandbox.door import ENDPOINTS as SANDBOX
from tests.api.hostile import compact
from tests.factories import EVERY_SCOPE, Customer, make_customer, member_body
from tests.faults.fuzzing import changed, changes, fuzz
from tests.faults.server import Server
from tests.formats.reading import HEADER
from tests.patience import wait_until

HOST = b"Host: api.example.com\r\n"
CHUNKED = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
# A request that a change has cut short has no answer; the next one need not wait for that.
CUT_SHORT_SECONDS = 0.2
TOKENS = b"""
    GET POST PUT PATCH DELETE HEAD OPTIONS TRACE CONNECT HTTP/1.0 HTTP/2.0 /v2/plans/1 /../ // /%2e%2e/
    ?page[size]=1 Transfer-Encoding:chunked Content-Length:5 Content-Length:-1 Expect:100-continue
    Content-Encoding:gzip Upgrade:h2c Connection:close Range:bytes=0-1 If-Match:*
    Prefer:handling=strict Accept:*/*;q=0 Authorization:Basic Bearer Idempotency-Key:x
    application/json text/csv multipart/form-data;boundary=x charset=utf-16 9223372036854775808
""".split()
BODIES = {
    "/eligibility": compact(member_body(1)),
    "/eligibility-files": f"{HEADER}1,2,Robin,Sample\n".encode(),
    "/oauth": b"grant_type=client_credentials&client_id=a&client_secret=b",
    "/queue-events": b'{"events": [{"event_id": "1", "type": "joined", "at": "2026-11-20T12:00:00Z"}]}',
    "/email-events": b'{"events": [{"message_id": "<a@b>", "event": "bounced", "status": "5.1.1"}]}',
    "/eligibility-mappings": compact({"columns": {"Last Name": "last_name"}}),
    "/v2/plans/": compact({"name": "Zo\u00eb"}),
}


@pytest.fixture(scope="module")
def server(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """On SQLite, beside its log. For tests of what is said on the wire: the database is not the
    point.
    """
    folder = tmp_path_factory.mktemp("server")
    database = folder / "frontdesk.db"
    database.write_bytes(sqlite_template.read_bytes())
    with Server(f"sqlite:///{database}", folder / "log") as running:
        yield running


def ask(server: Server, head: bytes, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
    """The answer's status, headers by lower-case name, and body, to what is sent as it is."""
    answer = b""
    with socket.create_connection((server.host, server.port), 10) as connection:
        connection.sendall(head + b"Connection: close\r\n\r\n" + body)
        while piece := connection.recv(65_536):
            answer += piece
    told, _, content = answer.partition(b"\r\n\r\n")
    first, *lines = told.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return int(first.split()[1]), {name.lower(): value for name, value in headers.items()}, content


# No port is 65536, and a comma makes two of a name.
BAD_HOSTS = b"[ [::1 user@127.0.0.1 a/b 127.0.0.1:x localhost:65536 [::1]:99999 a,b \xff".split()


BAD = [b"", HOST + HOST, HOST + b"Host: other.example.com\r\n"]


@pytest.mark.parametrize(
    "hosts", [*BAD, *(b"Host: %s\r\n" % bad for bad in (b"", b"a b", *BAD_HOSTS))]
)
def test_a_request_without_one_good_host_is_refused_by_every_door(
    server: Server, hosts: bytes
) -> None:
    for path in (b"/healthz", b"/sandbox/mailbox"):
        status, headers, content = ask(server, b"GET %s HTTP/1.1\r\n%s" % (path, hosts))
        assert (status, headers["content-type"]) == (400, "application/problem+json")
        assert b"#malformed" in content


def test_a_host_is_a_name_or_an_address_with_or_without_a_port(server: Server) -> None:
    for host in b"api.example.com:8443 [::1]:8000 my_service 127.0.0.1: localhost:65535".split():
        assert ask(server, b"GET /healthz HTTP/1.1\r\nHost: %s\r\n" % host)[0] == 200
    assert ask(server, b"GET /healthz HTTP/1.0\r\n")[0] == 200


def test_of_two_request_ids_none_is_the_callers(server: Server) -> None:
    ids = b"X-Request-Id: one\r\nX-Request-Id: two\r\n"
    _, headers, _ = ask(server, b"GET /healthz HTTP/1.1\r\n" + HOST + ids)
    assert headers["x-request-id"] not in {"one", "two", "one, two"}


@pytest.mark.parametrize(
    "body",
    [b"ZZ\r\nabc\r\n0\r\n\r\n", b"3\r\nabcdef\r\n0\r\n\r\n", b"-1\r\na\r\n", b"3\nabc\n0\n\n"],
)
def test_broken_chunks_are_refused_and_logged(server: Server, body: bytes) -> None:
    head = (
        b"POST /oauth/token HTTP/1.1\r\n"
        + HOST
        + CHUNKED
        + b"X-Request-Id: chunks-%d\r\n" % len(body)
    )
    status, headers, content = ask(server, head, body)
    assert (status, headers["x-request-id"]) == (400, f"chunks-{len(body)}")
    assert json.loads(content)["type"].endswith("#malformed")
    wait_until(
        lambda: f'"chunks-{len(body)}"' in server.log.read_text(), "the refusal to be logged"
    )


def test_bodies_in_pieces_leave_the_connection_to_the_next_request(server: Server) -> None:
    head = b"POST /oauth/token HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: "
    last = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    sent = head, b"9\r\n\r\ngrant", b"_typ" + head, b"0\r\n\r\n" + head, b"3\r\n\r\nabc" + last
    with socket.create_connection((server.host, server.port), 10) as connection:
        for piece in sent:
            connection.sendall(piece)
            time.sleep(CUT_SHORT_SECONDS / 4)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    heads = [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert [head for head in heads if head != b"100"] == [b"401", b"401", b"401", b"200"]


def test_a_caller_that_leaves_in_the_middle_of_a_body_is_logged_and_harms_nobody(
    server: Server,
) -> None:
    with socket.create_connection((server.host, server.port), 10) as connection:
        connection.sendall(
            b"POST /oauth/token HTTP/1.1\r\n"
            + HOST
            + b"X-Request-Id: left\r\nContent-Length: 100\r\n\r\n{"
        )
    wait_until(lambda: '"left"' in server.log.read_text(), "the request to be logged")
    assert "unexpected_error" not in server.log.read_text()
    assert ask(server, b"GET /healthz HTTP/1.1\r\n" + HOST)[0] == 200


def test_every_page_keeps_its_address_to_itself(server: Server) -> None:
    for path in (b"/docs", b"/problems", b"/register/x", b"/unsubscribe/x"):
        _, headers, content = ask(server, b"GET %s HTTP/1.1\r\n%s" % (path, HOST))
        assert content.lower().startswith(b"<!doctype html>")
        assert headers["referrer-policy"] == "no-referrer"
    status, headers, _ = ask(server, b"GET / HTTP/1.1\r\n" + HOST)
    assert (status, headers["location"]) == (307, "http://127.0.0.1:8000/docs")


def test_a_proxy_that_is_not_named_is_told_of_once(server: Server) -> None:
    for _ in range(2):
        ask(server, b"GET /healthz HTTP/1.1\r\n" + HOST + b"X-Forwarded-For: 192.0.2.1\r\n")
    wait_until(lambda: "proxy_not_trusted" in server.log.read_text(), "the proxy to be told of")
    ask(server, b"GET /healthz HTTP/1.1\r\n" + HOST + b"X-Request-Id: last\r\n")
    wait_until(lambda: '"last"' in server.log.read_text(), "the last request to be logged")
    assert server.log.read_text().count("proxy_not_trusted") == 1


@pytest.fixture(scope="module")
def caller(server: Server) -> Customer:
    with closing(open_database(f"sqlite:///{server.log.with_name('frontdesk.db')}")) as db:
        return make_customer(db, scopes=EVERY_SCOPE, now=system_clock())


def requests(customer: Customer) -> list[bytes]:
    """A good request of each route."""
    made = []
    for endpoint in (*ENDPOINTS, *PAGES, *OPERATORS, *SANDBOX):
        path = (
            endpoint.path.replace("{plan_id}", str(customer.plan_ids[0]))
            .replace("{", "")
            .replace("}", "")
        )
        body = next((body for part, body in BODIES.items() if part in path), b"")
        kind = "text/csv" if path.endswith("-files") else "application/json"
        kind = "application/x-www-form-urlencoded" if "/oauth" in path else kind
        head = (
            f"{endpoint.method} {path} HTTP/1.1\r\nHost: api.example.com\r\n"
            f"Authorization: Bearer {customer.token}\r\n"
        )
        head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        made.append(head.encode() + (body if endpoint.method not in ("GET", "DELETE") else b""))
    return made


def statuses(server: Server, sent: bytes) -> list[int]:
    """The status of each answer."""
    answer = b""
    with socket.create_connection((server.host, server.port), 10) as connection:
        connection.settimeout(CUT_SHORT_SECONDS)
        with suppress(TimeoutError, ConnectionError):
            connection.sendall(sent)
            while piece := connection.recv(65_536):
                answer += piece
    heads = [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]]
    return [int(head) for head in heads if head.isdigit()]


def test_requests_with_bytes_changed_are_never_our_fault(server: Server, caller: Customer) -> None:
    answered = 0

    def check(sent: bytes, wanted: Any, between: bytes) -> None:
        nonlocal answered
        found = statuses(server, changed(sent, wanted, between=between))
        assert all(status < 500 for status in found)
        answered += len(found)

    between = st.sampled_from([b"", b"\r\n", b" \r\n", b" /?&=:;,\r\n"])
    inputs = st.sampled_from(requests(caller)), changes(TOKENS), between
    fuzz(check, *inputs, examples=60)
    assert answered
    assert "unexpected_error" not in server.log.read_text(errors="replace")
    assert server.ready()
