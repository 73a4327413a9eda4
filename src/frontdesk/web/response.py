"""What a handler returns or raises: a response, its body compressed where the caller takes that, or
an error of HTTP.
"""

import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass

import orjson

from frontdesk.codes import Kind
from frontdesk.text import SHOWN_NAMES, shown_name

Header = tuple[bytes, bytes]

LEVEL = 5
_GZIP_WINDOW = 31  # zlib's largest window, in gzip's format

NO_STORE: Header = (b"cache-control", b"no-store")
# A cache must not give a compressed answer to a caller that takes none.
VARIES: Header = (b"vary", b"accept-encoding")
WHOLE_BYTES = 1024 * 1024
BLOCK_BYTES = 256 * 1024
GZIPPED: Header = (b"content-encoding", b"gzip")


class HttpError(Exception):
    """The request breaks a rule of HTTP. The response gets the headers too."""

    def __init__(self, kind: Kind, detail: str, *headers: Header) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = headers


@dataclass(slots=True)
class Response:
    """A response. `pieces`, if given, are sent one after the other instead of `body`. `at_end` is
    called when it is sent, or can't be.
    """

    status: int
    body: bytes = b""
    headers: tuple[Header, ...] = ()
    content_type: bytes = b"application/json"
    pieces: AsyncIterator[bytes] | None = None
    at_end: Callable[[], None] | None = None


def json_response(body: object, *headers: Header, status: int = 200) -> Response:
    """The body as JSON, with times in UTC. No cache may keep it."""
    return Response(status, orjson.dumps(body, option=orjson.OPT_UTC_Z), (*headers, NO_STORE))


def large_json_response(pieces: Sequence[bytes], *headers: Header, status: int = 200) -> Response:
    """The pieces of a JSON text. More than WHOLE_BYTES are sent in blocks without a length: one
    text of many megabytes would hold up the event loop while it is put together. No cache may keep
    it.
    """
    if sum(map(len, pieces)) <= WHOLE_BYTES:
        return Response(status, b"".join(pieces), (*headers, NO_STORE))
    return Response(status, b"", (*headers, NO_STORE), pieces=_blocks(pieces))


async def _blocks(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
    """The pieces joined to blocks of about BLOCK_BYTES."""
    block: list[bytes] = []
    size = 0
    for piece in pieces:
        block.append(piece)
        size += len(piece)
        if size >= BLOCK_BYTES:
            yield b"".join(block)
            block = []
            size = 0
    yield b"".join(block)


def name_list(names: Sequence[str]) -> bytes:
    """Up to 20 names that a caller chose as a header's value: percent-encoded and shortened."""
    shown = [shown_name(name) for name in names[:SHOWN_NAMES]]
    more = len(names) - SHOWN_NAMES
    return ",".join(shown + ([f"+{more}"] if more > 0 else [])).encode("ascii")


def gzip_pieces(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces as one gzip stream. Each is sent as far as it makes output."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    for piece in pieces:
        if packed := packer.compress(piece):
            yield packed
    yield packer.flush()
