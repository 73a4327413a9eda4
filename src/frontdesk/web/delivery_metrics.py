"""The metrics of delivery: states of invitations, hourly windows, the age of the oldest due one."""

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
    """A Prometheus collector that reads the database at most every 5 s. It yields nothing while the database can't answer."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._read_at = float("-inf")
        self._metrics: list[Metric] = []

    def describe(self) -> Iterable[Metric]:
        """Empty: registering must not read the database."""
        return ()

    def collect(self) -> Iterator[Metric]:
        if time.monotonic() - self._read_at > FRESH_SECONDS:
            try:
                found = self._db.ask(lambda tx: delivery.read_statistics(tx, now=self._clock()))
            except Unavailable:
                return
            self._metrics = _metrics(found)
            self._read_at = time.monotonic()
        yield from self._metrics


def _metrics(found: DeliveryStatistics) -> list[Metric]:
    by_state = GaugeMetricFamily("frontdesk_invitations", "Invitations, by state.", labels=["state"])
    for state in InvitationState:
        by_state.add_metric([state.value], found.by_state.get(state.value, 0))
    window = GaugeMetricFamily(
        "frontdesk_invitations_window_used",
        "Batched invitations in the account's current hourly window.",
        labels=["account_id"],
    )
    for account_id, used in found.window_used.items():
        window.add_metric([str(account_id)], used)
    oldest = "Age of the oldest due invitation, in seconds."
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
