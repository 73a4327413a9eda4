"""Parses a queue event: an untrusted JSON object becomes an event, or ALL its faults.

Whether its plan and provider group exist is checked later, by `ingest`. docs/queue-events.md
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from frontdesk import codes
from frontdesk.codes import Code
from frontdesk.errors import Fault, unknown_faults
from frontdesk.queues.model import (
    PATIENT_CLASS,
    PATIENT_CLASS_RULE,
    EventType,
    ParsedEvent,
    QueueEvent,
)
from frontdesk.text import Rejected, parse_text

REFERENCE_LENGTH = 255
MAX_ID = 2**63 - 1
MAX_CAPACITY = 100
MAX_PLANS = 1000
MAX_PRIORITY = 100

SKEW = timedelta(minutes=5)  # how far the sender's clock may be ahead
LATEST = timedelta(days=7)  # how late an event may come; its id is kept for longer (`upkeep.prune`)

LONGEST_BOOKING = timedelta(days=30)
LONGEST_PAUSE = timedelta(hours=24)

# The fields that a type needs, and others that it keeps; the rest of the known fields is ignored.
FIELDS: dict[EventType, tuple[tuple[str, ...], tuple[str, ...]]] = {
    EventType.DOCTOR_ON_DUTY: (("provider_group_id", "doctor"), ("plan_ids", "capacity")),
    EventType.DOCTOR_OFF_DUTY: (("provider_group_id", "doctor"), ()),
    EventType.DOCTOR_PAUSED: (("provider_group_id", "doctor", "until"), ()),
    EventType.PATIENT_JOINED: (
        ("plan_id", "visit"),
        ("provider_group_id", "class", "priority", "not_before"),
    ),
    EventType.PATIENT_LEFT: (("plan_id", "visit"), ("provider_group_id",)),
    EventType.VISIT_STARTED: (("plan_id", "visit", "doctor"), ("provider_group_id",)),
    EventType.VISIT_ENDED: (("plan_id", "visit"), ("provider_group_id", "doctor")),
}
_MISSING = codes.queue_events.REQUIRED, "must not be missing, null or blank"
_IN_THE_FUTURE = Fault(
    "at",
    codes.queue_events.IN_THE_FUTURE,
    "must not be more than 5 minutes ahead of the service's clock",
)
_TOO_OLD = Fault("at", codes.queue_events.TOO_OLD, "must not be more than 7 days ago")
_TOO_FAR = Fault(
    "not_before",
    codes.queue_events.NOT_ALLOWED,
    "must not be more than 30 days ahead of the service's clock",
)
_NO_PAUSE = Fault(
    "until", codes.queue_events.NOT_ALLOWED, "must be after `at`, by 24 hours at most"
)
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
    r"(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def parse_event(sent: object, *, now: datetime, strict: bool = False) -> ParsedEvent:
    """One event as a clinical system sends it. `strict`: unknown fields are faults. Never raises.

    >>> now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    >>> sent = {"id": "1", "type": "visit.ended", "at": "2026-11-20T12:00:00Z", "visit": "v", "plan_id": 1}
    >>> parse_event(sent, now=now).event.type
    <EventType.VISIT_ENDED: 'visit.ended'>
    >>> [fault.field for fault in parse_event({"id": "1"}, now=now).faults]
    ['type', 'at']
    """
    if not isinstance(sent, Mapping):
        return ParsedEvent(
            None, None, (Fault("", codes.queue_events.WRONG_TYPE, "must be an object"),)
        )
    faults: list[Fault] = []
    read: dict[str, Any] = {}
    for name in ("id", "type", "at"):
        _read_field(sent, name, read, faults, required=True)
    type_: EventType | None = read.get("type")
    if type_ is not None:
        needed, optional = FIELDS[type_]
        for name in needed + optional:
            _read_field(sent, name, read, faults, required=name in needed)
    faults += _faults_of_times(read, now)
    unknown = tuple(str(name) for name in sent if name not in _READERS)
    if strict:
        faults += unknown_faults(unknown)
    if faults:
        return ParsedEvent(read.get("id"), event=None, faults=tuple(faults), ignored=unknown)
    if type_ is EventType.DOCTOR_ON_DUTY:
        read.setdefault("capacity", 1)
    if "class" in read:
        read["patient_class"] = read.pop("class")
    return ParsedEvent(read["id"], QueueEvent(**read), ignored=unknown)


def _read_field(
    sent: Mapping[str, object],
    name: str,
    read: dict[str, Any],
    faults: list[Fault],
    *,
    required: bool,
) -> None:
    value = sent.get(name)
    if value is None:
        if required:
            faults.append(Fault(name, *_MISSING))
        return
    try:
        read[name] = _READERS[name](value)
    except Rejected as rejected:
        faults.append(Fault(name, rejected.code, rejected.message))


def _faults_of_times(read: Mapping[str, Any], now: datetime) -> Iterator[Fault]:
    at = read.get("at", now)
    if at > now + SKEW:
        yield _IN_THE_FUTURE
    elif at < now - LATEST:
        yield _TOO_OLD
    if "not_before" in read and read["not_before"] > now + LONGEST_BOOKING:
        yield _TOO_FAR
    if {"at", "until"} <= read.keys() and not at < read["until"] <= at + LONGEST_PAUSE:
        yield _NO_PAUSE


def _reference(value: object) -> str:
    text = parse_text(value, limit=REFERENCE_LENGTH)
    if not text:
        raise Rejected(*_MISSING)
    return text


def _type(value: object) -> EventType:
    if type(value) is not str:
        raise Rejected(codes.queue_events.WRONG_TYPE, "must be a string")
    try:
        return EventType(value)
    except ValueError:
        raise Rejected(
            codes.queue_events.NOT_ALLOWED, "must be one of: " + ", ".join(EventType)
        ) from None


def _time(value: object) -> datetime:
    """ISO 8601 with Z or an offset (docs/interface.md, Requests and answers): without one the time
    is ambiguous.
    """
    if type(value) is not str:
        raise Rejected(codes.queue_events.WRONG_TYPE, "must be a string")
    with suppress(ValueError, OverflowError):
        if _TIME.fullmatch(value):
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
    raise Rejected(codes.queue_events.NOT_A_TIME, "must be an ISO 8601 time with Z or an offset")


def _class(value: object) -> str:
    if type(value) is not str:
        raise Rejected(codes.queue_events.WRONG_TYPE, "must be a string")
    if not PATIENT_CLASS.fullmatch(value):
        raise Rejected(codes.queue_events.NOT_ALLOWED, PATIENT_CLASS_RULE)
    return value


def _whole(value: object, *, most: int, code: Code, rule: str, least: int = 1) -> int:
    if type(value) is not int:
        raise Rejected(codes.queue_events.WRONG_TYPE, "must be a whole number")
    if not least <= value <= most:
        raise Rejected(code, rule)
    return value


_id = partial(_whole, most=MAX_ID, code=codes.queue_events.NOT_FOUND, rule="does not exist")


def _ids(value: object) -> tuple[int, ...]:
    if type(value) is not list:
        raise Rejected(codes.queue_events.WRONG_TYPE, "must be an array of plan ids")
    if not 1 <= len(value) <= MAX_PLANS:
        raise Rejected(
            codes.queue_events.NOT_ALLOWED,
            f"must name 1 to {MAX_PLANS} plans; leave it out for all",
        )
    return tuple(sorted({_id(one) for one in value}))


_READERS: dict[str, Callable[[object], Any]] = {
    "id": _reference,
    "type": _type,
    "at": _time,
    "provider_group_id": _id,
    "plan_id": _id,
    "doctor": _reference,
    "visit": _reference,
    "plan_ids": _ids,
    "capacity": partial(
        _whole,
        most=MAX_CAPACITY,
        code=codes.queue_events.NOT_ALLOWED,
        rule=f"must be 1 to {MAX_CAPACITY}",
    ),
    "class": _class,
    "priority": partial(
        _whole,
        least=-MAX_PRIORITY,
        most=MAX_PRIORITY,
        code=codes.queue_events.NOT_ALLOWED,
        rule=f"must be -{MAX_PRIORITY} to {MAX_PRIORITY}",
    ),
    "not_before": _time,
    "until": _time,
}
