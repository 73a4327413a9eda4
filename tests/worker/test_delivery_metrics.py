"""The figures of delivery for whoever watches over it."""

from prometheus_client import CollectorRegistry, generate_latest

from frontdesk.web.stored_metrics import StoredMetrics, delivery_metrics
from tests.worker.conftest import Post


def told(post: Post) -> str:
    registry = CollectorRegistry()
    registry.register(StoredMetrics(post.db, post.clock, delivery_metrics))
    return generate_latest(registry).decode()


def test_states_windows_and_the_oldest_are_told(post: Post) -> None:
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


def test_an_empty_installation_has_figures_too(post: Post) -> None:
    assert "frontdesk_invitations_oldest_due_seconds 0.0" in told(post)
