"""`python -m bench.wait`: how wrong the wait estimate is, beside what else is in use, on simulated days."""

import argparse
import json
import platform
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench.wait_estimators import ESTIMATORS, HARDER, HIGH, LOW, OURS, OURS_WITH_LESS, ask_all
from bench.wait_scenarios import SCENARIOS
from bench.wait_world import Day
from frontdesk.queues.estimate.model import READY_SECONDS

RESULTS = Path(__file__).parent / "WAIT.md"
DOCUMENT = Path(__file__).parents[1] / "docs" / "wait-estimate.md"
START, END = "<!-- measured -->", "<!-- /measured -->"
PROCESSES = 2
OTHERS = [name for name in ESTIMATORS if name not in {OURS, OURS_WITH_LESS, HARDER}]
TABLE_WIDTH = 190
ALL = "all scenarios"


@dataclass(frozen=True)
class Measured:
    """One estimator on one scenario, in seconds. `better_days`: the share of days on which ours had the lower error.

    `wrong_zeros`: the share of the estimates of 0 after which the wait was over 30 s. `shorter`, `longer`: the share of the waits
    below and above our interval, which eight of ten should be in; None for the others.
    """

    scenario: str
    estimator: str
    newcomers: int
    mean_wait: float
    mean_absolute_error: float
    bias: float
    error_90: float
    better_days: float
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

    def mean_absolute_error(self, estimator: str) -> float:
        return statistics.fmean(map(abs, self.errors(estimator)))


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
    measured = _measure(_simulate(days, options.seed))
    if options.json:
        print(json.dumps([asdict(row) for row in measured], indent=2))
    else:
        console = Console()
        console.width = console.width if console.is_terminal else TABLE_WIDTH
        for table in _tables(measured):
            console.print(table)
    if not options.quick and not options.seed:
        RESULTS.write_text(_markdown(measured, days))
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
        scenario, waits, {name: [p.estimates[name] for p in patients] for name in (*ESTIMATORS, LOW, HIGH)}
    )


def _measure(seen: list[SimulatedDay]) -> list[Measured]:
    by_scenario: defaultdict[int, list[SimulatedDay]] = defaultdict(list)
    for day in seen:
        by_scenario[day.scenario].append(day)
    groups = [(SCENARIOS[number].name, days) for number, days in sorted(by_scenario.items())]
    return [_row(scenario, name, days) for scenario, days in [*groups, (ALL, seen)] for name in ESTIMATORS]


def _row(scenario: str, estimator: str, days: list[SimulatedDay]) -> Measured:
    waits = [wait for day in days for wait in day.waits]
    errors = [error for day in days for error in day.errors(estimator)]
    sizes = sorted(map(abs, errors))
    better = sum(day.mean_absolute_error(OURS) < day.mean_absolute_error(estimator) for day in days)
    return Measured(
        scenario,
        estimator,
        newcomers=len(errors),
        mean_wait=round(statistics.fmean(waits), 1),
        mean_absolute_error=round(statistics.fmean(sizes), 1),
        bias=round(statistics.fmean(errors), 1),
        error_90=round(sizes[int(0.9 * len(sizes))], 1),
        better_days=round(better / len(days), 3),
        wrong_zeros=_share(wait > READY_SECONDS for told, wait in _told(estimator, days) if told == 0),
        shorter=_share(wait < low for low, wait in _told(LOW, days)) if estimator == OURS else None,
        longer=_share(wait >= high + 1 for high, wait in _told(HIGH, days)) if estimator == OURS else None,
    )


def _told(name: str, days: list[SimulatedDay]) -> Iterator[tuple[float, float]]:
    """What was told, and the wait that followed."""
    for day in days:
        yield from zip(day.estimates[name], day.waits, strict=True)


def _share(found: Iterable[bool]) -> float | None:
    cases = list(found)
    return round(sum(cases) / len(cases), 3) if cases else None


def _verdicts(measured: list[Measured]) -> list[dict[str, str]]:
    """Per scenario: ours beside the best of the four others."""
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
            }
        )
    return rows


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _below(ours: Measured, other: Measured) -> str:
    return f"{1 - ours.mean_absolute_error / other.mean_absolute_error:.0%}"


def _details(measured: list[Measured]) -> list[dict[str, str]]:
    return [
        {
            "scenario": row.scenario,
            "estimator": row.estimator,
            "MAE": f"{row.mean_absolute_error:.0f} s",
            "MAE / mean wait": f"{row.mean_absolute_error / row.mean_wait:.2f}",
            "bias": f"{row.bias / row.mean_wait:+.0%}",
            "90 %": f"{row.error_90:.0f} s",
            "told 0, waited": _percent(row.wrong_zeros),
            "days ours is nearer": "" if row.estimator == OURS else f"{row.better_days:.0%}",
        }
        for row in measured
    ]


def _tables(measured: list[Measured]) -> list[Table]:
    tables = []
    for rows in (_details(measured), _verdicts(measured)):
        table = Table(box=box.SIMPLE_HEAD, header_style="bold cyan")
        for column in rows[0]:
            table.add_column(
                column, justify="left" if column in {"scenario", "estimator", "best other"} else "right"
            )
        for row in rows:
            table.add_row(*row.values(), style="bold" if row.get("estimator") == OURS else None)
        tables.append(table)
    return tables


def _markdown(measured: list[Measured], days: int) -> str:
    return "\n".join(
        [
            "# The wait estimate, measured",
            "",
            f"Written by `make bench-wait` on {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}: {days}",
            "simulated days per scenario (bench/wait_scenarios.py). Every newcomer while a doctor is on duty counts; a patient",
            "that left unseen counts with the wait it would have had. MAE: mean absolute error. Bias: mean of estimate minus",
            "wait, as a share of the mean wait. In interval: the share of the waits inside our 80 % interval; shorter,",
            "longer: on either side of it. Told 0, waited: the share of the estimates of 0 after which the wait was over 30 s.",
            "Last line: all newcomers.",
            "",
            *_markdown_table(_verdicts(measured)),
            "",
            "`idle seen` is the position formula of a product that says 0 when a doctor is idle: harder than the four.",
            "",
            "## Every estimator",
            "",
            "`frontdesk, less data` gets no data on patients that left unseen and on doctors that came and went.",
            "",
            *_markdown_table(_details(measured)),
            "",
        ]
    )


def _markdown_table(rows: list[dict[str, str]]) -> list[str]:
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    return lines + ["| " + " | ".join(row.values()) + " |" for row in rows]


if __name__ == "__main__":
    main()
