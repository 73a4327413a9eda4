"""Webhook endpoints of an account: create, change, rotate, test, replay, delete (docs/webhooks.md)."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from frontdesk import audit, codes
from frontdesk.audit import Requester
from frontdesk.codes import Kind
from frontdesk.db import Tx
from frontdesk.errors import Fault, FrontdeskError, Invalid, unknown_faults
from frontdesk.events import store
from frontdesk.events.cursors import CursorGone, check_place, check_time
from frontdesk.events.model import (
    AT_ONCE,
    AccountEventType,
    EndpointState,
    EventPlace,
    NewEvent,
    OldSecret,
    PauseReason,
    WebhookEndpoint,
    due_after,
)
from frontdesk.events.signature import new_salt
from frontdesk.events.target import parse_target
from frontdesk.text import stored_time, wire_time

MOST_ENDPOINTS = 10  # of an account
OLD_SECRET_HOURS = 24
MOST_OLD_SECRETS = 5  # of an endpoint: each one is a signature of every webhook
SUBSCRIBED = tuple(
    str(type_) for type_ in AccountEventType if type_ is not AccountEventType.WEBHOOK_TEST
)
Values = Mapping[str, Any]  # by field
# By field. A reader is given a value of the field's type, and raises ValueError with the rule.
Readers = Mapping[str, Callable[[Any], Any]]
_TYPES = {"event_types": (list, "must be an array of types of events")}
_TEXT = (str, "must be a string")


class EndpointPaused(FrontdeskError, kind=Kind.WRONG_STATE, code=codes.faults.WRONG_STATE):
    """A paused endpoint is sent nothing."""


def read_values(
    body: Mapping[str, object], readers: Readers, *, required: Sequence[str] = (), strict: bool
) -> dict[str, Any]:
    """The values of the fields that are there. Others are faults if `strict`. Raises Invalid with
    every fault.
    """
    faults = unknown_faults(name for name in body if name not in readers) if strict else []
    faults += [
        Fault(name, codes.faults.REQUIRED, "must not be missing")
        for name in required
        if name not in body
    ]
    values: dict[str, Any] = {}
    for name in (name for name in readers if name in body):
        type_, rule = _TYPES.get(name, _TEXT)
        if not isinstance(body[name], type_):
            faults.append(Fault(name, codes.faults.WRONG_TYPE, rule))
            continue
        try:
            values[name] = readers[name](body[name])
        except ValueError as error:
            faults.append(Fault(name, codes.faults.NOT_ALLOWED, str(error)))
    if faults:
        raise Invalid(faults)
    return values


def endpoint_readers(*, allows_loopback: bool) -> Readers:
    def read_url(value: str) -> str:
        parse_target(value, allows_loopback=allows_loopback)
        return value

    return {"url": read_url, "event_types": _read_types, "state": _read_state}


def _read_types(value: list[object]) -> list[str]:
    if not all(isinstance(each, str) and each in SUBSCRIBED for each in value):
        raise ValueError(
            "must have only types of events, such as member.created; an empty array is all"
        )
    return sorted({str(each) for each in value})


def _read_state(value: str) -> EndpointState:
    if value not in (EndpointState.ACTIVE, EndpointState.PAUSED):
        raise ValueError("must be one of active, paused")
    return EndpointState(value)


def _read_time(value: str) -> datetime:
    with suppress(ValueError):
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is UTC:
            return moment
    raise ValueError("must be a real time in UTC, YYYY-MM-DDThh:mm:ssZ")


REPLAY_READERS: Readers = {"event_id": EventPlace.parse, "since": _read_time}


def create(tx: Tx, account_id: int, values: Values, requester: Requester) -> WebhookEndpoint:
    """A new endpoint, whose address is tested first. It gets the events from now on, and begins the
    account's feed.

    Raises Invalid when there are too many.
    """
    if len(store.list_endpoints(tx, account_id)) >= MOST_ENDPOINTS:
        rule = (
            f"must be one of the account's {MOST_ENDPOINTS} endpoints: delete one that is not used"
        )
        raise Invalid([Fault("url", codes.faults.NOT_ALLOWED, rule)])
    store.begin_feed(tx, account_id, requester.now)
    row = {
        "event_types": [],
        "account_id": account_id,
        "salt": new_salt(),
        "unverified_since": requester.now,
    }
    row |= {**values, **_reason(values), **due_after(store.last_place(tx, account_id))}
    is_paused = values.get("state") is EndpointState.PAUSED
    row["state"] = EndpointState.PAUSED if is_paused else EndpointState.UNVERIFIED
    row |= {
        "epoch": 0,
        "turn_at": AT_ONCE,
        "created_at": requester.now,
        "updated_at": requester.now,
    }
    endpoint = store.insert_endpoint(tx, row)
    audit.record_action(tx, requester, "webhook.created", account_id, endpoint.id)
    return endpoint


def change(
    tx: Tx, endpoint: WebhookEndpoint, requester: Requester, *, values: Values
) -> WebhookEndpoint:
    """Change a locked endpoint, as those below do. One that becomes active is sent what has waited,
    at once.

    Another address is tested first, and so is one that has not been verified yet.
    """
    changed = {name: value for name, value in values.items() if getattr(endpoint, name) != value}
    if not changed:
        return endpoint
    again = _reason(changed) | due_after(endpoint.place) | {"failing_since": None}
    again |= _to_be_verified(endpoint, changed, requester.now)
    return _change(
        tx, endpoint, requester, "webhook.changed", changed | again, fields=sorted(changed)
    )


def _to_be_verified(endpoint: WebhookEndpoint, changed: Values, now: datetime) -> dict[str, Any]:
    """The values that begin the test of an address; none if the address is not to be tested now."""
    is_asked_again = "state" in changed and endpoint.unverified_since is not None
    if "url" not in changed and not is_asked_again:
        return {}
    begun: dict[str, Any] = {"unverified_since": now}
    if changed.get("state", endpoint.state) is not EndpointState.PAUSED:
        begun["state"] = EndpointState.UNVERIFIED
    return begun


def rotate(tx: Tx, endpoint: WebhookEndpoint, requester: Requester) -> WebhookEndpoint:
    """Give the endpoint a new secret. Those before it sign too, each for 24 hours after it was
    replaced, the newest MOST_OLD_SECRETS at most.
    """
    now = requester.now
    replaced = OldSecret(endpoint.salt, now + timedelta(hours=OLD_SECRET_HOURS))
    kept = [replaced, *(old for old in endpoint.old_secrets if now < old.until)]
    old_salts = [[old.salt, stored_time(old.until)] for old in kept[:MOST_OLD_SECRETS]]
    salts = {"salt": new_salt(), "old_salts": old_salts}
    return _change(tx, endpoint, requester, "webhook.rotated", salts)


def delete(tx: Tx, account_id: int, endpoint_id: int, requester: Requester) -> None:
    """Raises NotFound."""
    store.delete_endpoint(tx, store.get_endpoint(tx, account_id, endpoint_id, lock=True).id)
    audit.record_action(tx, requester, "webhook.deleted", account_id, endpoint_id)


def test(tx: Tx, endpoint: WebhookEndpoint, requester: Requester) -> WebhookEndpoint:
    """Have a `webhook.test` sent to the endpoint, behind the events that wait for it. Raises
    EndpointPaused.

    An endpoint that is not verified is sent the test of its address again, at once.
    """
    if endpoint.state is EndpointState.PAUSED:
        raise EndpointPaused("The endpoint is paused. Make it active first.", field="state")
    if endpoint.state is EndpointState.UNVERIFIED:
        return _change(tx, endpoint, requester, "webhook.tested", due_after(endpoint.place))
    type_ = AccountEventType.WEBHOOK_TEST
    event = NewEvent(endpoint.account_id, type_, {}, requester.request_id, endpoint.id)
    store.publish(tx, [event], now=requester.now)
    return _change(tx, endpoint, requester, "webhook.tested", {})


def replay(
    tx: Tx, endpoint: WebhookEndpoint, requester: Requester, *, asked: Values
) -> WebhookEndpoint:
    """Send one event again, behind those that wait, or all since a time, in their order, before
    those that wait. Raises Invalid, CursorGone.
    """
    if len(asked) != 1:
        raise Invalid(
            [Fault("event_id", codes.faults.REQUIRED, "must be there, or since instead of it")]
        )
    if place := asked.get("event_id"):
        check_place(tx, endpoint.account_id, place, field="event_id")
        if not store.copy_event(tx, endpoint.account_id, place, endpoint.id):
            raise CursorGone(codes.faults.CURSOR_UNKNOWN, "event_id")  # of a test or a replay
        return _change(tx, endpoint, requester, "webhook.replayed", {}, event_id=place.event_id)
    since = asked["since"]
    check_time(tx, endpoint.account_id, since, now=requester.now, field="since")
    first = store.first_place_since(tx, endpoint.account_id, since)
    # Never forward, past events that wait. What a worker has sent since its last commit is void.
    back = due_after(min(endpoint.place, first._replace(id=first.id - 1))) if first else {}
    return _change(tx, endpoint, requester, "webhook.replayed", back, since=wire_time(since))


def _change(
    tx: Tx,
    endpoint: WebhookEndpoint,
    requester: Requester,
    action: str,
    values: Values,
    **detail: Any,
) -> WebhookEndpoint:
    """The endpoint with these values; the audit trail has the action."""
    if values:
        store.change_endpoint(tx, endpoint.id, **values, updated_at=requester.now)
    audit.record_action(tx, requester, action, endpoint.account_id, endpoint.id, **detail)
    return store.get_endpoint(tx, endpoint.account_id, endpoint.id)


def _reason(values: Values) -> dict[str, Any]:
    if "state" not in values:
        return {}
    return {"paused_reason": PauseReason.ASKED if values["state"] is EndpointState.PAUSED else None}
