"""One HTTP request as the handlers see it: headers, the caller's address, query, path, body, and
names that are not known.

A caller can write any X-Forwarded-For. Each proxy appends the address that called it, so the list
is read from the right, and only as far as the installation's own proxies wrote it.
"""

import re
import secrets
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, lru_cache
from hashlib import sha256
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from itertools import chain, count
from typing import Any
from urllib.parse import parse_qsl, quote

from frontdesk import codes
from frontdesk.access.model import Caller, RequestAllowance, Scope
from frontdesk.codes import Kind
from frontdesk.codes.operators import Noun
from frontdesk.deadlines import OPERATORS, PeerDeadlines, UploadPace
from frontdesk.errors import (
    Fault,
    Forbidden,
    Invalid,
    Malformed,
    NotFound,
    Unauthorized,
    unknown_faults,
)
from frontdesk.text import SHOWN_NAMES, NotStrict, nearest_name, parse_strictly, shown_name
from frontdesk.time_slices import TimeSlice
from frontdesk.web.response import Header, HttpError, name_list

BODY_LIMIT_BYTES = 64 * 1024
HEADERS_LIMIT_BYTES = 16 * 1024
BATCH_LIMIT_BYTES = 8 * 1024 * 1024
MOST_BLANK_LINES = 1000  # of a batch
MOST_PARAMETERS = 100  # of a query
LARGE_BODY_BYTES = 8 * 1024  # a larger one takes milliseconds to read, as a bulk request
BLOCK_BYTES = 64 * 1024  # of a large body, in one step of its computation
JSON_LINES = "application/x-ndjson"
CLOSE: Header = (b"connection", b"close")  # the rest of the body is not read

NOT_COUNTED = RequestAllowance(0, 0, 0)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Network = IPv4Network | IPv6Network

# A request id is 32 random bits of the process and a number. It is a name, not a secret.
_PROCESS = secrets.token_hex(4)
_numbers = count(1)
_SANE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_HOST = re.compile(rb"(?:[A-Za-z0-9._~%-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::([0-9]{0,5}))?")
_NUMBER = re.compile(r"[0-9]{1,18}")
_TRACE_PARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
# Some proxies write [address]:port or address:port.
_LONGEST_ADDRESS = len("[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535")
# Nearly every request has one of these; a header that is taken apart takes 3 µs.
_JSON_RANGES = ("application/json", "application/*", "*/*")
_ACCEPTS = {None, "*/*", "application/json"}
_JSON_TYPES = {None, "application/json"}


