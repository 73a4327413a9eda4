"""How long does a file take to load, beside the database's own upsert of its rows?

All rules, history and outcomes. Upsert alone: COPY and one INSERT ... ON CONFLICT on PostgreSQL,
executemany on SQLite, into a table with the same unique keys. Processor time per row (µs): checking
is the first reading, applying the rest of the loading process (with SQLite's own work), server that
of PostgreSQL.
"""

import argparse
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pysqlite3
from rich.progress import Progress

from bench.harness import (
    Bench,
    Databases,
    Option,
    Row,
    chosen,
    databases,
    peak_mib,
    processor_seconds,
)
from frontdesk.audit import Requester
from frontdesk.clock import system_clock
from frontdesk.config import Uniqueness, read_config
from frontdesk.db import Database, open_database
from frontdesk.files.actions import Upload, begin_file, get_file
from frontdesk.files.claims import RunOptions
from frontdesk.files.content import PART_BYTES
from frontdesk.files.model import EligibilityFile, FileKey, FileState, NewFile
from frontdesk.files.run import run_next
from frontdesk.formats.model import FileMode, Format
from frontdesk.reach import EVERY
from frontdesk.sandbox import SAMPLE_MAPPING
from frontdesk.sandbox.sample_files import write_sample
from frontdesk.sandbox.sample_members import sample_members

COLUMNS = (
    "external_id",
    "member_id",
    "first_name",
    "last_name",
    "middle_name",
    "dob",
    "gender",
    "email",
    "phone",
    "zipcode",
    "city",
    "county",
    "state",
    "effective_date",
    "expiry_date",
    "subscriber_relationship",
)
KEYS = ("external_id", "member_id", "email")
STEPS = ("checking", "applying", "server")
# What is loaded in turn: its format and mode, the version of the members, and whether the upsert is
# measured beside it.
LOADS = (
    ("CSV, all new", Format.CSV, FileMode.CHANGE, 0, True),
    ("JSON lines, the same members", Format.JSON_LINES, FileMode.CHANGE, 0, False),
    ("834, the same members", Format.X12, FileMode.CHANGE, 0, False),
    ("834, unchanged", Format.X12, FileMode.CHANGE, 0, False),
    ("CSV, all changed", Format.CSV, FileMode.CHANGE, 1, True),
    ("CSV, unchanged", Format.CSV, FileMode.CHANGE, 1, False),
    ("CSV, full, 2 % changed", Format.CSV, FileMode.FULL, 2, False),
)


def run(options: argparse.Namespace, progress: Progress) -> Iterator[Row]:
    names = chosen(options)
    task = progress.add_task("loading files", total=len(names) * len(LOADS))
    for name in names:
        with databases(name) as kind, kind.installation() as installation:
            path = kind.folder / "members"
            plan = installation.customer.plan_ids[0]
            upsert = _make_upsert(kind, options.rows)
            for what, format_, mode, version, has_limit in LOADS:
                write_members(path, options.rows, format_, version)
                limit = upsert() if has_limit else None
                before = processor_seconds(kind.server.pid) if kind.server else 0.0
                found = _load_in_child(installation.url, plan, str(path), str(mode))
                found["server"] = (
                    processor_seconds(kind.server.pid) - before if kind.server else 0.0
                )
                yield {
                    "database": name,
                    "file": what,
                    "rows/s": round(options.rows / found["seconds"]),
                    "seconds": found["seconds"],
                    "upsert alone, s": limit,
                    "times the upsert": limit and round(found["seconds"] / limit, 2),
                    **{f"{step} µs": round(found[step] / options.rows * 1e6) for step in STEPS},
                    "peak MiB": round(found["peak_mib"]),
                }
                progress.advance(task)


def write_members(
    path: Path, rows: int, format_: Format = Format.CSV, version: int = 0, *, seed: int = 1
) -> None:
    """Version 1: each member with another name and city than in version 0; 2: as 1, but for the
    city of one in fifty. Another seed gives other members.
    """

    def change(n: int, member: dict[str, str]) -> dict[str, str]:
        city = "Springfield" if n % 50 else f"City {version}"
        return (
            member | {"last_name": f"{member['last_name']}-Neu", "city": city}
            if version
            else member
        )

    members = itertools.starmap(change, enumerate(sample_members(rows, seed=seed)))
    with path.open("wb") as stream:
        for _ in write_sample(members, format_, stream):
            pass


