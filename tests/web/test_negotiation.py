"""Headers made to hurt: they are judged like others."""

import pytest

from frontdesk.deadlines import PeerDeadlines
from frontdesk.web.request import Request, check_accept, check_json_body
from frontdesk.web.response import HttpError

LONG = 30_000


def request(**headers: str) -> Request:
    async def receive() -> dict[str, object]:
        return {}

    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request(
        {"headers": sent, "method": "POST", "path": "/", "query_string": b""}, receive, PeerDeadlines()
    )


@pytest.mark.parametrize(
    "accept",
    [
        "text/html," * 3_000,
        "*/*;q=0," * 3_000,
        "application/json;q=nan",
        "application/json;q=-1",
        ";" * LONG,
        "," * LONG,
    ],
)
def test_an_accept_header_without_json_is_refused_however_long_it_is(accept: str) -> None:
    with pytest.raises(HttpError):
        check_accept(request(accept=accept))


def test_long_types_of_bodies_are_judged() -> None:
    check_json_body(request(content_type="application/json;" + "a=b;" * 5_000))
    with pytest.raises(HttpError):
        check_json_body(request(content_type="x" * LONG))


def test_each_line_of_a_repeated_header_counts_with_its_name() -> None:
    async def receive() -> dict[str, object]:
        return {}

    lines = [(b"host", b"example.com")] + [(b"x" * 1_000, b"")] * 17
    scope = {"headers": lines, "method": "GET", "path": "/", "query_string": b"", "http_version": "1.1"}
    with pytest.raises(HttpError) as refused:
        Request(scope, receive, PeerDeadlines()).check_headers()
    assert refused.value.kind == "headers_too_large"