class Request:
    """`known_caller` is None until the token was checked, `allowance` NOT_COUNTED until the request
    was counted; `extra_headers` are added to whatever response follows, and so is `did_you_mean`:
    the known name near to an unknown one, which is percent-encoded and shortened. `parameters` are
    those of the query as the endpoint takes them (`read_parameters`). `key_hash` is that of its
    Idempotency-Key, if the endpoint takes one. `goes_on` is called when the body, or a piece of it,
    is there.
    """

    known_caller: Caller | None = None
    allowance = NOT_COUNTED
    extra_headers: tuple[Header, ...] = ()
    key_hash: str | None = None
    raw = b""  # the body, once `body` has read it
    raw_sha256: str | None = (
        None  # its digest in hexadecimal digits, where a large body was hashed in slices
    )
    goes_on: Callable[[], None] = staticmethod(lambda: None)

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
        self.did_you_mean: dict[str, str] = {}
        self.parameters: dict[str, Any] = {}

    @property
    def caller(self) -> Caller:
        """The API client of the token, on an endpoint that needs one. Raises Unauthorized
        elsewhere.
        """
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
        """The header's value; the lines of one that was repeated are a list (RFC 9110, section
        5.3).
        """
        found = self._headers.get(name)
        return None if found is None else found.decode("latin-1")

    def check_headers(self) -> None:
        """Raises HttpError `headers_too_large` above 16 KiB (granian's buffer takes more), and
        `malformed` unless there is one Host with a name or an address (RFC 9112, section 3.2).
        """
        if sum(map(len, chain.from_iterable(self._sent))) > HEADERS_LIMIT_BYTES:
            raise HttpError(Kind.HEADERS_TOO_LARGE, "The headers may have 16384 bytes at most.")
        host = self._headers.get(b"host", b"")
        is_old = not host and self._scope.get("http_version") != "1.1"  # granian adds an empty one
        if not is_old and (b"host" in self._repeated or not _is_host(host)):
            raise HttpError(
                Kind.MALFORMED, "The request needs one Host header, with a name or an address."
            )

    @property
    def forwarding(self) -> tuple[str, str]:
        return str((self._scope.get("client") or ["unknown"])[0]), self.header(
            b"x-forwarded-for"
        ) or ""

    def address(self, trusted_proxies: Sequence[Network]) -> str:
        """The caller's IP address: the connection's, or the one that a trusted proxy forwards."""
        return caller_address(*self.forwarding, trusted_proxies)

    @property
    def trace_parent(self) -> re.Match[str] | None:
        """A well-formed `traceparent` (W3C Trace Context); the first group is the trace's id."""
        sent = self._headers.get(b"traceparent")
        return None if sent is None else _TRACE_PARENT.fullmatch(sent.decode("latin-1"))

    @property
    def target(self) -> str:
        """Path and query as sent, in ASCII, for `links.self`."""
        query = quote(self.query_string, safe="/?:@!$&'()*+,;=-._~%[]")
        return quote(self.path, safe="/:@!$&'()*+,;=-._~") + ("?" + query if query else "")

    @cached_property
    def query_pairs(self) -> list[tuple[str, str]]:
        """Raises Malformed for more than MOST_PARAMETERS."""
        text = self.query_string.decode("latin-1")
        try:
            return parse_qsl(
                text, keep_blank_values=True, errors="replace", max_num_fields=MOST_PARAMETERS
            )
        except ValueError:
            raise Malformed(f"The query may have {MOST_PARAMETERS} parameters at most.") from None

    def path_id(self, name: str, *, of: Noun = "plan") -> int:
        """The identifier in the path. Raises NotFound for text that can't be one."""
        text = self.path_parameters[name]
        if not _NUMBER.fullmatch(text):
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

    def knows(self, tag: bytes) -> bool:
        known = self.header(b"if-none-match")
        return known is not None and (known.strip() == "*" or tag.decode() in known)

    def prefers_strict(self) -> bool:
        """`Prefer: handling=strict` (RFC 7240)."""
        sent = self.header(b"prefer")
        return sent is not None and any(
            part.strip().lower().replace('"', "").replace(" ", "") == "handling=strict"
            for part in sent.replace(";", ",").split(",")
        )

    def accepts_gzip(self) -> bool:
        """Whether `Accept-Encoding` allows gzip; q=0 excludes it, and no header is a caller that
        can't (RFC 9110, 12.5.3).
        """
        accepted = {"*": False}
        for part in (self.header(b"accept-encoding") or "").split(","):
            coding, _, quality = part.strip().lower().partition(";")
            value = quality.replace(" ", "").removeprefix("q=").strip("0.")
            accepted[coding.strip()] = not quality or bool(value)
        return accepted.get("gzip", accepted.get("x-gzip", accepted["*"]))

    async def body(self, *, limit_bytes: int = BODY_LIMIT_BYTES) -> bytes:
        """The whole body. Raises HttpError `too_large` above the limit, `timeout` after 10 s,
        `malformed`.
        """
        left_at_end = self._check_length(limit_bytes, "body")
        known = self.known_caller
        crowd = None if known is None else known.account_id or OPERATORS
        pieces = []
        left = limit_bytes
        is_last = False
        try:
            with self._deadlines.body(crowd):
                # The message after the last declared byte says only that no more follows, and took
                # 5 % of a POST (0043).
                while not is_last and left != left_at_end:
                    piece, is_last = _piece(await self._receive(), left, limit_bytes, "body")
                    left -= len(piece)
                    pieces.append(piece)
        except TimeoutError:
            raise _overdue() from None
        self.goes_on()
        self.raw = b"".join(pieces)
        return self.raw

    def uploading(self, account_id: int) -> AbstractContextManager[None]:
        """Counts one of the account's open uploads. Raises RateLimited."""
        return self._deadlines.uploading(account_id)

    @contextmanager
    def arriving(self) -> Iterator[None]:
        """The time for the pieces that arrive in this block: that of a body without a token. Raises
        HttpError `timeout`.
        """
        try:
            with self._deadlines.body(None):
                yield
        except TimeoutError:
            raise _overdue() from None

    async def body_pieces(self, limit_bytes: int) -> AsyncIterator[bytes]:
        """The body of an upload, piece by piece as it arrives, at the pace of UploadPace. Raises as
        `body` does.
        """
        self._check_length(limit_bytes, "file")
        left = limit_bytes
        is_last = False
        pace = UploadPace()
        while not is_last:
            try:
                message = await pace.wait(self._receive())
            except TimeoutError:
                raise _overdue() from None
            piece, is_last = _piece(message, left, limit_bytes, "file")
            left -= len(piece)
            pace.count(len(piece))
            self.goes_on()
            if piece:
                yield piece

    @property
    def declared_length(self) -> int | None:
        """The length of the body that the sender has declared, in bytes; None for chunks."""
        declared = self._headers.get(b"content-length", b"")
        if not declared.isdigit() or b"transfer-encoding" in self._headers:
            return None
        return int(declared)

    def _check_length(self, limit_bytes: int, noun: str) -> int:
        """How far the declared length stays below the limit, or -1 for chunks. Refuses a longer
        body before any of it is read.
        """
        declared = self.declared_length
        if declared is None:
            return -1
        if declared > limit_bytes:
            raise _too_large(limit_bytes, noun)
        return limit_bytes - declared

    def _request_id(self) -> str:
        sent = self._headers.get(b"x-request-id")
        if sent is not None and _SANE_ID.fullmatch(sent):
            return sent.decode("ascii")
        return f"{_PROCESS}{next(_numbers):08x}"


