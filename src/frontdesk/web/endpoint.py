"""Endpoints, and the steps of every request: routing, authentication, authorization, request
limits, errors, logging, the audit trail.
"""

import hmac
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from time import perf_counter
from typing import Any, NamedTuple

from starlette.routing import Match, Route

from frontdesk import audit
from frontdesk.access.guessing import network_of
from frontdesk.access.model import WORKING, RequestAllowance, Scope
from frontdesk.app import App
from frontdesk.audit import Requester
from frontdesk.codes import Kind, Remedy
from frontdesk.deadlines import PeerDeadlines, ReaderTooSlow
from frontdesk.errors import (
    Forbidden,
    FrontdeskError,
    NotFound,
    RateLimited,
    Suspended,
    Unavailable,
)
from frontdesk.idempotency.model import AnsweredBefore, KeyInFlight
from frontdesk.liveness import RequestsInWork
from frontdesk.metering import IN_WORK, metered
from frontdesk.web.idempotency import key_hash, replayed
from frontdesk.web.problems import RemedyOperation, problem_response
from frontdesk.web.request import (
    CLOSE,
    Message,
    Receive,
    Request,
    Send,
    check_accept,
    check_json_body,
    read_parameters,
)
from frontdesk.web.response import Header, HttpError, Response
from frontdesk.web.telemetry import Telemetry

Handler = Callable[[App, Request], Awaitable[Response]]
# How a path shows what went wrong, if not as a problem in JSON.
ShowError = Callable[[App, Request, Exception], Response]
Asgi = Callable[[Message, Receive, Send], Coroutine[Any, Any, None]]

