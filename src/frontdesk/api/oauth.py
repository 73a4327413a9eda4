"""`POST /oauth/token` and `POST /oauth/revoke`: client credentials (RFC 6749) and revocation (RFC
7009).
"""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from urllib.parse import parse_qsl, unquote_plus

from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser

from frontdesk import audit, codes
from frontdesk.access import authentication, callers
from frontdesk.access.accounts import find_client, refuse_unless_active
from frontdesk.access.authentication import Recognised
from frontdesk.access.model import ApiClient, Scope, granted, parse_scopes, scope_text
from frontdesk.api.paths import Path
from frontdesk.app import App
from frontdesk.codes import Code, Kind
from frontdesk.db import Tx
from frontdesk.errors import Malformed, RateLimited, Suspended
from frontdesk.interface.operations import Answer, Group, form
from frontdesk.interface.parameters import CACHE_CONTROL, PRAGMA
from frontdesk.interface.types import access as types
from frontdesk.reach import EVERY
from frontdesk.text import Rejected, refuse_control_characters
from frontdesk.web.endpoint import count_request, requester_of
from frontdesk.web.problems import status_of
from frontdesk.web.request import Request, parse_json_object
from frontdesk.web.response import NO_STORE, Header, HttpError, Response

GROUP = Group("Access", "Access tokens: 2 hours, sent as `Authorization: Bearer …`.")

OF_TOKENS: tuple[Header, ...] = (NO_STORE, (b"pragma", b"no-cache"))
# Every 401 names a way to authenticate (RFC 9110).
CHALLENGE: Header = (b"www-authenticate", b'Basic realm="frontdesk"')

CACHED: Header = (b"cache-control", b"public, max-age=3600")
GRANT_TYPE = "client_credentials"
AUTHENTICATION_METHODS = ["client_secret_basic", "client_secret_post"]

Action = Callable[[App, Request, dict[str, str]], Awaitable[Response]]
URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
JSON = "application/json"
LARGEST_FIELD_COUNT = 100
STRANGERS = "strangers"  # all callers with a wrong secret, as the owner of a share of a process
STRANGERS_WAIT_SECONDS = 2.0

# All others are ignored (RFC 6749, section 3.2).
PARAMETERS = ("grant_type", "client_id", "client_secret", "scope", "token", "token_type_hint")


class OAuthError(Exception):
    """An error of RFC 6749, section 5.2. The word of `code` is the response's `error`."""

    def __init__(self, code: Code, detail: str, *headers: Header) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.headers = headers


@GROUP.post(
    Path.TOKEN,
    body=form(types.TokenRequest),
    answers={200: Answer("The token.", types.Token, headers=[CACHE_CONTROL, PRAGMA])},
    oauth_errors=[
        codes.oauth.INVALID_REQUEST,
        codes.oauth.INVALID_SCOPE,
        codes.oauth.UNSUPPORTED_GRANT_TYPE,
        codes.oauth.INVALID_CLIENT,
        codes.oauth.RATE_LIMITED,
    ],
)
async def issue_token(app: App, request: Request) -> Response:
    """Get an access token (RFC 6749, client credentials).

    The client authenticates with HTTP Basic, or with `client_id` and `client_secret` in the body,
    which may be a multipart form or JSON too.
    """
    return await _answer(app, request, _issue)


@GROUP.post(
    Path.REVOCATION,
    body=form(types.RevocationRequest),
    answers={
        200: Answer(
            "The token is not valid now; the answer is the same for an unknown one.",
            headers=[CACHE_CONTROL, PRAGMA],
        )
    },
    oauth_errors=[
        codes.oauth.INVALID_REQUEST,
        codes.oauth.INVALID_CLIENT,
        codes.oauth.RATE_LIMITED,
    ],
)
async def revoke_token(app: App, request: Request) -> Response:
    """Revoke an access token (RFC 7009).

    The client authenticates with HTTP Basic, or with `client_id` and `client_secret` in the body,
    which may be a multipart form or JSON too. Every process refuses the token within 5 seconds.
    """
    return await _answer(app, request, _revoke)


@GROUP.get(
    Path.AUTHORIZATION_SERVER,
    answers={200: Answer("The description.", types.AuthorizationServer, headers=[CACHE_CONTROL])},
)
async def describe_authorization_server(app: App, _request: Request) -> Response:
    """Read how to get tokens (RFC 8414).

    For programs that find the addresses and methods of /oauth by themselves.
    """
    base_url = app.config.base_url
    body: types.AuthorizationServer = {
        "issuer": base_url,
        "token_endpoint": base_url + Path.TOKEN,
        "revocation_endpoint": base_url + Path.REVOCATION,
        "token_endpoint_auth_methods_supported": AUTHENTICATION_METHODS,
        "revocation_endpoint_auth_methods_supported": AUTHENTICATION_METHODS,
        "grant_types_supported": [GRANT_TYPE],
        "response_types_supported": [],
        "scopes_supported": [scope for scope in Scope if scope is not Scope.OPERATOR],
        "service_documentation": base_url + Path.DOCS,
    }
    return Response(200, json.dumps(body).encode(), (CACHED,))


