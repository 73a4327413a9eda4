"""One HTTP request as the handlers see it: headers, query, path, body."""

import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from itertools import chain, count
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote

from frontdesk.access.model import Caller, Scope
from frontdesk.errors import Fault, Forbidden, Invalid, Malformed, NotFound, Unauthorized
from frontdesk.web.forwarded import Network, caller_address
from frontdesk.web.peers import OPERATORS, PeerDeadlines, UploadPace
from frontdesk.web.response import Header, HttpError

BODY_LIMIT_BYTES, HEADERS_LIMIT_BYTES = 64 * 1024, 16 * 1024
LARGEST_PORT = 65535
NO_NAMES: Mapping[str, str] = {}
NO_SCHEMAS: Mapping[str, dict[str, Any]] = {}
CLOSE: Header = (b"connection", b"close")  # the rest of the body is not read

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Result = TypeVar("Result")

# A request id is 32 random bits of the process and a number. It is a name, not a secret.
_PROCESS, _numbers = secrets.token_hex(4), count(1)
_SANE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_HOST = re.compile(rb"(?:[A-Za-z0-9._~%-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::([0-9]{0,5}))?")
_PATH_ID = re.compile(r"[0-9]{1,18}")


class Request:
    """`known_caller` is None until the token was checked; `extra_headers` are added to whatever response follows, and so is
    `did_you_mean`: the known name near to an unknown one, which is percent-encoded and shortened. `query_schemas` are those of
    the endpoint's query parameters, by name."""

    def __init__(self, scope: Message, receive: Receive, deadlines: PeerDeadlines) -> None:
        self._scope = scope
        self._receive = receive
        self._deadlines = deadlines
        self._sent: Sequence[Header] = scope["headers"]
        self._headers, self._repeated = _by_name(self._sent)
        self.method: str = scope["method"]
        self.query_string: bytes = scope["query_string"]
        self.path: str = scope["path"]
        self.path_parameters: dict[str, str] = scope.get("path_params", {})
        self.request_id = self._request_id()
        self.known_caller: Caller | None = None
        self.extra_headers: tuple[Header, ...] = ()
        self.did_you_mean = NO_NAMES
        self.query_schemas = NO_SCHEMAS

    @property
    def caller(self) -> Caller:
        """The API client of the token, on an endpoint that needs one. Raises Unauthorized elsewhere."""
        if self.known_caller is None:
            raise Unauthorized("The request carries no bearer token.")
        return self.known_caller

    @property
    def account_id(self) -> int:
        """The account of a customer's token. Raises Forbidden for an operator's, which has none."""
        account_id = self.caller.account_id
        if account_id is None:
            raise Forbidden(Scope.CUSTOMER)
        return account_id

    def header(self, name: bytes) -> str | None:
        """The header's value; the lines of one that was repeated are a list (RFC 9110, section 5.3)."""
        found = self._headers.get(name)
        return None if found is None else found.decode("latin-1")

    def check_headers(self) -> None:
        """Raises HttpError `headers_too_large` above 16 KiB (granian's buffer takes more), and `malformed` unless there is one
        Host with a name or an address (RFC 9112, section 3.2)."""
        if sum(map(len, chain.from_iterable(self._sent))) > HEADERS_LIMIT_BYTES:
            raise HttpError("headers_too_large", "The headers may have 16384 bytes at most.")
        host = self._headers.get(b"host", b"")
        is_old = not host and self._scope.get("http_version") != "1.1"  # granian adds an empty one
        named = None if b"host" in self._repeated else _HOST.fullmatch(host)
        if not is_old and (named is None or int(named[1] or 0) > LARGEST_PORT):
            raise HttpError("malformed", "The request needs one Host header, with a name or an address.")

    def address(self, trusted_proxies: Sequence[Network]) -> str:
        """The caller's IP address: the connection's, or the one that a trusted proxy forwards."""
        client = self._scope.get("client")
        peer = str(client[0]) if client else "unknown"
        return caller_address(peer, self.header(b"x-forwarded-for") or "", trusted_proxies)

    @property
    def target(self) -> str:
        """Path and query as sent, in ASCII, for `links.self`."""
        query = quote(self.query_string, safe="/?:@!$&'()*+,;=-._~%[]")
        return quote(self.path, safe="/:@!$&'()*+,;=-._~") + ("?" + query if query else "")

    @cached_property
    def query_pairs(self) -> list[tuple[str, str]]:
        """Names and values of the query as they were sent."""
        text = self.query_string.decode("latin-1")
        return parse_qsl(text, keep_blank_values=True, errors="replace") if text else []

    def query(self, *names: str) -> dict[str, str]:
        """The query parameters of these names that were sent. Raises Invalid when one is repeated."""
        found: dict[str, str] = {}
        faults = []
        for name, value in self.query_pairs:
            if name in names and name in found:
                faults.append(Fault(name, "repeated", "must be given once"))
            elif name in names:
                found[name] = value
        if faults:
            raise Invalid(faults)
        return found

    def path_id(self, name: str, *, of: str = "plan") -> int:
        """The identifier in the path. Raises NotFound for text that can't be one."""
        text = self.path_parameters[name]
        if not _PATH_ID.fullmatch(text):
            raise NotFound(of)
        return int(text)

    def authorization(self) -> tuple[str, str]:
        """Scheme (in lower case) and credentials of the Authorization header, or two empty texts.

        Raises Malformed for two such headers.
        """
        if b"authorization" in self._repeated:
            raise Malformed("There are two Authorization headers.")
        scheme, _, credentials = self._headers.get(b"authorization", b"").partition(b" ")
        return scheme.lower().decode("latin-1"), credentials.strip().decode("latin-1")

    def bearer_token(self) -> str:
        """Raises Unauthorized without one, Malformed for two Authorization headers."""
        scheme, token = self.authorization()
        if scheme != "bearer" or not token:
            raise Unauthorized("The request carries no bearer token.")
        return token

    def prefers_strict(self) -> bool:
        """`Prefer: handling=strict` (RFC 7240)."""
        sent = self.header(b"prefer")
        return sent is not None and any(
            part.strip().lower().replace('"', "").replace(" ", "") == "handling=strict"
            for part in sent.replace(";", ",").split(",")
        )

    async def body(self, *, limit_bytes: int = BODY_LIMIT_BYTES) -> bytes:
        """The whole body. Raises HttpError `too_large` above the limit, `timeout` after 10 s, `malformed`."""
        self._check_length(limit_bytes, "body")
        known = self.known_caller
        crowd = None if known is None else known.account_id or OPERATORS
        return await _in_time(self._deadlines.body(self._whole_body(limit_bytes), crowd))

    def uploading(self) -> AbstractContextManager[None]:
        """Counts one of the account's open uploads. Raises TooManyUploads."""
        return self._deadlines.uploading(self.account_id)

    async def body_pieces(self, limit_bytes: int) -> AsyncIterator[bytes]:
        """The body of an upload, piece by piece as it arrives, at the pace of UploadPace. Raises as `body` does."""
        self._check_length(limit_bytes, "file")
        left, is_last = limit_bytes, False
        pace = UploadPace()
        while not is_last:
            piece, is_last = await _in_time(pace.wait(self._piece(left, limit_bytes, "file")))
            left -= len(piece)
            if piece:
                yield piece

    async def _whole_body(self, limit_bytes: int) -> bytes:
        # Nearly every body is one piece, and an asynchronous generator around it took 4 of 17 µs.
        body, is_last = await self._piece(limit_bytes, limit_bytes, "body")
        if is_last:
            return body
        pieces, left = [body], limit_bytes - len(body)
        while not is_last:
            piece, is_last = await self._piece(left, limit_bytes, "body")
            left -= len(piece)
            pieces.append(piece)
        return b"".join(pieces)

    async def _piece(self, left: int, limit_bytes: int, noun: str) -> tuple[bytes, bool]:
        """The next piece, which may be empty, and whether it is the last. Raises HttpError `too_large`, `malformed`."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            # granian says the same of broken chunks, so the caller may still be there.
            raise HttpError("malformed", "The body broke off, or its chunks are malformed.", CLOSE)
        piece = bytes(message.get("body", b""))
        if len(piece) > left:
            raise _too_large(limit_bytes, noun)
        return piece, not message.get("more_body", False)

    def _check_length(self, limit_bytes: int, noun: str) -> None:
        """Refuse a body by the length that it declares, before any of it is read."""
        declared = self.header(b"content-length")
        if declared is not None and declared.isdigit() and int(declared) > limit_bytes:
            raise _too_large(limit_bytes, noun)

    def _request_id(self) -> str:
        sent = self._headers.get(b"x-request-id")
        if sent is not None and _SANE_ID.fullmatch(sent):
            return sent.decode("ascii")
        return f"{_PROCESS}{next(_numbers):08x}"


def _by_name(sent: Sequence[Header]) -> tuple[dict[bytes, bytes], Collection[bytes]]:
    """The headers, with the lines of a repeated one joined by commas; and the names that are repeated."""
    headers = dict(sent)
    if len(headers) == len(sent):
        return headers, ()
    lines: dict[bytes, list[bytes]] = {}
    for name, value in sent:
        lines.setdefault(name, []).append(value)
    joined = {name: b", ".join(values) for name, values in lines.items()}
    return joined, {name for name, values in lines.items() if len(values) > 1}


async def _in_time(reading: Awaitable[Result]) -> Result:
    try:
        return await reading
    except TimeoutError:
        raise HttpError("timeout", "The body did not arrive in time.", CLOSE) from None


def _too_large(limit_bytes: int, noun: str) -> HttpError:
    return HttpError("too_large", f"The {noun} may have {limit_bytes} bytes at most.", CLOSE)
