"""When the last one will have gone: batch after batch, as the window allows."""

import pytest

from frontdesk.invitations.delivery.forecast import seconds_until_last
from frontdesk.invitations.delivery.limits import Limits, Meter

WINDOW = Meter().window_seconds


@pytest.mark.parametrize(
    ("backlog", "limits", "taken", "seconds"),
    [
        (0, Limits(10, 60, 100), [], None),
        (10, Limits(10, 60, 100), [], 0.0),
        (11, Limits(10, 60, 100), [], 60.0),
        (100, Limits(10, 60, 100), [], 540.0),
        (101, Limits(10, 60, 100), [], WINDOW),
        (30, Limits(100, 60, 20), [], WINDOW),
        (5, Limits(100, 60, 20), [(100.0, 20)], 100.0),
        (5, Limits(100, 60, 20), [(100.0, 18), (200.0, 2)], 60.0 + 40.0),
    ],
)
def test_the_last_one_goes_when_the_window_lets_it(
    backlog: int, limits: Limits, taken: list[tuple[float, int]], seconds: float | None
) -> None:
    assert seconds_until_last(backlog, limits, taken) == seconds


def test_a_million_is_forecast_at_once() -> None:
    found = seconds_until_last(1_000_000, Limits(500, 60, 20_000), [])
    assert found is not None
    assert 48 * WINDOW < found < 51 * WINDOW
