"""Webhook endpoints of an account: create, change, pause, roll the secret, test, replay, delete."""

import hmac
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any

from frontdesk import events
from frontdesk.console import frame
from frontdesk.console.account_parts import Shown, change, chosen, reveal
from frontdesk.console.door import Pages
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.errors import Conflict, NotFound
from frontdesk.events import endpoints
from frontdesk.events.cursors import CursorGone
from frontdesk.events.endpoints import EndpointPaused
from frontdesk.events.model import EVENT_TYPES, EndpointState, PauseReason, WebhookEndpoint
from frontdesk.events.signature import derive_secret, secret_text
from frontdesk.users.model import Right
from frontdesk.users.once import new_number
from frontdesk.web.response import Response

PAGES = Pages()

_PLACE = "/console/accounts/{account_id}/account/webhooks"
_ENDPOINT = _PLACE + "/{endpoint_id}"
TYPES = {type_: text for type_, text in EVENT_TYPES.items() if str(type_) in endpoints.SUBSCRIBED}
REASONS = {
    PauseReason.ASKED: "somebody paused it",
    PauseReason.GONE: "it answered 410 for five minutes",
    PauseReason.FAILING: "it failed for five days",
    PauseReason.UNVERIFIED: "its address answered no test with 2xx for a day",
}

# What the last attempt failed by, in words (docs/webhooks.md); others are statuses, `status_500`.
FAILURES = {
    "timeout": "no whole answer within 10 s",
    "connection": "the connection was refused, or ended before the answer",
    "certificate": "the certificate is not valid for this name",
    "unknown_host": "the name leads nowhere",
    "forbidden_address": "the name leads to an address that is not on the internet",
    "malformed_answer": "the answer is no HTTP/1.1",
    "answer_too_large": "the head of the answer is over 64 KiB",
    "internal_error": "the fault is the service's: tell an operator",
}


@PAGES.get(_PLACE, for_=Right.ACCOUNT_MANAGE)
async def show_endpoints(visit: Visit) -> Response:
    """List the account's webhook endpoints; the form for another one."""
    return await _list_page(visit)


async def _list_page(visit: Visit, message: str = "", status: int = 200) -> Response:
    found = await visit.app.ask(lambda tx: events.list_endpoints(tx, visit.account))
    return frame.show(
        visit,
        "Webhooks",
        "account/webhooks.html",
        status=status,
        endpoints=found,
        most=endpoints.MOST_ENDPOINTS,
        reasons=REASONS,
        types=TYPES,
        message=message,
        typed=visit.form.fields,
        number=new_number(),
    )


@PAGES.post(_PLACE, for_=Right.ACCOUNT_MANAGE)
async def create_endpoint(visit: Visit) -> Response:
    """Make an endpoint. Its secret is in this answer only; the test of its address leaves at once."""

    def make(tx: Tx) -> Shown:
        body = _typed(visit)
        if visit.form.is_set("paused"):
            body["state"] = EndpointState.PAUSED.value
        values = _read(visit, body)
        return _shown(visit, endpoints.create(tx, visit.account, values, visit.requester))

    response = await reveal(visit, make, show=partial(_list_page, visit))
    visit.app.db.announce_work()
    return response


def _typed(visit: Visit) -> dict[str, object]:
    """The fields of the form, as the body of a request of /v2 has them."""
    longest = 2 * events.model.URL_LENGTH
    return {"url": visit.form.text("url", longest=longest), "event_types": chosen(visit, "type.")}


def _read(visit: Visit, body: Mapping[str, object]) -> dict[str, Any]:
    readers = endpoints.endpoint_readers(allows_loopback=visit.app.config.allows_loopback)
    return endpoints.read_values(body, readers, strict=True)


@PAGES.get(_ENDPOINT, for_=Right.ACCOUNT_MANAGE)
async def show_endpoint(visit: Visit) -> Response:
    """Show an endpoint: its state, its last delivery and its failures."""
    return await _endpoint_page(visit)


async def _endpoint_page(visit: Visit, message: str = "", status: int = 200) -> Response:
    endpoint_id = _id(visit)
    found = await visit.app.ask(lambda tx: events.get_endpoint(tx, visit.account, endpoint_id))
    return frame.show(
        visit,
        f"Webhook {found.id}",
        "account/webhook.html",
        status=status,
        endpoint=found,
        version=_version(found),
        reasons=REASONS,
        failures=FAILURES,
        types=TYPES,
        message=message,
        typed=visit.form.fields,
        number=new_number(),
    )


