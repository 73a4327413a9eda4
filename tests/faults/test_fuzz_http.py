"""The HTTP door, fuzzed on a live server by raw sockets: requests with bytes changed get an answer below 500, or none."""

import socket
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from frontdesk.api.routes import ENDPOINTS, PAGES
from frontdesk.clock import system_clock
from frontdesk.db import open_database
from frontdesk.operator.routes import ENDPOINTS as OPERATORS
from tests.api.hostile import compact
from tests.factories import Customer, make_customer, member_body
from tests.faults.fuzzing import changed, changes, fuzz
from tests.faults.server import Server
from tests.formats.reading import HEADER

# A request that a change has cut short has no answer; the next one need not wait for that.
PATIENCE_SECONDS = 0.2
TOKENS = b"""
    GET POST PUT PATCH DELETE HEAD OPTIONS TRACE CONNECT HTTP/1.0 HTTP/2.0 /v2/plans/1 /../ // /%2e%2e/ ?page[size]=1
    Transfer-Encoding:chunked Content-Length:5 Content-Length:-1 Expect:100-continue Content-Encoding:gzip Upgrade:h2c
    Connection:close Range:bytes=0-1 If-Match:* Prefer:handling=strict Accept:*/*;q=0 Authorization:Basic Bearer
    Idempotency-Key:x application/json text/csv multipart/form-data;boundary=x charset=utf-16 9223372036854775808
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
def caller(server: Server) -> Customer:
    db = open_database(f"sqlite:///{server.log.with_name('frontdesk.db')}")
    made = make_customer(db, now=system_clock())
    db.close()
    return made


def requests(customer: Customer) -> list[bytes]:
    """A good request of each route."""
    made = []
    for endpoint in (*ENDPOINTS, *PAGES, *OPERATORS):
        path = endpoint.path.replace("{plan_id}", str(customer.plan_ids[0])).replace("{", "").replace("}", "")
        body = next((body for part, body in BODIES.items() if part in path), b"")
        kind = "text/csv" if path.endswith("-files") else "application/json"
        kind = "application/x-www-form-urlencoded" if "/oauth" in path else kind
        head = f"{endpoint.method} {path} HTTP/1.1\r\nHost: api.example.com\r\nAuthorization: Bearer {customer.token}\r\n"
        head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        made.append(head.encode() + (body if endpoint.method not in ("GET", "DELETE") else b""))
    return made


def statuses(server: Server, sent: bytes) -> list[int]:
    """The status of each answer."""
    answer = b""
    with socket.create_connection((server.host, server.port), 10) as connection:
        connection.settimeout(PATIENCE_SECONDS)
        try:
            connection.sendall(sent)
            while piece := connection.recv(65_536):
                answer += piece
        except (TimeoutError, ConnectionError):
            pass
    heads = [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]]
    return [int(head) for head in heads if head.isdigit()]


def test_requests(server: Server, caller: Customer, record_property: Callable[[str, object], None]) -> None:
    answered = 0

    def check(sent: bytes, wanted: Any, between: bytes) -> None:
        nonlocal answered
        found = statuses(server, changed(sent, wanted, between=between))
        assert all(status < 500 for status in found)
        answered += len(found)

    between = st.sampled_from([b"", b"\r\n", b" \r\n", b" /?&=:;,\r\n"])
    inputs = st.sampled_from(requests(caller)), changes(TOKENS), between
    record_property("calls", fuzz(check, *inputs, examples=60))
    record_property("answered", answered)
    assert answered
    assert "unexpected_error" not in server.log.read_text(errors="replace")
    assert server.ready()
