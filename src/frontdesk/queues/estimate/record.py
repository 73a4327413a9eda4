"""What a plan's past estimates have taught: by how much they are wrong on average, and how wide the
interval has to be for the number of patients ahead.

Each wait that ends is compared with the estimate that was given to its patient. The records are
small, and every process has the same ones (`queues.snapshot`).
"""

from bisect import bisect_right
from collections.abc import Mapping
from math import exp, log
from typing import NamedTuple

from frontdesk.queues.estimate.model import MOST_CLASSES

# The first number of patients ahead of each band: 0, 1, 2, 3, 4 to 5, 6 to 8, 9 and more.
BANDS = (0, 1, 2, 3, 4, 6, 9)

ALLOWED = 0.1  # the share of the waits at either side of the interval
# By so much an end moves in or out after each wait, as a logarithm. At 0.03 the ends of a steady
# line stay within a tenth of their place, and a wrong width is halved within about 150 waits.
STEP = 0.03
FEW_WAITS = 50.0  # a band with so many waits counts half, the whole plan the other half
NARROWEST = 0.5
WIDEST = 4.0

ERROR_STEP = 0.02  # the means of the last fifty waits or so
PROOF_STEP = 0.002  # whether the correction helps is judged over five hundred
FEW_PROOFS = 1000.0  # so many waits prove half
LEAST_GAIN = (
    0.01  # below this gain the correction is not used, from LEAST_GAIN + FULL_GAIN on fully
)
FULL_GAIN = 0.04
LEAST_FACTOR = 0.1
LARGEST_FACTOR = 2.5

# One wait teaches no more than this many times what is usual: a patient may have been forgotten.
OUTLIER_TIMES = 3.0
LEAST_USUAL_SECONDS = 60.0


class EstimateBasis(NamedTuple):
    """What the wait that follows an estimate is compared with.

    `ahead`: the number of patients ahead; `raw_seconds`: the estimate before its correction, None
    while the feed is late, when nothing is corrected or learnt; `plan_factor` and `class_factor`:
    the correction that the plan and the class had learnt by then, used or not.
    """

    ahead: int
    raw_seconds: float | None
    plan_factor: float = 1.0
    class_factor: float = 1.0


class WaitEstimate(NamedTuple):
    """Whole seconds. `seconds` is -1 where no doctor on duty serves the plan; then there is no
    interval and no basis.

    Eight of ten waits are expected to be between `low_seconds` and `high_seconds`, both inclusive.
    """

    seconds: int
    low_seconds: int | None
    high_seconds: int | None
    basis: EstimateBasis | None = None


class WidthRecord(NamedTuple):
    """The factors of the lower and the upper half of an interval, as logarithms, learnt from so many
    waits.

    After each wait an end moves out by 0.9 steps if the wait was beyond it, else in by 0.1: it
    rests where a tenth of the waits are beyond it. This is the adaptive conformal inference of
    Gibbs and Candès (2021), on the logarithm of the width.
    """

    waits: float = 0.0
    below: float = 0.0
    above: float = 0.0

    def with_wait(self, *, shorter: bool, longer: bool) -> "WidthRecord":
        """`shorter`, `longer`: the wait was outside the interval that was given."""
        return WidthRecord(
            self.waits + 1,
            _between(log(NARROWEST), self.below + STEP * (shorter - ALLOWED), log(WIDEST)),
            _between(log(NARROWEST), self.above + STEP * (longer - ALLOWED), log(WIDEST)),
        )


class ErrorRecord(NamedTuple):
    """Running means over the waits of a plan or a class, in seconds: the waits, the estimates before
    correction, their errors, and what the errors would have been with the correction known then.

    The correction is a factor, so that no doctor's 0 and no order of the line changes by it. It is
    used as far as it has proven to bring the estimates nearer: a mean error that follows the last
    waits makes an estimate worse where errors come in waves.
    """

    waits: float = 0.0
    mean_wait: float = 0.0
    mean_raw: float = 0.0
    error: float = 0.0
    corrected_error: float = 0.0

    def with_wait(self, seconds: float, raw_seconds: float, factor: float) -> "ErrorRecord":
        """`factor`: the one that this record had when the estimate was given."""
        usual = max(raw_seconds, self.mean_wait, LEAST_USUAL_SECONDS)
        wait = min(seconds, OUTLIER_TIMES * usual)
        error = abs(wait - raw_seconds)
        corrected = abs(wait - raw_seconds * factor)
        return ErrorRecord(
            self.waits + 1,
            self.mean_wait + ERROR_STEP * (wait - self.mean_wait),
            self.mean_raw + ERROR_STEP * (raw_seconds - self.mean_raw),
            self.error + PROOF_STEP * (error - self.error),
            self.corrected_error + PROOF_STEP * (corrected - self.corrected_error),
        )

    @property
    def factor(self) -> float:
        """What the last estimates should have been multiplied by, used or not."""
        if self.mean_raw <= 0:
            return 1.0
        return _between(LEAST_FACTOR, self.mean_wait / self.mean_raw, LARGEST_FACTOR)

    @property
    def proof(self) -> float:
        """How far the factor is used, from 0 to 1.

        >>> ErrorRecord(waits=1000, error=100.0, corrected_error=100.0).proof
        0.0
        >>> ErrorRecord(waits=1000, error=100.0, corrected_error=80.0).proof
        1.0
        """
        if self.error <= 0:
            return 0.0
        gain = (1 - self.corrected_error / self.error) * self.waits / (self.waits + FEW_PROOFS)
        return _between(0.0, (gain - LEAST_GAIN) / FULL_GAIN, 1.0)


