"""`python -m bench.memory`: the memory of one serving process over a million requests, half POSTs and half GETs."""

import argparse
import contextlib
import json
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from bench import contestants
from bench.load import Load, run_load
from tests.postgres import PostgresServer

CONNECTIONS = 64
STEPS = 20


def main() -> None:
    """Print the resident memory after each twentieth of the requests."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.memory", description="Example: python -m bench.memory --requests 100000"
    )
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--sqlite", action="store_true", help="on SQLite instead of PostgreSQL")
    parser.add_argument("--json", action="store_true", help="print the numbers for programs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        url = f"sqlite:///{folder}/memory.db"
        if not options.sqlite:
            server = PostgresServer(durable=False)
            stack.callback(server.stop)
            server.start()
            url = server.create_database("memory")
        service = stack.enter_context(contestants.frontdesk(url, 1, Path(folder)))
        rows = _measure(service, options.requests // STEPS)
    if options.json:
        print(json.dumps(rows))
    else:
        for row in rows:
            print(f"{row['requests']:>9,} requests  {row['mib']:.1f} MiB")


def _measure(service: contestants.Service, per_step: int) -> list[dict[str, float]]:
    rows = []
    get = service.traffic.get()
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("a million requests", total=STEPS)
        for step in range(1, STEPS + 1):
            mixed = [request for post in service.traffic.posts(per_step // 2) for request in (post, get)]
            measured = run_load(Load(service.traffic.port, CONNECTIONS, 600, mixed))
            if measured.failed or measured.answered != len(mixed):
                raise RuntimeError(f"not every request was answered: {measured}")
            rows.append({"requests": step * len(mixed), "mib": service.memory_mib("VmRSS")})
            progress.advance(task)
    return rows


if __name__ == "__main__":
    main()
