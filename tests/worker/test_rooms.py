"""The way of an invitation visits few rooms (issue 22)."""

import pytest

from frontdesk.config import parse_relay
from frontdesk.mail.smtp import SmtpMailer
from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions
from tests.mail.relay import Relay
from tests.promises.test_limits import visited
from tests.worker.conftest import Post

MOST_ROOMS = 15


@pytest.mark.parametrize("immediate", [True, False])
def test_a_delivery_visits_few_rooms(post: Post, *, immediate: bool) -> None:
    post.batches()
    with Relay() as relay, visited() as rooms:
        mailer = SmtpMailer(parse_relay(f"smtp://127.0.0.1:{relay.port}"))
        worker = DeliveryWorker(post.config, post.db, mailer, WorkerOptions(read_time=lambda _: post.clock()))
        for _ in range(2):
            post.enrol(immediate=immediate)
            post.clock.advance(61)
            rooms.clear()
            assert worker.turn() == 1
        worker.close()
    assert post.states() == ["sent", "sent"]
    assert len(rooms) <= MOST_ROOMS, sorted(rooms)
