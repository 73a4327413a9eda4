"""Webhook endpoints: programs of the account that are sent its events (docs/webhooks.md)."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import orjson

from frontdesk import codes, events
from frontdesk.access.model import Scope
from frontdesk.api.envelope import enveloped
from frontdesk.api.paths import Path
from frontdesk.app import App
from frontdesk.codes import Kind
from frontdesk.db import Tx
from frontdesk.events import endpoints
from frontdesk.events.model import WebhookEndpoint
from frontdesk.events.signature import derive_secret, secret_text
from frontdesk.idempotency.model import AnsweredBefore
from frontdesk.interface import present
from frontdesk.interface.operations import Answer, Group
from frontdesk.interface.parameters import CACHE_CONTROL, IDEMPOTENCY_KEY, IGNORED_FIELDS, LOCATION
from frontdesk.interface.types import events as types
from frontdesk.text import nearest_name
from frontdesk.web.endpoint import requester_of
from frontdesk.web.idempotency import write_in_turn
from frontdesk.web.request import Request, note_ignored_fields, parse_json_object
from frontdesk.web.response import NO_STORE, Response

GROUP = Group("Webhooks", "Programs of the account that are sent its events.")


@GROUP.get(
    Path.WEBHOOKS,
    scope=Scope.WEBHOOKS_MANAGE,
    answers={200: Answer("The endpoints, by id.", types.WebhookEndpoints)},
)
async def list_webhook_endpoints(app: App, request: Request) -> Response:
    """List the account's webhook endpoints.

    Answers all of them, by id.
    """
    account_id = request.account_id
    found = await app.ask(lambda tx: events.list_endpoints(tx, account_id))
    return enveloped(app, request, [present.webhook_endpoint(endpoint) for endpoint in found])


@GROUP.post(
    Path.WEBHOOKS,
    scope=Scope.WEBHOOKS_MANAGE,
    body=types.NewWebhookEndpoint,
    parameters=[IDEMPOTENCY_KEY],
    answers={
        201: Answer(
            "The endpoint and its secret.",
            types.WebhookEndpoint,
            headers=[LOCATION, IGNORED_FIELDS, CACHE_CONTROL],
        )
    },
    faults=[
        codes.faults.REQUIRED,
        codes.faults.WRONG_TYPE,
        codes.faults.NOT_ALLOWED,
        codes.faults.UNKNOWN_FIELD,
    ],
)
async def create_webhook_endpoint(app: App, request: Request) -> Response:
    """Create a webhook endpoint.

    It is `unverified` until it answers a `webhook.test` with 2xx, which is sent at once. Then it
    gets the events that happen from now on, in their order. The answer has its `secret`, which is
    not shown again. An account has 10 endpoints at most.
    """
    values = await _values(request, _readers(app), required=("url",))
    account_id = request.account_id
    requester = requester_of(app, request)

    def create(tx: Tx) -> Response:
        made = endpoints.create(tx, account_id, values, requester)
        place = f"{app.config.base_url}{request.path}/{made.id}".encode()
        answer = enveloped(app, request, _with_salt(made), status=201)
        return replace(answer, headers=((b"location", place), *answer.headers))

    response = await _reveal_secret(app, write_in_turn(app, request, create))
    app.db.announce_work()  # the test of its address leaves at once
    return response


@GROUP.get(
    Path.WEBHOOK,
    scope=Scope.WEBHOOKS_MANAGE,
    answers={200: Answer("The endpoint.", types.WebhookEndpoint)},
)
async def show_webhook_endpoint(app: App, request: Request) -> Response:
    """Read a webhook endpoint.

    Answers its state, and its last error if webhooks fail.
    """
    id_ = request.path_id("endpoint_id")
    account_id = request.account_id
    found = await app.ask(lambda tx: events.get_endpoint(tx, account_id, id_))
    return enveloped(app, request, present.webhook_endpoint(found))


@GROUP.patch(
    Path.WEBHOOK,
    scope=Scope.WEBHOOKS_MANAGE,
    body=types.WebhookEndpointPatch,
    parameters=[IDEMPOTENCY_KEY],
    answers={
        200: Answer(
            "The endpoint as it is now.",
            types.WebhookEndpoint,
            headers=[IGNORED_FIELDS, CACHE_CONTROL],
        )
    },
    faults=[codes.faults.WRONG_TYPE, codes.faults.NOT_ALLOWED, codes.faults.UNKNOWN_FIELD],
)
async def change_webhook_endpoint(app: App, request: Request) -> Response:
    """Change a webhook endpoint.

    An absent field keeps its value. One that becomes `active` is sent what has waited, at once.
    With another `url` it is `unverified` until that has answered a `webhook.test`; events wait.
    """
    values = await _values(request, _readers(app))
    return await _act(app, request, endpoints.change, values=values)


@GROUP.delete(
    Path.WEBHOOK, scope=Scope.WEBHOOKS_MANAGE, answers={204: Answer("The endpoint is gone.")}
)
async def delete_webhook_endpoint(app: App, request: Request) -> Response:
    """Delete a webhook endpoint.

    It is sent nothing more, but for a webhook that is on its way.
    """
    id_ = request.path_id("endpoint_id")
    account_id = request.account_id
    requester = requester_of(app, request)
    await app.write(lambda tx: endpoints.delete(tx, account_id, id_, requester))
    return Response(204, b"", (NO_STORE,))


@GROUP.post(
    Path.WEBHOOK_ROTATE,
    scope=Scope.WEBHOOKS_MANAGE,
    parameters=[IDEMPOTENCY_KEY],
    answers={
        200: Answer(
            "The endpoint and its new secret, which is not shown again.", types.WebhookEndpoint
        )
    },
)
async def rotate_webhook_secret(app: App, request: Request) -> Response:
    """Give a webhook endpoint a new secret.

    Webhooks are signed with those before it too, each for 24 hours after it was replaced.
    """
    return await _reveal_secret(app, _act(app, request, endpoints.rotate, show=_with_salt))


@GROUP.post(
    Path.WEBHOOK_TEST,
    scope=Scope.WEBHOOKS_MANAGE,
    parameters=[IDEMPOTENCY_KEY],
    answers={
        202: Answer(
            "The test is on its way; `last_error` tells later if it failed.", types.WebhookEndpoint
        )
    },
    problems=[Kind.WRONG_STATE],
)
async def test_webhook_endpoint(app: App, request: Request) -> Response:
    """Send a test to a webhook endpoint.

    It is an event `webhook.test`, behind the events that wait for the endpoint. An `unverified`
    endpoint is sent the test of its address again, at once.
    """
    return await _act(app, request, endpoints.test, status=202)


@GROUP.post(
    Path.WEBHOOK_REPLAY,
    scope=Scope.WEBHOOKS_MANAGE,
    body=types.WebhookReplay,
    parameters=[IDEMPOTENCY_KEY],
    answers={
        202: Answer(
            "The events are on their way.",
            types.WebhookEndpoint,
            headers=[IGNORED_FIELDS, CACHE_CONTROL],
        )
    },
    faults=[
        codes.faults.REQUIRED,
        codes.faults.WRONG_TYPE,
        codes.faults.NOT_ALLOWED,
        codes.faults.UNKNOWN_FIELD,
        codes.faults.CURSOR_TOO_OLD,
        codes.faults.CURSOR_UNKNOWN,
    ],
    problems=[Kind.GONE],
)
async def replay_webhook_endpoint(app: App, request: Request) -> Response:
    """Send events to a webhook endpoint again.

    With `event_id` it is one event, behind the events that wait for the endpoint, whatever its
    `event_types`; with `since` all events from that time on, in their order, those that wait too.
    Each has the `webhook-id` that it had. A paused endpoint gets them when it is active.
    """
    asked = await _values(request, endpoints.REPLAY_READERS)
    return await _act(app, request, endpoints.replay, status=202, asked=asked)


async def _act(
    app: App,
    request: Request,
    action: Callable[..., WebhookEndpoint],
    *,
    show: Callable[[WebhookEndpoint], Any] = present.webhook_endpoint,
    status: int = 200,
    **options: Any,
) -> Response:
    """The endpoint of the path as the action leaves it. Raises NotFound, and as the action does."""
    id_ = request.path_id("endpoint_id")
    account_id = request.account_id
    requester = requester_of(app, request)

    def change(tx: Tx) -> Response:
        endpoint = action(
            tx, events.get_endpoint(tx, account_id, id_, lock=True), requester, **options
        )
        return enveloped(app, request, show(endpoint), status=status)

    response = await write_in_turn(app, request, change)
    app.db.announce_work()
    return response


def _readers(app: App) -> endpoints.Readers:
    return endpoints.endpoint_readers(allows_loopback=app.config.allows_loopback)


async def _values(
    request: Request, readers: endpoints.Readers, *, required: Sequence[str] = ()
) -> dict[str, Any]:
    """The good values of the body. Raises Invalid."""
    body = parse_json_object(await request.body())
    strict = request.prefers_strict()
    if ignored := [name for name in body if name not in readers]:
        note_ignored_fields(request, ignored, lambda name: nearest_name(name, readers))
    return endpoints.read_values(body, readers, required=required, strict=strict)


def _with_salt(endpoint: WebhookEndpoint) -> types.WebhookTargetBody:
    shown = present.webhook_endpoint(endpoint)
    shown["secret"] = endpoint.salt
    return shown


async def _reveal_secret(app: App, answering: Awaitable[Response]) -> Response:
    """The answer with the secret for its salt: a stored answer has the salt only
    (docs/security.md). Raises AnsweredBefore.
    """
    try:
        response = await answering
    except AnsweredBefore as before:
        body = _revealed(app, before.answer.body.encode())
        raise AnsweredBefore(before.answer._replace(body=body.decode())) from None
    return replace(response, body=_revealed(app, response.body))


def _revealed(app: App, body: bytes) -> bytes:
    shown = orjson.loads(body)
    shown["data"]["secret"] = secret_text(
        derive_secret(app.config.link_secret, shown["data"]["secret"])
    )
    return orjson.dumps(shown)
