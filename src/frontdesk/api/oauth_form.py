"""The parameters of a token request and the client's credentials, in every form in which they may be sent."""

import base64
from collections.abc import AsyncGenerator
from urllib.parse import parse_qsl, unquote_plus

from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser

from frontdesk.errors import Malformed
from frontdesk.text import Rejected, refuse_control_characters
from frontdesk.web.request import Request, parse_json_object
from frontdesk.web.response import HttpError

URLENCODED, MULTIPART, JSON = "application/x-www-form-urlencoded", "multipart/form-data", "application/json"
LARGEST_FIELD_COUNT = 100

# All others are ignored (RFC 6749, section 3.2).
PARAMETERS = ("grant_type", "client_id", "client_secret", "scope", "token", "token_type_hint")

# The error codes of /oauth (RFC 6749, section 5.2, and `rate_limited`), with the status of each.
OAUTH_ERRORS = {
    "invalid_request": (400, "A parameter is missing, repeated or unreadable, or the client authenticates in two ways."),
    "invalid_scope": (400, "The client does not have every scope that it asks for."),
    "unsupported_grant_type": (400, "Only client_credentials is supported."),
    "invalid_client": (401, "The client is unknown, its secret is wrong, it did not authenticate, or its account is suspended."),
    "rate_limited": (
        429,
        "Too many failed attempts by this client or from this address, or the client has used its requests of the minute.",
    ),
}  # fmt: skip

Pairs = list[tuple[str, str]]


class OAuthError(HttpError):
    """An error of RFC 6749, section 5.2. `kind` is the word of the response's `error`, a key of OAUTH_ERRORS."""


async def read_form(request: Request) -> dict[str, str]:
    """The parameters that were sent. One without a value counts as not sent (RFC 6749, section 3.2).

    Raises OAuthError, and HttpError `unsupported_media_type` for a body that is neither a form nor JSON.
    """
    declared = request.header(b"content-type") or URLENCODED
    media = declared.partition(";")[0].strip().lower()
    encoding = (request.header(b"content-encoding") or "identity").strip().lower()
    if media not in (URLENCODED, MULTIPART, JSON) or encoding != "identity":
        raise HttpError(
            "unsupported_media_type", "Send a form (multipart or urlencoded) or JSON, not compressed."
        )
    raw = await request.body()
    try:
        pairs = await _multipart_pairs(declared, raw) if media == MULTIPART else _pairs(media, raw)
    except (Malformed, MultiPartException, ValueError):
        raise OAuthError("invalid_request", "The body can't be read.") from None
    form: dict[str, str] = {}
    for name, value in pairs:
        if name in form:
            raise OAuthError("invalid_request", f"{name} is given twice.")
        if name in PARAMETERS:
            try:
                refuse_control_characters(value)
            except Rejected as error:
                raise OAuthError("invalid_request", f"{name} {error.message}.") from None
            form[name] = value
    return {name: value for name, value in form.items() if value}


def read_credentials(request: Request, form: dict[str, str]) -> tuple[str, str]:
    """client_id and client_secret, from HTTP Basic or the form. Raises OAuthError when they are missing or sent in both."""
    try:
        scheme, encoded = request.authorization()
    except Malformed as error:
        raise OAuthError("invalid_request", error.detail) from None
    if scheme != "basic":
        if "client_id" not in form or "client_secret" not in form:
            raise OAuthError(
                "invalid_client", "Send client_id and client_secret, in the body or by HTTP Basic."
            )
        return form["client_id"], form["client_secret"]
    if "client_secret" in form:
        raise OAuthError("invalid_request", "The client authenticates in two ways at once.")
    client_id, secret = _basic_pair(encoded)
    if form.get("client_id", client_id) != client_id:
        raise OAuthError("invalid_request", "The two client_ids differ.")
    return client_id, secret


def _basic_pair(encoded: str) -> tuple[str, str]:
    """Both halves are form-urlencoded inside the base64 (RFC 6749, section 2.3.1)."""
    try:
        text = base64.b64decode(encoded.encode("ascii"), validate=True).decode("utf-8")
        client_id, secret = (unquote_plus(half, errors="strict") for half in text.split(":", 1))
        refuse_control_characters(client_id + secret)
    except (ValueError, Rejected):
        raise OAuthError("invalid_client", "The HTTP Basic credentials can't be read.") from None
    return client_id, secret


def _pairs(media: str, raw: bytes) -> Pairs:
    if media == JSON:
        sent = {name: value for name, value in parse_json_object(raw).items() if name in PARAMETERS}
        for name, value in sent.items():
            if not isinstance(value, str | None):
                raise OAuthError("invalid_request", f"{name} must be a string.")
        return [(name, str(value)) for name, value in sent.items() if value is not None]
    text = raw.decode("utf-8")
    return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=LARGEST_FIELD_COUNT)


async def _multipart_pairs(content_type: str, raw: bytes) -> Pairs:
    """Decodes values as UTF-8 whatever charset is declared: some of Python's yield text that no database stores."""

    async def stream() -> AsyncGenerator[bytes, None]:
        yield raw

    boundary = parse_options_header(content_type)[1].get(b"boundary", b"").decode("ascii")
    headers = Headers({"content-type": f'{MULTIPART}; boundary="{boundary}"; charset=latin-1'})
    form = await MultiPartParser(headers, stream(), max_files=0, max_fields=LARGEST_FIELD_COUNT).parse()
    return [
        (name, value.encode("latin-1").decode("utf-8"))
        for name, value in form.multi_items()
        if isinstance(value, str)
    ]
