"""`python -m bench.growth`: what a request, a claim and a row of a file cost as members grow, with and without statistics.

Each size has a database and a service of its own. All run at once and are measured in turn, so a ratio between sizes is of one
run. The members are written by the database itself; autovacuum is off, so a table has the statistics that it is given.
"""

import argparse
import contextlib
import csv
import json
import os
import platform
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import contestants
from bench.contestants import KNOWN, Service
from bench.delivery import allow_batches, choosing_ms
from bench.file_load import load
from bench.load import GENERATOR
from frontdesk.config import read_config
from frontdesk.db import Database, open_database
from tests.population import analyze, copy_members
from tests.postgres import PostgresServer

RESULTS = Path(__file__).parent / "GROWTH.md"
FILE_ROWS = 2000
BATCH = 100
FRESH = 50_000_000  # the first number of new members, beyond every size
STATES = ("no statistics", "analysed")

# What is measured: its name and unit, and the connections of a request.
REQUESTS = {
    "POST, 1: ms": ("POST", 1),
    "POST, 64: ms": ("POST", 64),
    "GET, 1: ms": ("GET", 1),
    "GET, 64: ms": ("GET", 64),
}
CLAIM, FILE_ROW = "claim of 100: ms", "file row: µs"
Costs = dict[
    tuple[str, str, int], dict[str, list[float]]
]  # by database, state and members: measure -> values


@dataclass(slots=True)
class Installation:
    """One database of `size` members, and the service on it."""

    database: str
    size: int
    db: Database
    service: Service


def main() -> None:
    options = _options()
    costs = _read(options.merge)
    _measure_all(options, costs)
    if options.merge is not None:
        kept = [[*cell, measures] for cell, measures in sorted(costs.items())]
        options.merge.write_text(json.dumps(kept, ensure_ascii=False))
    rows = list(table(costs))
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        _show(rows)
    if options.only is None or options.merge is not None:
        RESULTS.write_text(_markdown(rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.growth", description="Example: python -m bench.growth --sizes 1000 100000"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**3, 10**4, 10**5, 10**6])
    parser.add_argument("--only", choices=("PostgreSQL", "SQLite"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument(
        "--merge", type=Path, help="a file of measurements, to which these are added: a table in several runs"
    )
    parser.add_argument("--json", action="store_true", help="print the numbers for programs")
    return parser.parse_args()


def _measure_all(options: argparse.Namespace, costs: Costs) -> None:
    databases = [name for name in ("PostgreSQL", "SQLite") if options.only in (None, name)]
    with Progress(console=Console(stderr=True)) as progress:
        steps = len(databases) * len(options.sizes) * (1 + len(STATES) * options.rounds)
        task = progress.add_task("measuring", total=steps)
        for database in databases:
            with _installations(database, options.sizes) as prepared:
                installations = []
                for one in prepared:
                    installations.append(one)
                    progress.advance(task)
                for state in STATES:
                    if state == "analysed":
                        for one in installations:
                            analyze(one.db)
                    for _ in range(options.rounds):
                        for one in installations:
                            _measure(one, costs[database, state, one.size], options.seconds)
                            progress.advance(task)


def _read(merged: Path | None) -> Costs:
    """What earlier runs measured; nothing at first."""
    costs: Costs = defaultdict(lambda: defaultdict(list))
    if merged is not None and merged.exists():
        for database, state, size, measures in json.loads(merged.read_text()):
            costs[database, state, size].update(measures)
    return costs


@contextlib.contextmanager
def _installations(database: str, sizes: list[int]) -> Iterator[Iterator[Installation]]:
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        server = PostgresServer(durable=True)
        stack.callback(server.stop)
        if database == "PostgreSQL":
            server.start({"max_connections": "400", "autovacuum": "off"})

        def prepare() -> Iterator[Installation]:
            for size in sizes:
                sqlite = f"sqlite:///{folder}/{size}.db"
                url = sqlite if database == "SQLite" else server.create_database(f"members_{size}")
                service = stack.enter_context(contestants.frontdesk(url, 1, folder))
                db = open_database(read_config({"FRONTDESK_DATABASE_URL": url}).database_url)
                stack.callback(db.close)
                allow_batches(db, account=1)
                copy_members(db, template=1, numbers=range(KNOWN, max(size, KNOWN + BATCH)), invited=True)
                service.traffic.known, service.traffic.fresh = size, FRESH
                yield Installation(database, size, db, service)

        yield prepare()


def _measure(one: Installation, costs: dict[str, list[float]], seconds: float) -> None:
    for name, (what, connections) in REQUESTS.items():
        measured = one.service.measure(what, connections, seconds)
        costs[name].append(measured.p50 * 1000)
    config = read_config({"FRONTDESK_LINK_SECRET": "x" * 40})
    costs[CLAIM].append(choosing_ms(one.db, config))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "members.csv"
        rows = _write_file(one, path)
        costs[FILE_ROW].append(load(one.db.url, 1, path, None)["seconds"] / rows * 1e6)


def _write_file(one: Installation, path: Path) -> int:
    """Known members from all over the table, each with a city that it has not had; how many."""
    numbers = range(0, one.size, max(1, one.size // FILE_ROWS))
    city = f"City {datetime.now(UTC).timestamp()}"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(
            (
                "external_id",
                "member_id",
                "first_name",
                "last_name",
                "dob",
                "gender",
                "zipcode",
                "city",
                "effective_date",
            )
        )
        for n in numbers:
            writer.writerow(
                (
                    f"AB {n:08d}",
                    f"M-{n:08d}",
                    "Robin",
                    "First",
                    "1977-01-11",
                    "female",
                    "02134",
                    city,
                    "2026-01-01",
                )
            )
    return len(numbers)


def table(costs: Costs) -> Iterator[dict[str, str | int]]:
    """A row for each database, state and size: medians, and how many times the smallest size's they are."""
    for (database, state, size), measures in sorted(costs.items()):
        smallest = min(other for db, st, other in costs if (db, st) == (database, state))
        row: dict[str, str | int] = {"database": database, "statistics": state, "members": size}
        for name, values in measures.items():
            value, least = (
                statistics.median(values),
                statistics.median(costs[database, state, smallest][name]),
            )
            row[name] = f"{value:.3g} ({value / least:.2f} x)"
        yield row


def _show(rows: list[dict[str, str | int]]) -> None:
    shown = Table(box=box.SIMPLE_HEAD, header_style="bold cyan")
    for name in rows[0]:
        shown.add_column(name)
    for row in rows:
        shown.add_row(*(f"{value:,}" if isinstance(value, int) else value for value in row.values()))
    Console().print(shown)


def _markdown(rows: list[dict[str, str | int]]) -> str:
    lines = [
        "# Growth",
        "",
        f"Written by `python -m bench.growth {' '.join(sys.argv[1:])}`".rstrip(" `")
        + f"` on {datetime.now(UTC):%Y-%m-%d}: "
        f"{os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}, load by {GENERATOR}.",
        "",
        "Medians (p50 for requests); in brackets how many times the smallest size's. Half of the POSTs make a new member, half",
        "change a known one from anywhere in the table. No statistics: nothing was analysed since the table was filled.",
        "",
        "| " + " | ".join(rows[0]) + " |",
        "|" + "---|" * len(rows[0]),
        *("| " + " | ".join(map(str, row.values())) + " |" for row in rows),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
