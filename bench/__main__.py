"""`python -m bench`: everything measured in one run, interleaved, as ratios to the database itself and to the peers."""

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import contestants
from bench.contestants import PgBench, Service, Written, count_written
from bench.load import GENERATOR, Measured
from bench.processor import processor_seconds
from tests.postgres import PostgresServer

RESULTS = Path(__file__).parent / "RESULTS.md"
UPSERT, SAME_WORK = "pgbench, bare upsert", "pgbench, same work"
Keyed = tuple[str, str, int]  # contestant, GET or POST, connections


@dataclass(frozen=True, slots=True)
class Run:
    """One measurement: the processor time of the service and of the database server, in seconds, and the rows written."""

    measured: Measured
    service_seconds: float
    database_seconds: float
    written: Written


@dataclass
class Results:
    """What was measured, by contestant, request and connections."""

    runs: dict[Keyed, list[Run]] = field(default_factory=lambda: defaultdict(list))
    memory_mib: dict[str, float] = field(default_factory=dict)

    def per_second(self, who: str, what: str, connections: int) -> float:
        runs = self.runs.get((who, what, connections), ())
        return statistics.median(run.measured.per_second for run in runs) if runs else 0.0

    def milliseconds(self, key: Keyed, name: str) -> float:
        return statistics.median(float(getattr(run.measured, name)) for run in self.runs[key]) * 1000

    def rows_written(self, key: Keyed) -> str | None:
        """New members, rows of history and audit entries per POST."""
        if key[1] != "POST":
            return None
        runs = self.runs[key]
        answered = sum(run.measured.answered for run in runs)
        return " + ".join(
            f"{sum(rows) / answered:.2f}" for rows in zip(*(run.written for run in runs), strict=True)
        )

    def microseconds(self, key: Keyed, name: str) -> float:
        """Processor time per request."""
        return (
            statistics.median(float(getattr(run, name)) / run.measured.answered for run in self.runs[key])
            * 1e6
        )