async def _answer(app: App, request: Request, action: Action) -> Response:
    request.extra_headers = OF_TOKENS  # also on problem details
    try:
        form = await read_form(request)
        return await app.in_time(action(app, request, form))
    except OAuthError as error:
        code = error.code
        detail = error.detail
        headers = error.headers
    except RateLimited as error:
        code = codes.oauth.RATE_LIMITED
        detail = error.detail
        headers = ((b"retry-after", b"%d" % error.retry_after_seconds),)
    status = status_of(code)
    body = json.dumps({"error": code, "error_description": detail}).encode()
    return Response(status, body, (CHALLENGE,) if status == 401 else headers)


async def _issue(app: App, request: Request, form: dict[str, str]) -> Response:
    client = await _authenticate(app, request, form)
    grant = form.get("grant_type")
    if grant is None:
        raise OAuthError(codes.oauth.INVALID_REQUEST, "grant_type is missing.")
    if grant != GRANT_TYPE:
        raise OAuthError(
            codes.oauth.UNSUPPORTED_GRANT_TYPE, "Only client_credentials is supported."
        )
    scopes = _requested_scopes(form, client)
    now = app.clock()

    def issue(tx: Tx) -> str | None:
        try:
            if client.account_id is not None:
                refuse_unless_active(tx, client.account_id)
        except Suspended:
            _record(app, request, tx, "token.refused", client, reason="suspended")
            return None
        _record(app, request, tx, "token.issued", client)
        return callers.issue_token(tx, client, scopes, now=now)

    if (token := await app.write(issue)) is None:
        detail = "The account is suspended; the operator of the service can resume it."
        raise OAuthError(codes.oauth.INVALID_CLIENT, detail)
    body = {
        "access_token": token,
        "token_type": "bearer",
        "expires_in": callers.LIFETIME_SECONDS,
        "scope": scope_text(scopes),
        "created_at": int(now.timestamp()),
    }
    return Response(200, json.dumps(body).encode())


async def _revoke(app: App, request: Request, form: dict[str, str]) -> Response:
    """Ignores token_type_hint, as RFC 7009 permits: there is one type of token."""
    client = await _authenticate(app, request, form)
    token = form.get("token")
    if token is None:
        raise OAuthError(codes.oauth.INVALID_REQUEST, "token is missing.")

    def revoke(tx: Tx) -> None:
        if callers.revoke_token(tx, client, token):
            _record(app, request, tx, "token.revoked", client)

    await app.write(revoke)
    app.tokens.forget(token)
    return Response(200)


def _requested_scopes(form: dict[str, str], client: ApiClient) -> frozenset[Scope]:
    """The scopes that the form names, or all of the client's. `customer` includes the finer ones.
    Raises OAuthError.
    """
    if "scope" not in form:
        return client.scopes
    scopes = parse_scopes(form["scope"])
    if scopes is None or not scopes <= granted(client.scopes):
        raise OAuthError(
            codes.oauth.INVALID_SCOPE, "The client does not have every scope that was asked for."
        )
    return scopes


async def _authenticate(app: App, request: Request, form: dict[str, str]) -> ApiClient:
    """The client, with this request counted. Raises OAuthError, RateLimited."""
    client_id, secret = read_credentials(request, form)
    address = request.address(app.config.trusted_proxies)
    now = app.clock()

    def look(tx: Tx) -> tuple[Recognised | None, int]:
        found = authentication.recognise_client(
            tx, client_id=client_id, client_secret=secret, now=now
        )
        return found, authentication.seconds_limited(
            tx, client_id=client_id, address=address, now=now
        )

    def refuse(tx: Tx) -> None:
        is_last = authentication.record_failure(tx, client_id=client_id, address=address, now=now)
        known = find_client(tx, EVERY, client_id)
        _record(app, request, tx, "token.refused", known)
        if is_last:  # those that are refused unheard are not recorded
            _record(app, request, tx, "token.limited", known)

    # A read, so that callers over the limit never occupy the writer.
    recognised, wait = await app.ask(look)
    if recognised is not None:
        if wait:
            await asyncio.sleep(authentication.PAUSE_SECONDS)
        return await _admitted(app, request, recognised)
    if wait:
        raise RateLimited("Too many failed attempts.", retry_after_seconds=wait)
    # Strangers of all addresses share the places of one account. The right secret never waits for
    # them.
    async with app.fair_share.admitted(STRANGERS, wait_seconds=STRANGERS_WAIT_SECONDS):
        await app.write(refuse)
    raise OAuthError(codes.oauth.INVALID_CLIENT, "The client is unknown or its secret is wrong.")


