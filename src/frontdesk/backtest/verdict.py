"""What the figures say, in a sentence for the manager of a clinic: may patients be told this
estimate?
"""

from collections.abc import Mapping
from typing import NamedTuple

from frontdesk.backtest.figures import BacktestFigures
from frontdesk.queues.model import INTERVAL_SHARE

FEWEST_PATIENTS = 200  # to judge by
ENOUGH_IN_GROUP = 100  # patients of a plan, a class or a position, to judge it by itself
# Of the standard error of the mean difference: less may be chance, as one of several rules is
# always the luckiest in a group.
BEYOND_CHANCE = 2.0
# Of a group: no patient notices less, nor a smaller share of the error.
WORTH_SECONDS = 5.0
WORTH_SHARE = 0.05


class Verdict(NamedTuple):
    """`code`: too_early, nearer, not_nearer, worse_in_places or worse."""

    code: str
    message: str


def verdict_of(everyone: BacktestFigures, groups: Mapping[str, BacktestFigures]) -> Verdict:
    """`groups`: the figures of each plan, class and position by words such as `plan "Gold"`.

    `worse`: the best rival is nearer, over all patients; `worse_in_places`: in a group.
    """
    patients = everyone.accuracy.matched
    if patients < FEWEST_PATIENTS:
        return Verdict(
            "too_early",
            f"It is too early to tell: {patients:,} patients can be judged, and it takes "
            f"{FEWEST_PATIENTS}. Collect more days, or judge more of them with --days.",
        )
    if is_worse(everyone):
        return Verdict("worse", f"Do not use this estimate here: {_comparison(everyone)}")
    overall = f"{_upper(_comparison(everyone))}{_inside(everyone)}"
    places = [_place(name, figures) for name, figures in groups.items() if _is_worth(figures)]
    if places:
        where = "; ".join(places)
        return Verdict("worse_in_places", f"{overall} Do not use this estimate here: {where}.")
    return Verdict("nearer" if is_nearer(everyone) else "not_nearer", overall)


def is_worse(figures: BacktestFigures) -> bool:
    """The best rival is nearer, by more than chance."""
    rival = figures.best_rival
    return rival.further_seconds > BEYOND_CHANCE * rival.standard_error


def is_nearer(figures: BacktestFigures) -> bool:
    """Nearer than the best rival, by more than chance."""
    rival = figures.best_rival
    return rival.further_seconds < -BEYOND_CHANCE * rival.standard_error


def _is_worth(figures: BacktestFigures) -> bool:
    """The estimate is so much worse in the group that it has to be told."""
    own = figures.accuracy
    worth = max(WORTH_SECONDS, WORTH_SHARE * own.mean_error_seconds)
    enough = own.matched >= ENOUGH_IN_GROUP
    return enough and is_worse(figures) and figures.best_rival.further_seconds >= worth


def _place(name: str, figures: BacktestFigures) -> str:
    best = figures.best_rival
    return (
        f"{name}, where it was wrong by {seconds_text(figures.accuracy.mean_error_seconds)} over "
        f"{figures.accuracy.matched:,} patients, and a simple rule ({best.name}) by "
        f"{seconds_text(best.accuracy.mean_error_seconds)}"
    )


def _comparison(figures: BacktestFigures) -> str:
    own = figures.accuracy.mean_error_seconds
    best = figures.best_rival
    rival = best.accuracy.mean_error_seconds
    start = (
        f"over {figures.accuracy.matched:,} patients the estimate was wrong by {seconds_text(own)} "
        "on average"
    )
    named = f"{best.name}: {seconds_text(rival)}"
    if is_nearer(figures):
        return (
            f"{start}, {100 * (1 - own / rival):.0f} % nearer than the best simple rule ({named})."
        )
    if is_worse(figures):
        return f"{start}, and a simple rule ({best.name}) by {seconds_text(rival)}."
    return f"{start}, about as near as the best simple rule ({named})."


def _inside(figures: BacktestFigures) -> str:
    share = figures.accuracy.coverage_share
    if share is None:
        return ""
    meant = round(10 * INTERVAL_SHARE)
    found = round(10 * share)
    note = "" if found == meant else f" ({meant} are meant)"
    return f" {found} of 10 waits were inside the interval{note}."


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]


def seconds_text(seconds: float) -> str:
    """A time for people.

    >>> seconds_text(58.4), seconds_text(406.0)
    ('58 s', '6 min 46 s')
    """
    whole = round(seconds)
    return f"{whole} s" if whole < 120 else f"{whole // 60} min {whole % 60} s"
