"""Which webhooks are sent next, and what becomes of them: claims, retries, giving up, pausing
(docs/webhooks.md).

An endpoint is claimed by lease and epoch, and its events are sent in their order: while one fails,
later ones wait for it. The place in the feed is committed after some events, so a killed worker's
events are sent again, with the same ids.
"""

import random
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from frontdesk import audit
from frontdesk.audit import AuditEntry
from frontdesk.db import Tx
from frontdesk.events import signature, store
from frontdesk.events.model import (
    AccountEventType,
    EndpointState,
    Event,
    EventPlace,
    PauseReason,
    WebhookEndpoint,
    due_after,
)

READ_TOGETHER = 100  # events
RETRY_SECONDS = (0.2, 1.0, 5.0)  # the first pauses; each later one is twice as long
MAX_RETRY_SECONDS = 4 * 3600.0
GIVE_UP_AFTER = timedelta(days=3)  # of one event
PAUSE_AFTER = timedelta(days=5)  # of an endpoint
GONE_AFTER = timedelta(minutes=5)  # between two answers 410, and no other; then it is paused
VERIFY_WITHIN = timedelta(days=1)  # an address; then the endpoint is paused
_GONE = "status_410"
INTERNAL_ERROR = "internal_error"  # a fault of this service, which its log names


class Progress(NamedTuple):
    """How far a worker has come with an endpoint: the last event that is done, and the error of the
    next one. `delivered` is False if the endpoint wanted none of the events. `failed` is None if
    the error was not of one event.
    """

    place: EventPlace
    delivered: bool
    failed: Event | None = None
    error: str | None = None


def next_events(tx: Tx, endpoint: WebhookEndpoint) -> list[Event]:
    """The next events of the endpoint's account, those too that the endpoint does not want."""
    return store.list_events(
        tx, endpoint.account_id, after=endpoint.place, limit=READ_TOGETHER, tests=True
    )


def test_of_address(endpoint: WebhookEndpoint) -> Event:
    """The `webhook.test` that an endpoint has to answer before it is sent events: with one id,
    however often it is tried.
    """
    since = endpoint.unverified_since or endpoint.created_at
    return Event(
        xid=0,
        id=0,
        type=AccountEventType.WEBHOOK_TEST,
        at=since,
        data={},
        request_id=None,
        endpoint_id=endpoint.id,
        replays=f"test_{endpoint.id}_{int(since.timestamp())}",
    )


def secrets_of(endpoint: WebhookEndpoint, link_secret: str, now: datetime) -> list[bytes]:
    """The secrets that sign now, the newest first."""
    salts = [endpoint.salt, *(old.salt for old in endpoint.old_secrets if now < old.until)]
    return [signature.derive_secret(link_secret, salt) for salt in salts]


def save(
    tx: Tx, endpoint: WebhookEndpoint, progress: Progress, *, now: datetime, ends: bool
) -> WebhookEndpoint | None:
    """Store the progress; the claim ends with it, or its lease begins anew. Returns the endpoint as
    it is then, or None if the claim was lost: then nothing is written.
    """
    values = due_after(progress.place) if progress.place != endpoint.place else {}
    values["lease_until"] = None if ends else now + store.LEASE
    if progress.delivered:
        values |= {"delivered_at": now, "failing_since": None, "last_error": None}
    entry = None
    if progress.delivered and endpoint.state is EndpointState.UNVERIFIED:
        values |= due_after(endpoint.place) | {
            "state": EndpointState.ACTIVE,
            "unverified_since": None,
        }
        entry = _entry("webhook.verified", endpoint)
    if progress.error is not None:
        failing, entry = _after_failure(endpoint, progress, now)
        values |= failing
    if not store.save_claimed(tx, endpoint.id, endpoint.epoch, **values):
        store.end_claim(tx, endpoint)
        return None
    if entry is not None:
        audit.record(tx, [entry], now=now)
    return endpoint._replace(
        **{name: values[name] for name in WebhookEndpoint._fields if name in values}
    )


def _after_failure(
    endpoint: WebhookEndpoint, progress: Progress, now: datetime
) -> tuple[dict[str, Any], AuditEntry | None]:
    """The endpoint after a failed attempt, and what the audit trail has to tell of it."""
    is_first = progress.delivered or progress.place != endpoint.place
    attempts = 1 if is_first else endpoint.attempts + 1
    head_failed_at = now if is_first else endpoint.head_failed_at or now
    failing_since = now if progress.delivered else endpoint.failing_since or now
    pause = retry_seconds(attempts) * random.uniform(1.0, 1.25)  # noqa: S311 - a pause
    next_at = now + timedelta(seconds=pause)
    values = {
        "attempts": attempts,
        "head_failed_at": head_failed_at,
        "failing_since": failing_since,
    }
    values |= {"last_error": progress.error, "next_at": next_at}
    reason = _reason_to_pause(endpoint, progress.error, failing_since, now)
    if reason is not None:
        values |= {"state": EndpointState.PAUSED, "paused_reason": reason}
        return values, _entry("webhook.paused", endpoint, reason=reason)
    failed = progress.failed
    if failed is not None and now - head_failed_at >= GIVE_UP_AFTER:
        given_up = _entry("webhook.event_given_up", endpoint, event_id=failed.event_id)
        return values | due_after(failed.place), given_up
    return values, None


def retry_seconds(attempts: int) -> float:
    """The pause after so many failed attempts of an event, without the jitter.

    >>> [retry_seconds(attempts) for attempts in (1, 2, 3, 4, 5, 40)]
    [0.2, 1.0, 5.0, 10.0, 20.0, 14400.0]
    """
    if attempts <= len(RETRY_SECONDS):
        return RETRY_SECONDS[attempts - 1]
    doublings = min(attempts - len(RETRY_SECONDS), 20)
    return min(MAX_RETRY_SECONDS, RETRY_SECONDS[-1] * 2.0**doublings)


def _reason_to_pause(
    endpoint: WebhookEndpoint, error: str | None, failing_since: datetime, now: datetime
) -> PauseReason | None:
    """Why a failed attempt is the last one for now; None if the endpoint is tried again."""
    # A proxy answers 410 for a moment, while a program is deployed.
    is_gone = error == endpoint.last_error == _GONE
    if is_gone and now - failing_since >= GONE_AFTER:
        return PauseReason.GONE
    unverified_since = endpoint.unverified_since
    if unverified_since is not None and now - unverified_since >= VERIFY_WITHIN:
        return PauseReason.UNVERIFIED
    return PauseReason.FAILING if now - failing_since >= PAUSE_AFTER else None


def _entry(action: str, endpoint: WebhookEndpoint, **detail: Any) -> AuditEntry:
    return AuditEntry(
        action, "webhooks", f"webhook-{endpoint.id}", endpoint.account_id, endpoint.id, detail
    )
