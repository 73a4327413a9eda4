"""`python -m bench.wait`: how wrong the wait estimate is, beside what else is in use, on simulated days."""

import argparse
import json
import platform
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench.wait_estimators import AHEAD, ESTIMATORS, HARDER, HIGH, LOW, OURS, ask_all
from bench.wait_scenarios import SCENARIOS
from bench.wait_world import Day
from frontdesk.queues.estimate.intervals import WIDTHS
from frontdesk.queues.estimate.model import READY_SECONDS

RESULTS = Path(__file__).parent / "WAIT.md"
DOCUMENT = Path(__file__).parents[1] / "docs" / "wait-estimate.md"
START, END = "<!-- measured -->", "<!-- /measured -->"
PROCESSES = 2
OTHERS = [name for name in ESTIMATORS if name not in {OURS, HARDER}]
TABLE_WIDTH = 240
# The median wait of the same state (patients ahead, a doctor idle or not) on the scenario's other days: a rule for a place whose
# days are all alike, and which has measured them.
CONSTANT = "constant per state"
ALL = "all scenarios"


@dataclass(frozen=True)
class Measured:
    """One estimator on one scenario, in seconds.

    `wrong_zeros`: the share of the estimates of 0 after which the wait was over 30 s. `shorter`, `longer`: of the newcomers with
    an interval (0 to 0 is none), the share of the waits below and above it; None for the others.
    """

    scenario: str
    estimator: str
    newcomers: int
    mean_wait: float
    mean_absolute_error: float
    bias: float
    error_90: float
    wrong_zeros: float | None
    shorter: float | None
    longer: float | None


@dataclass(frozen=True)
class SimulatedDay:
    """One simulated day: the waits, the estimates by estimator, and the ends of our interval as LOW and HIGH."""

    scenario: int
    waits: list[float]
    estimates: dict[str, list[float]]

    def errors(self, estimator: str) -> list[float]:
        return [estimate - wait for estimate, wait in zip(self.estimates[estimator], self.waits, strict=True)]

    def sides(self) -> Iterator[tuple[float, int]]:
        """By newcomer with an interval: the patients ahead; and -1, 0, 1: the wait was shorter, inside, longer."""
        ends = (self.estimates[name] for name in (LOW, HIGH, AHEAD))
        for wait, low, high, ahead in zip(self.waits, *ends, strict=True):
            if high:
                yield ahead, (wait >= high + 1) - (wait < low)

    def states(self) -> Iterator[tuple[tuple[float, bool], float]]:
        """By newcomer: the patients ahead, whether a doctor looked idle; and the wait."""
        idle = (said == 0 for said in self.estimates[HARDER])
        yield from zip(zip(self.estimates[AHEAD], idle, strict=True), self.waits, strict=True)


