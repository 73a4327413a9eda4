"""The accuracy of past estimates: each one beside the wait of the first patient that joined while it was in force.

Waits are matched when they are asked for, so late events count as well.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import ceil

from frontdesk.queues.model import EstimateAccuracy, WaitOutcome


def measure_accuracy(outcomes: Iterable[WaitOutcome]) -> list[EstimateAccuracy]:
    """The accuracy of each plan, by plan id."""
    by_plan: defaultdict[int, list[WaitOutcome]] = defaultdict(list)
    for outcome in outcomes:
        by_plan[outcome.plan_id].append(outcome)
    return [_accuracy(plan_id, own) for plan_id, own in sorted(by_plan.items())]


def _accuracy(plan_id: int, outcomes: Sequence[WaitOutcome]) -> EstimateAccuracy:
    errors = [outcome.estimate_seconds - outcome.wait_seconds for outcome in outcomes]
    sizes = sorted(map(abs, errors))
    count = len(errors)
    return EstimateAccuracy(
        plan_id=plan_id,
        matched=count,
        mean_wait_seconds=sum(outcome.wait_seconds for outcome in outcomes) / count,
        mean_error_seconds=sum(sizes) / count,
        bias_seconds=sum(errors) / count,
        p90_error_seconds=sizes[ceil(0.9 * count) - 1],
    )
