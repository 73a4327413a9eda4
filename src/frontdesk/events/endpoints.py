"""Webhook endpoints of an account: create, change, rotate, test, replay, delete (docs/webhooks.md)."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
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
from frontdesk.text import wire_time

MOST_ENDPOINTS = 10  # of an account
OLD_SECRET_HOURS = 24
SUBSCRIBED = tuple(str(type_) for type_ in AccountEventType if type_ is not AccountEventType.WEBHOOK_TEST)
# A time that no clock of a worker is behind, however wrong that of the request's server is.
_AT_ONCE = datetime(2000, 1, 1, tzinfo=UTC)

Readers = Mapping[str, Callable[[object], Any]]  # by field; they raise TypeError and ValueError with the rule


class EndpointPaused(FrontdeskError, kind="wrong_state"):
    """A paused endpoint is sent nothing."""

    def __init__(self) -> None:
        detail = "The endpoint is paused. Make it active first."
        super().__init__(detail)
        self.faults = (Fault("state", self.code, detail),)


def read_values(
    body: Mapping[str, object], readers: Readers, *, required: Sequence[str] = (), strict: bool
) -> dict[str, Any]:
    """The values of the fields that are there. Others are faults if `strict`. Raises Invalid with every fault."""
    faults = unknown_faults(name for name in body if name not in readers) if strict else []
    faults += [Fault(name, "required", "must not be missing") for name in required if name not in body]
    values: dict[str, Any] = {}
    for name, read in readers.items():
        if name not in body:
            continue
        try:
            values[name] = read(body[name])
        except TypeError as error:
            faults.append(Fault(name, "wrong_type", str(error)))
        except ValueError as error:
            faults.append(Fault(name, "not_allowed", str(error)))
    if faults:
        raise Invalid(faults)
    return values


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("must be a string")
    return value


def _read_url(value: object, *, is_sandbox: bool) -> str:
    parse_target(_read_text(value), is_sandbox=is_sandbox)
    return str(value)


def _read_types(value: object) -> list[str]:
    if not isinstance(value, list):
        raise TypeError("must be an array of types of events")
    if not all(isinstance(each, str) and each in SUBSCRIBED for each in value):
        raise ValueError("must have only types of events, such as member.created; an empty array is all")
    return sorted(set(value))


def _read_state(value: object) -> EndpointState:
    if value not in tuple(EndpointState):
        raise ValueError("must be one of active, paused")
    return EndpointState(str(value))


def _read_place(value: object) -> EventPlace:
    place = EventPlace.parse(_read_text(value))
    if place is None:
        raise ValueError("must be the id of an event, such as evt_871_42")
    return place


def _read_time(value: object) -> datetime:
    text = _read_text(value)
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None and wire_time(moment) == text:
            return moment
    raise ValueError("must be a real time in UTC, YYYY-MM-DDThh:mm:ssZ")


def endpoint_readers(*, is_sandbox: bool) -> Readers:
    return {
        "url": partial(_read_url, is_sandbox=is_sandbox),
        "event_types": _read_types,
        "state": _read_state,
    }


REPLAY_READERS: Readers = {"event_id": _read_place, "since": _read_time}


list_endpoints = store.list_endpoints


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
    store.begin_feed(tx, account_id, requester.now)
    row = {"event_types": [], "state": EndpointState.ACTIVE, "account_id": account_id, "salt": new_salt()}
    row |= {**values, **_reason(values), **_due_after(store.last_place(tx, account_id))}
    row |= {"epoch": 0, "turn_at": _AT_ONCE, "created_at": requester.now, "updated_at": requester.now}
    endpoint_id = store.insert_endpoint(tx, row)
    audit.record_action(tx, requester, "webhook.created", account_id, endpoint_id)
    return get(tx, account_id, endpoint_id)


def change(
    tx: Tx, account_id: int, endpoint_id: int, requester: Requester, *, values: Mapping[str, Any]
) -> WebhookEndpoint:
    """Change the endpoint. One that becomes active is sent what has waited, at once. Raises NotFound."""
    before = get(tx, account_id, endpoint_id, lock=True)
    changed = {name: value for name, value in values.items() if getattr(before, name) != value}
    if changed:
        again = _reason(changed) | _due_after(before.place) | {"failing_since": None}
        store.change_endpoint(tx, endpoint_id, **changed, **again, updated_at=requester.now)
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


def replay(
    tx: Tx, account_id: int, endpoint_id: int, requester: Requester, *, asked: Mapping[str, Any]
) -> WebhookEndpoint:
    """Send one event again, behind those that wait, or all since a time, in their order, before those that wait. Raises NotFound,
    Invalid."""
    before = get(tx, account_id, endpoint_id, lock=True)
    if asked.keys() == {"event_id"}:
        if not store.copy_event(tx, account_id, asked["event_id"], endpoint_id):
            raise Invalid(
                [Fault("event_id", "not_allowed", "must be the id of an event of the last 30 days")]
            )
        detail = {"event_id": asked["event_id"].event_id}
    elif asked.keys() == {"since"}:
        first = store.first_place_since(tx, account_id, asked["since"])
        if (
            first is not None
        ):  # and never forward, past events that wait. What a worker has sent since its last commit is void
            place = min(before.place, EventPlace(first.xid, first.id - 1))
            store.change_endpoint(tx, endpoint_id, **_due_after(place), updated_at=requester.now)
        detail = {"since": wire_time(asked["since"])}
    else:
        raise Invalid([Fault("event_id", "required", "must be there, or since instead of it")])
    audit.record_action(tx, requester, "webhook.replayed", account_id, endpoint_id, **detail)
    return get(tx, account_id, endpoint_id)


def _reason(values: Mapping[str, Any]) -> dict[str, Any]:
    """Why the endpoint is paused, where its state changes."""
    if "state" not in values:
        return {}
    return {"paused_reason": PauseReason.ASKED if values["state"] is EndpointState.PAUSED else None}


def _due_after(place: EventPlace) -> dict[str, Any]:
    """What comes after the place is sent at once, without failed attempts."""
    place_of = {"place_xid": place.xid, "place_id": place.id}
    return place_of | {"next_at": _AT_ONCE, "attempts": 0, "head_failed_at": None}
