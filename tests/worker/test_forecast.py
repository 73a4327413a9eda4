"""When the last one will have gone: as the batches, the window and the moments at which they are
due allow it.
"""

from datetime import timedelta

import pytest
from sqlalchemy import update

from frontdesk.db import Database
from frontdesk.invitations import delivery, delivery_hold
from frontdesk.invitations.delivery import seconds_until_last
from frontdesk.invitations.hourly_window import HOUR_SECONDS, SECOND_US, SLICES, HourlyWindows
from frontdesk.invitations.model import (
    DeliverabilitySettings,
    DeliveryForecast,
    HoldReason,
    HourlyWindow,
)
from frontdesk.invitations.tables import invitations
from frontdesk.mail.model import RelayRefused
from frontdesk.plans.tables import plans
from tests.factories import NOW
from tests.mail.memory import failing
from tests.worker.conftest import Post

SLICE = HOUR_SECONDS / SLICES
# What leaves at the beginning of a slice counts until its end.
WINDOW = HourlyWindows().window_seconds + SLICE
DAY = 86_400


def limits(
    batch_size: int, batch_interval_seconds: int, hourly_limit: int
) -> DeliverabilitySettings:
    return DeliverabilitySettings(
        1,
        enabled=True,
        batch_size=batch_size,
        batch_interval_seconds=batch_interval_seconds,
        hourly_limit=hourly_limit,
    )


def window(batch_age: int | None = None, batch_left: int = 0) -> HourlyWindow:
    """A window at the beginning of a slice, with a batch that began so many seconds ago."""
    now = HOUR_SECONDS * SECOND_US
    batch = None if batch_age is None else now - batch_age * SECOND_US
    return HourlyWindow(1, 1, now, NOW, batch, batch_left, sent=())


@pytest.mark.parametrize(
    ("waiting", "settings", "window", "frees", "seconds"),
    [
        ([], limits(10, 60, 100), window(), [], None),
        ([(0, 10)], limits(10, 60, 100), window(), [], 0.0),
        ([(0, 11)], limits(10, 60, 100), window(), [], 60.0),
        ([(0, 100)], limits(10, 60, 100), window(), [], 540.0),
        ([(0, 101)], limits(10, 60, 100), window(), [], WINDOW),
        ([(0, 30)], limits(100, 60, 20), window(), [], WINDOW),
        ([(0, 5)], limits(100, 60, 20), window(), [(100, 20)], 100.0),
        # The rest of a batch goes when the window lets it, not only with the next batch.
        ([(0, 5)], limits(100, 60, 20), window(), [(100, 18), (130, 2)], 100.0),
        ([(0, 15)], limits(100, DAY, 10), window(), [], WINDOW),
        # The batch that is open is used up first, and the next one begins in its time.
        ([(0, 5)], limits(10, 60, 100), window(20, 5), [], 0.0),
        ([(0, 6)], limits(10, 60, 100), window(20, 5), [], 40.0),
        ([(0, 6)], limits(10, 60, 100), window(90, 0), [], 0.0),
        # What is tried again later goes later, and a batch begins with the first that leaves.
        ([(0, 1), (1000.0, 1)], limits(10, 60, 100), window(), [], 1000.0),
        ([(1000.0, 11)], limits(10, 60, 100), window(), [], 1060.0),
    ],
)
def test_the_last_one_goes_when_everything_lets_it(
    waiting: list[tuple[float, int]],
    settings: DeliverabilitySettings,
    window: HourlyWindow,
    frees: list[tuple[int, int]],
    seconds: float | None,
) -> None:
    places = [(window.measured_us + after * SECOND_US, count) for after, count in frees]
    assert seconds_until_last(waiting, settings, window, places) == seconds


def test_a_million_is_forecast_at_once() -> None:
    found = seconds_until_last([(0, 1_000_000)], limits(500, 60, 20_000), window())
    assert found is not None
    assert 48 * WINDOW < found < 51 * WINDOW


STEP = 10.0
MEMBERS = 22


@pytest.mark.parametrize("limits", [(5, 120, 12), (4, 600, 100), (50, DAY, 12), (7, 60, 1000)])
@pytest.mark.parametrize("outage_seconds", [400, 1800])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_forecast_after_an_outage_is_what_then_happens(
    post: Post, limits: tuple[int, int, int], outage_seconds: int
) -> None:
    """Some are tried again later, the window and the batch are partly used; then the relay takes
    everything.
    """
    post.batches(batch_size=limits[0], batch_interval_seconds=limits[1], hourly_limit=limits[2])
    post.enrol(MEMBERS, immediate=False)
    worker = post.worker()
    refusal = failing("offer", RelayRefused("recipient", permanent=False, code=451))
    for post.mailer.fault, seconds in ((None, 45), (refusal, outage_seconds)):
        until = post.clock_seconds() + seconds
        while post.clock_seconds() < until:
            worker.turn()
            post.clock.advance(STEP)
    post.mailer.fault = None
    with post.db.read() as tx:
        found = delivery.forecast(tx, post.customer.account_id, now=post.clock())
    assert found.last_at is not None
    last = 0.0
    while len(post.mailer.messages) < MEMBERS:
        last = post.clock_seconds()
        worker.turn()
        post.clock.advance(STEP)
    late = last - found.last_at.timestamp()
    # The simulation looks every few seconds, so each batch and each place may be found a step too
    # late.
    assert -STEP <= late <= STEP * MEMBERS / min(limits[0], limits[2])


def test_while_delivery_is_held_or_off_nothing_is_foretold(post: Post, db: Database) -> None:
    post.batches()
    post.enrol(3, immediate=False)
    with db.write() as tx:
        delivery_hold.hold(tx, HoldReason.BY_OPERATOR)
        held = delivery.forecast(tx, post.customer.account_id, now=post.clock())
        delivery_hold.release(tx)
    post.batches(enabled=False)
    off = db.ask(lambda tx: delivery.forecast(tx, post.customer.account_id, now=post.clock()))
    assert (held.held, held.backlog, held.last_at) == (HoldReason.BY_OPERATOR, 3, None)
    assert (off.held, off.enabled, off.last_at) == (None, False, None)


def test_immediate_mail_counts_and_waits_for_no_batch(post: Post, db: Database) -> None:
    post.batches(batch_size=1, batch_interval_seconds=600, hourly_limit=100)
    post.enrol(2)

    def forecast() -> DeliveryForecast:
        return db.ask(lambda tx: delivery.forecast(tx, post.customer.account_id, now=post.clock()))

    found = forecast()
    assert (found.immediate, found.backlog, found.last_at) == (2, 0, post.clock())
    post.batches(enabled=False)
    assert forecast().last_at == post.clock()  # the account's settings don't hold immediate mail up
    with db.write() as tx:
        tx.execute(update(plans).values(accepting_patients=False))
    assert (forecast().immediate, forecast().held_back) == (2, 0)
    later = post.clock() + timedelta(seconds=90)
    with db.write() as tx:
        tx.execute(update(invitations).values(due_at=later))
    assert forecast().last_at == later
    with db.write() as tx:
        delivery_hold.hold(tx, HoldReason.BY_OPERATOR)
    assert (forecast().immediate, forecast().last_at) == (2, None)
