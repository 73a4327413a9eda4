"""What is told of the runs: one wait, and an interval around it."""

from math import hypot
from typing import NamedTuple

from frontdesk.queues.estimate.model import READY_SECONDS

TRIMMED_PART = 8  # an eighth of the runs is left out at either end: a value between mean and median fits best
DOUBT_PART = 16  # nobody is told 0 while one of so many runs has a wait
# The part of the runs that is left out at either end of the interval, and at the lower end where patients leave.
MISSED_PART, MISSED_LEAVING = 0.1, 0.04
NORMAL_TENTH = (
    1.28  # a tenth of a normal distribution is further from its mean than so many standard deviations
)


class SimulatedWait(NamedTuple):
    """The wait to tell, and the interval that holds 80 % of the waits; in seconds."""

    seconds: float
    low: float
    high: float


def wait_to_tell(ordered: list[float], doubt: float, *, leaving: bool) -> SimulatedWait:
    """From the waits of all runs, in order. `doubt`: how well the mean visit is known; `leaving`: patients leave the line."""
    found = SimulatedWait(_middle(ordered), *_interval(ordered, leaving=leaving))
    return _widened(found, doubt) if found.high else found


def _middle(ordered: list[float]) -> float:
    """The mean of the middle three quarters; at least what the long waits add to the mean while more than one is in doubt."""
    out = len(ordered) // TRIMMED_PART
    kept = ordered[out : len(ordered) - out]
    middle = sum(kept) / len(kept)
    in_doubt = ordered[-max(1, len(ordered) // DOUBT_PART)] > READY_SECONDS
    return max(middle, sum(ordered[len(ordered) - out :]) / len(ordered)) if in_doubt else middle


def _interval(ordered: list[float], *, leaving: bool) -> tuple[float, float]:
    """The ends of the interval that eight of ten waits fall into."""
    return _quantile(ordered, MISSED_LEAVING if leaving else MISSED_PART), _quantile(ordered, 1 - MISSED_PART)


def _widened(wait: SimulatedWait, doubt: float) -> SimulatedWait:
    """The interval with what the runs do not play: that the mean visit is known only so well."""
    unsure = NORMAL_TENTH * doubt * wait.seconds
    low = wait.seconds - hypot(max(0.0, wait.seconds - wait.low), unsure)
    high = wait.seconds + hypot(max(0.0, wait.high - wait.seconds), unsure)
    return SimulatedWait(wait.seconds, min(wait.low, max(0.0, low)), max(wait.high, high))


def _quantile(ordered: list[float], share: float) -> float:
    place = share * len(ordered) - 0.5
    at = min(max(0, int(place)), len(ordered) - 2)
    # Beyond the outermost of few runs the line goes on.
    return max(0.0, ordered[at] + (place - at) * (ordered[at + 1] - ordered[at]))


def moved(ordered: list[float], wait: float, wider: float, *, leaving: bool) -> SimulatedWait:
    low, high = _interval(ordered, leaving=leaving)
    middle = sum(ordered) / len(ordered)
    return SimulatedWait(
        wait, max(0.0, wait - wider * (middle - low)), wait + wider * max(0.0, high - middle)
    )
