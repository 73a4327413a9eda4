"""The judged waits, in columns, and the figures of all of them and of groups."""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from math import ceil, sqrt
from typing import NamedTuple, overload

from frontdesk.backtest.columns import NumberedNames
from frontdesk.queues.estimate.model import READY_SECONDS
from frontdesk.queues.estimate.record import BANDS, WaitEstimate
from frontdesk.queues.model import EstimateAccuracy

# The first position of each group, by the bands of the interval's record. 0: a doctor was ready, and
# the estimate was 0 to 0.
POSITIONS = (0, *(ahead + 1 for ahead in BANDS))
NO_INTERVAL = -1


class JudgedWait(NamedTuple):
    """A newcomer: the estimate, the wait that followed, and the rivals' estimates by name, in
    seconds; `joined_at` since 1970. `position` in the line, 0: a doctor was ready (the interval 0
    to 0).
    """

    plan_id: int
    patient_class: str | None
    joined_at: float
    wait_seconds: float
    estimate: WaitEstimate
    position: int
    rivals: dict[str, float]


class JudgedWaits(Sequence[JudgedWait]):
    """A sequence of JudgedWait that keeps 60 bytes of each. `patient_class` are numbers of names, of
    which "" is none.
    """

    def __init__(self, rivals: Iterable[str]) -> None:
        self.plan_id = array("q")
        self.joined_at = array("d")
        self.wait = array("d")
        self.estimate = array("i")
        self.low = array("i")
        self.high = array("i")
        self.position = array("i")
        self.rivals = {name: array("d") for name in rivals}
        self.patient_class = array("i")
        self.classes = NumberedNames()

    def __len__(self) -> int:
        return len(self.wait)

    def append(self, judged: JudgedWait) -> None:
        seconds, low, high = judged.estimate[:3]
        self.plan_id.append(judged.plan_id)
        self.joined_at.append(judged.joined_at)
        self.wait.append(judged.wait_seconds)
        self.estimate.append(seconds)
        self.low.append(NO_INTERVAL if low is None else low)
        self.high.append(NO_INTERVAL if high is None else high)
        self.position.append(judged.position)
        for rival, told in judged.rivals.items():
            self.rivals[rival].append(told)
        self.patient_class.append(self.classes.number_of(judged.patient_class or ""))

    @overload
    def __getitem__(self, index: int) -> JudgedWait: ...
    @overload
    def __getitem__(self, index: slice) -> list[JudgedWait]: ...
    def __getitem__(self, index: int | slice) -> JudgedWait | list[JudgedWait]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        low = self.low[index]
        high = self.high[index]
        return JudgedWait(
            self.plan_id[index],
            self.classes.name_of(self.patient_class[index]) or None,
            self.joined_at[index],
            self.wait[index],
            WaitEstimate(
                self.estimate[index],
                None if low == NO_INTERVAL else low,
                None if high == NO_INTERVAL else high,
            ),
            self.position[index],
            {name: told[index] for name, told in self.rivals.items()},
        )

    def side(self, index: int) -> int | None:
        """As WaitOutcome.side: -1, 0, 1 for a wait before, in, after the interval; None without
        one.
        """
        high = self.high[index]
        if high <= 0:
            return None
        wait = self.wait[index]
        return (wait >= high + 1) - (wait < self.low[index])


class RivalComparison(NamedTuple):
    """The best rival, and by how many seconds our estimate is further from the waits on average
    (below 0: nearer), with the standard error of this mean.
    """

    name: str
    accuracy: EstimateAccuracy
    further_seconds: float
    standard_error: float


class BacktestFigures(NamedTuple):
    """Of a set of patients. `below_share` and `above_share`: of the waits with an interval, those
    before and after it.
    """

    accuracy: EstimateAccuracy
    below_share: float | None
    above_share: float | None
    rivals: dict[str, EstimateAccuracy]
    best_rival: RivalComparison