async def _admitted(app: App, request: Request, recognised: Recognised) -> ApiClient:
    """The client of the right secret. Counted only now: a stranger must not use up its requests.
    Raises RateLimited.
    """
    client = recognised.client
    await count_request(app, request, client=client.id, own_limit=client.requests_per_minute)
    if recognised.is_first_today:
        await app.write(lambda tx: authentication.note_use(tx, recognised, now=app.clock()))
    return client


def _record(
    app: App, request: Request, tx: Tx, action: str, client: ApiClient | None, **detail: str
) -> None:
    """Add an audit entry with the caller's network, hashed: an address can be a person's. A
    client_id that is none of ours is not repeated.
    """
    requester = requester_of(app, request, actor=client.client_id if client else "unknown")
    account, subject = (client.account_id, client.id) if client else (None, None)
    audit.record_action(tx, requester, action, account, subject, **detail)


async def read_form(request: Request) -> dict[str, str]:
    """The parameters that were sent. One without a value counts as not sent (RFC 6749, section
    3.2).

    Raises OAuthError, and HttpError `unsupported_media_type` for a body that is neither a form nor
    JSON.
    """
    declared = request.header(b"content-type") or URLENCODED
    media = declared.partition(";")[0].strip().lower()
    encoding = (request.header(b"content-encoding") or "identity").strip().lower()
    if media not in (URLENCODED, MULTIPART, JSON) or encoding != "identity":
        detail = "Send a form (multipart or urlencoded) or JSON, not compressed."
        raise HttpError(Kind.UNSUPPORTED_MEDIA_TYPE, detail)
    raw = await request.body()
    try:
        pairs = await _multipart_pairs(declared, raw) if media == MULTIPART else _pairs(media, raw)
    except (Malformed, MultiPartException, ValueError):
        raise OAuthError(codes.oauth.INVALID_REQUEST, "The body can't be read.") from None
    form: dict[str, str] = {}
    for name, value in pairs:
        if name in form:
            raise OAuthError(codes.oauth.INVALID_REQUEST, f"{name} is given twice.")
        if name in PARAMETERS:
            try:
                refuse_control_characters(value)
            except Rejected as error:
                raise OAuthError(codes.oauth.INVALID_REQUEST, f"{name} {error.message}.") from None
            form[name] = value
    return {name: value for name, value in form.items() if value}


def read_credentials(request: Request, form: dict[str, str]) -> tuple[str, str]:
    """client_id and client_secret, from HTTP Basic or the form. Raises OAuthError when they are
    missing or sent in both.
    """
    try:
        scheme, encoded = request.authorization()
    except Malformed as error:
        raise OAuthError(codes.oauth.INVALID_REQUEST, error.detail) from None
    if scheme != "basic":
        if "client_id" not in form or "client_secret" not in form:
            detail = "Send client_id and client_secret, in the body or by HTTP Basic."
            raise OAuthError(codes.oauth.INVALID_CLIENT, detail)
        return form["client_id"], form["client_secret"]
    if "client_secret" in form:
        raise OAuthError(
            codes.oauth.INVALID_REQUEST, "The client authenticates in two ways at once."
        )
    try:  # both halves are form-urlencoded inside the base64 (RFC 6749, section 2.3.1)
        text = base64.b64decode(encoded.encode("ascii"), validate=True).decode("utf-8")
        client_id, secret = (unquote_plus(half, errors="strict") for half in text.split(":", 1))
        refuse_control_characters(client_id + secret)
    except (ValueError, Rejected):
        raise OAuthError(
            codes.oauth.INVALID_CLIENT, "The HTTP Basic credentials can't be read."
        ) from None
    if form.get("client_id", client_id) != client_id:
        raise OAuthError(codes.oauth.INVALID_REQUEST, "The two client_ids differ.")
    return client_id, secret


def _pairs(media: str, raw: bytes) -> list[tuple[str, str]]:
    if media == JSON:
        sent = {name: value for name, value in parse_json_object(raw).items() if name in PARAMETERS}
        for name, value in sent.items():
            if not isinstance(value, str | None):
                raise OAuthError(codes.oauth.INVALID_REQUEST, f"{name} must be a string.")
        return [(name, str(value)) for name, value in sent.items() if value is not None]
    text = raw.decode("utf-8")
    return parse_qsl(
        text, keep_blank_values=True, errors="strict", max_num_fields=LARGEST_FIELD_COUNT
    )


async def _multipart_pairs(content_type: str, raw: bytes) -> list[tuple[str, str]]:
    """Decodes values as UTF-8 whatever charset is declared: some of Python's yield text that no
    database stores.
    """

    async def stream() -> AsyncGenerator[bytes, None]:
        yield raw

    boundary = parse_options_header(content_type)[1].get(b"boundary", b"").decode("ascii")
    headers = Headers({"content-type": f'{MULTIPART}; boundary="{boundary}"; charset=latin-1'})
    form = await MultiPartParser(
        headers, stream(), max_files=0, max_fields=LARGEST_FIELD_COUNT
    ).parse()
    return [
        (name, value.encode("latin-1").decode("utf-8"))
        for name, value in form.multi_items()
        if isinstance(value, str)
    ]
