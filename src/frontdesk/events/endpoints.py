"""Webhook endpoints of an account: create, change, rotate, test, delete (docs/webhooks.md)."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from frontdesk import audit
from frontdesk.audit import Requester
from frontdesk.db import Tx
from frontdesk.errors import Fault, FrontdeskError, Invalid, NotFound, unknown_faults
from frontdesk.events import store
from frontdesk.events.model import (
    AccountEventType,
    EndpointState,
    EventPlace,
    NewEvent,
    PauseReason,
    WebhookEndpoint,
)
from frontdesk.events.signature import new_salt
from frontdesk.events.target import parse_target

MOST_ENDPOINTS = 10  # of an account
OLD_SECRET_HOURS = 24
WRITABLE = ("url", "event_types", "state")
SUBSCRIBED = tuple(str(type_) for type_ in AccountEventType if type_ is not AccountEventType.WEBHOOK_TEST)


class EndpointPaused(FrontdeskError, kind="wrong_state"):
    """A paused endpoint is sent nothing."""

    def __init__(self) -> None:
        detail = "The endpoint is paused. Make it active first."
        super().__init__(detail)
        self.faults = (Fault("state", self.code, detail),)


def parse_endpoint(
    body: Mapping[str, object], *, is_new: bool, is_sandbox: bool, strict: bool
) -> dict[str, Any]:
    """The values by column. Unknown fields are faults if `strict`. Raises Invalid with every fault."""
    faults = unknown_faults(name for name in body if name not in WRITABLE) if strict else []
    readers = {"url": _read_url, "event_types": _read_types, "state": _read_state}
    values: dict[str, Any] = {}
    if is_new and "url" not in body:
        faults.append(Fault("url", "required", "must not be missing"))
    for name in WRITABLE:
        if name in body:
            try:
                values[name] = readers[name](body[name], is_sandbox)
            except TypeError as error:
                faults.append(Fault(name, "wrong_type", str(error)))
            except ValueError as error:
                faults.append(Fault(name, "not_allowed", str(error)))
    if faults:
        raise Invalid(faults)
    return values


def _read_url(value: object, is_sandbox: bool) -> str:
    if not isinstance(value, str):
        raise TypeError("must be a string")
    parse_target(value, is_sandbox=is_sandbox)
    return value


def _read_types(value: object, _is_sandbox: bool) -> list[str]:
    if not isinstance(value, list):
        raise TypeError("must be an array of types of events")
    if not all(isinstance(each, str) and each in SUBSCRIBED for each in value):
        raise ValueError("must have only types of events, such as member.created; an empty array is all")
    return sorted(set(value))


def _read_state(value: object, _is_sandbox: bool) -> EndpointState:
    if value not in tuple(EndpointState):
        raise ValueError("must be one of active, paused")
    return EndpointState(str(value))


def list_endpoints(tx: Tx, account_id: int) -> list[WebhookEndpoint]:
    """The endpoints of the account, by id."""
    return store.list_endpoints(tx, account_id)


def get(tx: Tx, account_id: int, endpoint_id: int, *, lock: bool = False) -> WebhookEndpoint:
    """Raises NotFound, also for another account's endpoint."""
    found = store.get_endpoint(tx, account_id, endpoint_id, lock=lock)
    if found is None:
        raise NotFound("webhook endpoint")
    return found


def create(tx: Tx, account_id: int, values: Mapping[str, Any], requester: Requester) -> WebhookEndpoint:
    """A new endpoint that gets the events from now on; it begins the account's feed. Raises Invalid when there are too many."""
    if len(store.list_endpoints(tx, account_id)) >= MOST_ENDPOINTS:
        rule = f"must be one of the account's {MOST_ENDPOINTS} endpoints: delete one that is not used"
        raise Invalid([Fault("url", "not_allowed", rule)])
    now = requester.now
    store.begin_feed(tx, account_id, now)
    row = {"event_types": [], "state": EndpointState.ACTIVE, "account_id": account_id, "salt": new_salt()}
    row |= {**values, **_reason(values), "epoch": 0, "attempts": 0} | _at(store.last_place(tx, account_id))
    row |= dict.fromkeys(("next_at", "turn_at", "created_at", "updated_at"), now)
    endpoint_id = store.insert_endpoint(tx, row)
    audit.record_action(tx, requester, "webhook.created", account_id, endpoint_id)
    return get(tx, account_id, endpoint_id)


def change(
    tx: Tx, account_id: int, endpoint_id: int, values: Mapping[str, Any], requester: Requester
) -> WebhookEndpoint:
    """Change the endpoint. One that becomes active is sent what has waited, at once. Raises NotFound."""
    before = get(tx, account_id, endpoint_id, lock=True)
    changed = {name: value for name, value in values.items() if getattr(before, name) != value}
    if changed:
        again = {"next_at": requester.now, "attempts": 0, "head_failed_at": None, "failing_since": None}
        store.change_endpoint(
            tx, endpoint_id, **changed, **_reason(changed), **again, updated_at=requester.now
        )
        audit.record_action(tx, requester, "webhook.changed", account_id, endpoint_id, fields=sorted(changed))
    return get(tx, account_id, endpoint_id)


def rotate(tx: Tx, account_id: int, endpoint_id: int, requester: Requester) -> WebhookEndpoint:
    """Give the endpoint a new secret. The one before signs too, for 24 hours; one before that no longer. Raises NotFound."""
    before = get(tx, account_id, endpoint_id, lock=True)
    until = requester.now + timedelta(hours=OLD_SECRET_HOURS)
    salts = {"salt": new_salt(), "old_salt": before.salt, "old_salt_until": until}
    store.change_endpoint(tx, endpoint_id, **salts, updated_at=requester.now)
    audit.record_action(tx, requester, "webhook.rotated", account_id, endpoint_id)
    return get(tx, account_id, endpoint_id)


def delete(tx: Tx, account_id: int, endpoint_id: int, requester: Requester) -> None:
    """Raises NotFound."""
    get(tx, account_id, endpoint_id, lock=True)
    store.delete_endpoint(tx, endpoint_id)
    audit.record_action(tx, requester, "webhook.deleted", account_id, endpoint_id)


def test(tx: Tx, account_id: int, endpoint_id: int, requester: Requester) -> WebhookEndpoint:
    """Have a `webhook.test` sent to the endpoint, behind the events that wait for it. Raises NotFound, EndpointPaused."""
    found = get(tx, account_id, endpoint_id, lock=True)
    if found.state is EndpointState.PAUSED:
        raise EndpointPaused
    event = NewEvent(account_id, AccountEventType.WEBHOOK_TEST, {}, requester.request_id, endpoint_id)
    store.publish(tx, [event], now=requester.now)
    audit.record_action(tx, requester, "webhook.tested", account_id, endpoint_id)
    return found


def _reason(values: Mapping[str, Any]) -> dict[str, Any]:
    """Why the endpoint is paused, where its state changes."""
    if "state" not in values:
        return {}
    return {"paused_reason": PauseReason.ASKED if values["state"] is EndpointState.PAUSED else None}


def _at(place: EventPlace) -> dict[str, int]:
    return {"place_xid": place.xid, "place_id": place.id}