@lru_cache(maxsize=64)  # nearly every request has the same one
def _is_host(host: bytes) -> bool:
    named = _HOST.fullmatch(host)
    return named is not None and int(named[1] or 0) <= 65535


def _by_name(sent: Sequence[Header]) -> tuple[dict[bytes, bytes], Collection[bytes]]:
    """The headers, with the lines of a repeated one joined by commas; and the names that are
    repeated.
    """
    headers = dict(sent)
    if len(headers) == len(sent):
        return headers, ()
    lines: dict[bytes, list[bytes]] = {}
    for name, value in sent:
        lines.setdefault(name, []).append(value)
    joined = {name: b", ".join(values) for name, values in lines.items()}
    return joined, {name for name, values in lines.items() if len(values) > 1}


def _piece(message: Message, left: int, limit_bytes: int, noun: str) -> tuple[bytes, bool]:
    """The next piece of a body, which may be empty, and whether it is the last. Raises HttpError
    `too_large`, `malformed`.
    """
    if message["type"] == "http.disconnect":
        # granian says the same of broken chunks, so the caller may still be there.
        raise HttpError(Kind.MALFORMED, "The body broke off, or its chunks are malformed.", CLOSE)
    piece = bytes(message.get("body", b""))
    if len(piece) > left:
        raise _too_large(limit_bytes, noun)
    return piece, not message.get("more_body", False)


def _overdue() -> HttpError:
    return HttpError(Kind.TIMEOUT, "The body did not arrive in time.", CLOSE)


def _too_large(limit_bytes: int, noun: str) -> HttpError:
    return HttpError(Kind.TOO_LARGE, f"The {noun} may have {limit_bytes} bytes at most.", CLOSE)


def caller_address(peer: str, forwarded: str, trusted: Sequence[Network]) -> str:
    """The address that called the outermost trusted proxy; `peer` where the connection is not from
    a trusted proxy.

    `forwarded` is the X-Forwarded-For header, its lines joined by commas. An entry that is no
    address ends the search: the proxy that wrote it counts as the caller.
    """
    address = peer
    for entry in reversed(forwarded.split(",")):
        found = _address(entry) if _is_trusted(address, trusted) else None
        if found is None:
            break
        address = found
    return address


