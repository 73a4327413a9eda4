"""`python -m bench.hosts`: one and two groups of serving processes on one PostgreSQL, as on one and two hosts.

Both are measured in turn, so that a busy minute hits both. On one machine the groups share its processors, so the rate of two
groups tells what they cost each other, and the processor time per request tells what a host and a database of their own do.
"""

import argparse
import json
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench.contestants import Service, frontdesk, frontdesk_again
from bench.load import GENERATOR
from bench.processor import processor_seconds
from tests.postgres import PostgresServer

CONNECTIONS = 64  # to all groups together


class Rate(NamedTuple):
    """Requests per second of all groups, and milliseconds of processor time per request."""

    per_second: float
    host_ms: float
    database_ms: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.hosts", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--json", action="store_true", help="print the numbers for programs")
    options = parser.parse_args()
    found: defaultdict[tuple[str, int], list[Rate]] = defaultdict(list)
    with ExitStack() as stack, Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("measuring", total=options.rounds * 4)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(PostgresServer(durable=True))
        url = server.create_database("hosts")
        first = stack.enter_context(frontdesk(url, 1, folder))
        second = stack.enter_context(frontdesk_again(first, url, 1, folder))
        for _ in range(options.rounds):
            for what in ("POST", "GET"):
                for groups in ([first], [first, second]):
                    found[what, len(groups)].append(_measure(groups, server, what, options.seconds))
                    progress.advance(task)
    rows = [_row(what, groups, rates) for (what, groups), rates in found.items()]
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    shown = Table(*rows[0], box=box.SIMPLE_HEAD, header_style="bold cyan", caption=f"load by {GENERATOR}")
    for row in rows:
        shown.add_row(*map(str, row.values()))
    Console().print(shown)


def _measure(groups: Sequence[Service], server: PostgresServer, what: str, seconds: float) -> Rate:
    hosts, database = _used(groups), processor_seconds(server.pid)
    with ThreadPoolExecutor(len(groups)) as threads:
        calls = [threads.submit(group.measure, what, CONNECTIONS // len(groups), seconds) for group in groups]
        measured = [call.result() for call in calls]
    answered = sum(one.answered for one in measured)
    return Rate(
        sum(one.per_second for one in measured),
        (_used(groups) - hosts) / answered * 1000,
        (processor_seconds(server.pid) - database) / answered * 1000,
    )


def _used(groups: Sequence[Service]) -> float:
    return sum(processor_seconds(group.process.pid) for group in groups)


def _row(what: str, groups: int, rates: Sequence[Rate]) -> dict[str, str | int | float]:
    per_second, host_ms, database_ms = (statistics.median(values) for values in zip(*rates, strict=True))
    return {
        "what": what,
        "groups": groups,
        "per_second": round(per_second),
        "host_ms": round(host_ms, 3),
        "database_ms": round(database_ms, 3),
    }


if __name__ == "__main__":
    main()
