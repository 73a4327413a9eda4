"""How quick are a POST of a member and a GET of 10 plans, beside the database itself and two peers?

Medians of interleaved repetitions on one server; half of the POSTs create a member, half change
one. pgbench is the limit: the same rows in one prepared statement. Processor time (µs) is of the
service and of PostgreSQL, per request. Rows written are new members, history and audit entries per
POST.
"""

import argparse
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pysqlite3
from rich.progress import Progress

from bench.harness import Bench, Databases, Option, Row, databases, processor_seconds
from bench.load import Measured, Service, frontdesk
from tests.patience import wait_until
from tests.postgres import PostgresServer, free_port

PGBENCH = "pgbench"
HOME = Path(__file__).parent / "peers"
NODE_HOME = Path(sys.prefix) / "fastify-peer"
FASTAPI = "-m uvicorn bench.peers.fastapi_orm:app --no-access-log --log-level error"
PEERS = {
    "FastAPI + ORM": [sys.executable, *FASTAPI.split()],
    "Fastify": ["node", str(NODE_HOME / "server.js")],
}
# Where a POST writes; the peers' tables have the names of ours.
WRITTEN = ("members", "member_history", "audit_entries")


@dataclass(frozen=True, slots=True)
class Run:
    """One measurement: the processor seconds of the service and of PostgreSQL, and the rows that
    were written.
    """

    measured: Measured
    service_seconds: float
    database_seconds: float
    written: list[int]


def run(options: argparse.Namespace, progress: Progress) -> Iterator[Row]:
    with databases("PostgreSQL") as postgres, databases("SQLite") as sqlite, ExitStack() as stack:
        competing = _start(stack, postgres, sqlite)
        rounds = [(what, number) for what in ("POST", "GET") for number in options.connections]
        task = progress.add_task(
            "measuring", total=options.repetitions * len(rounds) * len(competing)
        )
        found: defaultdict[tuple[str, int, str], list[Run]] = defaultdict(list)
        for _ in range(options.repetitions):
            for what, connections in rounds:
                for who, contestant in competing.items():
                    measured = _measure(contestant, postgres, what, connections, options.seconds)
                    if what == "POST":
                        check_written(who, measured, connections)
                    found[what, connections, who].append(measured)
                    progress.advance(task)
        limits = {key[:2]: _per_second(runs) for key, runs in found.items() if key[2] == PGBENCH}
        memory = {
            who: round(each.memory_mib())
            for who, each in competing.items()
            if isinstance(each, Service)
        }
    for key, runs in found.items():
        yield _row(*key, runs, limits[key[:2]]) | {"peak MiB": memory.get(key[2])}


def _start(
    stack: ExitStack, postgres: Databases, sqlite: Databases
) -> "dict[str, Service | PgBench]":
    """Every contestant, running at once and measured in turn; each has a database of its own."""
    assert postgres.server is not None
    found: dict[str, Service | PgBench] = {}
    for kind, workers in ((postgres, 1), (postgres, 2), (sqlite, 1)):
        installation = stack.enter_context(kind.installation(f"frontdesk_{workers}", plans=10))
        service = stack.enter_context(frontdesk(installation, workers)).prepare()
        found[f"frontdesk, {kind.name}, {workers} process{'es' * (workers > 1)}"] = service
    for name, command in PEERS.items():
        if shutil.which(command[0]):
            url = make_peer_database(postgres.server, f"peer_{len(found)}")
            found[name] = stack.enter_context(peer(name, url))
    make_peer_database(postgres.server, PGBENCH)
    return found | {PGBENCH: PgBench(postgres.server, PGBENCH)}


def _measure(
    contestant: "Service | PgBench",
    postgres: Databases,
    what: str,
    connections: int,
    seconds: float,
) -> Run:
    assert postgres.server is not None
    rows = count_written(contestant.url)
    service = contestant.pid if isinstance(contestant, Service) else os.getpid()
    before = processor_seconds(service), processor_seconds(postgres.server.pid)
    measured = contestant.measure(what, connections, seconds)
    used = (
        processor_seconds(service) - before[0],
        processor_seconds(postgres.server.pid) - before[1],
    )
    written = [now - then for now, then in zip(count_written(contestant.url), rows, strict=True)]
    return Run(measured, *used, written)


