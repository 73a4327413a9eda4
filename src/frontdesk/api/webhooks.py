"""Webhook endpoints: programs of the account that are sent its events (docs/webhooks.md)."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import orjson

from frontdesk import events
from frontdesk.api.eligibility_files import enveloped
from frontdesk.app import App
from frontdesk.config import Environment
from frontdesk.db import Tx
from frontdesk.events import endpoints
from frontdesk.events.model import WebhookEndpoint
from frontdesk.events.signature import derive_secret, secret_text
from frontdesk.idempotency.model import AnsweredBefore
from frontdesk.text import nearest_name
from frontdesk.web.endpoint import requester_of
from frontdesk.web.idempotency import write_once
from frontdesk.web.request import Request, note_ignored_fields, parse_json_object
from frontdesk.web.response import NO_STORE, Response


async def create_webhook_endpoint(app: App, request: Request) -> Response:
    """Create a webhook endpoint. It gets the events that happen from now on, in their order. The answer has its `secret`, which
    is not shown again. An account has 10 endpoints at most.

    Body: NewWebhookEndpoint
    Parameters: idempotency_key
    201 WebhookEndpoint [Location Ignored-Fields Cache-Control]: The endpoint and its secret.
    Faults: required wrong_type not_allowed unknown_field
    """
    values = await _values(request, _readers(app), required=("url",))
    account_id, requester = request.account_id, requester_of(app, request)

    def create(tx: Tx) -> Response:
        made = endpoints.create(tx, account_id, values, requester)
        place = f"{app.config.base_url}{request.path}/{made.id}".encode()
        answer = enveloped(app, request, _with_salt(made), status=201)
        return replace(answer, headers=((b"location", place), *answer.headers))

    return await _reveal_secret(app, write_once(app, request, create))


async def list_webhook_endpoints(app: App, request: Request) -> Response:
    """List the account's webhook endpoints. Answers all of them, by id.

    200 WebhookEndpoints: The endpoints, by id.
    """
    account_id = request.account_id
    found = await app.ask(lambda tx: events.list_endpoints(tx, account_id))
    return enveloped(app, request, [endpoint.serialize() for endpoint in found])


async def show_webhook_endpoint(app: App, request: Request) -> Response:
    """Read a webhook endpoint. Answers its state, and its last error if webhooks fail.

    200 WebhookEndpoint: The endpoint.
    """
    id_, account_id = request.path_id("endpoint_id"), request.account_id
    found = await app.ask(lambda tx: events.get_endpoint(tx, account_id, id_))
    return enveloped(app, request, found.serialize())


async def change_webhook_endpoint(app: App, request: Request) -> Response:
    """Change a webhook endpoint. An absent field keeps its value. One that becomes `active` is sent what has waited, at once.

    Body: WebhookEndpointPatch
    Parameters: idempotency_key
    200 WebhookEndpoint [Ignored-Fields Cache-Control]: The endpoint as it is now.
    Faults: wrong_type not_allowed unknown_field
    """
    values = await _values(request, _readers(app))
    return await _act(app, request, endpoints.change, values=values)


async def delete_webhook_endpoint(app: App, request: Request) -> Response:
    """Delete a webhook endpoint. It is sent nothing more, but for a webhook that is on its way.

    204: The endpoint is gone.
    """
    id_, account_id = request.path_id("endpoint_id"), request.account_id
    requester = requester_of(app, request)
    await app.write(lambda tx: endpoints.delete(tx, account_id, id_, requester))
    return Response(204, b"", (NO_STORE,))


async def rotate_webhook_secret(app: App, request: Request) -> Response:
    """Give a webhook endpoint a new secret. For 24 hours webhooks are signed with the one before too.

    Parameters: idempotency_key
    200 WebhookEndpoint: The endpoint and its new secret, which is not shown again.
    """
    return await _reveal_secret(app, _act(app, request, endpoints.rotate, show=_with_salt))


async def test_webhook_endpoint(app: App, request: Request) -> Response:
    """Send a test to a webhook endpoint. It is an event `webhook.test`, behind the events that wait for the endpoint.

    Parameters: idempotency_key
    202 WebhookEndpoint: The test is on its way; `last_error` tells later if it failed.
    Problems: wrong_state
    """
    return await _act(app, request, endpoints.test, status=202)


async def replay_webhook_endpoint(app: App, request: Request) -> Response:
    """Send events to a webhook endpoint again. With `event_id` it is one event, behind the events that wait for the endpoint,
    whatever its `event_types`; with `since` all events from that time on, in their order, those that wait too. Each has the
    `webhook-id` that it had. A paused endpoint gets them when it is active.

    Body: WebhookReplay
    Parameters: idempotency_key
    202 WebhookEndpoint [Ignored-Fields Cache-Control]: The events are on their way.
    Faults: required wrong_type not_allowed unknown_field
    """
    asked = await _values(request, endpoints.REPLAY_READERS)
    return await _act(app, request, endpoints.replay, status=202, asked=asked)


async def _act(
    app: App,
    request: Request,
    action: Callable[..., WebhookEndpoint],
    *,
    show: Callable[[WebhookEndpoint], Any] = WebhookEndpoint.serialize,
    status: int = 200,
    **options: Any,
) -> Response:
    """The endpoint of the path as the action leaves it. Raises NotFound, and as the action does."""
    id_, account_id = request.path_id("endpoint_id"), request.account_id
    requester = requester_of(app, request)

    def act(tx: Tx) -> Response:
        endpoint = action(tx, events.get_endpoint(tx, account_id, id_, lock=True), requester, **options)
        return enveloped(app, request, show(endpoint), status=status)

    response = await write_once(app, request, act)
    app.db.announce_work()
    return response


def _readers(app: App) -> endpoints.Readers:
    return endpoints.endpoint_readers(is_sandbox=app.config.environment is Environment.SANDBOX)


async def _values(
    request: Request, readers: endpoints.Readers, *, required: Sequence[str] = ()
) -> dict[str, Any]:
    """The good values of the body. Raises Invalid."""
    body, strict = parse_json_object(await request.body()), request.prefers_strict()
    if ignored := [name for name in body if name not in readers]:
        note_ignored_fields(request, ignored, lambda name: nearest_name(name, readers))
    return endpoints.read_values(body, readers, required=required, strict=strict)


def _with_salt(endpoint: WebhookEndpoint) -> dict[str, Any]:
    return endpoint.serialize() | {"secret": endpoint.salt}


async def _reveal_secret(app: App, answering: Awaitable[Response]) -> Response:
    """The answer with the secret for its salt: a stored answer has the salt only (docs/security.md). Raises AnsweredBefore."""
    try:
        response = await answering
    except AnsweredBefore as before:
        body = _revealed(app, before.answer.body.encode())
        raise AnsweredBefore(before.answer._replace(body=body.decode())) from None
    return replace(response, body=_revealed(app, response.body))


def _revealed(app: App, body: bytes) -> bytes:
    shown = orjson.loads(body)
    shown["data"]["secret"] = secret_text(derive_secret(app.config.link_secret, shown["data"]["secret"]))
    return orjson.dumps(shown)
