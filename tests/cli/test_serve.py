"""`frontdesk serve` before it serves: what keeps it from starting, and how it says so."""

import socket
from collections.abc import Iterator

import pytest

from tests.cli.conftest import CommandLine


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    """A port that somebody listens on who would share it, as our own server does."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])  # noqa: S104  # nothing is bound there
def test_a_port_that_is_taken_is_refused_and_not_shared(
    cli: CommandLine, taken: socket.socket, host: str
) -> None:
    port = str(taken.getsockname()[1])
    said = cli.refused("serve", "--host", host, "--port", port)
    assert f"{host} port {port} can't be listened on" in said
    assert "--port" in said


def test_a_host_that_is_not_this_machine_is_refused(cli: CommandLine) -> None:
    assert "can't be listened on" in cli.refused("serve", "--host", "192.0.2.1", "--port", "20001")


@pytest.mark.parametrize(
    ("base_url", "told"),
    [
        ("http://127.0.0.1:8000", "lead to port 8000."),
        ("http://localhost", "lead to port 80."),
        ("https://[::1]/desk", "lead to port 443."),
        ("http://127.0.0.1:20003", None),
        ("https://api.example.com", None),  # a proxy's
    ],
)
def test_another_port_than_the_base_urls_is_told(
    bare_cli: CommandLine, base_url: str, told: str | None
) -> None:
    said = bare_cli.refused("serve", "--port", "20003", base_url=base_url)
    assert ("links_lead_elsewhere" in said) == (told is not None)
    assert told is None or told in said


def test_a_database_without_tables_is_refused_with_the_way_to_mend_it(bare_cli: CommandLine) -> None:
    assert "frontdesk migrate" in bare_cli.refused("serve", "--port", "20002")
