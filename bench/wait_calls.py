"""`python -m bench.wait_calls`: simulated days of calls as a CSV for `frontdesk queue backtest --csv`.

Example: python -m bench.wait_calls --days 2 --cut minutes > calls.csv
"""

import argparse
import csv
import sys
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from random import Random

from bench.wait_scenarios import lognormal, steady
from bench.wait_world import Day, Scenario, Shift
from frontdesk.queues.backtest.encounters_csv import COLUMNS
from frontdesk.queues.backtest.replay import HOUR, ReplayEvent
from frontdesk.queues.model import EventType

FIRST_DAY = datetime(2026, 11, 2, 8, tzinfo=UTC)
OPEN_SECONDS = 10 * HOUR
AT_ONCE = 0.08  # the share of the calls that hang up within a second of joining the line
CUTS = {"microseconds": 0.0, "seconds": 1.0, "minutes": 60.0}
TIMES = {
    EventType.PATIENT_JOINED: "joined",
    EventType.VISIT_STARTED: "started",
    EventType.VISIT_ENDED: "ended",
    EventType.PATIENT_LEFT: "left",
}
_patience = lognormal(600.0, 1.0)


def patience(random: Random) -> float:
    """Seconds until a caller hangs up."""
    return random.random() if random.random() < AT_ONCE else _patience(random)


CALLS = Scenario(
    "a day of calls",
    {1: steady(152, lognormal(270.0, 0.7), patience)},
    lambda _: [Shift(((0.0, OPEN_SECONDS),))] * 11,
    measured=(0.0, OPEN_SECONDS),
)


class RecordedDay(Day):
    """A day that keeps what it tells, by call."""

    def __init__(self, seed: int) -> None:
        super().__init__(CALLS, seed, lambda _day, _plan_id: {})
        self.calls: defaultdict[str, list[ReplayEvent]] = defaultdict(list)

    def _tell(self, event: ReplayEvent, *, late: float = 0.0) -> None:
        if event.visit:
            self.calls[event.visit].append(event)


def main() -> None:
    """Write the days to standard output."""
    parser = argparse.ArgumentParser(prog="python -m bench.wait_calls", description=__doc__)
    parser.add_argument("--days", type=int, default=1, help="simulated days (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="the first day's seed")
    parser.add_argument("--cut", choices=CUTS, default="seconds", help="what times are cut to")
    options = parser.parse_args()
    writer = csv.DictWriter(sys.stdout, COLUMNS)
    writer.writeheader()
    for number in range(options.days):
        day = RecordedDay(options.seed + number)
        day.run()
        start = FIRST_DAY + timedelta(days=number)
        for events in day.calls.values():
            row = {TIMES[event.type]: _cut(start, event.at, CUTS[options.cut]) for event in events}
            writer.writerow(row | {"doctor": events[-1].doctor, "plan": "calls"})


def _cut(start: datetime, seconds: float, unit: float) -> str:
    return (start + timedelta(seconds=seconds // unit * unit if unit else seconds)).isoformat()


if __name__ == "__main__":
    main()
