"""How answers show what is stored, for the doors of HTTP and the command line.

Each function returns the type that the interface declares for it, so the type check compares them.
What is stored as a JSON object already has the shape of its type when it is written, hence `cast`.
"""

import hashlib
from datetime import datetime
from typing import TypedDict, cast
from urllib.parse import unquote

import orjson

from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.model import Enrolled, HistoryEntry
from frontdesk.events.model import Event, WebhookEndpoint
from frontdesk.files.model import COUNTS, EligibilityFile, StoredMapping
from frontdesk.interface.types import events, files, mapping_rules, mappings, members, plans
from frontdesk.plans.model import Plan, ProviderGroup
from frontdesk.queues.estimate.model import NOBODY_ON_DUTY
from frontdesk.queues.model import INTERVAL_SHARE, QueueInfo, QueueSnapshot
from frontdesk.text import count_text, wire_time


class WebhookContent(TypedDict):
    """The body of a webhook. Its headers have the id of the event."""

    type: str
    timestamp: str
    data: events.EventData


def provider_group(group: ProviderGroup) -> plans.ProviderGroupBody:
    return {
        "id": group.id,
        "type": "provider_groups",
        "name": group.name,
        "external_id": group.external_id,
        "created_at": wire_time(group.created_at),
    }


def plan(stored: Plan) -> plans.PlanBody:
    """The plan without its queue."""
    return {
        "id": stored.id,
        "type": "plans",
        "external_id": stored.external_id,
        "name": stored.name,
        "description": stored.description,
        "active": stored.accepting_patients,
        "created_at": wire_time(stored.created_at),
        "provider_group": provider_group(stored.provider_group),
    }


def plan_with_queue(
    stored: Plan,
    snapshot: QueueSnapshot | None,
    *,
    with_interval: bool = False,
    patient_class: str | None = None,
) -> plans.PlanBody:
    """The plan with its queue, if the snapshot has it: a plan may be newer than the snapshot.

    `patient_class`: of the newcomer that the estimate is for; None: of whichever.
    """
    shown = plan(stored)
    if snapshot and stored.id in snapshot.queues:
        shown["queue_info"] = queue_info(snapshot, stored.id, patient_class)
        if with_interval:
            shown["queue_interval"] = queue_interval(snapshot.queues[stored.id], patient_class)
    return shown


def queue(info: QueueInfo) -> plans.PlanQueueBody:
    """A queue as it is now (docs/interface.md, Queue values)."""
    return {
        "estimated_wait_time": info.estimated_wait_seconds,
        "queue_length": info.queue_length,
        "is_active": info.doctors_on_duty,
    }


def queue_info(
    snapshot: QueueSnapshot, plan_id: int, patient_class: str | None = None
) -> plans.PlanQueueBody:
    """A plan's queue, with the time until which it may be cached."""
    shown = queue(snapshot.queues[plan_id].of_class(patient_class))
    expires_at = wire_time(snapshot.expires_at)
    shown["cache_info"] = {"ttl": snapshot.ttl_seconds, "expires_at": expires_at}
    return shown


def queue_interval(info: QueueInfo, patient_class: str | None = None) -> plans.PlanQueueInterval:
    own = info.of_class(patient_class)
    return {
        "share": INTERVAL_SHARE,
        "low": own.low_seconds,
        "high": own.high_seconds,
        "for_class": patient_class if patient_class in info.classes else None,
        "estimated_wait_text": wait_text(own.estimated_wait_seconds),
    }


def wait_text(seconds: int) -> str:
    """An estimate for people. From an hour on to five minutes: it is no nearer than that.

    >>> [wait_text(seconds) for seconds in (-1, 0, 59, 60, 700, 4000, 7200)]  # doctest: +NORMALIZE_WHITESPACE
    ['no doctor is on duty', 'no wait', 'less than a minute', 'about 1 minute',
     'about 12 minutes', 'about 1 hour 5 minutes', 'about 2 hours']
    """
    if seconds == NOBODY_ON_DUTY:
        return "no doctor is on duty"
    if seconds == 0:
        return "no wait"
    if seconds < 60:
        return "less than a minute"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"about {count_text(minutes, 'minute')}"
    hours, rest = divmod(5 * round(minutes / 5), 60)
    after = f" {count_text(rest, 'minute')}" if rest else ""
    return f"about {count_text(hours, 'hour')}{after}"


