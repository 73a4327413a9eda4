"""`python -m bench`: everything measured in one run, interleaved, as ratios to the database itself and to the peers."""

import argparse
import contextlib
import json
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

import psycopg
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import contestants
from bench.contestants import PgBench, Service
from bench.load import Measured
from tests.postgres import PostgresServer

RESULTS = Path(__file__).parent / "RESULTS.md"
LIMIT = "pgbench"


@dataclass
class Results:
    """What was measured, by contestant, request and connections."""

    measured: dict[tuple[str, str, int], list[Measured]] = field(default_factory=lambda: defaultdict(list))
    memory_mib: dict[str, float] = field(default_factory=dict)

    def per_second(self, who: str, what: str, connections: int) -> float:
        runs = self.measured.get((who, what, connections))
        return statistics.median(run.per_second for run in runs) if runs else 0.0

    def median(self, key: tuple[str, str, int], name: str) -> float:
        return statistics.median(float(getattr(run, name)) for run in self.measured[key])


def main() -> None:
    """Measure, print the table, write RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Example: python -m bench --quick")
    parser.add_argument("--quick", action="store_true", help="two short repetitions instead of five")
    parser.add_argument("--json", action="store_true", help="print the numbers for programs")
    options = parser.parse_args()
    repetitions, seconds = (2, 2.0) if options.quick else (5, 3.0)
    results = Results()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        field_ = _start(stack, Path(folder), two_workers=True)
        rounds = [(what, connections) for what in ("POST", "GET") for connections in (1, 32, 64)]
        with Progress(console=Console(stderr=True)) as progress:
            task = progress.add_task("measuring", total=repetitions * len(rounds) * len(field_))
            for _ in range(repetitions):
                for what, connections in rounds:
                    for who, contestant in field_.items():
                        results.measured[who, what, connections].append(
                            contestant.measure(what, connections, seconds)
                        )
                        progress.advance(task)
        for who, contestant in field_.items():
            if isinstance(contestant, Service):
                results.memory_mib[who] = contestant.memory_mib()
    if options.json:
        print(json.dumps(_rows(results), indent=2))
    else:
        _show(results)
    RESULTS.write_text(_markdown(results, repetitions, seconds))


def _start(stack: contextlib.ExitStack, folder: Path, *, two_workers: bool) -> dict[str, Any]:
    """Every contestant, running at once and measured in turn; each has a database of its own on one durable server."""
    server = PostgresServer(durable=True)
    stack.callback(server.stop)
    server.start({"max_connections": "400"})
    stack.callback(_check_counts, server)
    found: dict[str, Any] = {}
    for workers in (1, 2) if two_workers else (1,):
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
    contestants.make_peer_database(server, LIMIT)
    found[LIMIT] = PgBench(server, LIMIT)
    return found


def _check_counts(server: PostgresServer) -> None:
    """Every member has its history; anything else means that what was fast was wrong."""
    with psycopg.connect(server.url("frontdesk_1")) as connection:
        sql = "SELECT (SELECT count(*) FROM members), (SELECT count(*) FROM member_history WHERE outcome = 'created')"
        row = connection.execute(sql).fetchone()
    if row is None or row[0] != row[1]:
        raise RuntimeError("members and their history do not agree")


def _rows(results: Results) -> list[dict[str, Any]]:
    rows = []
    for key in results.measured:
        who, what, connections = key
        limit = results.per_second(LIMIT, what, connections)
        rows.append(
            {
                "who": who,
                "what": what,
                "connections": connections,
                "per_second": round(results.per_second(*key)),
                "ratio_to_pgbench": round(results.per_second(*key) / limit, 2),
                "p50_ms": round(results.median(key, "p50") * 1000, 2),
                "p99_ms": round(results.median(key, "p99") * 1000, 2),
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


def _targets(results: Results) -> Iterator[tuple[str, float, float]]:
    """What must be reached: its name, the ratio wanted, the ratio measured."""

    def rate(who: str, what: str, connections: int = 64) -> float:
        return results.per_second(who, what, connections)

    ours, limit = rate("frontdesk, PostgreSQL, 1", "POST"), rate(LIMIT, "POST")
    yield "POST, PostgreSQL, one process: to pgbench", 0.8, ours / limit
    yield "POST, PostgreSQL, two processes: to pgbench", 1.0, rate("frontdesk, PostgreSQL, 2", "POST") / limit
    yield "POST, SQLite: to pgbench", 0.6, rate("frontdesk, SQLite, 1", "POST") / limit
    yield "POST, PostgreSQL: to FastAPI + ORM", 15, ours / (rate("FastAPI + ORM, 1", "POST") or 1)
    if fastify := rate("Fastify, 1", "POST"):
        yield "POST, PostgreSQL: to Fastify", 1.3, ours / fastify
        yield (
            "GET, PostgreSQL: to Fastify",
            1.2,
            rate("frontdesk, PostgreSQL, 1", "GET") / rate("Fastify, 1", "GET"),
        )
        yield "GET, SQLite: to Fastify", 2.0, rate("frontdesk, SQLite, 1", "GET") / rate("Fastify, 1", "GET")


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
            f"{seconds:g} s each."
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
            f"| {name} | {wanted:g} | {got:.2f} | {'yes' if got >= wanted else 'no'} |"
            for name, wanted, got in _targets(results)
        ),
        "",
        "| " + " | ".join(rows[0]) + " |",
        "|" + "---|" * len(rows[0]),
        *(
            "| " + " | ".join("" if value is None else str(value) for value in row.values()) + " |"
            for row in rows
        ),
        "",
        "pgbench tells its mean latency, which stands for p50 and p99.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
