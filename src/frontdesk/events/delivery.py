"""Which webhooks are sent next, and what becomes of them: claims, retries, giving up, pausing (docs/webhooks.md).

An endpoint is claimed by lease and epoch, and its events are sent in their order: while one fails, later ones wait for it. The
place in the feed is committed after some events, so a killed worker's events are sent again, with the same ids.
"""

import random
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from frontdesk import audit
from frontdesk.audit import AuditEntry
from frontdesk.db import Tx
from frontdesk.events import signature, store
from frontdesk.events.model import EndpointState, Event, EventPlace, PauseReason, WebhookEndpoint, due_after

READ_TOGETHER = 100  # events
FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 5, 4 * 3600
GIVE_UP_AFTER = timedelta(days=3)  # of one event
PAUSE_AFTER = timedelta(days=5)  # of an endpoint


class Progress(NamedTuple):
    """How far a worker has come with an endpoint: the last event that is done, and the error of the next one. `delivered` is
    False if the endpoint wanted none of the events."""

    place: EventPlace
    delivered: bool
    failed: Event | None = None
    error: str | None = None


def next_events(tx: Tx, endpoint: WebhookEndpoint) -> list[Event]:
    """The next events of the endpoint's account, those too that the endpoint does not want."""
    return store.list_events(tx, endpoint.account_id, after=endpoint.place, limit=READ_TOGETHER, tests=True)


def secrets_of(endpoint: WebhookEndpoint, link_secret: str, now: datetime) -> list[bytes]:
    """The secrets that sign now, the newest first."""
    salts = [endpoint.salt]
    if endpoint.old_salt and endpoint.old_salt_until and now < endpoint.old_salt_until:
        salts.append(endpoint.old_salt)
    return [signature.derive_secret(link_secret, salt) for salt in salts]


def save(
    tx: Tx, endpoint: WebhookEndpoint, progress: Progress, *, now: datetime, ends: bool
) -> WebhookEndpoint | None:
    """Store the progress; the claim ends with it, or its lease begins anew. Returns the endpoint as it is then, or None if the
    claim was lost: then nothing is written."""
    values = due_after(progress.place) if progress.place != endpoint.place else {}
    values["lease_until"] = None if ends else now + store.LEASE
    if progress.delivered:
        values |= {"delivered_at": now, "failing_since": None, "last_error": None}
    entry = None
    if progress.failed is not None:
        failing, entry = _after_failure(endpoint, progress, progress.failed, now)
        values |= failing
    if not store.save_claimed(tx, endpoint.id, endpoint.epoch, **values):
        store.end_claim(tx, endpoint)
        return None
    if entry is not None:
        audit.record(tx, [entry], now=now)
    return endpoint._replace(**{name: values[name] for name in WebhookEndpoint._fields if name in values})


def _after_failure(
    endpoint: WebhookEndpoint, progress: Progress, failed: Event, now: datetime
) -> tuple[dict[str, Any], AuditEntry | None]:
    """The endpoint after a failed attempt, and what the audit trail has to tell of it."""
    is_first = progress.delivered or progress.place != endpoint.place
    attempts = 1 if is_first else endpoint.attempts + 1
    head_failed_at = now if is_first else endpoint.head_failed_at or now
    failing_since = now if progress.delivered else endpoint.failing_since or now
    pause = min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** min(attempts - 1, 20))
    next_at = now + timedelta(seconds=pause * random.uniform(1.0, 1.25))  # noqa: S311 - a pause
    values = {"attempts": attempts, "head_failed_at": head_failed_at, "failing_since": failing_since}
    values |= {"last_error": progress.error, "next_at": next_at}
    is_gone = progress.error == "status_410"
    if is_gone or now - failing_since >= PAUSE_AFTER:
        reason = PauseReason.GONE if is_gone else PauseReason.FAILING
        values |= {"state": EndpointState.PAUSED, "paused_reason": reason}
        return values, _entry("webhook.paused", endpoint, reason=reason)
    if now - head_failed_at >= GIVE_UP_AFTER:
        given_up = _entry("webhook.event_given_up", endpoint, event_id=failed.event_id)
        return values | due_after(failed.place), given_up
    return values, None


def _entry(action: str, endpoint: WebhookEndpoint, **detail: Any) -> AuditEntry:
    return AuditEntry(action, "webhooks", f"webhook-{endpoint.id}", endpoint.account_id, endpoint.id, detail)