def file(stored: EligibilityFile) -> files.File:
    """The file; no value of a member is in it."""
    return {
        "type": "eligibility_files",
        "id": stored.id,
        "plan_id": stored.plan_id,
        "undoes_id": stored.undoes_id,
        "state": stored.state,
        "step": stored.step,
        "mode": stored.mode,
        "dry_run": stored.dry_run,
        "client": stored.client,
        "file_name": stored.file_name,
        "format": stored.format,
        "encoding": stored.encoding,
        "delimiter": stored.delimiter,
        "file_date": stored.file_date,
        "size_bytes": stored.size_bytes,
        "sha256": stored.sha256,
        "rows_total": stored.rows_total,
        "rows_done": stored.rows_done,
        "members_before": stored.members_before,
        "members_missing": stored.members_missing,
        "problem": cast("files.FileProblem | None", stored.problem),
        "sheet": (stored.mapping or {}).get("sheet"),
        "mapping": _used_mapping(stored),
        "counts": {name: stored.counts[name] for name in COUNTS if name in stored.counts},
        "codes": dict(sorted(stored.codes.items())),
        "ignored_columns": [*map(unquote, stored.ignored)],  # stored as a log may show them
        "created_at": wire_time(stored.created_at),
        "started_at": _time(stored.started_at),
        "finished_at": _time(stored.finished_at),
    }


def _used_mapping(stored: EligibilityFile) -> files.UsedMapping | None:
    if stored.mapping is None:
        return None
    content = orjson.dumps(stored.mapping, option=orjson.OPT_SORT_KEYS)
    version = hashlib.sha256(content).hexdigest()[:12]
    return {"name": stored.mapping_name, "version": version}


def mapping(stored: StoredMapping) -> mappings.StoredMappingBody:
    return {
        "type": "eligibility_mappings",
        "name": stored.name,
        "is_default": stored.is_default,
        "changed_at": wire_time(stored.changed_at),
        "mapping": cast("mapping_rules.Mapping", stored.mapping),
    }


def member(enrolled: Enrolled) -> members.Eligibility:
    """The answer to a written member. A new member has its id once the chunk is written."""
    _, external_id, dob, first, last, gender, member_id, zipcode, metadata = enrolled.answered
    return {
        "id": enrolled.stored.values["id"],
        "external_id": external_id,
        "dob": dob,
        "first_name": first,
        "last_name": last,
        "gender": gender,
        "member_id": member_id,
        "zipcode": zipcode,
        "metadata": metadata,
    }


def change(entry: HistoryEntry) -> members.EligibilityChange:
    """An entry of a member's history; of its changes those of fields."""
    return {
        "id": entry.id,
        "type": "eligibility_changes",
        "at": wire_time(entry.changed_at),
        "outcome": entry.outcome,
        "plan_id": entry.plan_id,
        "changed": {name: values for name, values in entry.changes.items() if name in FIELDS},
        "client": entry.client,
        "request_id": entry.request_id,
        "file_id": entry.file_id,
    }


def webhook_content(stored: Event) -> WebhookContent:
    data = {**stored.data, "request_id": stored.request_id}
    return {
        "type": str(stored.type),
        "timestamp": wire_time(stored.at),
        "data": cast("events.EventData", data),
    }


def event(stored: Event) -> events.EventBody:
    return {"id": stored.event_id, **webhook_content(stored)}


def webhook_endpoint(stored: WebhookEndpoint) -> events.WebhookTargetBody:
    """The endpoint without its secret."""
    return {
        "id": stored.id,
        "type": "webhook_endpoints",
        "url": stored.url,
        "event_types": stored.event_types,
        "state": stored.state,
        "paused_reason": stored.paused_reason,
        "attempts": stored.attempts,
        "last_error": stored.last_error,
        "failing_since": _time(stored.failing_since),
        "delivered_at": _time(stored.delivered_at),
        "created_at": wire_time(stored.created_at),
        "next_attempt_at": wire_time(stored.next_at) if stored.attempts else None,
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else wire_time(at)
