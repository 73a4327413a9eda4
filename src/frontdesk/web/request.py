"""One HTTP request as the handlers see it: headers, query, path, body."""

import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from itertools import count
from typing import Any
from urllib.parse import parse_qsl, quote

from frontdesk.access.model import Caller
from frontdesk.deadlines import Deadlines
from frontdesk.errors import Fault, Invalid, Malformed, NotFound, Unauthorized, unknown_faults
from frontdesk.text import SHOWN_NAMES
from frontdesk.web.forwarded import Network, caller_address
from frontdesk.web.response import Header, HttpError

BODY_LIMIT_BYTES = 64 * 1024
HEADERS_LIMIT_BYTES = 16 * 1024
BODY_DEADLINE_SECONDS = 10

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

# A request's own id: 32 random bits of the process and a number. It names a request; it protects nothing.
_PROCESS = secrets.token_hex(4)
_numbers = count(1)

_SANE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_PATH_ID = re.compile(r"[0-9]{1,18}")


class Disconnected(Exception):
    """The caller went away before the request was complete."""


class Request:
    """`known_caller` is set by the door on routes that need a token."""

    __slots__ = (
        "_deadlines",
        "_headers",
        "_receive",
        "_scope",
        "extra_headers",
        "known_caller",
        "method",
        "path",
        "path_parameters",
        "request_id",
    )

    def __init__(self, scope: Message, receive: Receive, deadlines: Deadlines) -> None:
        self._scope = scope
        self._receive = receive
        self._deadlines = deadlines
        self._headers: list[Header] = scope["headers"]
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.path_parameters: dict[str, str] = scope.get("path_params", {})
        self.request_id = self._request_id()
        self.known_caller: Caller | None = None
        self.extra_headers: tuple[Header, ...] = ()

    @property
    def caller(self) -> Caller:
        """Who asks, on a route that needs a token."""
        if self.known_caller is None:
            raise Unauthorized("The request carries no bearer token.")
        return self.known_caller

    def header(self, name: bytes) -> str | None:
        """The header's value; the lines of one that was repeated are a list (RFC 9110, section 5.3)."""
        found = None
        for key, value in self._headers:
            if key == name:
                found = value if found is None else found + b", " + value
        return None if found is None else found.decode("latin-1")

    def times_sent(self, name: bytes) -> int:
        return sum(key == name for key, _ in self._headers)

    def check_size_of_headers(self) -> None:
        """Raises Refused above 16 KiB; the server before us takes more."""
        if sum(len(name) + len(value) for name, value in self._headers) > HEADERS_LIMIT_BYTES:
            raise HttpError("headers_too_large", "The headers may have 16384 bytes at most.")

    def address(self, trusted_proxies: Sequence[Network]) -> str:
        """The address of the caller: the connection's, unless a proxy that the installation trusts tells another."""
        client = self._scope.get("client")
        peer = str(client[0]) if client else "unknown"
        forwarded = (value.decode("latin-1") for key, value in self._headers if key == b"x-forwarded-for")
        return caller_address(peer, forwarded, trusted_proxies)

    @property
    def query_string(self) -> str:
        return bytes(self._scope["query_string"]).decode("latin-1")

    @property
    def target(self) -> str:
        """Path and query as sent, in ASCII: what `links.self` is made of."""
        query = quote(self.query_string, safe="/?:@!$&'()*+,;=-._~%[]", encoding="latin-1")
        return quote(self.path, safe="/:@!$&'()*+,;=-._~") + ("?" + query if query else "")

    def query(self, *names: str, strict: bool = False) -> dict[str, str]:
        """The named query parameters that were sent; others are ignored, or faults when `strict`. Raises Invalid for
        those, and when one is repeated."""
        if not self._scope["query_string"]:
            return {}
        found: dict[str, str] = {}
        faults = []
        for name, value in parse_qsl(self.query_string, keep_blank_values=True, errors="replace"):
            if name in names and name in found:
                faults.append(Fault(name, "repeated", "must be given once"))
            elif name in names:
                found[name] = value
            elif strict and len(faults) < SHOWN_NAMES:
                faults += unknown_faults([name], what="parameter")
        if faults:
            raise Invalid(faults)
        return found

    def path_id(self, name: str, *, of: str = "plan") -> int:
        """The identifier in the path; what can't be one names nothing. Raises NotFound."""
        text = self.path_parameters[name]
        if not _PATH_ID.fullmatch(text):
            raise NotFound(of)
        return int(text)

    def bearer_token(self) -> str:
        """Raises Unauthorized without one, Malformed for two Authorization headers."""
        sent = [value for key, value in self._headers if key == b"authorization"]
        if len(sent) > 1:
            raise Malformed("There are two Authorization headers.")
        scheme, _, token = sent[0].partition(b" ") if sent else (b"", b"", b"")
        token = token.strip()
        if scheme.lower() != b"bearer" or not token:
            raise Unauthorized("The request carries no bearer token.")
        return token.decode("latin-1")

    def prefers_strict(self) -> bool:
        """`Prefer: handling=strict` (RFC 7240)."""
        sent = self.header(b"prefer")
        return sent is not None and any(
            part.strip().lower().replace('"', "").replace(" ", "") == "handling=strict"
            for part in sent.replace(";", ",").split(",")
        )

    async def body(self, *, limit_bytes: int = BODY_LIMIT_BYTES) -> bytes:
        """The whole body, counted while it streams in. Raises Refused above the limit or after 10 s, Disconnected."""
        declared = self.header(b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > limit_bytes:
            raise _too_large(limit_bytes)
        try:
            return await self._deadlines.within(self._read_body(limit_bytes))
        except TimeoutError:
            raise HttpError(
                "timeout", "The body did not arrive in time.", (b"connection", b"close")
            ) from None

    async def _read_body(self, limit_bytes: int) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > limit_bytes:
                raise _too_large(limit_bytes)
            if not message.get("more_body", False):
                return b"".join([*chunks, chunk]) if chunks else bytes(chunk)
            chunks.append(chunk)

    async def body_pieces(self, limit_bytes: int) -> AsyncIterator[bytes]:
        """The body as it streams in, for what is larger than memory should be. Each piece has 10 s to arrive.

        Raises Refused above the limit or after that time, Disconnected.
        """
        too_large = HttpError(
            "too_large", f"The file may have {limit_bytes} bytes at most.", (b"connection", b"close")
        )
        declared = self.header(b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > limit_bytes:
            raise too_large
        size = 0
        while True:
            try:
                message = await self._deadlines.within(self._receive())
            except TimeoutError:
                raise HttpError(
                    "timeout", "The body did not arrive in time.", (b"connection", b"close")
                ) from None
            if message["type"] == "http.disconnect":
                raise Disconnected
            piece = message.get("body", b"")
            size += len(piece)
            if size > limit_bytes:
                raise too_large
            if piece:
                yield bytes(piece)
            if not message.get("more_body", False):
                return

    def _request_id(self) -> str:
        for key, value in self._headers:
            if key == b"x-request-id" and _SANE_ID.fullmatch(value):
                return value.decode("ascii")
        return f"{_PROCESS}{next(_numbers):08x}"


def _too_large(limit_bytes: int) -> HttpError:
    return HttpError(
        "too_large", f"The body may have {limit_bytes} bytes at most.", (b"connection", b"close")
    )
