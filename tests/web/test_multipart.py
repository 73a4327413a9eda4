"""A form with a file as it streams: cut anywhere it means the same, and no sender makes it grow."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from frontdesk import deadlines
from frontdesk.codes import Kind
from frontdesk.deadlines import PeerDeadlines
from frontdesk.errors import FrontdeskError, Malformed
from frontdesk.web import multipart
from frontdesk.web.multipart import FIELDS_LIMIT_BYTES, MOST_FIELDS, FormWithFile, clean_file_name
from frontdesk.web.request import Request
from frontdesk.web.response import HttpError
from tests.console.sending import BOUNDARY, END, TYPE, field, file

LARGEST = 10_000_000
CONTENT = b"external_id,dob\r\n" + b"\r\n--" + BOUNDARY.encode() + b"-\r\n,\r\r\n--\r\n"
BODY = field("token", "secret") + field("encoding", "cp1252") + file(CONTENT) + END


def request_of(
    pieces: Iterable[bytes], content_type: str = TYPE, *, breaks_off: bool = False
) -> Request:
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": piece, "more_body": True} for piece in pieces
    ]
    messages.append({"type": "http.disconnect" if breaks_off else "http.request"})
    waiting = iter(messages)

    async def receive() -> dict[str, Any]:
        return next(waiting)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": b"",
        "headers": [(b"content-type", content_type.encode())],
    }
    return Request(scope, receive, PeerDeadlines())


Read = tuple[dict[str, str], str | None, bytes]


def read(request: Request, *, largest_file: int = LARGEST) -> Read:
    """The fields, the file's name and its content."""

    async def read_all() -> Read:
        form = FormWithFile(request, largest_file=largest_file)
        fields = await form.read_fields()
        content = b""
        if form.file_name is not None:
            content = b"".join([piece async for piece in form.file()])
        return fields, form.file_name, content

    return asyncio.run(read_all())


def cut(body: bytes, size: int) -> list[bytes]:
    return [body[start : start + size] for start in range(0, len(body), size)]


def refusal(body: bytes, content_type: str = TYPE, *, size: int = 65_536) -> Exception:
    """The error of this body. Fails if it is taken."""
    with pytest.raises((FrontdeskError, HttpError)) as caught:
        read(request_of(cut(body, size), content_type))
    return caught.value


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 31, 64, 127, len(BODY)])
def test_a_form_cut_anywhere_is_the_same_form(size: int) -> None:
    fields, name, content = read(request_of(cut(BODY, size)))
    assert fields == {"token": "secret", "encoding": "cp1252"}
    assert (name, content) == ("census.csv", CONTENT)


def test_nothing_of_the_file_is_asked_for_before_the_fields_are_checked() -> None:
    asked = []

    def pieces() -> Iterable[bytes]:
        for number, piece in enumerate((field("token", "secret"), file(b"")[:-2], b"rows", END)):
            asked.append(number)
            yield piece

    async def read_fields() -> None:
        request = request_of([])
        waiting = iter(pieces())

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": next(waiting), "more_body": True}

        request._receive = receive
        await FormWithFile(request, largest_file=LARGEST).read_fields()

    asyncio.run(read_fields())
    assert asked == [0, 1]


def test_a_form_without_a_file_says_so_and_one_without_a_chosen_one_too() -> None:
    assert read(request_of([field("token", "secret") + END])) == ({"token": "secret"}, None, b"")
    assert read(request_of([file(b"", "") + END])) == ({}, "", b"")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (file(b"a") + file(b"b") + END, "one file"),
        (file(b"a") + field("token", "late") + END, "nothing comes after it"),
        (b"nonsense" + END, "can't be read"),
        (file(b"a").replace(b'name="file"; ', b"") + END, "no name"),
        (field("a", "b").replace(b"form-data", b"attachment") + END, "no name"),
        (field("a", "\x00").replace(b"\x00", b"\xff") + END, "UTF-8"),
        (file(b"a").replace(b"Content-Type", b"Content-Disposition") + END, "two names"),
        (file(b"a").replace(b"text/csv", b"x" * 5000) + END, "can't be read"),
        (file(b"a").replace(b"text/csv", b"x" + b"\r\nX-A: b" * 9) + END, "can't be read"),
    ],
)
def test_a_form_that_no_browser_sends_is_malformed(body: bytes, says: str) -> None:
    for size in (1, 65_536):
        error = refusal(body, size=size)
        assert isinstance(error, Malformed)
        assert says in error.detail


@pytest.mark.parametrize(
    "content_type",
    [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=" + "x" * 300,
    ],
)
def test_a_form_needs_a_boundary(content_type: str) -> None:
    assert "boundary" in str(refusal(BODY, content_type))


@pytest.mark.parametrize(
    "body",
    [
        field("note", "x" * 1_000_000) + file(b"a") + END,
        b"".join(field(f"f{n}", "") for n in range(MOST_FIELDS + 1)) + file(b"a") + END,
        b"".join(field(f"f{n}", "x" * 40_000) for n in range(2)) + file(b"a") + END,
        b"\r\n" * FIELDS_LIMIT_BYTES,
    ],
)
def test_what_comes_before_the_file_has_a_limit(body: bytes) -> None:
    error = refusal(body)
    assert isinstance(error, HttpError)
    assert error.kind is Kind.TOO_LARGE


