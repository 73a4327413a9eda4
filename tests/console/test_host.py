"""A console on a host of its own, and the cookies of a developer's own machine."""

import pytest

from frontdesk.config import Config, read_config
from frontdesk.console import cookies
from tests.conftest import Api

CONSOLE = "https://console.example.com"


@pytest.fixture
def config(database_url: str, base_address: str) -> Config:
    return read_config(
        {
            "FRONTDESK_DATABASE_URL": database_url,
            "FRONTDESK_BASE_URL": base_address,
            "FRONTDESK_CONSOLE_URL": CONSOLE,
        }
    )


@pytest.mark.parametrize(
    ("host", "path", "status"),
    [
        ("console.example.com", "/console/sign-in", 200),
        ("Console.Example.com:443", "/console/sign-in", 200),
        ("console.example.com", "/v2/plans", 404),
        ("console.example.com", "/docs", 404),
        ("console.example.com", "/consolex", 404),
        ("api.example.com", "/console/sign-in", 404),
        ("api.example.com", "/console", 404),
        ("api.example.com", "/v2/plans", 200),
    ],
)
def test_the_console_answers_on_its_host_and_nothing_else_does(
    api: Api, host: str, path: str, status: int
) -> None:
    api.http.event_hooks = {"response": []}  # the host is no part of what an operation declares
    answer = api.get(path, headers={"Host": host, "Accept": "*/*"})
    assert answer.status_code == status


def test_forms_come_from_the_consoles_own_origin(api: Api) -> None:
    for origin, status in (("https://api.example.com", 403), (CONSOLE, 403)):
        headers = {"Host": "console.example.com", "Origin": origin}
        answer = api.http.post("/console/sign-in", data={"email": "a"}, headers=headers)
        assert answer.status_code == status
        is_foreign = "not sent from a page of the console" in answer.text
        assert is_foreign == (origin != CONSOLE)


@pytest.mark.parametrize(
    ("variables", "name", "is_secure"),
    [
        ({}, "frontdesk-sandbox", False),
        ({"FRONTDESK_BASE_URL": "http://localhost:8123"}, "frontdesk-sandbox", False),
        ({"FRONTDESK_BASE_URL": "https://api.example.com"}, "__Host-frontdesk", True),
        ({"FRONTDESK_ENVIRONMENT": "production"}, "__Host-frontdesk", True),
        ({"FRONTDESK_CONSOLE_URL": CONSOLE}, "__Host-frontdesk", True),
    ],
)
def test_only_a_sandbox_on_this_machine_has_a_cookie_without_tls(
    variables: dict[str, str], name: str, *, is_secure: bool
) -> None:
    config = read_config({"FRONTDESK_LINK_SECRET": "0123456789abcdef" * 2, **variables})
    _, header = cookies.set_cookie(config, cookies.SESSION, "secret")
    assert header.startswith(f"{name}=secret;".encode())
    assert (b"Secure" in header) == is_secure
