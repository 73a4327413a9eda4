"""Headers made to hurt: they are judged like others."""

import pytest

from frontdesk.deadlines import PeerDeadlines
from frontdesk.web.request import Request, check_accept, check_json_body
from frontdesk.web.response import HttpError

LONG = 30_000


async def receive() -> dict[str, object]:
    return {}


def request(*headers: tuple[str, str]) -> Request:
    sent = [(name.encode(), value.encode()) for name, value in headers]
    scope = {"headers": sent, "method": "POST", "path": "/", "query_string": b"", "http_version": "1.1"}
    return Request(scope, receive, PeerDeadlines())


@pytest.mark.parametrize(
    "accept",
    ["text/html," * 3_000, "*/*;q=0," * 3_000, "application/json;q=nan", "application/json;q=-1", ";" * LONG,
     "," * LONG],
)  # fmt: skip
def test_an_accept_header_without_json_is_refused_however_long_it_is(accept: str) -> None:
    with pytest.raises(HttpError):
        check_accept(request(("accept", accept)))


def test_long_types_of_bodies_are_judged() -> None:
    check_json_body(request(("content-type", "application/json;" + "a=b;" * 5_000)))
    with pytest.raises(HttpError):
        check_json_body(request(("content-type", "x" * LONG)))


def test_each_line_of_a_repeated_header_counts_with_its_name() -> None:
    with pytest.raises(HttpError) as refused:
        request(("host", "example.com"), *[("x" * 1_000, "")] * 17).check_headers()
    assert refused.value.kind == "headers_too_large"
