"""When the last one has gone at the latest: as the batches and the window allow it."""

from collections.abc import Callable

import pytest

from frontdesk.db import Database
from frontdesk.invitations import delivery, protocol
from frontdesk.invitations.delivery import seconds_until_last
from frontdesk.invitations.hourly_window import HOUR_SECONDS, SLICES, HourlyWindows
from frontdesk.invitations.model import DeliverabilitySettings, HoldReason
from frontdesk.mail.model import MailMessage, RelayRefused
from tests.worker.conftest import Post

# What leaves at the beginning of a slice counts until its end.
WINDOW = HourlyWindows().window_seconds + HOUR_SECONDS / SLICES
DAY = 86_400


@pytest.mark.parametrize(
    ("count", "limits", "used", "seconds"),
    [
        (0, (10, 60, 100), 0, 0.0),
        (10, (10, 60, 100), 0, 60.0),
        (11, (10, 60, 100), 0, 120.0),
        (100, (10, 60, 100), 0, 600.0),
        (101, (10, 60, 100), 0, 660.0 + WINDOW),
        (30, (100, 60, 20), 0, 60.0 + WINDOW),
        (5, (100, 60, 20), 15, 60.0),
        (5, (100, 60, 20), 16, 60.0 + WINDOW),
        (1_000_000, (500, 60, 20_000), 0, 2000 * 60 + 49 * WINDOW),
    ],
)
def test_each_batch_waits_for_its_interval_and_each_window_for_the_one_before(
    count: int, limits: tuple[int, int, int], used: int, seconds: float
) -> None:
    assert seconds_until_last(count, DeliverabilitySettings(1, True, *limits), used=used) == seconds


STEP, MEMBERS = 10.0, 22


class Outage:
    """A relay that refuses every message for now while it is `down`, and when it took which."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.down = False
        self.taken: list[float] = []
        self._clock = clock

    def __call__(self, step: str, _message: MailMessage) -> None:
        if self.down and step == "offer":
            raise RelayRefused("recipient", permanent=False, code=451)
        if step == "finish":
            self.taken.append(self._clock())


@pytest.mark.parametrize("limits", [(5, 120, 12), (4, 600, 100), (50, DAY, 12), (7, 60, 1000)])
@pytest.mark.parametrize("outage_seconds", [400, 1800])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_after_an_outage_the_last_one_leaves_before_the_forecast_says(
    post: Post, limits: tuple[int, int, int], outage_seconds: int
) -> None:
    """Some are tried again later, the window and the batch are partly used; then the relay takes everything."""
    post.batches(batch_size=limits[0], batch_interval_seconds=limits[1], hourly_limit=limits[2])
    post.enrol(MEMBERS, immediate=False)
    relay = Outage(post.clock_seconds)
    worker = post.worker(fault=relay)
    for relay.down, seconds in ((False, 45), (True, outage_seconds)):
        until = post.clock_seconds() + seconds
        while post.clock_seconds() < until:
            worker.turn()
            post.clock.advance(STEP)
    relay.down = False
    with post.db.read() as tx:
        found = delivery.forecast(tx, post.customer.account_id, now=post.clock())
    assert found.last_at is not None
    while len(relay.taken) < MEMBERS:
        worker.turn()
        post.clock.advance(STEP)
    late = max(relay.taken) - found.last_at.timestamp()
    # The test looks every few seconds, so each batch and each place may be found a step too late.
    assert late <= STEP * MEMBERS / min(limits[0], limits[2])
    assert -late < limits[1] + 2 * WINDOW  # too careful by an interval, and by what the windows hold


def test_while_delivery_is_held_or_off_nothing_is_foretold(post: Post, db: Database) -> None:
    post.batches()
    post.enrol(3, immediate=False)
    with db.write() as tx:
        protocol.hold(tx, HoldReason.BY_OPERATOR)
        held = delivery.forecast(tx, post.customer.account_id, now=post.clock())
        protocol.release(tx)
    post.batches(enabled=False)
    off = db.ask(lambda tx: delivery.forecast(tx, post.customer.account_id, now=post.clock()))
    assert (held.held, held.backlog, held.last_at) == (HoldReason.BY_OPERATOR, 3, None)
    assert (off.held, off.enabled, off.last_at) == (None, False, None)
