"""How wrong is the wait estimate on simulated days, beside other rules?

Error: the mean absolute one, of all newcomers while a doctor is on duty; a patient that left unseen
counts with the wait that it would have had. In interval, shorter, longer: the share of the waits
inside, below and above it; by band: inside for 0, 1, 2, 3, 4 to 5, 6 to 8, and 9 and more patients
ahead (- with fewer than 100 newcomers). The days of a scenario follow each other, and a plan keeps
what it has learnt, except on first days. 0, but waited: the share of the estimates of 0 with a wait
over 30 s.
Idle seen: handle time x position by a product that says 0 when a doctor is idle. Constant per
state: the median wait with as many patients ahead on the scenario's other days. The result does not
depend on the machine.
"""

import argparse
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from rich.progress import Progress

from bench.harness import Bench, Option, Row
from bench.wait_scenarios import SCENARIOS
from bench.wait_world import AHEAD, HIGH, LOW, OURS, Day
from frontdesk.backtest.judge import RIVALS
from frontdesk.queues.estimate.model import READY_SECONDS
from frontdesk.queues.estimate.record import BANDS, PlanRecord, band_of, band_text

PROCESSES = 2
FEW_NEWCOMERS = 100  # the coverage of fewer tells little
IDLE_SEEN = "AHT x position, idle seen"
CONSTANT = "constant per state"
OTHERS = [name for name in RIVALS if name != IDLE_SEEN]


class Newcomer(NamedTuple):
    """A patient that joined while a doctor was on duty: the wait, and what each rule said, both in
    seconds.
    """

    scenario: int
    seed: int
    wait: float
    said: dict[str, float]

    @property
    def state(self) -> tuple[float, bool]:
        """The patients ahead, and whether a doctor looked idle."""
        return self.said[AHEAD], self.said[IDLE_SEEN] == 0


def run(options: argparse.Namespace, progress: Progress) -> Iterator[Row]:
    seeds = range(options.seed, options.seed + options.days)
    work = [(scenario, seeds) for scenario in range(len(SCENARIOS))]
    newcomers: list[Newcomer] = []
    with get_context("spawn").Pool(PROCESSES) as pool:
        scenarios = pool.imap_unordered(_days, work)
        for days in progress.track(scenarios, total=len(work), description="simulating days"):
            newcomers += days
    for number, scenario in enumerate(SCENARIOS):
        of_scenario = [newcomer for newcomer in newcomers if newcomer.scenario == number]
        _add_constants(of_scenario)
        yield _row(scenario.name, of_scenario)
    yield _row("all days", newcomers)
    for band, within in enumerate(_by_band(newcomers)):
        if within:
            yield _row(f"all, {band_text(band)} ahead", within)


def _days(work: tuple[int, range]) -> list[Newcomer]:
    """The days of a scenario, one after the other."""
    number, seeds = work
    scenario = SCENARIOS[number]
    found = []
    records: dict[int, PlanRecord] = {}
    for seed in seeds:
        day = Day(scenario, seed)
        day.known.records = {} if scenario.is_first_day else records
        found += [
            Newcomer(number, seed, patient.wait or 0.0, patient.estimates) for patient in day.run()
        ]
        records = day.known.records
    return found


def _add_constants(newcomers: list[Newcomer]) -> None:
    """What a table would say, if the days are all alike: the median wait of the same state on the
    scenario's other days.
    """
    for seed in {newcomer.seed for newcomer in newcomers}:
        waits: defaultdict[tuple[float, bool], list[float]] = defaultdict(list)
        for newcomer in newcomers:
            if newcomer.seed != seed:
                waits[newcomer.state].append(newcomer.wait)
        constants = {state: statistics.median(of_state) for state, of_state in waits.items()}
        longest = max(constants.values(), default=0.0)  # of a line longer than any before
        for newcomer in newcomers:
            if newcomer.seed == seed:
                newcomer.said[CONSTANT] = constants.get(newcomer.state, longest)


def _row(name: str, newcomers: list[Newcomer]) -> Row:
    errors = [newcomer.said[OURS] - newcomer.wait for newcomer in newcomers]
    mean_wait = statistics.fmean(newcomer.wait for newcomer in newcomers)
    error = _error(newcomers, OURS)
    best_error, best = min((_error(newcomers, rule), rule) for rule in OTHERS)
    given = [newcomer for newcomer in newcomers if newcomer.said[HIGH]]  # 0 to 0 is no interval
    shorter = _percent(newcomer.wait < newcomer.said[LOW] for newcomer in given)
    longer = _percent(newcomer.wait >= newcomer.said[HIGH] + 1 for newcomer in given)
    zeros = [newcomer for newcomer in newcomers if newcomer.said[OURS] == 0]
    return {
        "days": name,
        "newcomers": len(newcomers),
        "mean wait, s": round(mean_wait),
        "our error, s": round(error),
        "bias, %": round(100 * statistics.fmean(errors) / mean_wait, 1),
        "90 % below, s": round(sorted(map(abs, errors))[int(0.9 * len(errors))]),
        "in interval, %": round(100 - shorter - longer, 1),
        "shorter, %": round(shorter, 1),
        "longer, %": round(longer, 1),
        "by band, %": " ".join(map(_inside, _by_band(given))),
        "0, but waited, %": round(_percent(newcomer.wait > READY_SECONDS for newcomer in zeros), 1),
        "best other rule": best,
        "its error, s": round(best_error),
        "ours less by, %": round(100 * (1 - error / best_error)),
        "idle seen, s": round(_error(newcomers, IDLE_SEEN)),
        "constant per state, s": round(_error(newcomers, CONSTANT)),
    }


def _by_band(newcomers: list[Newcomer]) -> list[list[Newcomer]]:
    bands: list[list[Newcomer]] = [[] for _ in BANDS]
    for newcomer in newcomers:
        bands[band_of(int(newcomer.said[AHEAD]))].append(newcomer)
    return bands


def _inside(given: list[Newcomer]) -> str:
    if len(given) < FEW_NEWCOMERS:
        return "-"
    inside = _percent(
        newcomer.said[LOW] <= newcomer.wait < newcomer.said[HIGH] + 1 for newcomer in given
    )
    return f"{inside:.0f}"


def _error(newcomers: list[Newcomer], rule: str) -> float:
    """The mean absolute error."""
    return statistics.fmean(abs(newcomer.said[rule] - newcomer.wait) for newcomer in newcomers)


def _percent(cases: Iterable[bool]) -> float:
    seen = list(cases)
    return 100 * sum(seen) / max(1, len(seen))


BENCH = Bench(
    __doc__,
    run,
    Option("days", 30, 2, "of each scenario"),
    Option("seed", 0, 0, "the first day's"),
    has_databases=False,
    page=Path(__file__).parents[1] / "docs" / "wait-estimate.md",
)
