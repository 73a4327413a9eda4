"""A webhook never reaches a machine of the installation: neither by the endpoint's address nor by
what its name leads to.
"""

import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from frontdesk.access.model import Scope
from frontdesk.db import Database
from frontdesk.events.target import may_connect, parse_target
from frontdesk.worker.exchange import NotDelivered, WebhookConnection
from frontdesk.worker.pacing import ReceiverPaces
from tests.conftest import Api
from tests.factories import Customer, second_token
from tests.mail.certificate import CERTIFICATE, KEY

PUBLIC = [
    "93.184.215.14",
    "8.8.8.8",
    "172.15.0.1",
    "172.32.0.1",
    "2606:2800:21f::1",
    "2a00:1450::1",
]
CLOSED = [
    *(
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "100.64.0.1",
    ),
    *(
        "169.254.169.254",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "198.18.0.1",
        "192.0.2.1",
        "192.0.0.170",
    ),
    *(
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
    ),
    *(
        "::ffff:8.8.8.8",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001::1",
        "2001:db8::1",
    ),
    *("fec0::1", "", "localhost", "2130706433"),
]
REFUSED = [
    *(
        "http://hooks.example.com",
        "ftp://hooks.example.com",
        "hooks.example.com",
        "https://",
        "https:///x",
        "",
    ),
    *(
        "https://user@hooks.example.com",
        "https://user:pw@hooks.example.com",
        "https://hooks.example.com/#x",
    ),
    *(
        "https://hooks.example.com:0",
        "https://hooks.example.com:65536",
        "https://hooks.example.com:x",
        "//a.example",
    ),
    *(
        "https://hooks.example.com/a b",
        "https://hooks.example.com/a\r\nX: 1",
        "https://hooks.example.com\\@127.0.0.1",
    ),
    *(
        "https://bücher.example",
        "https://[::1",
        "https://a..b",
        "https://-a.example",
        "https://a.example/" + "x" * 2000,
    ),
    *(
        "https://localhost",
        "https://x.localhost",
        "https://127.0.0.1",
        "https://[::1]",
        "https://169.254.169.254/latest",
    ),
    *(
        "https://10.0.0.1",
        "https://[fd00:ec2::254]",
        "https://[::ffff:10.0.0.1]",
        "http://127.0.0.1",
        "https://0.0.0.0",
    ),
]


@pytest.mark.parametrize("url", REFUSED)
def test_an_address_that_may_lead_inside_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="must"):
        parse_target(url, allows_loopback=False)


def test_an_https_address_on_the_internet_is_taken() -> None:
    target = parse_target("https://hooks.example.com:8443/a?b=c%20d", allows_loopback=False)
    assert target[:5] == (True, "hooks.example.com", 8443, "/a?b=c%20d", "hooks.example.com:8443")
    assert parse_target("https://[2606:2800:21f::1]", allows_loopback=False).port == 443


def test_a_sandbox_takes_its_own_machine_by_name_only() -> None:
    local = parse_target("http://127.0.0.1:8080/x", allows_loopback=True)
    assert may_connect(local, "127.0.0.1")
    assert not may_connect(local, "10.0.0.1")
    named = parse_target("https://hooks.example.com", allows_loopback=True)
    assert not may_connect(named, "127.0.0.1")
    for url in ("http://hooks.example.com", "https://10.0.0.1", "http://169.254.169.254"):
        with pytest.raises(ValueError, match="must"):
            parse_target(url, allows_loopback=True)


@pytest.mark.parametrize("address", CLOSED)
def test_no_closed_address_is_connected_to(address: str) -> None:
    assert not may_connect(
        parse_target("https://hooks.example.com", allows_loopback=False), address
    )


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_connected_to(address: str) -> None:
    assert may_connect(parse_target("https://hooks.example.com", allows_loopback=False), address)


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Every name leads to these addresses; returns the names that are looked up."""
    asked: list[str] = []

    def look_up(host: str, port: int, **_: object) -> list[Any]:
        asked.append(host)
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses
        ]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["169.254.169.254"], []]
)
def test_a_name_that_leads_inside_gets_no_connection(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    resolving(monkeypatch, *addresses)
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("connected"))
    connection = WebhookConnection(
        parse_target("https://hooks.example.com", allows_loopback=True),
        ssl.create_default_context(),
        ReceiverPaces(),
    )
    with pytest.raises(NotDelivered, match="forbidden_address"):
        connection.post(b"{}", {})


def test_the_connection_goes_to_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = resolving(monkeypatch, "8.8.8.8")
    connected = list[object]()

    def connect(_: socket.socket, address: object) -> None:
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    target = parse_target("https://hooks.example.com", allows_loopback=False)
    with pytest.raises(NotDelivered, match="connection"):
        WebhookConnection(target, ssl.create_default_context(), ReceiverPaces()).post(b"{}", {})
    assert (asked, connected) == (["hooks.example.com"], [("8.8.8.8", 443)])


def test_a_certificate_of_another_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pem").write_text(KEY + CERTIFICATE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pem")
    with socket.create_server(("127.0.0.1", 0)) as server:
        target = parse_target(f"https://127.0.0.1:{server.getsockname()[1]}", allows_loopback=True)
        import threading

        def serve() -> None:
            plain, _ = server.accept()
            try:
                context.wrap_socket(plain, server_side=True).close()
            except OSError:
                plain.close()

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(NotDelivered, match="certificate"):
            WebhookConnection(target, ssl.create_default_context(), ReceiverPaces()).post(b"{}", {})
        thread.join()


def test_every_fault_of_an_endpoint_is_told(api: Api, db: Database, customer: Customer) -> None:
    manager = api.as_(second_token(db, customer.account_id, Scope.WEBHOOKS_MANAGE))
    path = "/v2/webhook-endpoints"
    for body, codes in (
        ({}, {"url": "required"}),
        ({"url": 7, "event_types": {}, "state": []},
         {"url": "wrong_type", "event_types": "wrong_type", "state": "wrong_type"}),
        ({"url": "https://10.0.0.1", "event_types": ["member.x"]},
         {"url": "not_allowed", "event_types": "not_allowed"}),
        ({"url": "https://a.example", "event_types": [[]]}, {"event_types": "not_allowed"}),
    ):  # fmt: skip
        answer = manager.post(path, body)
        assert answer.status_code == 422
        assert {fault["field"]: fault["code"] for fault in answer.json()["errors"]} == codes
    for _ in range(10):
        assert manager.post(path, {"url": "https://a.example"}).status_code == 201
    assert manager.post(path, {"url": "https://a.example"}).status_code == 422
    assert api.get(path).status_code == 403
