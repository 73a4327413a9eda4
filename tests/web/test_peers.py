"""Deadlines for callers that send or read slowly."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from frontdesk import deadlines
from frontdesk.deadlines import PeerDeadlines, UploadPace
from frontdesk.web.request import Request
from frontdesk.web.response import HttpError
from tests.patience import in_event_loop

TINY = 0.02


def sends(*pieces: bytes, pause: float = 0.0, ends: bool = True) -> Callable[[], Awaitable[Any]]:
    """A caller that sends these pieces; without `ends` it then says nothing more."""
    left = list(pieces)

    async def receive() -> Any:
        await asyncio.sleep(pause)
        if not left:
            await asyncio.Event().wait()
        body = left.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(left) or not ends}

    return receive


async def read(receive: Any, *, pause: float = 0.0) -> bytes:
    scope = {"headers": [], "method": "POST", "path": "/", "query_string": b""}
    taken = b""
    async for piece in Request(scope, receive, PeerDeadlines()).body_pieces(10_000_000):
        await asyncio.sleep(pause)
        taken += piece
    return taken


@pytest.mark.parametrize(
    ("limits", "receive"),
    [
        ({"UPLOAD_BYTES_SECONDS": TINY}, sends(b"x", ends=False)),
        # Each byte comes in time, and 64 KiB of them never would.
        ({"UPLOAD_BYTES_SECONDS": 10 * TINY}, sends(*[b"x"] * 1000, pause=TINY)),
        ({"UPLOAD_BYTES": 1, "UPLOAD_SECONDS": 5 * TINY}, sends(*[b"x"] * 1000, pause=TINY)),
    ],
)
def test_a_slow_upload_ends(
    limits: dict[str, float], receive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, limit in limits.items():
        monkeypatch.setattr(deadlines, name, limit)
    with pytest.raises(HttpError) as error:
        asyncio.run(read(receive))
    assert error.value.kind == "timeout"


@in_event_loop
async def test_a_body_is_whole_with_the_last_byte_that_it_declares() -> None:
    """What granian says after it, that no more follows, is not waited for; chunks declare no
    length.
    """
    declared: list[Any] = [(b"content-length", b"3")]
    chunked = [(b"transfer-encoding", b"chunked")]
    for headers, ends in ((declared, False), ([], True), (declared + chunked, True)):
        scope = {"headers": headers, "method": "POST", "path": "/", "query_string": b""}
        request = Request(scope, sends(b"ab", b"c", *[b""] * ends, ends=ends), PeerDeadlines())
        assert await request.body() == b"abc"


@in_event_loop
async def test_a_slow_upload_arrives_and_the_services_time_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each takes longer in all than 64 KiB may take."""
    monkeypatch.setattr(deadlines, "UPLOAD_BYTES_SECONDS", 1.0)
    assert await read(sends(*[b"x"] * 30), pause=0.05) == b"x" * 30
    monkeypatch.setattr(deadlines, "UPLOAD_BYTES", 2)
    pace = UploadPace()
    receive = sends(*[b"xx"] * 30, pause=0.05)
    while (message := await pace.wait(receive()))["more_body"]:
        pace.count(len(message["body"]))


def test_uploads_that_have_ended_do_not_count() -> None:
    peers = PeerDeadlines()
    for _ in range(deadlines.OPEN_UPLOADS + 1):
        with peers.uploading(1):
            pass


@in_event_loop
async def test_a_crowd_is_hurried_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "CROWD", 3)
    monkeypatch.setattr(deadlines, "CROWD_SECONDS", TINY)
    peers = PeerDeadlines()

    async def wait(account_id: int | None) -> None:
        with peers.body(account_id):
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(wait(account)) for account in [None] * 5 + [7] * 3]
    hurried, _ = await asyncio.wait(tasks[3:5])
    assert {type(task.exception()) for task in hurried} == {TimeoutError}
    others = [task for task in tasks if not task.done()]
    assert len(others) == 6
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    with peers.body(None):
        await asyncio.sleep(2 * TINY)  # the crowd has gone