def _address(entry: str) -> str | None:
    text = entry.strip()
    if len(text) > _LONGEST_ADDRESS:
        return None
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    found = _parsed(text)
    return None if found is None else str(found)


def _is_trusted(address: str, trusted: Sequence[Network]) -> bool:
    parsed = _parsed(address)
    return parsed is not None and any(parsed in network for network in trusted)


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    """The address; of an IPv4 address inside an IPv6 one, as a server that listens on both sees it,
    the IPv4 address.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def check_accept(request: Request) -> None:
    """Raises HttpError `not_acceptable` when the Accept header excludes JSON. No header accepts
    everything.
    """
    sent = request.header(b"accept")
    if sent not in _ACCEPTS and not _accepts_json(sent or ""):
        raise HttpError(Kind.NOT_ACCEPTABLE, "Only application/json is served here.")


def check_json_body(request: Request, *, takes_lines: bool) -> None:
    """Raises HttpError `unsupported_media_type` when the body is declared as anything but JSON in
    UTF-8, or JSON lines where they are taken.
    """
    sent = request.header(b"content-type")
    encoding = request.header(b"content-encoding")
    is_json = sent in _JSON_TYPES or _is_json(sent or "", takes_lines=takes_lines)
    if not is_json or (encoding is not None and encoding.lower() != "identity"):
        types = "application/json or application/x-ndjson" if takes_lines else "application/json"
        raise HttpError(
            Kind.UNSUPPORTED_MEDIA_TYPE, f"Send the body as {types} in UTF-8, not compressed."
        )


def parse_json_object(raw: bytes) -> dict[str, object]:
    """The JSON object in `raw`. Raises Malformed as `parse_json` does, and for an array or a single
    value.
    """
    value = parse_json(raw)
    if type(value) is not dict:
        raise Malformed("The body must be a JSON object.")
    return value


def parse_json(raw: bytes) -> object:
    """The JSON value in `raw`. Raises Malformed when it is not UTF-8, and for all that
    `parse_strictly` refuses.
    """
    try:
        value: object = parse_strictly(read_text(raw))
    except NotStrict as error:
        raise Malformed(f"The body {error}{error.place and ': ' + error.place}.") from None
    return value


def read_text(raw: bytes) -> str:
    """The text of a body. Raises Malformed when it is not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _no_utf8(raw, error.start) from None


async def check_text(raw: bytes, time_slice: TimeSlice) -> None:
    """Check a large body in slices. Raises Malformed when it is not UTF-8."""
    decoder = getincrementaldecoder("utf-8")()
    for start in range(0, len(raw), BLOCK_BYTES):
        undecided, _ = decoder.getstate()
        try:
            decoder.decode(raw[start : start + BLOCK_BYTES])
        except UnicodeDecodeError as error:
            raise _no_utf8(raw, start - len(undecided) + error.start) from None
        await time_slice.pause_if_due()
    undecided, _ = decoder.getstate()
    if undecided:
        raise _no_utf8(raw, len(raw) - len(undecided))


async def hash_text(raw: bytes, time_slice: TimeSlice) -> str:
    """The SHA-256 of a large body in hexadecimal digits, made in slices."""
    hasher = sha256()
    for start in range(0, len(raw), BLOCK_BYTES):
        hasher.update(raw[start : start + BLOCK_BYTES])
        await time_slice.pause_if_due()
    return hasher.hexdigest()


def _no_utf8(raw: bytes, place: int) -> Malformed:
    line = raw.count(b"\n", 0, place) + 1
    return Malformed(f"The body is not valid JSON in UTF-8: line {line}.")


def _accepts_json(accept: str) -> bool:
    """The most specific range that matches decides, and q=0 excludes (RFC 9110, section 12.5.1)."""
    weights = dict.fromkeys(_JSON_RANGES, -1.0)
    for media, parameters in map(_media_type, accept.split(",")):
        quality = next((value for name, value in parameters if name == "q"), "1")
        weights[media] = max(weights.get(media, -1.0), _weight(quality))
    weight = next((weights[each] for each in _JSON_RANGES if weights[each] >= 0), None)
    return not accept.strip() if weight is None else weight > 0


