"""The verdict: one sentence that a clinic's manager can act on."""

from random import Random

import pytest

from frontdesk.backtest.figures import JudgedWait, JudgedWaits, figures_of
from frontdesk.backtest.judge import RIVALS
from frontdesk.backtest.verdict import Verdict, verdict_of
from frontdesk.queues.estimate.record import WaitEstimate

OTHERS = list(RIVALS)


def judged(count: int, ours: int, rival: int, *, noise: float = 0.0) -> JudgedWaits:
    """Waits of 300 s; the estimate and the best rival are further by so many seconds, with the
    interval from 290 to 330 s around the estimate.
    """
    random = Random(1)
    waits = JudgedWaits(OTHERS)
    for _ in range(count):
        rivals = dict.fromkeys(OTHERS, 1000.0)
        rivals[OTHERS[1]] = 300 + rival + random.gauss(0, noise)
        estimate = WaitEstimate(300 + ours, 290, 330)
        waits.append(JudgedWait(1, None, 0.0, 300.0, estimate, 1, rivals))
    return waits


def verdict(count: int, ours: int, rival: int, *, noise: float = 0.0) -> Verdict:
    return verdict_of(figures_of(judged(count, ours, rival, noise=noise)), {})


def test_the_estimate_is_compared_with_the_best_rival() -> None:
    told = verdict(1234, 76, 100)
    assert told.code == "nearer"
    assert told.message == (
        "Over 1,234 patients the estimate was wrong by 76 s on average, 24 % nearer than the best "
        "simple rule (last wait: 100 s). 10 of 10 waits were inside the interval (8 are meant)."
    )


def test_few_patients_are_too_early_to_tell() -> None:
    assert verdict(199, 76, 100).code == "too_early"
    assert "too early to tell: 199 patients" in verdict(199, 76, 100).message
    assert verdict(200, 76, 100).code == "nearer"


def test_an_estimate_that_is_worse_than_a_rival_is_not_to_be_used() -> None:
    told = verdict(500, 130, 100)
    assert told == Verdict(
        "worse",
        "Do not use this estimate here: over 500 patients the estimate was wrong by 2 min 10 s on "
        "average, and a simple rule (last wait) by 100 s.",
    )


def test_an_estimate_as_near_as_the_best_rival_is_no_nearer() -> None:
    told = verdict(400, 100, 100)
    assert told.code == "not_nearer"
    assert "about as near as the best simple rule (last wait: 100 s)" in told.message


def test_what_may_be_chance_is_not_held_against_the_estimate() -> None:
    figures = figures_of(judged(400, 100, 0, noise=125))
    rival = figures.best_rival
    assert 0 < rival.further_seconds < 2 * rival.standard_error
    assert verdict_of(figures, {"position 2": figures}).code == "not_nearer"


def test_what_may_be_chance_does_not_speak_for_the_estimate() -> None:
    figures = figures_of(judged(400, 94, 0, noise=131))
    rival = figures.best_rival
    assert -2 * rival.standard_error < rival.further_seconds < 0
    assert verdict_of(figures, {}).code == "not_nearer"


def test_a_plan_or_a_position_where_it_is_worse_is_named() -> None:
    everyone = figures_of(judged(500, 50, 100))
    worse = figures_of(judged(150, 120, 100))
    told = verdict_of(everyone, {'plan "Gold"': worse, "position 2": everyone})
    assert told.code == "worse_in_places"
    assert told.message.startswith("Over 500 patients the estimate was wrong by 50 s")
    assert told.message.endswith(
        'Do not use this estimate here: plan "Gold", where it was wrong by 2 min 0 s over 150 '
        "patients, and a simple rule (last wait) by 100 s."
    )


@pytest.mark.parametrize(
    ("count", "ours", "rival", "noise"),
    [(99, 120, 100, 0.0), (150, 104, 100, 0.0), (150, 60, 40, 2000.0), (150, 501, 493, 0.0)],
)
def test_a_place_with_few_patients_or_hardly_worse_is_not_named(
    count: int, ours: int, rival: int, noise: float
) -> None:
    everyone = figures_of(judged(500, 50, 100))
    place = figures_of(judged(count, ours, rival, noise=noise))
    assert verdict_of(everyone, {"position 2": place}).code == "nearer"