class PlanRecord(NamedTuple):
    """Of a plan: its intervals, over all waits and by band of position, and its errors by class;
    under None over all waits. Of many classes those are kept that learnt last.
    """

    width: WidthRecord = WidthRecord()
    bands: tuple[WidthRecord, ...] = (WidthRecord(),) * len(BANDS)
    errors: Mapping[str | None, ErrorRecord] = {}

    def width_factors(self, ahead: int) -> tuple[float, float]:
        """The factors of the lower and the upper half of an interval, for a number of patients
        ahead. A band with few waits follows the plan.

        >>> PlanRecord().width_factors(ahead=3)
        (1.0, 1.0)
        """
        band = self.bands[band_of(ahead)]
        own = band.waits / (band.waits + FEW_WAITS)
        below, above = (
            exp(own * of_band + (1 - own) * of_plan)
            for of_band, of_plan in zip(band[1:], self.width[1:], strict=True)
        )
        return below, above

    def correction(self, patient_class: str | None) -> float:
        """What an estimate is multiplied by. A class that has proven nothing yet follows the plan."""
        plan = self.errors.get(None, ErrorRecord())
        of_plan = 1.0 + plan.proof * (plan.factor - 1.0)
        if patient_class is None:
            return of_plan
        own = self.errors.get(patient_class, ErrorRecord())
        return of_plan + own.proof * (own.factor - of_plan)

    def basis(
        self, ahead: int, raw_seconds: float | None, patient_class: str | None
    ) -> EstimateBasis:
        """The basis of an estimate that is given now, rounded: it is stored with each estimate."""
        factors = (
            round(self.errors.get(key, ErrorRecord()).factor, 4) for key in (None, patient_class)
        )
        raw = None if raw_seconds is None else round(raw_seconds, 1)
        return EstimateBasis(ahead, raw, *factors)

    def with_wait(
        self, seconds: float, given: WaitEstimate, patient_class: str | None
    ) -> "PlanRecord":
        """The record after a wait of so many seconds. An estimate without a doctor on duty, or of 0
        to 0 because a doctor was ready, teaches nothing: wrong zeros judge it.
        """
        low, high, basis = given[1:]
        if low is None or not high or basis is None:
            return self
        shorter = seconds < low
        longer = seconds >= high + 1  # the ends are whole seconds
        band = band_of(basis.ahead)
        widths = list(self.bands)
        widths[band] = widths[band].with_wait(shorter=shorter, longer=longer)
        return PlanRecord(
            self.width.with_wait(shorter=shorter, longer=longer),
            tuple(widths),
            self._errors_with(seconds, basis, patient_class),
        )

    def _errors_with(
        self, seconds: float, basis: EstimateBasis, patient_class: str | None
    ) -> Mapping[str | None, ErrorRecord]:
        if basis.raw_seconds is None:
            return self.errors
        errors = dict(self.errors)
        # A patient without a class teaches the plan's error once.
        learns = {None: basis.plan_factor, patient_class: basis.class_factor}
        for key, factor in learns.items():
            known = errors.pop(key, ErrorRecord())  # and to the end: the latest that learnt
            errors[key] = known.with_wait(seconds, basis.raw_seconds, factor)
        if len(errors) > MOST_CLASSES + 1:
            del errors[next(key for key in errors if key is not None)]
        return errors


def band_of(ahead: int) -> int:
    """The number of the band of a position.

    >>> [band_of(ahead) for ahead in (0, 3, 5, 100)]
    [0, 3, 4, 6]
    """
    return bisect_right(BANDS, ahead) - 1


def band_text(number: int, *, counted_from: int = 0) -> str:
    """The numbers of patients ahead of a band; counted from 1, its positions in the line.

    >>> [band_text(number) for number in (3, 4, 6)], band_text(4, counted_from=1)
    (['3', '4 to 5', '9 and more'], '5 to 6')
    """
    first = BANDS[number] + counted_from
    if number + 1 == len(BANDS):
        return f"{first} and more"
    last = BANDS[number + 1] - 1 + counted_from
    return str(first) if first == last else f"{first} to {last}"


def note_wait(
    records: dict[int, PlanRecord],
    plan_id: int,
    seconds: float,
    given: WaitEstimate,
    patient_class: str | None = None,
) -> None:
    """Compare a wait of the plan, in seconds, with the estimate that was given to its patient.

    >>> records: dict[int, PlanRecord] = {}
    >>> note_wait(records, 7, 500.0, WaitEstimate(300, 200, 400, EstimateBasis(2, 300.0)))
    >>> records[7].width.above > 0 > records[7].width.below
    True
    """
    before = records.get(plan_id, PlanRecord())
    after = before.with_wait(seconds, given, patient_class)
    if after is not before:
        records[plan_id] = after


def _between(least: float, value: float, largest: float) -> float:
    return min(largest, max(least, value))