def hand_in(db: Database, plan: int, path: Path, mode: str = "change") -> int:
    """Upload a file; its id."""
    requester = Requester("bench", "bench", system_clock())
    with db.write() as tx:
        account = int(
            tx.exec_driver_sql(f"SELECT account_id FROM plans WHERE id = {plan}").scalar_one()
        )
        file = begin_file(
            tx, NewFile(account, plan, mode=FileMode(mode), mapping=SAMPLE_MAPPING), requester
        )
    upload = Upload(db, file)
    with path.open("rb") as stream:
        while piece := stream.read(PART_BYTES):
            upload.write(piece)
            upload.flush()
    upload.finish(requester)
    return file.id


def stored_file(db: Database, file_id: int) -> EligibilityFile:
    """Raises RuntimeError if it can't be loaded."""
    file = db.ask(lambda tx: get_file(tx, FileKey(file_id, EVERY)))
    if file.state in (FileState.HELD, FileState.FAILED):
        raise RuntimeError(f"the file is {file.state}: {file.problem}")
    return file


def _load_in_child(*arguments: str | int) -> dict[str, Any]:
    """What `load` returns in a process of its own, whose memory and processor time are the load's."""
    code = f"import json, bench.files; print(json.dumps(bench.files.load(*{arguments})))"
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE)
    return dict(json.loads(done.stdout))


def load(url: str, plan: int, path: str, mode: str = "change") -> dict[str, Any]:
    """What `frontdesk file load` does, from the first byte to the last commit: seconds, and
    processor time of each step.
    """
    db = open_database(read_config({"FRONTDESK_DATABASE_URL": url}).database_url)
    checked: list[float] = []

    def watch(step: str, _done: int, _total: int | None) -> None:
        if step == "apply" and not checked:
            checked.append(time.process_time())

    started = time.perf_counter()
    file_id = hand_in(db, plan, Path(path), mode)
    taken = time.process_time()
    run_next(db, system_clock, RunOptions(Uniqueness.SERVICE, on_progress=watch), only=file_id)
    ended = time.process_time()
    seconds = time.perf_counter() - started
    stored_file(db, file_id)
    db.close()
    return {
        "seconds": seconds,
        "checking": checked[0] - taken,
        "applying": ended - checked[0],
        "peak_mib": peak_mib(),
    }


def _make_upsert(kind: Databases, rows: int) -> Callable[[], float]:
    """The limit: the rows into a table with the same unique keys, by the database's own means;
    returns its seconds.

    PostgreSQL: COPY into a staging table and one INSERT ... ON CONFLICT. SQLite: `executemany` of
    the same.
    """
    texts = ", ".join(f"{name} text" for name in COLUMNS)
    marks = ", ".join("?" * len(COLUMNS))
    connection: Any
    if kind.server is None:
        connection = pysqlite3.connect(str(kind.folder / "upsert.db"))
        source = f"VALUES ({marks})"
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "cache_size=-16384"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute(f"CREATE TABLE members ({texts})")
    else:
        connection = psycopg.connect(kind.server.create_database("upsert"))
        source = "SELECT * FROM staging"
        connection.execute(f"CREATE TABLE members ({texts}) WITH (fillfactor = 80)")
        connection.execute(f"CREATE TEMP TABLE staging ({texts})")
    for name in KEYS:
        connection.execute(f"CREATE UNIQUE INDEX members_{name} ON members ({name})")
    connection.commit()
    changed = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name not in KEYS)
    statement = f"INSERT INTO members {source} ON CONFLICT (external_id) DO UPDATE SET {changed}"
    cells = [[member[name] or None for name in COLUMNS] for member in sample_members(rows, seed=1)]

    def upsert() -> float:
        started = time.perf_counter()
        if kind.server is None:
            connection.executemany(statement, cells)
        else:
            connection.execute("TRUNCATE staging")
            with connection.cursor().copy("COPY staging FROM STDIN") as copy:
                for row in cells:
                    copy.write_row(row)
            connection.execute(statement)
        connection.commit()
        return time.perf_counter() - started

    return upsert


BENCH = Bench(__doc__, run, Option("rows", 100_000, 2_000, "of the file"))
