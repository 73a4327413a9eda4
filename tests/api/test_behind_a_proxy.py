"""Failed attempts are counted per caller, also behind the installation's own proxies, and no header moves the count."""

import io
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

PROXY, GUESSER, CUSTOMER = "10.0.0.7", "203.0.113.9", "198.51.100.1"
GUESSES = 31  # one more than an address may fail


@contextmanager
def reached_from(peer: str, config: Config, clock: SetClock) -> Iterator[TestClient]:
    trusting = replace(config, trusted_proxies=(ip_network("10.0.0.0/29"),))
    asgi = build_asgi(App(trusting, open_database(config.database_url), clock), Telemetry(io.StringIO()))
    with TestClient(asgi, client=(peer, 40_000)) as http:
        yield http


@pytest.fixture
def through_proxy(config: Config, clock: SetClock) -> Iterator[TestClient]:
    with reached_from(PROXY, config, clock) as http:
        yield http


@pytest.fixture
def directly(config: Config, clock: SetClock) -> Iterator[TestClient]:
    with reached_from(GUESSER, config, clock) as http:
        yield http


def ask(http: TestClient, customer: Customer, forwarded: str, secret: str = "") -> Any:
    form = {
        "grant_type": "client_credentials",
        "client_id": customer.client_id,
        "client_secret": secret or "wrong",
    }
    return http.post("/oauth/token", data=form, headers={"X-Forwarded-For": forwarded}).status_code


def test_one_who_guesses_behind_the_proxy_locks_out_nobody_else(
    through_proxy: TestClient, customer: Customer
) -> None:
    statuses = [ask(through_proxy, customer, GUESSER) for _ in range(GUESSES)]
    assert (statuses[0], statuses[-1]) == (401, 429)
    assert ask(through_proxy, customer, CUSTOMER, customer.client_secret) == 200


def test_inventing_addresses_in_front_does_not_help_a_guesser(
    through_proxy: TestClient, customer: Customer
) -> None:
    statuses = [ask(through_proxy, customer, f"198.51.100.{n}, {GUESSER}, 10.0.0.2") for n in range(GUESSES)]
    assert statuses.count(401) == 10  # those that one client may fail at one address
    assert statuses[-1] == 429


def test_pretending_to_be_another_caller_does_not_lock_that_one_out(
    through_proxy: TestClient, customer: Customer
) -> None:
    for _ in range(GUESSES):
        ask(through_proxy, customer, f"{CUSTOMER}, {GUESSER}")
    assert ask(through_proxy, customer, CUSTOMER, customer.client_secret) == 200


def test_who_comes_past_the_proxy_is_not_believed(directly: TestClient, customer: Customer) -> None:
    statuses = [ask(directly, customer, f"198.51.100.{n}") for n in range(GUESSES)]
    assert (statuses[0], statuses[-1]) == (401, 429)
