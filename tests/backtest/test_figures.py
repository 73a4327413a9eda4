"""The figures of judged waits are those of the service's own measure, and groups have theirs."""

from datetime import UTC, datetime
from random import Random
from zoneinfo import ZoneInfo

import pytest

from frontdesk.backtest.figures import (
    JudgedWait,
    JudgedWaits,
    by_class,
    by_hour,
    by_position,
    figures_of,
)
from frontdesk.queues.estimate.record import BANDS, WaitEstimate
from frontdesk.queues.model import WaitOutcome, accuracy_of


def some_waits(count: int) -> list[JudgedWait]:
    random = Random(5)
    found = []
    for number in range(count):
        told = random.choice((0, random.randrange(600)))
        interval = random.choice(((told // 2, told * 2), (0, 0), (None, None)))
        wait = random.choice((0.0, random.random() * 40, random.random() * 700))
        estimate = WaitEstimate(told, *interval)
        rivals = {"a": random.random() * 600, "b": 0.0}
        name = random.choice((None, "urgent", "follow-up"))
        found.append(JudgedWait(1, name, number * 3600.0, wait, estimate, number % 3, rivals))
    return found


def columns_of(waits: list[JudgedWait]) -> JudgedWaits:
    columns = JudgedWaits(["a", "b"])
    for one in waits:
        columns.append(one)
    return columns


@pytest.mark.parametrize("count", [1, 2, 10, 501])
def test_they_are_those_that_the_service_measures_by_itself(count: int) -> None:
    waits = some_waits(count)
    outcomes = [
        WaitOutcome(0, datetime.fromtimestamp(one.joined_at, UTC), one.estimate, one.wait_seconds)
        for one in waits
    ]
    figures = figures_of(columns_of(waits))
    assert figures.accuracy._asdict() == pytest.approx(accuracy_of(outcomes)._asdict())
    for name, found in figures.rivals.items():
        told = [
            outcome._replace(estimate=WaitEstimate(round(one.rivals[name]), None, None))
            for outcome, one in zip(outcomes, waits, strict=True)
        ]
        assert found._asdict() == pytest.approx(accuracy_of(told)._asdict())
    sides = [outcome.side for outcome in outcomes if outcome.side is not None]
    if sides:
        assert figures.below_share == sides.count(-1) / len(sides)
        assert figures.above_share == sides.count(1) / len(sides)


def test_waits_in_columns_are_those_that_were_put_there() -> None:
    waits = some_waits(50)
    columns = columns_of(waits)
    assert list(columns) == columns[:] == waits
    assert columns[-1] == waits[-1]


def test_positions_are_grouped_as_the_bands_of_the_record() -> None:
    waits = [one._replace(position=number) for number, one in enumerate(some_waits(13))]
    groups = by_position(columns_of(waits))
    sizes = {first: figures.accuracy.matched for first, figures in groups.items()}
    assert sizes == {0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 2, 7: 3, 10: 3}
    assert [first - 1 for first in sizes] == [-1, *BANDS]


def test_classes_and_hours_have_figures_of_their_own() -> None:
    columns = columns_of(some_waits(48))
    classes = by_class(columns)
    assert list(classes) == [None, "follow-up", "urgent"]
    assert sum(one.accuracy.matched for one in classes.values()) == 48
    of_urgent = columns_of([one for one in columns if one.patient_class == "urgent"])
    assert classes["urgent"] == figures_of(of_urgent)
    berlin = by_hour(columns_of(some_waits(2)), ZoneInfo("Europe/Berlin"))
    assert list(berlin) == [1, 2]
    assert list(by_hour(columns_of(some_waits(2)))) == [0, 1]
