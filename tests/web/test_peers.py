"""Deadlines for callers that send or read slowly."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from frontdesk import deadlines
from frontdesk.deadlines import PeerDeadlines, ReaderTooSlow, UploadPace
from frontdesk.errors import RateLimited
from frontdesk.web.request import Request
from frontdesk.web.response import HttpError

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


def request(receive: Any) -> Request:
    scope = {"headers": [], "method": "POST", "path": "/", "query_string": b""}
    return Request(scope, receive, PeerDeadlines())


async def read(sent: Request) -> bytes:
    return b"".join([piece async for piece in sent.body_pieces(10_000_000)])


def test_an_upload_that_stalls_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "UPLOAD_BYTES_SECONDS", TINY)
    with pytest.raises(HttpError) as error:
        asyncio.run(read(request(sends(b"x", ends=False))))
    assert error.value.kind == "timeout"


def test_an_upload_of_a_byte_now_and_then_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time, and 64 KiB of them never would."""
    monkeypatch.setattr(deadlines, "UPLOAD_BYTES_SECONDS", 10 * TINY)
    with pytest.raises(HttpError):
        asyncio.run(read(request(sends(*[b"x"] * 1000, pause=TINY))))


def test_a_slow_upload_that_keeps_its_pace_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer in all than 64 KiB may take."""
    monkeypatch.setattr(deadlines, "UPLOAD_BYTES_SECONDS", 1.0)
    monkeypatch.setattr(deadlines, "UPLOAD_BYTES", 2)
    pace = UploadPace()

    async def run() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        receive = sends(*[b"xx"] * 30, pause=0.05)

        while (message := await pace.wait(receive()))["more_body"]:
            pace.count(len(message["body"]))
        return loop.time() - began

    assert asyncio.run(run()) > deadlines.UPLOAD_BYTES_SECONDS


def test_an_upload_has_a_deadline_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "UPLOAD_BYTES", 1)
    monkeypatch.setattr(deadlines, "UPLOAD_SECONDS", 5 * TINY)
    with pytest.raises(HttpError):
        asyncio.run(read(request(sends(*[b"x"] * 1000, pause=TINY))))


def test_the_time_that_the_service_takes_is_not_the_senders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "UPLOAD_BYTES_SECONDS", 1.0)

    async def run() -> bytes:
        taken = b""
        async for piece in request(sends(*[b"x"] * 30)).body_pieces(100):
            await asyncio.sleep(0.05)
            taken += piece
        return taken

    assert asyncio.run(run()) == b"x" * 30


def test_a_crowd_is_hurried_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "CROWD", 3)
    monkeypatch.setattr(deadlines, "CROWD_SECONDS", TINY)

    async def run() -> list[int]:
        peers = PeerDeadlines()
        ended: list[int] = []

        async def wait(number: int, account_id: int | None) -> None:
            try:
                with peers.body(account_id):
                    await asyncio.Event().wait()
            except TimeoutError:
                ended.append(number)

        tasks = [asyncio.create_task(wait(n, None)) for n in range(5)]
        tasks += [asyncio.create_task(wait(n, 7)) for n in range(5, 8)]
        await asyncio.wait(tasks[3:5])
        others = [task for task in tasks if not task.done()]
        assert len(others) == 6
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        with peers.body(None):
            await asyncio.sleep(2 * TINY)  # the crowd has gone
        return ended

    assert asyncio.run(run()) == [3, 4]


def test_open_uploads_are_counted_by_account() -> None:
    peers = PeerDeadlines()
    entered = [peers.uploading(1) for _ in range(deadlines.OPEN_UPLOADS)]
    for one in entered:
        one.__enter__()
    with pytest.raises(RateLimited) as error, peers.uploading(1):
        pass
    assert [fault.code for fault in error.value.faults] == ["too_many_uploads"]
    with peers.uploading(2):
        pass
    entered[0].__exit__(None, None, None)
    with peers.uploading(1):
        pass


def test_a_reader_that_takes_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "READER_SECONDS", TINY)

    async def run() -> None:
        peers = PeerDeadlines()
        await peers.sent(asyncio.sleep(0))
        await peers.sent(asyncio.Event().wait())  # type: ignore[arg-type]

    with pytest.raises(ReaderTooSlow):
        asyncio.run(run())