MAY_BE_EMPTY = {b"application/x-ndjson"}
LARGE_QUERY_BYTES = 1024
LOW_SHARE = 10  # of a client's requests of the minute
DIGEST_LETTERS = 16
READING_METHODS = ("GET", "HEAD")
# Paths that were found are cached, since plans are few. Longer ones are not: they would fill the
# memory.
CACHED_PATHS = 1024
LONGEST_CACHED = 200
COMMON_HEADERS: tuple[Header, ...] = ((b"x-content-type-options", b"nosniff"),)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path. `scope` None: no token is asked for, or with `any_scope` a token of
    any scope. `takes_json`: the request body is JSON; with `takes_lines` it may be JSON lines.
    `outlives_database`: while the database is away, it takes tokens that were good lately. `query`:
    the schemas of its query parameters by name, where others are told; they are refused if
    `strict_query`. `takes_key`: a request with an Idempotency-Key is answered once. `is_bulk`: it
    reads or writes much, and gives way to the requests of other endpoints. `show_error`: how errors
    of this path look, such as pages; None: problem details (JSON).
    """

    method: str
    path: str
    handler: Handler
    scope: Scope | None
    takes_json: bool = False
    takes_lines: bool = False
    serves_json: bool = True
    outlives_database: bool = False
    query: Mapping[str, dict[str, Any]] | None = None
    strict_query: bool = False
    any_scope: bool = False
    takes_key: bool = False
    is_bulk: bool = False
    show_error: ShowError | None = None


class Resource:
    """One path as an ASGI application: calls the endpoint of the request's method and answers every
    error.
    """

    def __init__(
        self,
        app: App,
        telemetry: Telemetry,
        deadlines: PeerDeadlines,
        endpoints: Sequence[Endpoint],
        in_work: RequestsInWork,
        remedies: Mapping[Remedy, RemedyOperation],
    ) -> None:
        self._app = app
        self._remedies = remedies
        self._in_work = in_work
        self._deadlines = deadlines
        self._telemetry = telemetry
        self._endpoints = {endpoint.method: endpoint for endpoint in endpoints}
        if "GET" in self._endpoints:
            self._endpoints["HEAD"] = self._endpoints["GET"]
        self._route = endpoints[0].path if endpoints else "none"
        self._noted_route = self._route.encode("ascii")
        own = (endpoint.show_error for endpoint in endpoints if endpoint.show_error)
        self._show_error = next(own, self._show_problem)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        started = perf_counter()
        cost = IN_WORK.cost
        request = Request(scope, receive, self._deadlines)
        slot = self._in_work.begin(self._noted_route, request.request_id)
        request.goes_on = partial(self._in_work.advance, slot)
        # One coroutine for all of it: another one between them costs a GET as much as its routing.
        try:
            try:
                response = await self._respond(request)
            except Exception as error:  # noqa: BLE001  # every request gets a response
                if not isinstance(error, FrontdeskError | HttpError):
                    self._telemetry.unexpected(error, request, self._route)
                response = self._show_error(self._app, request, error)
            if self._app.is_draining:
                request.extra_headers += (CLOSE,)
            try:
                await _send(response, request, send, self._deadlines)
            except ReaderTooSlow:
                self._telemetry.response_cut(request, self._route)
            finally:
                if response.at_end is not None:
                    response.at_end()
            self._telemetry.answered(
                request, self._route, response.status, perf_counter() - started
            )
        finally:
            self._in_work.end(slot)
            caller = request.known_caller
            if caller is not None and cost is not None:
                cost.client = caller.client
                cost.account_id = caller.account_id

    def _show_problem(self, app: App, request: Request, error: Exception) -> Response:
        return problem_response(error, request, app.config.base_url, self._remedies)

    async def _respond(self, request: Request) -> Response:
        request.check_headers()
        endpoint = self._endpoints.get(request.method)
        if endpoint is None:
            if not self._endpoints:
                raise NotFound("address", "There is nothing at this address.")
            allowed = ", ".join(sorted(self._endpoints)).encode()
            raise HttpError(
                Kind.METHOD_NOT_ALLOWED, "This path has other methods.", (b"allow", allowed)
            )
        if endpoint.scope is None and not endpoint.any_scope:
            self._look_for_proxy(request)
        else:
            await self._authorize(
                request, endpoint.scope, outlives_database=endpoint.outlives_database
            )
        if endpoint.serves_json:
            check_accept(request)
        if endpoint.takes_json:
            check_json_body(request, takes_lines=endpoint.takes_lines)
        if request.query_string and endpoint.query is not None:
            await self._read_query(request, endpoint, endpoint.query)
        key = request.header(b"idempotency-key") if endpoint.takes_key else None
        if endpoint.is_bulk:
            return await self._handle_bulk(request, endpoint, key)
        slices = self._app.slices
        slices.short_requests += 1
        try:
            if key is None:
                return await endpoint.handler(self._app, request)
            return await _answer_once(self._app, request, endpoint.handler, key)
        finally:
            slices.short_requests -= 1

    async def _read_query(
        self, request: Request, endpoint: Endpoint, schemas: Mapping[str, dict[str, Any]]
    ) -> None:
        """Hundreds of parameters take milliseconds to read, as a bulk request does. Raises Invalid,
        RateLimited.
        """
        if len(request.query_string) <= LARGE_QUERY_BYTES or request.caller.account_id is None:
            request.parameters = read_parameters(request, schemas, strict=endpoint.strict_query)
            return
        async with self._app.fair_share.admitted(request.caller.account_id):
            request.parameters = read_parameters(request, schemas, strict=endpoint.strict_query)

    async def _handle_bulk(self, request: Request, endpoint: Endpoint, key: str | None) -> Response:
        """A request with a body waits for its turn once it has been received (`Request.body`): a
        slow sender takes no place.
        """
        if key is not None:
            return await _answer_once(self._app, request, endpoint.handler, key)
        if endpoint.method != "GET":
            return await endpoint.handler(self._app, request)
        async with self._app.fair_share.admitted(request.account_id):
            return await endpoint.handler(self._app, request)

    def _look_for_proxy(self, request: Request) -> None:
        """Where failed attempts are counted by address, all callers behind a proxy that is not
        named share one.
        """
        if not self._app.config.trusted_proxies and request.header(b"x-forwarded-for") is not None:
            self._telemetry.proxy_seen()

    async def _authorize(
        self, request: Request, scope: Scope | None, *, outlives_database: bool
    ) -> None:
        """Check the token, the client's request limit and the scope (None: any). Raises
        Unauthorized, RateLimited, Suspended, Forbidden.

        A request that is refused counts against the limit too: a client can't probe without end.
        """
        tokens = self._app.tokens
        token = request.bearer_token()
        try:
            caller = request.known_caller = await tokens.check(token)
            own_limit = caller.requests_per_minute
            await count_request(self._app, request, client=caller.client, own_limit=own_limit)
        except Unavailable:
            lately = tokens.good_lately(token) if outlives_database else None
            if lately is None:
                raise
            caller = request.known_caller = lately
        if caller.account_state not in WORKING:
            raise Suspended
        if caller.account_id != self._app.fair_share.latest_account:
            self._app.fair_share.note_request(caller.account_id)
        if scope is not None and scope not in caller.scopes:
            raise Forbidden(scope)
        if caller.account_id is not None and request.method not in READING_METHODS:
            self._app.refuse_used_up_trail(caller.account_id)


class OwnHost(NamedTuple):
    """A host under which the paths below `prefix` answer, and nothing else; they answer under no
    other. `host` is a name with its port, unless that is the usual one.
    """

    host: str
    prefix: str

    def forbids(self, scope: Message) -> bool:
        """Whether the request has this host and another path, or another host and such a path."""
        sent = next((value for name, value in scope["headers"] if name == b"host"), b"")
        host: str = sent.decode("latin-1").lower().removesuffix(":443")
        path: str = scope["path"]
        is_below = path == self.prefix or path.startswith(self.prefix + "/")
        return is_below != (host == self.host)


def routed(
    app: App,
    telemetry: Telemetry,
    endpoints: Sequence[Endpoint],
    in_work: RequestsInWork,
    remedies: Mapping[Remedy, RemedyOperation],
    own_host: OwnHost | None = None,
) -> Asgi:
    """The endpoints as one ASGI application. When its lifespan ends it finishes what is under way
    and closes the App. `remedies` are the operations that problems name; `own_host` is the one host
    of some paths.

    The order of the endpoints means nothing: where two paths fit, the one with the literal part
    counts.
    """
    deadlines = PeerDeadlines()
    by_path: defaultdict[str, list[Endpoint]] = defaultdict(list)
    for endpoint in endpoints:
        by_path[endpoint.path].append(endpoint)
    routes = [
        Route(path, Resource(app, telemetry, deadlines, by_path[path], in_work, remedies))
        for path in sorted(by_path, key=_literal_first)
    ]
    not_found = Resource(
        app, telemetry, deadlines, endpoints=(), in_work=in_work, remedies=remedies
    )

    def find(path: str) -> tuple[Asgi, dict[str, str]]:
        for route in routes:
            match, found = route.matches({"type": "http", "method": "GET", "path": path})
            if match is Match.FULL:
                return found["endpoint"], found["path_params"]
        return not_found, {}

    find_cached = lru_cache(maxsize=CACHED_PATHS)(find)

    async def asgi(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await app.close()
            telemetry.close()
            await send({"type": "lifespan.shutdown.complete"})
        else:
            path = scope["path"]
            resource, scope["path_params"] = (
                find(path) if len(path) > LONGEST_CACHED else find_cached(path)
            )
            if own_host is not None and own_host.forbids(scope):
                resource = not_found
            await metered(resource(scope, receive, send), app.request_costs.count)

    return asgi


def _literal_first(path: str) -> list[tuple[bool, str]]:
    """The key by which a path sorts before others that have a parameter in place of its words."""
    return [("{" in part, part) for part in path.split("/")]


async def _send(response: Response, request: Request, send: Send, deadlines: PeerDeadlines) -> None:
    """An empty body has no type, unless it is lines. 204 and 304 have no length either (RFC 9110,
    section 8.6).

    Raises ReaderTooSlow; granian then breaks the connection off, so that the part that was sent is
    not taken for the whole.
    """
    headers = [
        (b"x-request-id", request.request_id.encode("ascii")),
        *COMMON_HEADERS,
        *request.extra_headers,
        *response.headers,
    ]
    if request.did_you_mean:
        likely = ",".join(f"{name}={known}" for name, known in request.did_you_mean.items())
        headers.append((b"did-you-mean", likely.encode("ascii")))
    if response.body or response.pieces is not None or response.content_type in MAY_BE_EMPTY:
        headers.append((b"content-type", response.content_type))
    if response.pieces is None and response.status not in (204, 304):
        headers.append((b"content-length", b"%d" % len(response.body)))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    if response.pieces is not None and request.method != "HEAD":
        async for piece in response.pieces:
            await deadlines.sent(
                send({"type": "http.response.body", "body": piece, "more_body": True})
            )
    await send(
        {"type": "http.response.body", "body": b"" if request.method == "HEAD" else response.body}
    )


async def count_request(app: App, request: Request, *, client: int, own_limit: int | None) -> None:
    """Raises RateLimited when the client has used its requests of the minute.

    Each response carries `RateLimit` and `RateLimit-Policy`. The three older headers come with that
    refusal, to a client with a limit of its own always, to others when a tenth is left.
    """
    limits = app.limits
    try:
        allowance = limits.admit_now(client, own_limit)
        if allowance is None:
            allowance = await app.in_time(limits.admit(client, own_limit))
    except RateLimited as error:
        spent = RequestAllowance(
            own_limit or app.config.requests_per_minute, 0, error.retry_after_seconds
        )
        request.extra_headers += (*_allowance_headers(spent), *_older_headers(spent))
        raise
    request.allowance = allowance
    request.extra_headers += _allowance_headers(allowance)
    if own_limit is not None or allowance.remaining * LOW_SHARE < allowance.limit:
        request.extra_headers += _older_headers(allowance)


def _allowance_headers(allowance: RequestAllowance) -> tuple[Header, ...]:
    """The headers of draft-ietf-httpapi-ratelimit-headers, as structured fields (RFC 9651)."""
    limit, remaining, reset = allowance
    return _policy(limit), (b"ratelimit", b'"minute";r=%d;t=%d' % (remaining, reset))


@lru_cache(maxsize=64)
def _policy(limit: int) -> Header:
    return b"ratelimit-policy", b'"minute";q=%d;w=60' % limit


def _older_headers(allowance: RequestAllowance) -> tuple[Header, ...]:
    return (
        (b"ratelimit-limit", b"%d" % allowance.limit),
        (b"ratelimit-remaining", b"%d" % allowance.remaining),
        (b"ratelimit-reset", b"%d" % allowance.reset_seconds),
    )


async def _answer_once(app: App, request: Request, handler: Handler, key: str) -> Response:
    """The handler's answer, or the stored one of an earlier request; sending that again is
    recorded, since it may hold the values of a member. Raises as the handler does, Invalid,
    KeyInFlight.
    """
    request.key_hash = hashed = key_hash(request, key)
    if hashed in app.keys_in_flight:
        raise KeyInFlight
    app.keys_in_flight.add(hashed)
    try:
        return await handler(app, request)
    except AnsweredBefore as before:
        await record_read(app, request, "answer.replayed")
        return replayed(before.answer)
    finally:
        app.keys_in_flight.discard(hashed)


def requester_of(app: App, request: Request, *, actor: str | None = None) -> Requester:
    """The caller behind the request's token, or `actor` where there is none."""
    network = network_of(request.address(app.config.trusted_proxies))
    digest = hmac.digest(app.config.link_secret.encode(), network.encode(), "sha256").hex()
    name = request.caller.client_id if actor is None else actor
    return Requester(name, request.request_id, app.clock(), digest[:DIGEST_LETTERS])


async def record_read(
    app: App, request: Request, action: str, subject_id: int | None = None, **detail: int
) -> None:
    """Add an audit entry for what the caller is about to read. Raises Unavailable, StorageUsedUp:
    what can't be recorded is not shown.
    """
    requester = requester_of(app, request)
    account_id = request.caller.account_id
    if account_id is not None:
        app.refuse_used_up_trail(account_id)
    await app.write(
        lambda tx: audit.record_action(tx, requester, action, account_id, subject_id, **detail)
    )
