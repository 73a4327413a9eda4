"""`POST /oauth/token` and `POST /oauth/revoke`: client credentials (RFC 6749) and revocation (RFC 7009)."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TypeVar

from frontdesk import audit
from frontdesk.access import callers
from frontdesk.access.accounts import find_client, refuse_unless_active
from frontdesk.access.authentication import (
    PAUSE_SECONDS,
    Recognised,
    note_use,
    recognise_client,
    record_failure,
    seconds_limited,
)
from frontdesk.access.model import ApiClient, Scope, parse_scopes, scope_text
from frontdesk.api.oauth_form import OAUTH_ERRORS, OAuthError, read_credentials, read_form
from frontdesk.app import App
from frontdesk.db import Tx
from frontdesk.db.races import write_alone
from frontdesk.errors import RateLimited, Suspended
from frontdesk.web.endpoint import count_request, requester_of
from frontdesk.web.request import Request
from frontdesk.web.response import Header, Response

NO_STORE: tuple[Header, ...] = ((b"cache-control", b"no-store"), (b"pragma", b"no-cache"))
# Every 401 names a way to authenticate (RFC 9110).
CHALLENGE: Header = (b"www-authenticate", b'Basic realm="frontdesk"')
UNKNOWN = "unknown"

Action = Callable[[App, Request, dict[str, str]], Awaitable[Response]]
Result = TypeVar("Result")


async def issue_token(app: App, request: Request) -> Response:
    """Get an access token (RFC 6749, client credentials). The client authenticates with HTTP Basic, or with `client_id` and
    `client_secret` in the body, which may be a multipart form or JSON too.

    Body: TokenRequest
    200 Token [Cache-Control Pragma]: The token.
    Errors: invalid_request invalid_scope unsupported_grant_type invalid_client rate_limited
    """
    return await _answer(app, request, _issue)


async def revoke_token(app: App, request: Request) -> Response:
    """Revoke an access token (RFC 7009). The client authenticates with HTTP Basic, or with `client_id` and `client_secret` in
    the body, which may be a multipart form or JSON too. Every process refuses the token within 5 seconds.

    Body: RevocationRequest
    200 [Cache-Control Pragma]: The token is not valid now; the answer is the same for an unknown one.
    Errors: invalid_request invalid_client rate_limited
    """
    return await _answer(app, request, _revoke)


async def _answer(app: App, request: Request, action: Action) -> Response:
    """What the action answers, or an error of RFC 6749."""
    request.extra_headers = NO_STORE  # also on problem details
    try:
        form = await read_form(request)
        return await app.in_time(action(app, request, form))
    except OAuthError as error:
        status, _ = OAUTH_ERRORS[error.kind]
        body = {"error": error.kind, "error_description": error.detail}
        return Response(status, json.dumps(body).encode(), (CHALLENGE,) if status == 401 else error.headers)


async def _issue(app: App, request: Request, form: dict[str, str]) -> Response:
    client = await _authenticate(app, request, form)
    grant = form.get("grant_type")
    if grant is None:
        raise OAuthError("invalid_request", "grant_type is missing.")
    if grant != "client_credentials":
        raise OAuthError("unsupported_grant_type", "Only client_credentials is supported.")
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

    if (token := await _write(app, issue)) is None:
        raise OAuthError(
            "invalid_client", "The account is suspended; the operator of the service can resume it."
        )
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
        raise OAuthError("invalid_request", "token is missing.")

    def revoke(tx: Tx) -> None:
        if callers.revoke_token(tx, client, token):
            _record(app, request, tx, "token.revoked", client)

    await _write(app, revoke)
    app.tokens.forget(token)
    return Response(200)


def _requested_scopes(form: dict[str, str], client: ApiClient) -> frozenset[Scope]:
    """The scopes that the form names, or all of the client's. `customer` includes the finer ones. Raises OAuthError."""
    if "scope" not in form:
        return client.scopes
    scopes = parse_scopes(form["scope"])
    if scopes is None or not scopes <= client.all_scopes:
        raise OAuthError("invalid_scope", "The client does not have every scope that was asked for.")
    return scopes


async def _authenticate(app: App, request: Request, form: dict[str, str]) -> ApiClient:
    """The client, with this request counted. Raises OAuthError."""
    client_id, secret = read_credentials(request, form)
    address, now = request.address(app.config.trusted_proxies), app.clock()

    def look(tx: Tx) -> tuple[Recognised | None, int]:
        found = recognise_client(tx, client_id=client_id, client_secret=secret, now=now)
        return found, seconds_limited(tx, client_id=client_id, address=address, now=now)

    def refuse(tx: Tx) -> None:
        is_last = record_failure(tx, client_id=client_id, address=address, now=now)
        known = find_client(tx, client_id)
        _record(app, request, tx, "token.refused", known)
        if is_last:  # those that are refused unheard are not recorded
            _record(app, request, tx, "token.limited", known)

    # A read, so that callers over the limit never occupy the writer.
    recognised, wait = await app.read_in_thread(lambda: app.db.ask(look))
    try:
        if recognised is not None:
            if wait:
                await asyncio.sleep(PAUSE_SECONDS)
            return await _admitted(app, request, recognised)
        if not wait:
            await _write(app, refuse)
    except RateLimited as error:
        raise _limited(error.detail, error.retry_after_seconds) from None
    if wait:
        raise _limited("Too many failed attempts.", wait)
    raise OAuthError("invalid_client", "The client is unknown or its secret is wrong.")


def _limited(detail: str, wait_seconds: int) -> OAuthError:
    return OAuthError("rate_limited", detail, (b"retry-after", b"%d" % wait_seconds))


async def _admitted(app: App, request: Request, recognised: Recognised) -> ApiClient:
    """The client of the right secret. Counted only now: a stranger must not use up its requests. Raises RateLimited."""
    client = recognised.client
    await count_request(app, request, client=client.id, own_limit=client.requests_per_minute)
    if recognised.is_first_today:
        await _write(app, lambda tx: note_use(tx, recognised, now=app.clock()))
    return client


def _record(app: App, request: Request, tx: Tx, action: str, client: ApiClient | None, **detail: str) -> None:
    """Add an audit entry with the caller's network, hashed: an address can be a person's. A client_id that is none of ours
    is not repeated."""
    actor, account, subject = (
        (client.client_id, client.account_id, client.id) if client else (UNKNOWN, None, None)
    )
    audit.record_action(tx, requester_of(app, request, actor=actor), action, account, subject, **detail)


async def _write(app: App, work: Callable[[Tx], Result]) -> Result:
    return await app.in_thread(lambda: write_alone(app.db, work))
