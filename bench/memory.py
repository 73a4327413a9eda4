"""Does the memory of a serving process grow with the requests that it has answered?

Resident memory of the largest process after each fifth of the requests, half of them POSTs and half
GETs.
"""

import argparse
from collections.abc import Iterator

from rich.progress import Progress

from bench.harness import Bench, Option, Row, chosen, databases
from bench.load import drive, frontdesk

CONNECTIONS = 64
STEPS = 5


def run(options: argparse.Namespace, progress: Progress) -> Iterator[Row]:
    columns: dict[str, list[float]] = {}
    for name in chosen(options):
        with (
            databases(name) as kind,
            kind.installation(plans=10) as installation,
            frontdesk(installation) as service,
        ):
            sizes = columns[f"{name}, MiB"] = []
            service.prepare()
            get = service.get()
            pairs = options.requests // STEPS // 2
            for _ in progress.track(range(STEPS), description=f"requests to {name}"):
                mixed = [request for post in service.posts(pairs) for request in (post, get)]
                drive(service.port, CONNECTIONS, mixed)
                sizes.append(service.memory_mib("VmRSS"))
    for step in range(STEPS):
        row: Row = {"requests": (step + 1) * (options.requests // STEPS)}
        yield row | {name: round(sizes[step], 1) for name, sizes in columns.items()}


BENCH = Bench(__doc__, run, Option("requests", 1_000_000, 5_000, "in all"))