def main() -> None:
    """Measure, print the table, write RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Example: python -m bench --quick")
    parser.add_argument("--quick", action="store_true", help="two short repetitions instead of five")
    parser.add_argument("--json", action="store_true", help="print the numbers for programs")
    options = parser.parse_args()
    repetitions, seconds = (2, 1.0) if options.quick else (5, 3.0)
    results = Results()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        server, contestants_ = _start(stack, Path(folder))
        rounds = [(what, connections) for what in ("POST", "GET") for connections in (1, 32, 64)]
        with Progress(console=Console(stderr=True)) as progress:
            task = progress.add_task("measuring", total=repetitions * len(rounds) * len(contestants_))
            for _ in range(repetitions):
                for what, connections in rounds:
                    for who, contestant in contestants_.items():
                        run = _run(contestant, server, what, connections, seconds)
                        if what == "POST":
                            check_written(who, run, connections)
                        results.runs[who, what, connections].append(run)
                        progress.advance(task)
        for who, contestant in contestants_.items():
            if isinstance(contestant, Service):
                results.memory_mib[who] = contestant.memory_mib()
    if options.json:
        print(json.dumps(_rows(results), indent=2))
    else:
        _show(results)
    RESULTS.write_text(_markdown(results, repetitions, seconds))


def _run(
    contestant: Service | PgBench, server: PostgresServer, what: str, connections: int, seconds: float
) -> Run:
    rows = count_written(contestant.database_url)
    roots = [contestant.process.pid if isinstance(contestant, Service) else os.getpid(), server.pid]
    before = [processor_seconds(root) for root in roots]
    measured = contestant.measure(what, connections, seconds)
    used = [processor_seconds(root) - start for root, start in zip(roots, before, strict=True)]
    written = count_written(contestant.database_url).since(rows)
    return Run(measured, used[0] if isinstance(contestant, Service) else 0.0, used[1], written)


def check_written(who: str, run: Run, connections: int) -> None:
    """Half of the POSTs create a member, and each writes its history and its audit entry; else a peer did other work.

    Requests that were sent and not waited for count too. Raises RuntimeError.
    """
    answered, written = run.measured.answered, run.written
    wanted = Written(answered // 2, *((0, 0) if who == UPSERT else (answered, answered)))
    if any(
        abs(found - count) > connections + 0.05 * count for found, count in zip(written, wanted, strict=True)
    ):
        raise RuntimeError(f"{who} answered {answered} POSTs and wrote {written}")


def _start(stack: contextlib.ExitStack, folder: Path) -> tuple[PostgresServer, dict[str, Service | PgBench]]:
    """Every contestant, running at once and measured in turn; each has a database of its own on one durable server."""
    server = PostgresServer(durable=True)
    stack.callback(server.stop)
    server.start({"max_connections": "400"})
    found: dict[str, Service | PgBench] = {}
    for workers in (1, 2):
        url = server.create_database(f"frontdesk_{workers}")
        found[f"frontdesk, PostgreSQL, {workers}"] = stack.enter_context(
            contestants.frontdesk(url, workers, folder)
        )
        sqlite = f"sqlite:///{folder}/bench_{workers}.db"
        found[f"frontdesk, SQLite, {workers}"] = stack.enter_context(
            contestants.frontdesk(sqlite, workers, folder)
        )
        url = contestants.make_peer_database(server, f"fastapi_{workers}")
        found[f"FastAPI + ORM, {workers}"] = stack.enter_context(contestants.fastapi(url, workers, folder))
        if contestants.has_fastify():
            url = contestants.make_peer_database(server, f"fastify_{workers}")
            found[f"Fastify, {workers}"] = stack.enter_context(contestants.fastify(url, workers, folder))
    for number, (name, script) in enumerate(((UPSERT, "upsert.sql"), (SAME_WORK, "same_work.sql"))):
        contestants.make_peer_database(server, f"pgbench_{number}")
        found[name] = PgBench(server, f"pgbench_{number}", script)
    return server, found


def _rows(results: Results) -> list[dict[str, Any]]:
    rows = []
    for key in results.runs:
        who, what, connections = key
        limit = results.per_second(SAME_WORK, what, connections)
        rows.append(
            {
                "who": who,
                "what": what,
                "connections": connections,
                "per_second": round(results.per_second(*key)),
                "ratio_to_pgbench": round(results.per_second(*key) / limit, 2),
                "p50_ms": round(results.milliseconds(key, "p50"), 2),
                "p99_ms": round(results.milliseconds(key, "p99"), 2),
                "service_us": round(results.microseconds(key, "service_seconds")) or None,
                "database_us": round(results.microseconds(key, "database_seconds")) or None,
                "rows_written": results.rows_written(key),
                "peak_mib": round(results.memory_mib.get(who, 0)) or None,
            }
        )
    return rows


def _show(results: Results) -> None:
    rows = _rows(results)
    table = Table(box=box.SIMPLE_HEAD, header_style="bold cyan")
    for column in rows[0]:
        table.add_column(column)
    for row in rows:
        table.add_row(*(str("" if value is None else value) for value in row.values()))
    Console().print(table)


@dataclass(frozen=True, slots=True)
class Target:
    """What must be reached: at least `wanted`, or at most where `at_most`."""

    name: str
    wanted: float
    measured: float
    at_most: bool = False

    @property
    def is_reached(self) -> bool:
        return self.measured <= self.wanted if self.at_most else self.measured >= self.wanted


def targets(results: Results) -> Iterator[Target]:
    """The ratios that issues ask for. Those to a contestant that did not run are left out."""

    def ratio(who: str, other: str, what: str, connections: int = 64) -> float:
        other_rate = results.per_second(other, what, connections)
        return results.per_second(who, what, connections) / other_rate if other_rate else 0.0

    ours, sqlite, two = "frontdesk, PostgreSQL, 1", "frontdesk, SQLite, 1", "frontdesk, PostgreSQL, 2"
    yield Target("POST, PostgreSQL: to pgbench with the same work", 0.6, ratio(ours, SAME_WORK, "POST"))
    yield Target("POST, PostgreSQL: to pgbench with the bare upsert", 0.8, ratio(ours, UPSERT, "POST"))
    yield Target("POST, SQLite: to pgbench with the bare upsert", 0.6, ratio(sqlite, UPSERT, "POST"))
    yield Target("POST, PostgreSQL: two processes to one", 1.3, ratio(two, ours, "POST"))
    yield Target("POST, PostgreSQL: to FastAPI + ORM", 15, ratio(ours, "FastAPI + ORM, 1", "POST"))
    if results.per_second("Fastify, 1", "POST", 64):
        yield Target("POST, PostgreSQL: to Fastify", 1.3, ratio(ours, "Fastify, 1", "POST"))
        yield Target("GET, PostgreSQL: to Fastify", 1.2, ratio(ours, "Fastify, 1", "GET"))
        yield Target("GET, SQLite: to Fastify", 2.0, ratio(sqlite, "Fastify, 1", "GET"))
        for what in ("GET", "POST"):
            p50s = [results.milliseconds((who, what, 1), "p50") for who in (ours, "Fastify, 1")]
            yield Target(
                f"{what}, PostgreSQL, 1 connection: p50 to Fastify's", 1.2, p50s[0] / p50s[1], at_most=True
            )


def _markdown(results: Results, repetitions: int, seconds: float) -> str:
    node = (
        subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout.strip()
        if contestants.has_fastify()
        else "not present"
    )
    versions = ", ".join(
        f"{name} {version(name)}" for name in ("granian", "starlette", "sqlalchemy", "psycopg", "fastapi")
    )
    rows = _rows(results)
    lines = [
        "# Results",
        "",
        (
            f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d}: medians of {repetitions} interleaved repetitions of "
            f"{seconds:g} s each, driven by {GENERATOR}."
        ),
        "",
        (
            f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}, {versions}, node {node}. "
            "POST: half new, half known members. GET: 10 plans."
        ),
        "",
        "| target | wanted | measured | reached |",
        "|---|---|---|---|",
        *(
            f"| {one.name} | {'≤' if one.at_most else '≥'} {one.wanted:g} | {one.measured:.2f} | "
            f"{'yes' if one.is_reached else 'no'} |"
            for one in targets(results)
        ),
        "",
        "| " + " | ".join(rows[0]) + " |",
        "|" + "---|" * len(rows[0]),
        *(
            "| " + " | ".join("" if value is None else str(value) for value in row.values()) + " |"
            for row in rows
        ),
        "",
        (
            "ratio_to_pgbench is to pgbench with the same work: upsert, history row and audit row in one prepared statement. "
            "pgbench tells its mean latency, which stands for p50 and p99. service_us and database_us are processor time per "
            "request. rows_written counts new members, rows of history and audit entries per POST, in the databases."
        ),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
