"""What a handler returns or raises: a response, or an error of HTTP."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from frontdesk.text import SHOWN_NAMES, shown_name

Header = tuple[bytes, bytes]


class HttpError(Exception):
    """The request breaks a rule of HTTP. `kind` is a key of `problems.PROBLEMS`; the response gets the headers too."""

    def __init__(self, kind: str, detail: str, *headers: Header) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = headers


@dataclass(slots=True)
class Response:
    """A response. `pieces`, if given, are sent one after the other instead of `body`. `at_end` is called when it
    is sent, or can't be."""

    status: int
    body: bytes = b""
    headers: tuple[Header, ...] = ()
    content_type: bytes = b"application/json"
    pieces: AsyncIterator[bytes] | None = None
    at_end: Callable[[], None] | None = None


def name_list(names: Sequence[str]) -> bytes:
    """Up to 20 names that a caller chose as a header's value: percent-encoded and shortened."""
    shown = [shown_name(name) for name in names[:SHOWN_NAMES]]
    more = len(names) - SHOWN_NAMES
    return ",".join(shown + ([f"+{more}"] if more > 0 else [])).encode("ascii")
