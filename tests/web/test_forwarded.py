"""Whose address a request came from: what a caller writes into X-Forwarded-For never counts."""

from dataclasses import replace
from ipaddress import ip_network

import pytest
from starlette.testclient import TestClient

from frontdesk.app import App
from frontdesk.config import Config
from frontdesk.db import open_database
from frontdesk.installation import build_asgi
from frontdesk.web.request import caller_address
from frontdesk.web.telemetry import Telemetry
from tests.conftest import SetClock
from tests.factories import Customer
from tests.faults.in_process import Nowhere

PROXIES = [ip_network(text) for text in ("10.0.0.7/32", "192.168.4.0/24", "2001:db8:1::/48")]
PROXY = "10.0.0.7"
GUESSER = "203.0.113.9"
CUSTOMER = "198.51.100.1"


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        # Nobody vouches for what a stranger forwards.
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        # The proxy does: its entry is the last one.
        (PROXY, ["198.51.100.1"], "198.51.100.1"),
        (PROXY, ["6.6.6.6,198.51.100.1,192.168.4.1,10.0.0.7"], "198.51.100.1"),
        # Ways to write an address.
        ("::ffff:10.0.0.7", ["198.51.100.1"], "198.51.100.1"),
        (PROXY, ["198.51.100.1:4711"], "198.51.100.1"),
        (PROXY, ["2001:DB8:2::5"], "2001:db8:2::5"),
        (PROXY, ["[2001:db8:2::5]:443, [2001:db8:1::1]:80"], "2001:db8:2::5"),
        (PROXY, ["::ffff:198.51.100.1"], "198.51.100.1"),
        (PROXY, ["  198.51.100.1\t"], "198.51.100.1"),
        # Without a usable entry the last proxy that is known counts.
        (PROXY, [], PROXY),
        (PROXY, ["unknown"], PROXY),
        (PROXY, ["198.51.100.1, not an address, 192.168.4.1"], "192.168.4.1"),
        (PROXY, ["1" * 30_000], PROXY),
        (PROXY, ["٣.1.1.1"], PROXY),
        (PROXY, ["192.168.4.1, 192.168.4.2"], "192.168.4.1"),
    ],
)  # fmt: skip
def test_the_caller_is_the_last_that_is_no_proxy(
    peer: str, forwarded: list[str], address: str
) -> None:
    assert caller_address(peer, ", ".join(forwarded), PROXIES) == address


def test_without_trusted_proxies_the_connection_counts() -> None:
    assert caller_address("127.0.0.1", "198.51.100.1", []) == "127.0.0.1"


@pytest.mark.parametrize(
    ("peer", "sent"),
    [(PROXY, GUESSER), (PROXY, f"{CUSTOMER}, {GUESSER}"), (PROXY, f"198.51.100.{{}}, {GUESSER}, 192.168.4.1"),
     (GUESSER, "198.51.100.{}")],
)  # fmt: skip
def test_a_guesser_locks_out_nobody_else_whatever_it_writes_in_front(
    config: Config, clock: SetClock, customer: Customer, peer: str, sent: str
) -> None:
    app = App(
        replace(config, trusted_proxies=tuple(PROXIES)), open_database(config.database_url), clock
    )
    with TestClient(build_asgi(app, Telemetry(Nowhere())), client=(peer, 40_000)) as http:

        def ask(forwarded: str, secret: str) -> int:
            form = {
                "grant_type": "client_credentials",
                "client_id": customer.client_id,
                "client_secret": secret,
            }
            return http.post(
                "/oauth/token", data=form, headers={"X-Forwarded-For": forwarded}
            ).status_code

        # One client may fail ten times at one address.
        assert [ask(sent.format(n), "wrong") for n in range(31)] == [401] * 10 + [429] * 21
        assert peer == GUESSER or ask(CUSTOMER, customer.client_secret) == 200
