"""Webhook endpoints: programs of the account that are sent its events (docs/webhooks.md)."""

from collections.abc import Callable, Sequence
from typing import Any

from frontdesk.api.eligibility_files import enveloped
from frontdesk.app import App
from frontdesk.config import Environment
from frontdesk.db import Tx
from frontdesk.events import endpoints
from frontdesk.events.model import WebhookEndpoint
from frontdesk.events.signature import derive_secret, secret_text
from frontdesk.text import nearest_name
from frontdesk.web.endpoint import requester_of
from frontdesk.web.request import Request, note_ignored_fields, parse_json_object
from frontdesk.web.response import NO_STORE, Response, json_response


async def create_webhook_endpoint(app: App, request: Request) -> Response:
    """Create a webhook endpoint. It gets the events that happen from now on, in their order. The answer has its `secret`, which
    is not shown again. An account has 10 endpoints at most.

    Body: NewWebhookEndpoint
    201 WebhookEndpoint [Location Ignored-Fields Cache-Control]: The endpoint and its secret.
    Faults: required wrong_type not_allowed unknown_field
    """
    values = await _values(request, _readers(app), required=("url",))
    account_id, requester = request.account_id, requester_of(app, request)
    made = await app.write(lambda tx: endpoints.create(tx, account_id, values, requester))
    place = f"{app.config.base_url}{request.path}/{made.id}".encode()
    links = {"self": app.config.base_url + request.target}
    body = {"links": links, "data": _with_secret(app, made)}
    return json_response(body, (b"location", place), status=201)


async def list_webhook_endpoints(app: App, request: Request) -> Response:
    """List the account's webhook endpoints. Answers all of them, by id.

    200 WebhookEndpoints: The endpoints, by id.
    """
    account_id = request.account_id
    found = await app.ask(lambda tx: endpoints.list_endpoints(tx, account_id))
    return enveloped(app, request, [endpoint.serialize() for endpoint in found])


async def show_webhook_endpoint(app: App, request: Request) -> Response:
    """Read a webhook endpoint. Answers its state, and its last error if webhooks fail.

    200 WebhookEndpoint: The endpoint.
    """
    id_, account_id = request.path_id("endpoint_id"), request.account_id
    found = await app.ask(lambda tx: endpoints.get(tx, account_id, id_))
    return enveloped(app, request, found.serialize())


async def change_webhook_endpoint(app: App, request: Request) -> Response:
    """Change a webhook endpoint. An absent field keeps its value. One that becomes `active` is sent what has waited, at once.

    Body: WebhookEndpointPatch
    200 WebhookEndpoint [Ignored-Fields Cache-Control]: The endpoint as it is now.
    Faults: wrong_type not_allowed unknown_field
    """
    values = await _values(request, _readers(app))
    changed = await _act(app, request, endpoints.change, values=values)
    app.db.announce_work()
    return enveloped(app, request, changed.serialize())


async def delete_webhook_endpoint(app: App, request: Request) -> Response:
    """Delete a webhook endpoint. It is sent nothing more, but for a webhook that is on its way.

    204: The endpoint is gone.
    """
    await _act(app, request, endpoints.delete)
    return Response(204, b"", (NO_STORE,))


async def rotate_webhook_secret(app: App, request: Request) -> Response:
    """Give a webhook endpoint a new secret. For 24 hours webhooks are signed with the one before too.

    200 WebhookEndpoint: The endpoint and its new secret, which is not shown again.
    """
    rotated = await _act(app, request, endpoints.rotate)
    return enveloped(app, request, _with_secret(app, rotated))


async def test_webhook_endpoint(app: App, request: Request) -> Response:
    """Send a test to a webhook endpoint. It is an event `webhook.test`, behind the events that wait for the endpoint.

    202 WebhookEndpoint: The test is on its way; `last_error` tells later if it failed.
    Problems: wrong_state
    """
    tested = await _act(app, request, endpoints.test)
    app.db.announce_work()
    return enveloped(app, request, tested.serialize(), status=202)


async def replay_webhook_endpoint(app: App, request: Request) -> Response:
    """Send events to a webhook endpoint again. With `event_id` it is one event, behind the events that wait for the endpoint,
    whatever its `event_types`; with `since` all events from that time on, in their order, those that wait too. Each has the
    `webhook-id` that it had. A paused endpoint gets them when it is active.

    Body: WebhookReplay
    202 WebhookEndpoint [Ignored-Fields Cache-Control]: The events are on their way.
    Faults: required wrong_type not_allowed unknown_field
    """
    asked = await _values(request, endpoints.REPLAY_READERS)
    replayed = await _act(app, request, endpoints.replay, asked=asked)
    app.db.announce_work()
    return enveloped(app, request, replayed.serialize(), status=202)


async def _act(app: App, request: Request, action: Callable[..., Any], **options: Any) -> Any:
    """What the action makes of the endpoint of the path. Raises NotFound."""
    id_, requester = request.path_id("endpoint_id"), requester_of(app, request)

    def act(tx: Tx) -> Any:
        return action(tx, endpoints.get(tx, request.account_id, id_, lock=True), requester, **options)

    return await app.write(act)


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


def _with_secret(app: App, endpoint: WebhookEndpoint) -> dict[str, Any]:
    return endpoint.serialize() | {
        "secret": secret_text(derive_secret(app.config.link_secret, endpoint.salt))
    }
