"""The state of each plan's queue, with the wait estimate, and the accuracy of past estimates."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import ceil

from frontdesk.db import Tx
from frontdesk.queues.estimate.intervals import IntervalRecord
from frontdesk.queues.estimate.model import NOBODY_ON_DUTY
from frontdesk.queues.estimate.waits import estimate_waits
from frontdesk.queues.model import EstimateAccuracy, PlanQueue, QueueInfo, WaitOutcome
from frontdesk.queues.store.pools import plans_by_group, select_pools
from frontdesk.queues.store.snapshots import list_records


def queue_state(
    tx: Tx, account_id: int | None, now: datetime, records: Mapping[int, IntervalRecord] | None = None
) -> dict[int, PlanQueue]:
    """By plan id: the queues of the account's plans (None: of all accounts), from one consistent read, in seven statements.

    `records`: by plan, how the intervals have held; None: as stored, which takes one statement more.
    """
    if records is None:
        records = list_records(tx, account_id)
    plans = plans_by_group(tx, account_id)
    pools = select_pools(tx, plans.keys(), now)
    queues = {}
    for group, pool in pools.items():
        waits = estimate_waits(pool, plans[group], records)
        lengths = Counter(pool.waiting)
        for plan in plans[group]:
            seconds, low, high = waits[plan]
            info = QueueInfo(seconds, lengths[plan], seconds != NOBODY_ON_DUTY, low, high)
            serving = [doctor for doctor in pool.doctors if doctor.serves(plan)]
            queues[plan] = PlanQueue(info, len(serving), sum(bool(doctor.visits) for doctor in serving))
    return dict(sorted(queues.items()))


def measure_accuracy(outcomes: Iterable[WaitOutcome]) -> list[EstimateAccuracy]:
    """The accuracy of each plan, by plan id."""
    by_plan: defaultdict[int, list[WaitOutcome]] = defaultdict(list)
    for outcome in outcomes:
        by_plan[outcome.plan_id].append(outcome)
    return [accuracy_of(own, plan_id) for plan_id, own in sorted(by_plan.items())]


def accuracy_of(outcomes: Sequence[WaitOutcome], plan_id: int = 0) -> EstimateAccuracy:
    """Of one outcome at least; `plan_id` 0: of several plans."""
    errors = [outcome.error_seconds for outcome in outcomes]
    zeros = [outcome.is_wrong_zero for outcome in outcomes if outcome.estimate_seconds == 0]
    sides = [outcome.side for outcome in outcomes if outcome.side is not None]
    sizes = sorted(map(abs, errors))
    count = len(errors)
    return EstimateAccuracy(
        plan_id=plan_id,
        matched=count,
        mean_wait_seconds=sum(outcome.wait_seconds for outcome in outcomes) / count,
        mean_error_seconds=sum(sizes) / count,
        bias_seconds=sum(errors) / count,
        p90_error_seconds=sizes[ceil(0.9 * count) - 1],
        wrong_zero_share=sum(zeros) / len(zeros) if zeros else None,
        coverage_share=sides.count(0) / len(sides) if sides else None,
    )
