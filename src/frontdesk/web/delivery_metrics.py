"""The figures of delivery for /metrics, asked of the database at most every few seconds; no account's data but its id."""

import time
from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from frontdesk.clock import Clock
from frontdesk.db import Database
from frontdesk.errors import Unavailable
from frontdesk.invitations import delivery
from frontdesk.invitations.delivery.model import DeliveryStatistics
from frontdesk.invitations.model import InvitationState

FRESH_SECONDS = 5.0


class DeliveryMetrics:
    """A Prometheus collector. While the database can't answer it has nothing to tell."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._told_at = float("-inf")
        self._metrics: list[Metric] = []

    def describe(self) -> Iterable[Metric]:
        """Registering asks this instead of the database."""
        return ()

    def collect(self) -> Iterator[Metric]:
        if time.monotonic() - self._told_at > FRESH_SECONDS:
            try:
                found = self._db.ask(lambda tx: delivery.read_statistics(tx, now=self._clock()))
            except Unavailable:
                return
            self._metrics = _metrics(found)
            self._told_at = time.monotonic()
        yield from self._metrics


def _metrics(found: DeliveryStatistics) -> list[Metric]:
    by_state = GaugeMetricFamily("frontdesk_invitations", "Invitations, by state.", labels=["state"])
    for state in InvitationState:
        by_state.add_metric([state.value], found.by_state.get(state.value, 0))
    window = GaugeMetricFamily(
        "frontdesk_invitations_window_used",
        "Places taken in the account's hourly window of batched invitations.",
        labels=["account_id"],
    )
    for account_id, used in found.window_used.items():
        window.add_metric([str(account_id)], used)
    oldest = "Since how long the invitation has been due that has been due longest, in seconds."
    return [
        by_state,
        window,
        GaugeMetricFamily("frontdesk_invitations_oldest_due_seconds", oldest, value=found.oldest_due_seconds),
        GaugeMetricFamily(
            "frontdesk_invitations_held",
            "1 while delivery is held (`frontdesk invitations release`).",
            value=found.held,
        ),
    ]
