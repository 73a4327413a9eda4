"""What makes a past unfit to be judged: figures of such a past are about its events, not about the estimate."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from frontdesk.clock import wire_time
from frontdesk.queues.backtest.encounters_csv import EncountersCsv
from frontdesk.queues.backtest.judge import line_of, questions
from frontdesk.queues.backtest.replay import ReplayEvent
from frontdesk.queues.model import EventType, QueueRules

ENDED_SHARE = 0.5  # fewer visits with an end: how long visits take is not known
REPEATED_SHARE = 0.01
# At least so many patients wait while half of the doctors look idle: in simulated days with notes or breaks that no event tells
# of it was so at 8 % of the joinings at most.
MANY_WAITING = 3
IDLE_SHARE = 0.25  # of the joinings
MANY_BESIDE = 10
LINES_SHOWN = 20


class BacktestWarning(NamedTuple):
    """`lines` of the file, the first is 1; none where the warning is about the whole past."""

    code: str
    message: str
    lines: tuple[int, ...] = ()


def warnings_of(
    events: Sequence[ReplayEvent], *, since: float, rules: QueueRules
) -> Iterator[BacktestWarning]:
    """About the events, stored or of a file."""
    types = [event.type for event in events]
    started, ended = types.count(EventType.VISIT_STARTED), types.count(EventType.VISIT_ENDED)
    if ended < ENDED_SHARE * started:
        yield BacktestWarning(
            "no_ends",
            f"Of {started:,} visits {ended:,} have an end, so doctors look busy that are not, and the length of a visit is not "
            "known. Fill the column `ended`, or send visit.ended.",
        )
    yield from _waiting_beside_idle(events, since, rules)


def warnings_of_file(found: EncountersCsv) -> Iterator[BacktestWarning]:
    """About the rows of a file."""
    seen = [row for row in found.rows if row.started is not None]
    repeated = len(seen) - len(set(seen))
    if repeated > REPEATED_SHARE * len(seen):
        yield BacktestWarning(
            "repeated_rows",
            f"{repeated:,} of {len(seen):,} rows with a visit repeat another row; each counts as a patient of its own. "
            "Remove the copies.",
        )
    if found.set_back:
        lines = ", ".join(map(str, found.set_back[:LINES_SHOWN]))
        yield BacktestWarning(
            "times_go_back",
            f"Times without an offset go back by up to an hour at line {lines}, as local times do when clocks are set back. "
            "Name their zone with --time-zone, or write offsets.",
            tuple(found.set_back),
        )


def _waiting_beside_idle(
    events: Sequence[ReplayEvent], since: float, rules: QueueRules
) -> Iterator[BacktestWarning]:
    joined, beside, most = 0, 0, (0, 0, 0.0)
    for replay, stay in questions(line_of(events, since), rules):
        joined += 1
        waiting = [plan_id for plan_id, _ in replay.waiting(stay.joined_at)].count(stay.plan_id)
        if waiting < MANY_WAITING:
            continue
        serving = [one for one in replay.doctors(stay.joined_at) if one.serves(stay.plan_id)]
        idle = sum(not doctor.visits for doctor in serving)
        if 2 * idle >= max(1, len(serving)):
            beside += 1
            most = max(most, (waiting, idle, stay.joined_at), key=lambda one: (min(one[:2]), one[0]))
    if beside > IDLE_SHARE * joined or min(most[:2]) >= MANY_BESIDE:
        waiting, idle, at = most
        yield BacktestWarning(
            "waiting_beside_idle",
            f"At {beside:,} of {joined:,} joinings patients wait beside idle doctors: {waiting} beside {idle} at "
            f"{wire_time(datetime.fromtimestamp(at, UTC))}. Check that each row tells how its wait ended (`started` or "
            "`left`), and that these doctors serve this plan at that time.",
        )
