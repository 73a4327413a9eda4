"""Failed attempts are counted per caller, also behind the installation's own proxies, and no header moves the count."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import pytest
from starlette.testclient import TestClient

from frontdesk.app import App
from frontdesk.asgi import build_asgi
from frontdesk.config import Config
from frontdesk.db import open_database
from frontdesk.web.telemetry import Telemetry
from tests.conftest import SetClock
from tests.factories import Customer
from tests.faults.in_process import Nowhere

PROXY, GUESSER, CUSTOMER = "10.0.0.7", "203.0.113.9", "198.51.100.1"


@contextmanager
def reached_from(peer: str, config: Config, clock: SetClock, customer: Customer) -> Iterator[Any]:
    """A function that asks for tokens from there, one time more than an address may fail; the statuses."""
    trusting = replace(config, trusted_proxies=(ip_network("10.0.0.0/29"),))
    asgi = build_asgi(App(trusting, open_database(config.database_url), clock), Telemetry(Nowhere()))
    with TestClient(asgi, client=(peer, 40_000)) as http:

        def ask(forwarded: str, secret: str = "wrong", *, times: int = 31) -> list[int]:
            form = {
                "grant_type": "client_credentials",
                "client_id": customer.client_id,
                "client_secret": secret,
            }
            headers = [{"X-Forwarded-For": forwarded.format(n)} for n in range(times)]
            return [http.post("/oauth/token", data=form, headers=each).status_code for each in headers]

        yield ask


@pytest.mark.parametrize("sent", [GUESSER, f"198.51.100.{{}}, {GUESSER}, 10.0.0.2", f"{CUSTOMER}, {GUESSER}"])
def test_a_guesser_behind_the_proxy_locks_out_nobody_else_whatever_it_writes_in_front(
    config: Config, clock: SetClock, customer: Customer, sent: str
) -> None:
    with reached_from(PROXY, config, clock, customer) as ask:
        assert ask(sent) == [401] * 10 + [429] * 21  # one client may fail ten times at one address
        assert ask(CUSTOMER, customer.client_secret, times=1) == [200]


def test_a_caller_past_the_proxy_is_not_believed(config: Config, clock: SetClock, customer: Customer) -> None:
    with reached_from(GUESSER, config, clock, customer) as ask:
        assert ask("198.51.100.{}") == [401] * 10 + [429] * 21
