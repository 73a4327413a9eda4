"""What a handler gives back: a response, or an error of the HTTP form."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from frontdesk.text import SHOWN_NAMES, shown_name

Header = tuple[bytes, bytes]


class HttpError(Exception):
    """The request is refused for its HTTP form: one of the kinds of `problems.PROBLEMS`, with headers of its own."""

    def __init__(self, kind: str, detail: str, *headers: Header) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = headers


@dataclass(slots=True)
class Response:
    """`pieces`, where there are any, are sent one after the other instead of `body`."""

    status: int
    body: bytes = b""
    headers: tuple[Header, ...] = ()
    content_type: bytes = b"application/json"
    pieces: AsyncIterator[bytes] | None = None


def name_list(names: tuple[str, ...]) -> bytes:
    """Names that a caller chose, fit for a header: percent-encoded, shortened, and at most 20 of them."""
    shown = [shown_name(name) for name in names[:SHOWN_NAMES]]
    more = len(names) - SHOWN_NAMES
    return ",".join(shown + ([f"+{more}"] if more > 0 else [])).encode("ascii")
