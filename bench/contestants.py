"""Who is measured: our service, pgbench on the same server, a FastAPI + ORM service, a Fastify service."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psycopg
import pysqlite3

from bench.load import Load, Measured, Traffic, http_request, measure, run_load
from tests.postgres import PostgresServer

PEERS = Path(__file__).parent / "peers"
KNOWN = 1000  # members that are there before the measured run; half of its POSTs change them


class Written(NamedTuple):
    """Rows of members, their history and the audit trail."""

    members: int
    history: int
    audit: int

    def since(self, before: "Written") -> "Written":
        return Written(*(now - then for now, then in zip(self, before, strict=True)))


def count_written(database_url: str) -> Written:
    """The rows that a contestant's database holds; the peers' tables have the names of ours."""
    sql = ", ".join(
        f"(SELECT count(*) FROM {table})" for table in ("members", "member_history", "audit_entries")
    )
    if database_url.startswith("sqlite:///"):
        with closing(pysqlite3.connect(database_url.removeprefix("sqlite:///"))) as connection:
            return Written(*connection.execute(f"SELECT {sql}").fetchone())
    with psycopg.connect(database_url) as connection:
        [counts] = connection.execute(f"SELECT {sql}".encode()).fetchall()
        return Written(*counts)


@dataclass
class Service:
    """A running HTTP service: how it is called, its database, and the process that all of its processes descend from."""

    traffic: Traffic
    process: subprocess.Popen[bytes]
    database_url: str

    def measure(self, what: str, connections: int, seconds: float) -> Measured:
        return measure(self.traffic, what, connections, seconds)

    def prepare(self) -> None:
        """Store the members that half of the POSTs will change."""
        requests = [self.traffic.post(number, "First") for number in range(KNOWN)]
        if run_load(Load(self.traffic.port, 16, 60, requests)).failed:
            raise RuntimeError("the service did not store its first members")

    def memory_mib(self, kind: str = "VmHWM") -> float:
        """The largest resident set of any serving process: its peak, or (`VmRSS`) as it is now."""
        peaks = []
        for path in Path("/proc").glob("[0-9]*/status"):
            try:
                lines = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
                if os.getpgid(int(path.parent.name)) == self.process.pid:
                    peaks.append(int(lines[kind].split()[0]) / 1024)
            except (OSError, KeyError):
                continue
        return max(peaks, default=0.0)


# One client stands for many customers, and must not meet the limit of one.
MANY_CUSTOMERS = {"FRONTDESK_REQUESTS_PER_MINUTE": "1000000"}


@contextmanager
def frontdesk(database_url: str, workers: int, folder: Path) -> Iterator[Service]:
    """Our service, set up and started through its command line only."""
    environment = os.environ | {"FRONTDESK_DATABASE_URL": database_url} | MANY_CUSTOMERS

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "frontdesk", *arguments]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    run("migrate")
    account = json.loads(run("account", "create", "--name", "Bench", "--json"))["id"]
    group = json.loads(run("provider-group", "create", "--name", "Doctors", "--json"))["id"]
    for n in range(10):
        names = ("--external-id", f"plan-{n}", "--name", f"Plan {n}")
        run("plan", "create", "--account", str(account), "--provider-group", str(group), *names)
    client = json.loads(run("client", "create", "--account", str(account), "--name", "bench", "--json"))
    run("duty", "on", "--provider-group", str(group), "--doctor", "doctor-1")
    with _frontdesk_group(environment, workers, folder) as (port, process):
        token = _token(port, client["client_id"], client["client_secret"])
        service = Service(Traffic(port, token, KNOWN, KNOWN), process, database_url)
        service.prepare()
        yield service


@contextmanager
def frontdesk_again(first: Service, database_url: str, workers: int, folder: Path) -> Iterator[Service]:
    """Another `serve` on the database of the first, as on another host; its new members are others than the first's."""
    environment = os.environ | {"FRONTDESK_DATABASE_URL": database_url} | MANY_CUSTOMERS
    with _frontdesk_group(environment, workers, folder) as (port, process):
        yield Service(Traffic(port, first.traffic.token, KNOWN, 10_000_000), process, database_url)


