"""`python -m bench NAME`: one question, answered in one table. `python -m bench` lists the
questions.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench.harness import DATABASES, Bench, Row, yardstick_us

NAMES = (
    "requests",
    "growth",
    "memory",
    "files",
    "beside_load",
    "delivery",
    "queue",
    "wait",
    "neighbours",
    "viewers",
    "pages",
)
TABLE_WIDTH = 200  # where the output is no terminal


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark that the command line names, print its table, and with --write put it into
    its page.
    """
    benches: dict[str, Bench] = {name: import_module(f"bench.{name}").BENCH for name in NAMES}
    options = _parser(benches).parse_args(arguments)
    if options.name is None:
        _print_table(
            [{"name": name, "question": bench.question} for name, bench in benches.items()], ""
        )
        return
    bench = benches[options.name]
    for option in bench.options:
        if getattr(options, option.name) is None:
            setattr(options, option.name, option.quick if options.quick else option.default)
    before = yardstick_us()
    with Progress(console=Console(stderr=True)) as progress:
        rows = list(bench.run(options, progress))
    machine = _machine(before)
    if options.json:
        print(json.dumps({"machine": machine, "rows": rows}, indent=2, ensure_ascii=False))
    else:
        _print_table(rows, machine)
    if options.write:
        write(bench, options.name, rows, machine)


def _parser(benches: dict[str, Bench]) -> argparse.ArgumentParser:
    text = "One question, answered in one table; without a NAME, the list of questions."
    parser = argparse.ArgumentParser(
        "python -m bench", description=text, epilog="Example: python -m bench files --quick"
    )
    commands = parser.add_subparsers(dest="name", metavar="NAME", help=", ".join(benches))
    for name, bench in benches.items():
        text = f"{bench.question} {bench.note}"
        example = f"Example: python -m bench {name} --quick --json"
        command = commands.add_parser(name, description=text.replace("%", "%%"), epilog=example)
        for option in bench.options:
            option.add_to(command)
        command.add_argument(
            "--quick", action="store_true", help="a short run, which shows that it works"
        )
        command.add_argument("--json", action="store_true", help="print the numbers for programs")
        command.add_argument(
            "--write", action="store_true", help=f"put the table into {bench.page.name}"
        )
        if bench.has_databases:
            command.add_argument("--only", choices=DATABASES, help="measure one database")
    return parser


def _machine(before: float) -> str:
    """The circumstances, and the yardstick before and after: figures of another machine differ as
    it does.
    """
    return (
        f"{os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}, load "
        f"{os.getloadavg()[0]:.1f}; yardstick {before:.1f} µs before, {yardstick_us():.1f} µs after"
    )


def shown(value: str | float | None) -> str:
    if isinstance(value, str) or value is None:
        return value or ""
    return f"{value:,.0f}" if isinstance(value, int) or value >= 100 else f"{value:.3g}"


def _print_table(rows: Sequence[Row], caption: str) -> None:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold cyan", caption=caption)
    for name, value in rows[0].items():
        table.add_column(name, justify="left" if isinstance(value, str) else "right")
    for row in rows:
        table.add_row(*map(shown, row.values()))
    console = Console()
    console.width = console.width if console.is_terminal else TABLE_WIDTH
    console.print(table)


def write(bench: Bench, name: str, rows: Sequence[Row], machine: str) -> None:
    """Replace what stands in the page between the marks of the benchmark."""
    start = f"<!-- bench {name} -->"
    end = f"<!-- /bench {name} -->"
    page = bench.page.read_text()
    if start not in page:
        page += f"\n{start}{end}\n"
    before, _, rest = page.partition(start)
    table = [list(rows[0]), ["---"] * len(rows[0]), *(map(shown, row.values()) for row in rows)]
    lines = "\n".join(f"| {' | '.join(cells)} |" for cells in table)
    given = [word for word in sys.argv[1:] if word not in ("--write", "--json")]
    measured = f"`python -m bench {' '.join(given)}` on {datetime.now(UTC):%Y-%m-%d}: {machine}."
    bench.page.write_text(
        f"{before}{start}\n\n{measured}\n\n{lines}\n\n{end}{rest.partition(end)[2]}"
    )


if __name__ == "__main__":
    main()