def _is_json(content_type: str, *, takes_lines: bool) -> bool:
    media, parameters = _media_type(content_type)
    is_json = media == "application/json" or (takes_lines and media == JSON_LINES)
    is_json = is_json or (media.startswith("application/") and media.endswith("+json"))
    charsets = {value.strip('" ') for name, value in parameters if name == "charset"}
    return is_json and charsets <= {"utf-8", "utf8"}


def _media_type(text: str) -> tuple[str, list[tuple[str, str]]]:
    """A media type or range and its parameters, in lower case."""
    media, *parameters = (piece.strip().lower() for piece in text.split(";"))
    pairs = (parameter.partition("=") for parameter in parameters)
    return media, [(name.strip(), value.strip()) for name, _, value in pairs]


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def note_ignored_fields(
    request: Request, names: Sequence[str], likely_name: Callable[[str], str | None]
) -> None:
    """Name the body's unknown fields in whatever response follows, a refusal too. With `Prefer:
    handling=strict` they are faults, not ignored. `likely_name` is the known name that may have
    been meant.
    """
    _note_likely_names(request, names, likely_name)
    if not request.prefers_strict():
        request.extra_headers += ((b"ignored-fields", name_list(names)),)


def read_parameters(
    request: Request, schemas: Mapping[str, dict[str, Any]], *, strict: bool
) -> dict[str, Any]:
    """The query parameters that were sent, by name: whole numbers and flags as such, other values
    as text. Names unknown ones in whatever response follows.

    Raises Invalid with a fault for every one that is repeated or not as its schema has it; for
    unknown ones too, if `strict` or with `Prefer: handling=strict`.
    """
    values = dict(request.query_pairs)
    counts = Counter(name for name, _ in request.query_pairs)
    faults = [
        Fault(name, codes.faults.REPEATED, "must be given once")
        for name in schemas
        if counts[name] > 1
    ]
    rules = {
        name: _broken_rule(values[name], schemas[name]) for name in schemas if counts[name] == 1
    }
    faults += [Fault(name, codes.faults.NOT_ALLOWED, rule) for name, rule in rules.items() if rule]
    if unknown := [name for name in values if name not in schemas]:
        _note_likely_names(request, unknown, lambda name: nearest_name(name, schemas))
        if strict or request.prefers_strict():
            faults += unknown_faults(unknown, what="parameter")
        else:
            request.extra_headers += ((b"ignored-parameters", name_list(unknown)),)
    if faults:
        raise Invalid(faults)
    read: dict[str, Callable[[str], Any]] = {
        "boolean": "true".__eq__,
        "integer": int,
        "string": str,
    }
    return {name: read[schemas[name]["type"]](values[name]) for name in rules}


def _broken_rule(text: str, schema: dict[str, Any]) -> str | None:
    match schema:
        case {"type": "boolean"} if text not in ("true", "false"):
            return "must be true or false"
        case {"const": only} if text != only:
            return f"must be {only}"
        case {"enum": choices} if text not in choices:
            return "must be one of " + ", ".join(choices)
        case {"minimum": least, "maximum": most} if not (
            _NUMBER.fullmatch(text) and least <= int(text) <= most
        ):
            return f"must be a whole number up to {most}"
        case {"maxLength": most} if not 0 < len(text) <= most:
            return f"must have 1 to {most} characters"
        case {"pattern": pattern} if not re.fullmatch(pattern, text):
            form = schema.get("description")
            return f"must have the form {pattern}" if form is None else f"must be {form}"
    return None


def _note_likely_names(
    request: Request, names: Sequence[str], likely_name: Callable[[str], str | None]
) -> None:
    likely = {shown_name(name): likely_name(name) for name in names[:SHOWN_NAMES]}
    near = {name: known for name, known in likely.items() if known is not None}
    request.did_you_mean |= near
