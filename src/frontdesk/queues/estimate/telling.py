"""What is told of the runs: one wait, and an interval around it."""

from collections.abc import Sequence
from math import hypot
from operator import mul
from typing import NamedTuple

from frontdesk.queues.estimate.model import READY_SECONDS, PastWait

TRIMMED_PART = 8  # an eighth of the runs is left out at either end: a value between mean and median fits best
DOUBT_PART = 16  # nobody is told 0 while one of so many runs has a wait
# The part of the runs that is left out at either end of the interval while every patient has to wait.
MISSED = 0.1
# A patient for whom a doctor is surely ready is always inside. So more of the others may be outside, the more of them there are.
BELOW_READY, ABOVE_READY = 1.5, 0.25
READY_PRIOR = 10.0  # number of patients with a wait that are assumed before any is known
BELOW_LEAVING, BELOW_CHANGING = 0.04, 0.105
ABOVE_CHANGING, ABOVE_IRREGULAR = 0.09, 0.065
DOUBTS = 1.4  # the interval covers so many standard errors of the mean visit: a tenth of a normal distribution is beyond 1.28


class SimulatedWait(NamedTuple):
    """The wait to tell, and the interval that holds 80 % of the waits; in seconds."""

    seconds: float
    low: float
    high: float


class LeftOut(NamedTuple):
    """The part of the runs that is left out at either end of the interval."""

    below: float
    above: float


def left_out(
    past: Sequence[PastWait], *, leaving: bool, changing: bool, pauses: Sequence[float] | None
) -> LeftOut:
    """The parts that make eight of ten newcomers fall into the interval.

    `leaving`: patients leave the line; `changing`: doctors come and go; `pauses`: equally likely ones between two visits.
    """
    at_once = [seconds for seconds, left in past if seconds <= READY_SECONDS and not left]
    ready = len(at_once) / (len(past) + READY_PRIOR)
    below, above = MISSED * (1 + BELOW_READY * ready), MISSED * (1 + ABOVE_READY * ready)
    if changing:
        below, above = BELOW_CHANGING, ABOVE_CHANGING
    # A few long pauses among many short ones: patients or breaks that nobody tells of, and their number changes.
    if pauses and sum(map(mul, pauses, pauses)) * len(pauses) > 2 * sum(pauses) ** 2:
        above = ABOVE_IRREGULAR
    return LeftOut(BELOW_LEAVING if leaving else below, above)


def wait_to_tell(ordered: list[float], doubt: float, out: LeftOut) -> SimulatedWait:
    """From the waits of all runs, in order. `doubt`: how well the mean visit is known."""
    found = SimulatedWait(_middle(ordered), *_interval(ordered, out))
    return _widened(found, doubt) if found.high else found


def _middle(ordered: list[float]) -> float:
    """The mean of the middle three quarters; at least what the long waits add to the mean while more than one is in doubt."""
    out = len(ordered) // TRIMMED_PART
    kept = ordered[out : len(ordered) - out]
    middle = sum(kept) / len(kept)
    in_doubt = ordered[-max(1, len(ordered) // DOUBT_PART)] > READY_SECONDS
    return max(middle, sum(ordered[len(ordered) - out :]) / len(ordered)) if in_doubt else middle


def _interval(ordered: list[float], out: LeftOut) -> tuple[float, float]:
    """The ends of the interval that eight of ten waits fall into."""
    return _quantile(ordered, out.below), _quantile(ordered, 1 - out.above)


def _widened(wait: SimulatedWait, doubt: float) -> SimulatedWait:
    """The interval with what the runs do not play: that the mean visit is known only so well."""
    unsure = DOUBTS * doubt * wait.seconds
    low = wait.seconds - hypot(max(0.0, wait.seconds - wait.low), unsure)
    high = wait.seconds + hypot(max(0.0, wait.high - wait.seconds), unsure)
    return SimulatedWait(wait.seconds, min(wait.low, max(0.0, low)), max(wait.high, high))


def _quantile(ordered: list[float], share: float) -> float:
    place = share * len(ordered) - 0.5
    at = min(max(0, int(place)), len(ordered) - 2)
    # Beyond the outermost of few runs the line goes on.
    return max(0.0, ordered[at] + (place - at) * (ordered[at + 1] - ordered[at]))


def moved(ordered: list[float], wait: float, wider: float, out: LeftOut) -> SimulatedWait:
    """`wait`, with the interval of the runs made `wider` by this factor."""
    low, high = _interval(ordered, out)
    middle = sum(ordered) / len(ordered)
    return SimulatedWait(
        wait, max(0.0, wait - wider * (middle - low)), wait + wider * max(0.0, high - middle)
    )
