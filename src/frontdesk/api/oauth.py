"""`POST /oauth/token` and `POST /oauth/revoke`: client credentials (RFC 6749) and revocation (RFC 7009)."""

import base64
import binascii
import json
from collections.abc import AsyncGenerator, Coroutine
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser

from frontdesk.access import (
    LIFETIME_SECONDS,
    ApiClient,
    Scope,
    authenticate_client,
    issue_token,
    parse_scopes,
    revoke_token,
    scope_text,
)
from frontdesk.api.exchange import Answer, Exchange, Header, Refused
from frontdesk.api.json_body import parse_json_object
from frontdesk.app import App
from frontdesk.errors import FrontdeskError, Malformed, RateLimited

NO_STORE: tuple[Header, ...] = ((b"cache-control", b"no-store"), (b"pragma", b"no-cache"))
_TAKEN = ("grant_type", "client_id", "client_secret", "scope", "token", "token_type_hint")

_STATUS = {"invalid_client": 401, "rate_limited": 429}


class OAuthError(Exception):
    """An error as RFC 6749, section 5.2, names it."""

    def __init__(self, code: str, description: str, *headers: Header) -> None:
        super().__init__(code)
        self.code = code
        self.description = description
        self.headers = headers


async def issue(app: App, exchange: Exchange) -> Answer:
    """An access token for a client that proves itself; narrower scopes than the client's may be asked for."""
    return await _answered(_issue(app, exchange))


async def revoke(app: App, exchange: Exchange) -> Answer:
    """End one of the client's own tokens; an unknown token is answered alike."""
    return await _answered(_revoke(app, exchange))


async def _issue(app: App, exchange: Exchange) -> Answer:
    form = await _form(exchange)
    client = await _authenticated(app, exchange, form)
    grant = form.get("grant_type")
    if grant is None:
        raise OAuthError("invalid_request", "grant_type is missing.")
    if grant != "client_credentials":
        raise OAuthError("unsupported_grant_type", "Only client_credentials is supported.")
    scopes = _asked_scopes(form, client)
    now = app.clock()

    def write() -> str:
        with app.db.write() as tx:
            return issue_token(tx, client, scopes, now=now)

    body = {
        "access_token": await app.in_thread(write),
        "token_type": "bearer",
        "expires_in": LIFETIME_SECONDS,
        "scope": scope_text(scopes),
        "created_at": int(now.timestamp()),
    }
    return Answer(200, json.dumps(body).encode(), NO_STORE)


async def _revoke(app: App, exchange: Exchange) -> Answer:
    form = await _form(exchange)
    client = await _authenticated(app, exchange, form)
    token = form.get("token")
    if not token:
        raise OAuthError("invalid_request", "token is missing.")

    def write() -> None:
        with app.db.write() as tx:
            revoke_token(tx, client, token)

    await app.in_thread(write)
    app.tokens.forget(token)
    return Answer(200, b"", NO_STORE)


async def _answered(work: Coroutine[Any, Any, Answer]) -> Answer:
    try:
        return await work
    except OAuthError as error:
        body = {"error": error.code, "error_description": error.description}
        return Answer(_STATUS.get(error.code, 400), json.dumps(body).encode(), (*NO_STORE, *error.headers))


def _asked_scopes(form: dict[str, str], client: ApiClient) -> frozenset[Scope]:
    """The scopes asked for, if the client has them (`customer` covers the finer ones); without a wish, all it has."""
    if "scope" not in form:
        return client.scopes
    asked = parse_scopes(form["scope"])
    if asked is None or not asked <= client.all_scopes:
        raise OAuthError("invalid_scope", "The client does not have every scope that was asked for.")
    return asked


async def _authenticated(app: App, exchange: Exchange, form: dict[str, str]) -> ApiClient:
    client_id, secret = _credentials(exchange, form)

    def check() -> ApiClient | None:
        with app.db.write() as tx:
            return authenticate_client(
                tx, client_id=client_id, client_secret=secret, address=exchange.peer, now=app.clock()
            )

    try:
        client = await app.in_thread(check)
    except RateLimited as error:
        after = str(error.retry_after_seconds).encode()
        raise OAuthError("rate_limited", "Too many failed attempts.", (b"retry-after", after)) from None
    if client is None:
        raise _invalid_client()
    return client


def _credentials(exchange: Exchange, form: dict[str, str]) -> tuple[str, str]:
    """client_id and client_secret, from HTTP Basic or the form; both ways at once are refused."""
    if exchange.times_sent(b"authorization") > 1:
        raise OAuthError("invalid_request", "There are two Authorization headers.")
    sent = exchange.header(b"authorization")
    scheme, _, encoded = (sent or "").partition(" ")
    if sent is None or scheme.lower() != "basic":
        if not form.get("client_id") or "client_secret" not in form:
            raise _invalid_client()
        return form["client_id"], form["client_secret"]
    if "client_secret" in form:
        raise OAuthError("invalid_request", "The client authenticates in two ways at once.")
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        raise _invalid_client() from None
    client_id, colon, secret = text.partition(":")
    if not colon:
        raise _invalid_client()
    client_id = unquote_plus(client_id)
    if form.get("client_id", client_id) != client_id:
        raise OAuthError("invalid_request", "The two client_ids differ.")
    return client_id, unquote_plus(secret)


def _invalid_client() -> OAuthError:
    # RFC 6749: 401 names the scheme; saying it always also helps those who sent no credentials.
    return OAuthError(
        "invalid_client",
        "The client is unknown or its secret is wrong.",
        (b"www-authenticate", b'Basic realm="frontdesk"'),
    )


async def _form(exchange: Exchange) -> dict[str, str]:
    """The parameters, whichever of the four ways they were sent in. Raises OAuthError, Refused(415)."""
    declared = exchange.header(b"content-type") or "application/x-www-form-urlencoded"
    media = declared.partition(";")[0].strip().lower()
    raw = await exchange.body()
    try:
        if media == "application/json":
            pairs = _json_pairs(raw)
        elif media == "application/x-www-form-urlencoded":
            pairs = parse_qsl(
                raw.decode("utf-8"), keep_blank_values=True, strict_parsing=bool(raw), errors="strict"
            )
        elif media == "multipart/form-data":
            pairs = await _multipart_pairs(declared, raw)
        else:
            raise Refused("unsupported_media_type", "Send a form (multipart or urlencoded) or JSON.")
    except (FrontdeskError, ValueError, MultiPartException, KeyError):
        raise OAuthError("invalid_request", "The body can't be read.") from None
    known = [(name, value) for name, value in pairs if name in _TAKEN]
    if len(dict(known)) != len(known):
        raise OAuthError("invalid_request", "A parameter is given twice.")
    if any("\0" in value for _, value in known):
        raise OAuthError("invalid_request", "A parameter has a character that is not allowed.")
    return dict(known)


def _json_pairs(raw: bytes) -> list[tuple[str, str]]:
    body = parse_json_object(raw)
    pairs = [(name, value) for name, value in body.items() if name in _TAKEN and value is not None]
    if not all(isinstance(value, str) for _, value in pairs):
        raise Malformed("Parameters are strings.")
    return [(name, str(value)) for name, value in pairs]


async def _multipart_pairs(content_type: str, raw: bytes) -> list[tuple[str, str]]:
    async def stream() -> AsyncGenerator[bytes, None]:
        yield raw
        yield b""

    headers = Headers({"content-type": content_type})
    form = await MultiPartParser(headers, stream(), max_files=0, max_fields=20).parse()
    return [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