def test_a_file_has_a_limit_to_the_byte() -> None:
    assert len(read(request_of([file(b"x" * 1000) + END]), largest_file=1000)[2]) == 1000
    with pytest.raises(HttpError) as caught:
        read(request_of([file(b"x" * 1001) + END]), largest_file=1000)
    assert caught.value.kind is Kind.TOO_LARGE
    assert "1,000 bytes" in caught.value.detail


@pytest.mark.parametrize("breaks_off", [True, False])
@pytest.mark.parametrize("left", [1, 3, len(END), len(END) + 4, len(BODY) - 60])
def test_a_form_that_breaks_off_is_not_whole(left: int, *, breaks_off: bool) -> None:
    """Also one whose length was told too short, so that the server ends it early."""
    body = BODY[: -left - 2]
    with pytest.raises(HttpError) as caught:
        read(request_of(cut(body, 50), breaks_off=breaks_off))
    assert caught.value.kind is Kind.MALFORMED


def test_a_form_inside_of_a_form_is_content() -> None:
    inner = b'--inner\r\nContent-Disposition: form-data; name="token"\r\n\r\nother\r\n--inner--\r\n'
    fields, _, content = read(request_of([field("token", "secret") + file(inner) + END]))
    assert (fields, content) == ({"token": "secret"}, inner)


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ("census.csv", "census.csv"),
        ("C:\\Users\\ana\\census.csv", "census.csv"),
        ("../../etc/passwd", "passwd"),
        ("/", ""),
        ("\u202evsc.exe", "vsc.exe"),
        ("a\x00b\nc.csv", "abc.csv"),
        ("Ñandú 2026.csv", "Ñandú 2026.csv"),
    ],
)
def test_a_name_has_no_folders_and_no_character_that_cant_be_shown(sent: str, name: str) -> None:
    assert clean_file_name(sent.encode()) == name


@pytest.mark.parametrize("sent", [b"", field("token", "secret") + file(b"rows")])
def test_a_sender_that_says_no_more_is_not_waited_for(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in the fields, nor for the rest of a refused file."""
    monkeypatch.setattr(deadlines, "BODY_SECONDS", 0.02)

    async def wait() -> None:
        request = request_of([])
        pieces = [sent]

        async def receive() -> dict[str, Any]:
            if not pieces:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": pieces.pop(), "more_body": True}

        request._receive = receive
        form = FormWithFile(request, largest_file=LARGEST)
        if sent:
            await form.read_fields()
        else:
            with pytest.raises(HttpError) as caught:
                await form.read_fields()
            assert caught.value.kind is Kind.TIMEOUT
        await form.skip_rest(is_signed_in=False)

    asyncio.run(asyncio.wait_for(wait(), 5))


def test_the_rest_of_a_file_is_read_to_its_end() -> None:
    pieces = [field("token", "secret") + file(b"")[:-2], *[b"x" * 1000] * 50, b"\r\n" + END]

    async def skip() -> None:
        request = request_of(pieces)
        form = FormWithFile(request, largest_file=LARGEST)
        await form.read_fields()
        await form.skip_rest(is_signed_in=True)
        with pytest.raises(RuntimeError):  # nothing is left
            await request._receive()

    asyncio.run(skip())


@pytest.mark.parametrize("bound", ["bytes", "seconds"])
def test_the_rest_of_a_file_without_end_is_not(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if bound == "bytes":
        monkeypatch.setattr(multipart, "MOST_REST_BYTES", 50_000)
    else:
        monkeypatch.setattr(multipart, "REST_SECONDS", 0.05)

    async def skip() -> None:
        request = request_of([field("token", "secret") + file(b"")[:-2]])
        form = FormWithFile(request, largest_file=LARGEST)
        await form.read_fields()

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(0.001)
            return {"type": "http.request", "body": b"x" * 1000, "more_body": True}

        request._receive = receive
        await form.skip_rest(is_signed_in=True)

    asyncio.run(asyncio.wait_for(skip(), 30))


def test_a_file_that_is_declared_too_large_is_refused_after_its_fields_and_read_to_its_end() -> (
    None
):
    body = field("token", "secret") + file(b"x" * 200_000) + END
    read_pieces: list[bytes] = []

    async def refuse() -> None:
        request = request_of([body[:500], body[500:]])
        request._headers[b"content-length"] = str(len(body)).encode()
        form = FormWithFile(request, largest_file=1000)
        assert await form.read_fields() == {"token": "secret"}
        with pytest.raises(HttpError) as caught:
            read_pieces.extend([piece async for piece in form.file()])
        assert caught.value.kind is Kind.TOO_LARGE
        await form.skip_rest(is_signed_in=True)
        with pytest.raises(RuntimeError):  # nothing is left
            await request._receive()

    asyncio.run(refuse())
    assert read_pieces == []


def test_memory_stays_small_at_any_size() -> None:
    def pieces() -> Iterable[bytes]:
        yield field("token", "secret") + file(b"")[:-2]
        for _ in range(200):
            yield b"x" * 65_536
        yield b"\r\n" + END

    async def count() -> int:
        waiting = iter(pieces())
        request = request_of([])

        async def receive() -> dict[str, Any]:
            piece = next(waiting)
            return {"type": "http.request", "body": piece, "more_body": not piece.endswith(END)}

        request._receive = receive
        form = FormWithFile(request, largest_file=1 << 30)
        await form.read_fields()
        return await _size(form.file())

    tracemalloc.start()
    size = asyncio.run(count())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size == 200 * 65_536
    assert peak < 1_500_000


async def _size(pieces: AsyncIterator[bytes]) -> int:
    return sum([len(piece) async for piece in pieces])