def check_written(who: str, run: Run, connections: int) -> None:
    """Half of the POSTs create a member, and each writes its history and its audit entry; else a
    peer did other work.

    Requests that were sent and not waited for count too. Raises RuntimeError.
    """
    answered = run.measured.answered
    for rows, count in zip(run.written, (answered // 2, answered, answered), strict=True):
        if abs(rows - count) > connections + 0.05 * count:
            raise RuntimeError(f"{who} answered {answered} POSTs and wrote {run.written}")


def _per_second(runs: list[Run]) -> float:
    return statistics.median(run.measured.per_second for run in runs)


def _row(what: str, connections: int, who: str, runs: list[Run], limit: float) -> Row:
    answered = sum(run.measured.answered for run in runs)
    written = (sum(rows) / answered for rows in zip(*(run.written for run in runs), strict=True))
    service = sum(run.service_seconds for run in runs) / answered * 1e6
    return {
        "request": what,
        "connections": connections,
        "who": who,
        "per second": round(_per_second(runs)),
        "to pgbench": round(_per_second(runs) / limit, 2),
        "p50 ms": round(statistics.median(run.measured.p50 for run in runs) * 1000, 2),
        "p99 ms": round(statistics.median(run.measured.p99 for run in runs) * 1000, 2),
        "service µs": None if who == PGBENCH else round(service),
        "database µs": round(sum(run.database_seconds for run in runs) / answered * 1e6),
        "rows written": " + ".join(f"{rows:.2f}" for rows in written) if what == "POST" else "",
    }


def count_written(url: str) -> list[int]:
    """The rows in each table of WRITTEN."""
    sql = "SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in WRITTEN)
    if url.startswith("sqlite:///"):
        with closing(pysqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return list(connection.execute(sql).fetchone())
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        return list(connection.execute(sql.encode()).fetchall()[0])


@contextmanager
def peer(name: str, url: str) -> Iterator[Service]:
    """One of PEERS; the Fastify peer needs node and npm."""
    if name == "Fastify":
        shutil.copytree(HOME / "fastify", NODE_HOME, dirs_exist_ok=True)
        if not (NODE_HOME / "node_modules").exists():
            subprocess.run(["npm", "ci", "--silent"], cwd=NODE_HOME, check=True)
    port = free_port()
    environment = os.environ | {
        "PEER_DATABASE_URL": url,
        "PORT": str(port),
        "UVICORN_PORT": str(port),
    }
    process = subprocess.Popen(PEERS[name], env=environment, start_new_session=True)
    try:
        wait_until(lambda: process.poll() is not None or _answers(port), "the peer to listen")
        yield Service(port, "bench", process.pid, url).prepare()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass(frozen=True, slots=True)
class PgBench:
    """pgbench with prepared statements on the peers' tables: the limit, what the database itself
    does.

    pgbench reports its mean latency, which stands for p50 and p99.
    """

    server: PostgresServer
    database: str

    @property
    def url(self) -> str:
        return self.server.url(self.database)

    def measure(self, what: str, connections: int, seconds: float) -> Measured:
        """Raises RuntimeError when pgbench failed, gave up a transaction or printed anything but
        figures.
        """
        command = [
            str(self.server.bin_dir / "pgbench"),
            "-h",
            "127.0.0.1",
            "-p",
            str(self.server.port),
        ]
        command += [
            "-U",
            "postgres",
            "-n",
            "-M",
            "prepared",
            "-f",
            str(HOME / f"{what.lower()}.sql"),
        ]
        command += [
            "-c",
            str(connections),
            "-j",
            str(min(2, connections)),
            "-T",
            str(max(1, round(seconds))),
        ]
        done = subprocess.run(
            [*command, self.database], capture_output=True, check=False, text=True
        )
        figures = dict(re.findall(r"^([a-z ]+?)(?: = |: )([\d.]+)", done.stdout, re.MULTILINE))
        if (
            done.returncode
            or done.stderr.strip()
            or figures.get("number of failed transactions") != "0"
        ):
            raise RuntimeError(f"pgbench ended with {done.returncode}: {done.stderr}{done.stdout}")
        answered = int(figures["number of transactions actually processed"])
        latency = float(figures["latency average"]) / 1000
        return Measured(answered, answered / float(figures["tps"]), latency, latency)


def make_peer_database(server: PostgresServer, name: str) -> str:
    url = server.create_database(name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((HOME / "schema.sql").read_text().encode())
    return url


BENCH = Bench(
    __doc__,
    run,
    Option("repetitions", 5, 1, "of each measurement"),
    Option("seconds", 3.0, 1.0, "of each measurement"),
    Option("connections", [1, 64], [64], "numbers of connections"),
    has_databases=False,
)
