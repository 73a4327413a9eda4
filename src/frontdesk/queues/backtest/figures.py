"""What a back-test found, in figures: the estimate's error, bias, interval and wrong zeros, beside the rivals'."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from frontdesk.queues.backtest.judge import JudgedWait
from frontdesk.queues.backtest.rivals import RIVALS
from frontdesk.queues.model import EstimateAccuracy
from frontdesk.queues.queue_state import accuracy_of

# The first position of each group: patients far back in the line are few.
POSITIONS = (1, 2, 3, 5, 9, 17, 33)


class RivalAccuracy(NamedTuple):
    """Seconds. `bias_seconds` above 0: patients waited less than the rival said."""

    name: str
    mean_error_seconds: float
    bias_seconds: float
    wrong_zero_share: float | None


class BacktestFigures(NamedTuple):
    """Of a set of patients. `below_share` and `above_share`: of the waits, those before and after the interval."""

    accuracy: EstimateAccuracy
    below_share: float
    above_share: float
    rivals: list[RivalAccuracy]

    @property
    def best_rival(self) -> RivalAccuracy:
        return min(self.rivals, key=lambda rival: rival.mean_error_seconds)


def figures_of(judged: Sequence[JudgedWait]) -> BacktestFigures:
    """`judged` has one patient at least."""
    outcomes = [one.outcome for one in judged]
    below = sum(one.wait_seconds < (one.low_seconds or 0) for one in outcomes) / len(judged)
    accuracy = accuracy_of(outcomes)
    return BacktestFigures(
        accuracy,
        below,
        1 - below - (accuracy.coverage_share or 0.0),
        [_rival(name, judged) for name in RIVALS],
    )


def _rival(name: str, judged: Sequence[JudgedWait]) -> RivalAccuracy:
    told = [one.outcome._replace(estimate_seconds=round(one.rivals[name])) for one in judged]
    found = accuracy_of(told)
    return RivalAccuracy(name, found.mean_error_seconds, found.bias_seconds, found.wrong_zero_share)


def by_plan(judged: Sequence[JudgedWait]) -> dict[int, BacktestFigures]:
    return _grouped(judged, lambda one: one.outcome.plan_id)


def by_hour(judged: Sequence[JudgedWait]) -> dict[int, BacktestFigures]:
    """By the hour of the day, 0 to 23, UTC."""
    return _grouped(judged, lambda one: one.outcome.joined_at.hour)


def by_position(judged: Sequence[JudgedWait]) -> dict[int, BacktestFigures]:
    """By the first position of each of POSITIONS; 1: nobody was ahead."""
    return _grouped(judged, lambda one: max(first for first in POSITIONS if first <= one.position))


def _grouped(judged: Sequence[JudgedWait], key: Callable[[JudgedWait], int]) -> dict[int, BacktestFigures]:
    groups: defaultdict[int, list[JudgedWait]] = defaultdict(list)
    for one in judged:
        groups[key(one)].append(one)
    return {name: figures_of(groups[name]) for name in sorted(groups)}
