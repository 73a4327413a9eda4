"""What makes a past unfit to be judged: figures of such a past are about its events, not about the estimate."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from frontdesk.clock import wire_time
from frontdesk.queues.backtest.encounters_csv import EncountersCsv
from frontdesk.queues.backtest.judge import BacktestResult
from frontdesk.queues.model import EventType, ReplayEvent

ENDED_SHARE = 0.5  # fewer visits with an end: how long visits take is not known
REPEATED_SHARE = 0.01
IDLE_SHARE = 0.25  # of the joinings: patients wait beside idle doctors
MANY_BESIDE = 10
LINES_SHOWN = 20


class BacktestWarning(NamedTuple):
    """`lines` of the file, the first is 1; none where the warning is about the whole past."""

    code: str
    message: str
    lines: tuple[int, ...] = ()


def warnings_of(events: Sequence[ReplayEvent], found: BacktestResult) -> Iterator[BacktestWarning]:
    """About the events, stored or of a file, and what was found when they were judged."""
    types = [event.type for event in events]
    started, ended = types.count(EventType.VISIT_STARTED), types.count(EventType.VISIT_ENDED)
    if ended < ENDED_SHARE * started:
        yield BacktestWarning(
            "no_ends",
            f"Of {started:,} visits {ended:,} have an end, so doctors look busy that are not, and the length of a visit is not "
            "known. Fill the column `ended`, or send visit.ended.",
        )
    beside, joined = found.beside_idle, found.joined
    most = max(beside, key=lambda one: (min(one[:2]), one[0]), default=(0, 0, 0.0))
    if len(beside) > IDLE_SHARE * joined or min(most[:2]) >= MANY_BESIDE:
        waiting, idle, at = most
        yield BacktestWarning(
            "waiting_beside_idle",
            f"At {len(beside):,} of {joined:,} joinings patients wait beside idle doctors: {waiting} beside {idle} at "
            f"{wire_time(datetime.fromtimestamp(at, UTC))}. Check that each row tells how its wait ended (`started` or "
            "`left`), and that these doctors serve this plan at that time.",
        )


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
