"""How right the estimates were: each one that was given, beside the wait of the first patient who joined while it was shown.

It knows nothing of how an estimate is made. Nothing is matched before it is asked for, so late events count as well.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import NamedTuple

from frontdesk.db import Tx
from frontdesk.queues.store.upkeep import select_outcomes

MOST_OUTCOMES = 20_000


class WaitOutcome(NamedTuple):
    """An estimate and the wait that came, in seconds."""

    plan_id: int
    joined_at: datetime
    estimate_seconds: int
    wait_seconds: float


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Of one plan's estimates, in seconds: `bias_seconds` above 0 means that patients waited less than they were told."""

    plan_id: int
    matched: int
    mean_wait_seconds: float
    mean_error_seconds: float
    bias_seconds: float
    p90_error_seconds: float


def list_outcomes(tx: Tx, since: datetime) -> list[WaitOutcome]:
    """By time of joining, the latest MOST_OUTCOMES of them: the first patient of each estimate who was seen."""
    first = {
        row.id: row for row in select_outcomes(tx, since, limit=MOST_OUTCOMES)
    }  # the earliest comes last
    return [
        WaitOutcome(
            row.plan_id, row.joined_at, row.estimate_seconds, (row.started_at - row.joined_at).total_seconds()
        )
        for row in reversed(first.values())
    ]


def measure(outcomes: Iterable[WaitOutcome]) -> list[Accuracy]:
    """By plan."""
    by_plan: defaultdict[int, list[WaitOutcome]] = defaultdict(list)
    for outcome in outcomes:
        by_plan[outcome.plan_id].append(outcome)
    return [_accuracy(plan_id, own) for plan_id, own in sorted(by_plan.items())]


def _accuracy(plan_id: int, outcomes: Sequence[WaitOutcome]) -> Accuracy:
    errors = [outcome.estimate_seconds - outcome.wait_seconds for outcome in outcomes]
    sizes = sorted(map(abs, errors))
    count = len(errors)
    return Accuracy(
        plan_id=plan_id,
        matched=count,
        mean_wait_seconds=sum(outcome.wait_seconds for outcome in outcomes) / count,
        mean_error_seconds=sum(sizes) / count,
        bias_seconds=sum(errors) / count,
        p90_error_seconds=sizes[ceil(0.9 * count) - 1],
    )
