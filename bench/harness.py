"""What every benchmark shares: its options, a new database with a customer, a service on it,
processor time and memory.
"""

import argparse
import json
import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from rich.progress import Progress

from frontdesk.config import read_config
from frontdesk.db import Database, open_database
from frontdesk.db.migrate import upgrade
from tests.factories import EVERY_SCOPE, Customer, make_customer, member_body
from tests.faults.server import Server
from tests.postgres import PostgresServer

README = Path(__file__).with_name("README.md")
DATABASES = ("PostgreSQL", "SQLite")
# A client of a benchmark stands for many customers, and must not meet the limit of one.
MANY_CUSTOMERS = {"FRONTDESK_REQUESTS_PER_MINUTE": "1000000"}
_TICKS = os.sysconf("SC_CLK_TCK")

Row = dict[str, str | int | float | None]
Run = Callable[[argparse.Namespace, Progress], Iterable[Row]]


class Option(NamedTuple):
    """A number, or a list of numbers, that the command line takes; `quick` is its value with
    --quick.
    """

    name: str
    default: Any
    quick: Any
    help: str

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        text = f"{self.help} (default {self.default}, with --quick {self.quick})"
        if isinstance(self.default, list):
            parser.add_argument(f"--{self.name}", type=int, nargs="+", help=text)
        else:
            parser.add_argument(f"--{self.name}", type=type(self.default), help=text)


class Bench:
    """A question, and `run`, which yields the rows of the table that answers it.

    `doc` begins with the question and then says how the rows are measured. `page` holds the table.
    """

    def __init__(
        self,
        doc: str | None,
        run: Run,
        *options: Option,
        has_databases: bool = True,
        page: Path = README,
    ) -> None:
        self.question, _, self.note = (doc or "").strip().partition("\n\n")
        self.run = run
        self.options = options
        self.has_databases = has_databases
        self.page = page


@dataclass(frozen=True, slots=True)
class Installation:
    """A migrated database with one customer; `folder` is for files that belong to it."""

    db: Database
    url: str
    customer: Customer
    folder: Path

    def serve(
        self,
        *,
        workers: int = 1,
        with_worker: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> Server:
        """The service on this database, to be used in a `with`."""
        log = Path(tempfile.mkdtemp(dir=self.folder)) / "log"
        given = MANY_CUSTOMERS | dict(settings or {})
        return Server(self.url, log, workers=workers, settings=given, with_worker=with_worker)


@dataclass(frozen=True, slots=True)
class Databases:
    """Makes databases of one kind; what they acknowledge survives a loss of power."""

    name: str
    folder: Path
    server: PostgresServer | None

    @contextmanager
    def installation(self, name: str = "frontdesk", *, plans: int = 4) -> Iterator[Installation]:
        url = (
            self.server.create_database(name)
            if self.server
            else f"sqlite:///{self.folder}/{name}.db"
        )
        db = open_database(read_config({"FRONTDESK_DATABASE_URL": url}).database_url)
        try:
            upgrade(db)
            customer = make_customer(
                db, plan_count=plans, scopes=EVERY_SCOPE, now=datetime.now(UTC)
            )
            yield Installation(db, url, customer, self.folder)
        finally:
            db.close()


@contextmanager
def databases(name: str, settings: Mapping[str, str] | None = None) -> Iterator[Databases]:
    """Databases of the kind `name`; `settings` are PostgreSQL's."""
    with tempfile.TemporaryDirectory(prefix="frontdesk-bench-") as folder, ExitStack() as stack:
        server = None
        if name == "PostgreSQL":
            server = PostgresServer(durable=True)
            stack.callback(server.stop)
            server.start({"max_connections": "400"} | dict(settings or {}))
        yield Databases(name, Path(folder), server)


def chosen(options: argparse.Namespace) -> list[str]:
    return [name for name in DATABASES if options.only in (None, name)]


def peak_mib(pid: int | str = "self", kind: str = "VmHWM") -> float:
    """The largest resident set of a process so far, or (`VmRSS`) its present one; `getrusage`
    includes the parent's.
    """
    [peak] = re.findall(rf"{kind}:\s+([0-9]+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(peak) / 1024


def family(root: int) -> dict[int, float]:
    """A process and all its descendants: the processor seconds of each, its ended children's
    included.
    """
    children: dict[int, list[int]] = {}
    seconds: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            values = path.read_text().rpartition(")")[2].split()
            pid = int(path.parent.name)
            children.setdefault(int(values[1]), []).append(pid)
            seconds[pid] = sum(map(int, values[11:15])) / _TICKS  # in user and system mode
    found = [root]
    for pid in found:
        found += children.get(pid, ())
    return {pid: seconds.get(pid, 0.0) for pid in found}


def processor_seconds(root: int) -> float:
    return sum(family(root).values())


def yardstick_us() -> float:
    """Processor time that this machine needs now to write and read a member as JSON: the median of
    50, in µs.
    """
    body = member_body(1)
    taken = []
    for _ in range(50):
        began = time.process_time_ns()
        for _ in range(100):
            json.loads(json.dumps(body))
        taken.append((time.process_time_ns() - began) / 100_000)
    return statistics.median(taken)