def main() -> None:
    """Simulate, print the tables, write WAIT.md and the table of docs/wait-estimate.md."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.wait", description="Example: python -m bench.wait --quick"
    )
    parser.add_argument("--quick", action="store_true", help="few days, and nothing is written")
    parser.add_argument("--days", type=int, default=30, help="simulated days per scenario (default 30)")
    parser.add_argument("--seed", type=int, default=0, help="the first day's seed; only 0 is written down")
    parser.add_argument("--json", action="store_true", help="print the numbers for programs")
    options = parser.parse_args()
    days = 8 if options.quick else options.days
    simulated = _simulate(days, options.seed)
    measured, positions = _measure(simulated), _positions(simulated)
    if options.json:
        print(json.dumps([asdict(row) for row in measured], indent=2))
    else:
        console = Console()
        console.width = console.width if console.is_terminal else TABLE_WIDTH
        for table in _tables(measured, positions):
            console.print(table)
    if not options.quick and not options.seed:
        RESULTS.write_text(_markdown(measured, positions, days))
        before, start, rest = DOCUMENT.read_text().partition(START)
        rows = "\n".join(_markdown_table(_verdicts(measured)))
        DOCUMENT.write_text(f"{before}{start}\n\n{rows}\n\n{END}{rest.partition(END)[2]}")


def _simulate(days: int, first: int) -> list[SimulatedDay]:
    work = [(scenario, seed) for seed in range(first, first + days) for scenario in range(len(SCENARIOS))]
    seen = []
    with get_context("spawn").Pool(PROCESSES) as pool, Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("simulating days", total=len(work))
        for day in pool.imap_unordered(_one_day, work):
            seen.append(day)
            progress.advance(task)
    return [day for day in seen if day.waits]


def _one_day(work: tuple[int, int]) -> SimulatedDay:
    scenario, seed = work
    patients = Day(SCENARIOS[scenario], seed, ask_all).run()
    waits = [patient.wait for patient in patients if patient.wait is not None]
    return SimulatedDay(
        scenario,
        waits,
        {name: [p.estimates[name] for p in patients] for name in (*ESTIMATORS, LOW, HIGH, AHEAD)},
    )


def _measure(seen: list[SimulatedDay]) -> list[Measured]:
    by_scenario: defaultdict[int, list[SimulatedDay]] = defaultdict(list)
    for day in seen:
        by_scenario[day.scenario].append(day)
    groups = [(SCENARIOS[number].name, days) for number, days in sorted(by_scenario.items())]
    for _, days in groups:
        _add_constants(days)
    names = [*ESTIMATORS, CONSTANT]
    return [_row(scenario, name, days) for scenario, days in [*groups, (ALL, seen)] for name in names]


def _add_constants(days: list[SimulatedDay]) -> None:
    for day in days:
        others: defaultdict[tuple[float, bool], list[float]] = defaultdict(list)
        for other in days:
            if other is not day:
                for state, wait in other.states():
                    others[state].append(wait)
        constants = {state: statistics.median(waits) for state, waits in others.items()}
        longest = max(constants.values(), default=0.0)  # of a line longer than any before
        day.estimates[CONSTANT] = [constants.get(state, longest) for state, _ in day.states()]


def _positions(seen: list[SimulatedDay]) -> list[dict[str, str]]:
    """How often the interval held, by the rows of WIDTHS."""
    found = [one for day in seen for one in day.sides()]
    rows = []
    starts = [start for start, _, _ in WIDTHS]
    for start, end in pairwise([*starts, float("inf")]):
        sides = [side for ahead, side in found if start <= ahead < end]
        count = max(1, len(sides))
        shares = {"in interval": 0, "shorter": -1, "longer": 1}
        label = (
            f"{start:g}"
            if end == start + 1
            else f"{start:g} and more"
            if end > 1e9
            else f"{start:g} to {end - 1:g}"
        )
        rows.append(
            {"patients ahead": label, "newcomers": f"{len(sides):,}"}
            | {name: f"{sides.count(side) / count:.1%}" for name, side in shares.items()}
        )
    return rows


def _row(scenario: str, estimator: str, days: list[SimulatedDay]) -> Measured:
    waits = [wait for day in days for wait in day.waits]
    errors = [error for day in days for error in day.errors(estimator)]
    sizes = sorted(map(abs, errors))
    return Measured(
        scenario,
        estimator,
        newcomers=len(errors),
        mean_wait=round(statistics.fmean(waits), 1),
        mean_absolute_error=round(statistics.fmean(sizes), 1),
        bias=round(statistics.fmean(errors), 1),
        error_90=round(sizes[int(0.9 * len(sizes))], 1),
        wrong_zeros=_share(wait > READY_SECONDS for told, wait in _told(estimator, days) if told == 0),
        shorter=_share(side < 0 for day in days for _, side in day.sides()) if estimator == OURS else None,
        longer=_share(side > 0 for day in days for _, side in day.sides()) if estimator == OURS else None,
    )


def _told(name: str, days: list[SimulatedDay]) -> Iterator[tuple[float, float]]:
    """What was told, and the wait that followed."""
    for day in days:
        yield from zip(day.estimates[name], day.waits, strict=True)


def _share(found: Iterable[bool]) -> float | None:
    cases = list(found)
    return round(sum(cases) / len(cases), 3) if cases else None


def _verdicts(measured: list[Measured]) -> list[dict[str, str]]:
    """Per scenario: ours beside the best of the others."""
    rows = []
    for scenario in dict.fromkeys(row.scenario for row in measured):
        of_scenario = {row.estimator: row for row in measured if row.scenario == scenario}
        ours = of_scenario[OURS]
        best = min((of_scenario[name] for name in OTHERS), key=lambda row: row.mean_absolute_error)
        harder = of_scenario[HARDER]
        rows.append(
            {
                "scenario": scenario,
                "newcomers": f"{ours.newcomers:,}",
                "mean wait": f"{ours.mean_wait:.0f} s",
                "our MAE": f"{ours.mean_absolute_error:.0f} s",
                "our bias": f"{ours.bias / ours.mean_wait:+.1%}",
                "our 90 %": f"{ours.error_90:.0f} s",
                "in interval": _percent(1 - (ours.shorter or 0.0) - (ours.longer or 0.0)),
                "shorter": _percent(ours.shorter),
                "longer": _percent(ours.longer),
                "told 0, waited": _percent(ours.wrong_zeros),
                "best other": best.estimator,
                "its MAE": f"{best.mean_absolute_error:.0f} s",
                "ours below by": _below(ours, best),
                "idle seen": f"{harder.mean_absolute_error:.0f} s",
                "below by": _below(ours, harder),
                CONSTANT: f"{of_scenario[CONSTANT].mean_absolute_error:.0f} s",
                "ours beside it": f"{ours.mean_absolute_error / of_scenario[CONSTANT].mean_absolute_error - 1:+.0%}",
            }
        )
    return rows


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _below(ours: Measured, other: Measured) -> str:
    return f"{1 - ours.mean_absolute_error / other.mean_absolute_error:.0%}"


def _tables(measured: list[Measured], positions: list[dict[str, str]]) -> list[Table]:
    tables = []
    for rows in (positions, _verdicts(measured)):
        table = Table(box=box.SIMPLE_HEAD, header_style="bold cyan")
        for column in rows[0]:
            table.add_column(
                column, justify="left" if column in {"scenario", "best other", "patients ahead"} else "right"
            )
        for row in rows:
            table.add_row(*row.values())
        tables.append(table)
    return tables


def _markdown(measured: list[Measured], positions: list[dict[str, str]], days: int) -> str:
    return "\n".join(
        [
            "# The wait estimate, measured",
            "",
            f"Written by `make bench-wait` on {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}: {days}",
            "simulated days per scenario (bench/wait_scenarios.py). Every newcomer while a doctor is on duty counts; a patient",
            "that left unseen counts with the wait it would have had. MAE: mean absolute error. Bias: mean of estimate minus",
            "wait, as a share of the mean wait. In interval: of the newcomers that were given an interval (0 to 0 is none), the",
            "share of the waits inside; shorter, longer: on either side of it. Told 0, waited: the share of the estimates of 0",
            "after which the wait was over 30 s.",
            "Last line: all newcomers.",
            "",
            *_markdown_table(_verdicts(measured)),
            "",
            "`idle seen` is the position formula of a product that says 0 when a doctor is idle: harder than the others.",
            "`constant per state` is the median wait of the same state (patients ahead, a doctor idle or not) on the",
            "scenario's other days: what a place could say that has measured such days and expects one more like them.",
            "",
            "## By position",
            "",
            *_markdown_table(positions),
            "",
        ]
    )


def _markdown_table(rows: list[dict[str, str]]) -> list[str]:
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    return lines + ["| " + " | ".join(row.values()) + " |" for row in rows]


if __name__ == "__main__":
    main()
