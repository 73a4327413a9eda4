"""`python -m bench.scaling`: a simulation of 1, 4, 16 and 64 serving hosts, on one database and on a spread one.

The service times are measured on one machine (docs/scaling.md says how and when). What the simulation assumes stands in
`bench.scaling_model`.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench.scaling_model import MEASURED, Cluster, RequestCost, Simulated, capacity, simulate

NODES = (1, 4, 16, 64)
LARGER = 4  # times the processors of the database


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    kinds = {
        kind: RequestCost(
            host_ms=getattr(options, f"{kind.lower()}_host_ms"),
            database_ms=getattr(options, f"{kind.lower()}_database_ms"),
            flush_ms=options.flush_ms if kind == "POST" else 0.0,
            network_ms=options.network_ms,
        )
        for kind in MEASURED
    }
    clusters = list(_clusters(options))
    rows = []
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("simulating", total=len(clusters) * len(kinds))
        for kind, cost in kinds.items():
            for name, cluster in clusters:
                found = simulate(cluster, cost, rounds=options.rounds, seed=options.seed)
                rows.append(_row(kind, name, cluster, found, capacity(cluster, cost)))
                progress.advance(task)
    if options.json:
        costs = {kind: asdict(cost) for kind, cost in kinds.items()}
        print(json.dumps({"costs": costs, "results": rows}, indent=2))
    else:
        _show(rows)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scaling",
        description="Example: python -m bench.scaling --nodes 1 2 4 --database-processors 8",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=list(NODES), help="serving hosts")
    parser.add_argument("--processors", type=int, default=2, help="of a serving host")
    parser.add_argument("--database-processors", type=int, default=2, help="of a database server")
    parser.add_argument(
        "--callers", type=int, default=32, help="per serving host, each with one request at a time"
    )
    parser.add_argument(
        "--largest", type=float, default=0.05, help="the largest account's part of all requests"
    )
    for kind, cost in MEASURED.items():
        word = kind.lower()
        parser.add_argument(
            f"--{word}-host-ms", type=float, default=cost.host_ms, help=f"of a processor, per {kind}"
        )
        parser.add_argument(
            f"--{word}-database-ms", type=float, default=cost.database_ms, help=f"of a processor, per {kind}"
        )
    parser.add_argument(
        "--flush-ms", type=float, default=MEASURED["POST"].flush_ms, help="a flush of the log"
    )
    parser.add_argument(
        "--network-ms", type=float, default=MEASURED["POST"].network_ms, help="to the database and back"
    )
    parser.add_argument("--rounds", type=int, default=30, help="requests of each caller")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print the numbers for programs")
    return parser.parse_args(arguments)


def _clusters(options: argparse.Namespace) -> Iterator[tuple[str, Cluster]]:
    for nodes in options.nodes:
        for name, databases, times in (("one", 1, 1), (f"one, {LARGER} x", 1, LARGER), ("spread", nodes, 1)):
            yield (
                name,
                Cluster(
                    nodes=nodes,
                    processors=options.processors,
                    databases=databases,
                    database_processors=options.database_processors * times,
                    callers=options.callers,
                    largest=options.largest,
                ),
            )


def _row(
    kind: str, name: str, cluster: Cluster, found: Simulated, bound: float
) -> dict[str, str | int | float]:
    return {
        "what": kind,
        "hosts": cluster.nodes,
        "database": name,
        "per_second": round(found.per_second),
        "bound_per_second": round(bound),
        "p50_ms": round(found.p50 * 1000, 1),
        "p99_ms": round(found.p99 * 1000, 1),
        "hosts_busy": round(found.hosts_busy, 2),
        "busiest_database_busy": round(found.busiest_database_busy, 2),
    }


def _show(rows: list[dict[str, str | int | float]]) -> None:
    shown = Table(box=box.SIMPLE_HEAD, header_style="bold cyan")
    for name in rows[0]:
        shown.add_column(name.replace("_", " "), justify="left" if name in ("what", "database") else "right")
    for row in rows:
        shown.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in row.values()))
    Console().print(shown)


if __name__ == "__main__":
    main()