@contextmanager
def _frontdesk_group(
    environment: Mapping[str, str], workers: int, folder: Path
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    port = free_port()
    command = [sys.executable, "-m", "frontdesk", "serve", "--no-worker", "--port", str(port)]
    command += ["--workers", str(workers)]
    with _serving(command, environment, port, folder / f"frontdesk-{port}.log") as process:
        yield port, process


@contextmanager
def fastapi(database_url: str, workers: int, folder: Path) -> Iterator[Service]:
    """The FastAPI + ORM peer on uvicorn."""
    port = free_port()
    environment = os.environ | {
        "PEER_DATABASE_URL": database_url.replace("postgresql://", "postgresql+psycopg://")
    }
    command = [sys.executable, "-m", "uvicorn", "bench.peers.fastapi_orm:app", "--port", str(port)]
    command += ["--workers", str(workers), "--log-level", "error", "--no-access-log"]
    with _serving(command, environment, port, folder / "fastapi.log") as process:
        service = Service(Traffic(port, "bench", KNOWN, KNOWN), process, database_url)
        service.prepare()
        yield service


@contextmanager
def fastify(database_url: str, workers: int, folder: Path) -> Iterator[Service]:
    """The Fastify + postgres.js peer; `has_fastify` says whether there is a node to run it."""
    home = PEERS / "fastify"
    if not (home / "node_modules").exists():
        subprocess.run(["npm", "ci", "--silent"], cwd=home, check=True)
    port = free_port()
    environment = os.environ | {
        "PEER_DATABASE_URL": database_url,
        "PORT": str(port),
        "PEER_WORKERS": str(workers),
    }
    with _serving(["node", str(home / "server.js")], environment, port, folder / "fastify.log") as process:
        service = Service(Traffic(port, "bench", KNOWN, KNOWN), process, database_url)
        service.prepare()
        yield service


def has_fastify() -> bool:
    return shutil.which("node") is not None and shutil.which("npm") is not None


@dataclass
class PgBench:
    """pgbench with prepared statements on the peers' tables: what the database itself can do.

    `post` is the script that stands for a POST. pgbench tells its mean latency, which stands for p50 and p99.
    """

    server: PostgresServer
    database: str
    post: str

    @property
    def database_url(self) -> str:
        return self.server.url(self.database)

    def measure(self, what: str, connections: int, seconds: float) -> Measured:
        """Raises RuntimeError when pgbench failed, gave up a transaction or said anything else than figures."""
        script = PEERS / ("read.sql" if what == "GET" else self.post)
        command = f"pgbench -h 127.0.0.1 -p {self.server.port} -U postgres -n -M prepared -f {script} -c {connections}"
        command += f" -j {min(2, connections)} -T {max(1, round(seconds))} {self.database}"
        program, *arguments = command.split()
        done = subprocess.run(
            [str(self.server.bin_dir / program), *arguments], capture_output=True, check=False, text=True
        )
        failed = re.search(r"number of failed transactions: (\d+)", done.stdout)
        if done.returncode or done.stderr.strip() or failed is None or int(failed[1]):
            raise RuntimeError(f"pgbench ended with {done.returncode}: {done.stderr}{done.stdout}")
        numbers = dict(line.split(" = ", 1) for line in done.stdout.splitlines() if " = " in line)
        latency, per_second = (
            float(numbers["latency average"].split()[0]) / 1000,
            float(numbers["tps"].split()[0]),
        )
        processed = re.search(r"number of transactions actually processed: (\d+)", done.stdout)
        answered = int(processed[1]) if processed else 0
        return Measured(answered, answered / per_second, latency, latency)


def make_peer_database(server: PostgresServer, name: str) -> str:
    url = server.create_database(name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((PEERS / "schema.sql").read_text().encode())
    return url


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def _serving(
    command: list[str], environment: Mapping[str, str], port: int, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        _wait_for(port, process, log)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(300):
        if process.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                time.sleep(0.5)
                return
        time.sleep(0.1)
    raise RuntimeError(f"{log.name}: the service did not start:\n{log.read_text()[-2000:]}")


def _token(port: int, client_id: str, client_secret: str) -> str:
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(http_request("POST", "/oauth/token", body=json.dumps(form).encode()))
        answer = b""
        while b"access_token" not in answer or not answer.endswith(b"}"):
            answer += connection.recv(65_536)
    return str(json.loads(answer.split(b"\r\n\r\n", 1)[1])["access_token"])
