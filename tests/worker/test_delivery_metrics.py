"""The figures of delivery for whoever watches over it."""

from datetime import datetime

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from frontdesk.db import Database, Tx
from frontdesk.web.stored_metrics import StoredMetrics, delivery_metrics
from tests.factories import NOW
from tests.worker.conftest import Post


def told(post: Post) -> str:
    registry = CollectorRegistry()
    registry.register(StoredMetrics(post.db, post.clock, delivery_metrics))
    return generate_latest(registry).decode()


def test_states_windows_and_the_oldest_are_told(post: Post) -> None:
    assert "frontdesk_invitations_oldest_due_seconds 0.0" in told(post)
    post.batches()
    post.enrol(2, immediate=False)
    post.worker().turn()
    post.enrol(3)
    post.clock.advance(30)
    text = told(post)
    assert 'frontdesk_invitations{state="sent"} 2.0' in text
    assert 'frontdesk_invitations{state="pending"} 3.0' in text
    assert 'frontdesk_invitations{state="ambiguous"} 0.0' in text
    assert f'frontdesk_invitations_window_used{{account_id="{post.customer.account_id}"}} 2.0' in text
    assert "frontdesk_invitations_oldest_due_seconds 30.0" in text
    assert "frontdesk_invitations_held 0.0" in text


def test_metrics_that_take_long_to_read_are_read_seldom(db: Database) -> None:
    moments = iter(
        [0.0, 0.2, 19.0, 21.0, 21.01, 25.0, 27.0, 27.0]
    )  # each read asks at its start and at its end
    reads: list[Metric] = []

    def read(_tx: Tx, _now: datetime) -> list[Metric]:
        reads.append(GaugeMetricFamily("read", "A read.", value=len(reads)))
        return reads[-1:]

    metrics = StoredMetrics(db, lambda: NOW, read, fresh_seconds=5.0, monotonic=lambda: next(moments))
    found = [next(metrics.collect()) for _ in range(5)]
    # The first took 0.2 s and lasts 20 s; the second took 0.01 s and lasts 5 s.
    assert [reads.index(one) for one in found] == [0, 0, 1, 1, 2]
