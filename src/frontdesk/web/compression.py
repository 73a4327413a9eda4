"""Long answers compressed by gzip, where the caller takes it."""

import zlib
from collections.abc import Iterator

from frontdesk.web.request import Request
from frontdesk.web.response import Header

LEVEL = 5
_GZIP_WINDOW = 31  # zlib's largest window, in gzip's format

# A cache must not give a compressed answer to a caller that takes none.
VARIES: Header = (b"vary", b"accept-encoding")
GZIPPED: Header = (b"content-encoding", b"gzip")


def accepts_gzip(request: Request) -> bool:
    """Whether `Accept-Encoding` allows gzip; q=0 excludes it, and no header is a caller that can't (RFC 9110, section 12.5.3)."""
    sent = request.header(b"accept-encoding") or ""
    accepted = {"*": False}
    for part in sent.split(","):
        coding, _, quality = part.strip().lower().partition(";")
        value = quality.replace(" ", "").removeprefix("q=").strip("0.")
        accepted[coding.strip()] = not quality or bool(value)
    return accepted.get("gzip", accepted.get("x-gzip", accepted["*"]))


def gzip_pieces(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces as one gzip stream. Each is sent as far as it makes output."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    for piece in pieces:
        if packed := packer.compress(piece):
            yield packed
    yield packer.flush()
