"""The HTTP form on the wire, by raw sockets: what the server's library lets through is answered and logged like the rest."""

import json
import socket

import pytest

from tests.faults.server import Server
from tests.patience import wait_until

HOST = b"Host: api.example.com\r\n"
CHUNKED = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"


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


@pytest.mark.parametrize(
    "hosts",
    [
        b"",
        HOST + HOST,
        HOST + b"Host: other.example.com\r\n",
        *(b"Host: %s\r\n" % bad for bad in (b"", b"a b", *BAD_HOSTS)),
    ],
)
def test_a_request_without_one_good_host_is_refused_by_every_door(server: Server, hosts: bytes) -> None:
    for path in (b"/healthz", b"/sandbox/mailbox"):
        status, headers, content = ask(server, b"GET %s HTTP/1.1\r\n%s" % (path, hosts))
        assert (status, headers["content-type"]) == (400, "application/problem+json")
        assert b"#malformed" in content


def test_a_name_or_an_address_with_or_without_a_port_is_a_host_and_http_1_0_needs_none(
    server: Server,
) -> None:
    for host in b"api.example.com:8443 [::1]:8000 my_service 127.0.0.1: localhost:65535".split():
        assert ask(server, b"GET /healthz HTTP/1.1\r\nHost: %s\r\n" % host)[0] == 200
    assert ask(server, b"GET /healthz HTTP/1.0\r\n")[0] == 200


def test_of_two_request_ids_none_is_the_callers(server: Server) -> None:
    ids = b"X-Request-Id: one\r\nX-Request-Id: two\r\n"
    _, headers, _ = ask(server, b"GET /healthz HTTP/1.1\r\n" + HOST + ids)
    assert headers["x-request-id"] not in {"one", "two", "one, two"}


@pytest.mark.parametrize(
    "body", [b"ZZ\r\nabc\r\n0\r\n\r\n", b"3\r\nabcdef\r\n0\r\n\r\n", b"-1\r\na\r\n", b"3\nabc\n0\n\n"]
)
def test_broken_chunks_are_refused_and_logged(server: Server, body: bytes) -> None:
    head = b"POST /oauth/token HTTP/1.1\r\n" + HOST + CHUNKED + b"X-Request-Id: chunks-%d\r\n" % len(body)
    status, headers, content = ask(server, head, body)
    assert (status, headers["x-request-id"]) == (400, f"chunks-{len(body)}")
    assert json.loads(content)["type"].endswith("#malformed")
    wait_until(lambda: f'"chunks-{len(body)}"' in server.log.read_text(), "the refusal to be logged")


def test_a_caller_that_leaves_in_the_middle_of_a_body_is_logged_and_harms_nobody(server: Server) -> None:
    with socket.create_connection((server.host, server.port), 10) as connection:
        connection.sendall(
            b"POST /oauth/token HTTP/1.1\r\n" + HOST + b"X-Request-Id: left\r\nContent-Length: 100\r\n\r\n{"
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