def figures_of(judged: JudgedWaits, chosen: Sequence[int] | None = None) -> BacktestFigures:
    """Of those of the indices, else of all; one patient at least."""
    indices = range(len(judged)) if chosen is None else chosen
    sides = array("b", (side for i in indices if (side := judged.side(i)) is not None))
    below, inside, above = (
        sides.count(side) / len(sides) if sides else None for side in (-1, 0, 1)
    )
    own = _accuracy(judged, indices, judged.estimate.__getitem__)
    rivals = {
        name: _accuracy(judged, indices, _rounded(told)) for name, told in judged.rivals.items()
    }
    best = min(rivals, key=lambda name: rivals[name].mean_error_seconds)
    further = _errors_beside(judged, indices, judged.rivals[best])
    comparison = RivalComparison(best, rivals[best], *_mean_and_error(further))
    return BacktestFigures(own._replace(coverage_share=inside), below, above, rivals, comparison)


def _rounded(told: Sequence[float]) -> Callable[[int], int]:
    return lambda index: round(told[index])


def _accuracy(
    judged: JudgedWaits, indices: Sequence[int], estimate_at: Callable[[int], int]
) -> EstimateAccuracy:
    """As queues.model.accuracy_of, without an object for each wait. The coverage is left out."""
    waits = judged.wait
    errors = array("d", (estimate_at(i) - waits[i] for i in indices))
    sizes = sorted(map(abs, errors))
    zeros = 0
    wrong = 0
    for i in indices:
        if estimate_at(i) == 0:
            zeros += 1
            wrong += waits[i] > READY_SECONDS
    count = len(errors)
    return EstimateAccuracy(
        plan_id=0,
        matched=count,
        mean_wait_seconds=sum(waits[i] for i in indices) / count,
        mean_error_seconds=sum(sizes) / count,
        bias_seconds=sum(errors) / count,
        p90_error_seconds=sizes[ceil(0.9 * count) - 1],
        wrong_zero_share=wrong / zeros if zeros else None,
        coverage_share=None,
    )


def _errors_beside(
    judged: JudgedWaits, indices: Sequence[int], told: Sequence[float]
) -> Iterator[float]:
    for i in indices:
        wait = judged.wait[i]
        yield abs(judged.estimate[i] - wait) - abs(round(told[i]) - wait)


def _mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """The mean and its standard error, 0 of a single value."""
    count = 0
    mean = 0.0
    squares = 0.0
    for value in values:
        count += 1
        step = value - mean
        mean += step / count
        squares += step * (value - mean)
    return mean, sqrt(squares / (count - 1) / count) if count > 1 else 0.0


def by_plan(judged: JudgedWaits) -> dict[int, BacktestFigures]:
    return _grouped(judged, judged.plan_id.__getitem__)


def by_class(judged: JudgedWaits) -> dict[str | None, BacktestFigures]:
    """In the order of the classes' names, patients without a class first."""
    of_numbers = _grouped(judged, judged.patient_class.__getitem__)
    named = {judged.classes.name_of(number): figures for number, figures in of_numbers.items()}
    return {name or None: figures for name, figures in sorted(named.items())}


def by_hour(judged: JudgedWaits, zone: tzinfo = UTC) -> dict[int, BacktestFigures]:
    """By the hour of the day in the zone, 0 to 23."""
    return _grouped(judged, lambda i: datetime.fromtimestamp(judged.joined_at[i], zone).hour)


def by_position(judged: JudgedWaits) -> dict[int, BacktestFigures]:
    """By the first position of each of POSITIONS; 1: no patient was ahead."""
    position = judged.position
    return _grouped(judged, lambda i: max(first for first in POSITIONS if first <= position[i]))


def _grouped(judged: JudgedWaits, key: Callable[[int], int]) -> dict[int, BacktestFigures]:
    groups: defaultdict[int, array[int]] = defaultdict(lambda: array("i"))
    for index in range(len(judged)):
        groups[key(index)].append(index)
    return {name: figures_of(judged, groups[name]) for name in sorted(groups)}