@PAGES.post(_ENDPOINT + "/change", for_=Right.ACCOUNT_MANAGE)
async def change_endpoint(visit: Visit) -> Response:
    """Change address and types of events. Another address is tested first."""
    body = _typed(visit)

    def work(tx: Tx, endpoint: WebhookEndpoint) -> object:
        if not hmac.compare_digest(_version(endpoint), visit.form.text("version")):
            raise Conflict("This endpoint changed while the page was open. Nothing was changed.")
        return endpoints.change(tx, endpoint, visit.requester, values=_read(visit, body))

    return await _change(visit, work)


@PAGES.post(_ENDPOINT + "/pause", for_=Right.ACCOUNT_MANAGE)
async def pause_endpoint(visit: Visit) -> Response:
    """Send nothing any more; events wait."""
    values = {"state": EndpointState.PAUSED}
    return await _change(visit, partial(_set, visit, values))


@PAGES.post(_ENDPOINT + "/resume", for_=Right.ACCOUNT_MANAGE)
async def resume_endpoint(visit: Visit) -> Response:
    """Send what has waited; an address that was never verified is tested first."""
    values = {"state": EndpointState.ACTIVE}
    return await _change(visit, partial(_set, visit, values))


def _set(visit: Visit, values: Mapping[str, Any], tx: Tx, endpoint: WebhookEndpoint) -> object:
    return endpoints.change(tx, endpoint, visit.requester, values=values)


@PAGES.post(_ENDPOINT + "/rotate", for_=Right.ACCOUNT_MANAGE)
async def rotate_secret(visit: Visit) -> Response:
    """Roll the secret. Those before it sign too, each for 24 hours after it was replaced."""
    endpoint_id = _id(visit)

    def make(tx: Tx) -> Shown:
        endpoint = events.get_endpoint(tx, visit.account, endpoint_id, lock=True)
        return _shown(visit, endpoints.rotate(tx, endpoint, visit.requester))

    return await reveal(visit, make, show=partial(_endpoint_page, visit))


def _shown(visit: Visit, endpoint: WebhookEndpoint) -> Shown:
    secret = secret_text(derive_secret(visit.app.config.link_secret, endpoint.salt))
    return Shown(
        "A new secret",
        {"url": endpoint.url, "secret": secret},
        "Give it to the program that is called: with it the program checks each signature.",
        f"{_place(visit)}/{endpoint.id}",
    )


@PAGES.post(_ENDPOINT + "/test", for_=Right.ACCOUNT_MANAGE)
async def test_endpoint(visit: Visit) -> Response:
    """Send a `webhook.test`, behind the events that wait."""
    return await _change(visit, lambda tx, endpoint: endpoints.test(tx, endpoint, visit.requester))


@PAGES.post(_ENDPOINT + "/replay", for_=Right.ACCOUNT_MANAGE)
async def replay_events(visit: Visit) -> Response:
    """Send one event again, or all since a time."""
    event_id = visit.form.text("event_id", longest=100)
    since = visit.form.text("since", longest=40)
    body = {name: text for name, text in (("event_id", event_id), ("since", since)) if text}

    def work(tx: Tx, endpoint: WebhookEndpoint) -> object:
        asked = endpoints.read_values(body, endpoints.REPLAY_READERS, strict=True)
        return endpoints.replay(tx, endpoint, visit.requester, asked=asked)

    return await _change(visit, work)


@PAGES.post(_ENDPOINT + "/delete", for_=Right.ACCOUNT_MANAGE)
async def delete_endpoint(visit: Visit) -> Response:
    """Delete the endpoint for good."""
    endpoint_id = _id(visit)

    async def show(_message: str, _status: int) -> Response:
        raise NotFound("webhook endpoint")

    return await change(
        visit,
        lambda tx: endpoints.delete(tx, visit.account, endpoint_id, visit.requester),
        show=show,
        after=_place(visit),
    )


async def _change(visit: Visit, work: Callable[[Tx, WebhookEndpoint], object]) -> Response:
    """Change the locked endpoint, and wake the worker; say on the page why it can't be changed."""
    endpoint_id = _id(visit)

    def lock_and_work(tx: Tx) -> None:
        endpoint = events.get_endpoint(tx, visit.account, endpoint_id, lock=True)
        try:
            work(tx, endpoint)
        except (EndpointPaused, CursorGone) as refused:
            raise Conflict(refused.detail) from None

    after = f"{_place(visit)}/{endpoint_id}"
    show = partial(_endpoint_page, visit)
    response = await change(visit, lock_and_work, show=show, after=after)
    visit.app.db.announce_work()
    return response


def _version(endpoint: WebhookEndpoint) -> str:
    """What the form of a change was made from; the worker's own changes are none."""
    shown = f"{endpoint.url} {endpoint.event_types} {endpoint.salt}"
    return sha256(shown.encode()).hexdigest()[:32]


def _id(visit: Visit) -> int:
    return visit.id_of("endpoint_id", of="webhook endpoint")


def _place(visit: Visit) -> str:
    return f"/console/accounts/{visit.account}/account/webhooks"
