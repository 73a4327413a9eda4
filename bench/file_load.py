r"""`python -m bench.file_load`: a file loaded with all rules, history and outcomes, beside the database's own upsert.

The limit on PostgreSQL is `psql \copy` into a staging table and one INSERT … ON CONFLICT DO UPDATE into a members table
with the same indexes; on SQLite it is `executemany` of the same upsert. Each is measured into an empty table and with all
rows matching and changed. Then the same file comes again, and as a full file of which one row in fifty is changed; these
two are also told as a part of the first load, by the clock and in processor time. Beside each load: the processor time of a row
for checking (the first reading), deciding (with the parsing, and the driver's share on PostgreSQL), and writing (SQLite's
statements, PostgreSQL's server). With `--format 834` the files are 834s of families, and there is no limit.
"""

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pysqlite3
from sqlalchemy import event

from bench.processor import processor_seconds
from frontdesk.audit.model import Requester
from frontdesk.clock import system_clock
from frontdesk.config import Uniqueness, read_config
from frontdesk.db import Database, open_database
from frontdesk.db.migrate import upgrade
from frontdesk.files.actions import PART_BYTES, Upload, begin_file, get_file
from frontdesk.files.claims import RunOptions
from frontdesk.files.model import FileKey, NewFile
from frontdesk.files.run import run_next
from frontdesk.formats.model import FileMode, Format
from frontdesk.sandbox.sample_files import SAMPLE_MAPPING, write_sample
from frontdesk.sandbox.sample_members import sample_members
from tests.factories import make_customer
from tests.postgres import PostgresServer

COLUMNS = (
    "external_id", "member_id", "first_name", "last_name", "middle_name", "dob", "gender", "email", "phone", "zipcode",
    "city", "county", "state", "effective_date", "expiry_date", "subscriber_relationship",
)  # fmt: skip
ONE_IN = 50  # rows of the last file are changed
STEPS = ("checking", "deciding", "writing")
UNTOUCHED = ("external_id", "member_id", "email")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.file_load")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--chunk", type=int, default=None, help="rows per chunk")
    parser.add_argument("--only", choices=("postgresql", "sqlite"))
    parser.add_argument("--format", choices=("csv", "834"), default="csv")
    parser.add_argument("--no-limit", action="store_true", help="only our load, for profiling")
    parser.add_argument("--load", nargs=3, metavar=("URL", "PLAN", "PATH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        print(json.dumps(load(options.load[0], int(options.load[1]), Path(options.load[2]), options.chunk)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        options.no_limit |= options.format == "834"
        files = (
            _write_834s(folder, options.rows)
            if options.format == "834"
            else _write_files(folder, options.rows)
        )
        for database in ("postgresql", "sqlite"):
            if options.only in (None, database):
                _measure(database, files, folder, options)


def _write_files(folder: Path, rows: int) -> list[Path]:
    """The sample; the same members with another name and city; those with one in fifty changed again; the sample's columns."""
    first, second, third, flat = (folder / f"{name}.csv" for name in ("first", "second", "third", "flat"))
    with first.open("wb") as stream:
        for _ in write_sample(sample_members(rows, seed=1), Format.CSV, stream):
            pass
    with (
        first.open(newline="") as read,
        second.open("w", newline="") as write,
        third.open("w", newline="") as write_some,
        flat.open("w", newline="") as plain,
    ):
        reader = csv.DictReader(read)
        writer, some_writer = (csv.DictWriter(page, reader.fieldnames or ()) for page in (write, write_some))
        writer.writeheader()
        some_writer.writeheader()
        flat_writer = csv.DictWriter(plain, COLUMNS, extrasaction="ignore", restval="")
        for number, row in enumerate(reader):
            flat_writer.writerow(row)
            changed = row | {"last_name": row["last_name"] + "-Neu", "city": "Springfield"}
            writer.writerow(changed)
            some_writer.writerow(changed | ({} if number % ONE_IN else {"city": "Shelbyville"}))
    return [first, second, third, flat]


def _write_834s(folder: Path, rows: int) -> list[Path]:
    """As `_write_files`, without the flat one. The third is of the day after."""
    first, second, third = (folder / f"{name}.834" for name in ("first", "second", "third"))
    with first.open("wb") as stream:
        for _ in write_sample(sample_members(rows, seed=1), Format.X12, stream):
            pass
    changed = first.read_text().replace("\nN4*", "\nN4*New ")
    second.write_text(changed)
    *members, end = changed.split("\nN4*")
    some = [part + ("\nN4*" if number % ONE_IN else "\nN4*Very ") for number, part in enumerate(members)]
    third.write_text("".join([*some, end]).replace("*20260101*0800****2~", "*20260102*0800****2~"))
    return [first, second, third, first]


def _measure(database: str, files: list[Path], folder: Path, options: argparse.Namespace) -> None:
    if database == "sqlite":
        limit = _sqlite_limit(folder / "limit.db", files[3], options)
        _compare(database, f"sqlite:///{folder / 'frontdesk.db'}", files, limit, options)
        return
    with PostgresServer(durable=True) as server:
        server_url = server.create_database("frontdesk")
        limit_url = server.create_database("limit")
        url = read_config({"FRONTDESK_DATABASE_URL": server_url}).database_url
        limit = _postgresql_limit(server, limit_url, files[3], options)
        _compare(database, url, files, limit, options, server.pid)


def _compare(
    database: str,
    url: str,
    files: list[Path],
    limit: Iterator[float],
    options: argparse.Namespace,
    server: int = 0,
) -> None:
    """Interleaved: limit and load into empty tables, then limit and load with every row matching and changed.

    `server` is the process id of PostgreSQL's.
    """
    db = open_database(url)
    upgrade(db)
    plan = make_customer(db, now=system_clock()).plan_ids[0]
    db.close()
    steps = (("empty", 0), ("all match", 1), ("unchanged", 1), ("full, 2 %", 2))
    first = first_processor = 0.0
    for what, number in steps:
        limited = next(limit) if number < 2 and what != "unchanged" else 0.0
        before = processor_seconds(server) if server else 0.0
        ours = _in_a_child(url, plan, files[number], options.chunk)
        if server:
            ours["writing_seconds"] = processor_seconds(server) - before
        processor = sum(ours[f"{name}_seconds"] for name in STEPS)
        first, first_processor = first or ours["seconds"], first_processor or processor
        ratio = f"{ours['seconds'] / limited:.2f} x" if limited else "-"
        print(
            f"{database:10} {what:9} {options.rows:>9,} rows: ours {ours['seconds']:6.1f} s "
            f"({options.rows / ours['seconds']:,.0f} rows/s, {ours['cpu_seconds']:.1f} s of Python, "
            f"check {ours['check_seconds']:.1f} s, {_shares(ours, options.rows)}, "
            f"{ours['peak_mib']:.0f} MiB) limit {limited:5.1f} s ratio {ratio}, "
            f"{ours['seconds'] / first:.2f} x the first load, {processor / first_processor:.2f} x its processor time  "
            f"{ours['counts']}",
            flush=True,
        )


def _shares(ours: dict[str, Any], rows: int) -> str:
    """Processor time of one row: reading it, deciding what it does, and what the driver and SQLite or the server do."""
    told = {name: ours[f"{name}_seconds"] / rows * 1e6 for name in STEPS}
    return ", ".join(f"{name} {time:.0f} us" for name, time in told.items())


def _in_a_child(url: str, plan: int, path: Path, chunk: int | None) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.file_load", "--load", url, str(plan), str(path)]
    if chunk:
        command += ["--chunk", str(chunk)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    sys.stderr.write(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def load(url: str, plan: int, path: Path, chunk: int | None) -> dict[str, Any]:
    """What `frontdesk file load` does, timed from the first byte to the last commit."""
    db = open_database(url)
    requester = Requester("bench", "bench", system_clock())
    checked: list[tuple[float, float]] = []

    def watch(step: str, _done: int, _total: int | None) -> None:
        if step == "apply" and not checked:
            checked.append((time.perf_counter(), time.process_time()))

    started = time.perf_counter()
    with db.write() as tx:
        account = int(tx.exec_driver_sql(f"SELECT account_id FROM plans WHERE id = {plan}").scalar_one())
        mode = FileMode.FULL if path.stem == "third" else FileMode.CHANGE
        mapping = SAMPLE_MAPPING if path.suffix == ".834" else None
        file = begin_file(tx, NewFile(account, plan, mode=mode, mapping=mapping), requester)
    upload = Upload(db, file)
    with path.open("rb") as stream:
        while piece := stream.read(PART_BYTES):
            upload.write(piece)
            upload.flush()
    upload.finish(requester)
    taken, taken_processor, statements = (
        time.perf_counter(),
        time.process_time(),
        _processor_time_of_statements(db),
    )
    run_next(
        db, system_clock, RunOptions(Uniqueness.SERVICE, on_progress=watch, chunk_rows=chunk), only=file.id
    )
    seconds, ended_processor = time.perf_counter() - started, time.process_time()
    file = db.ask(lambda tx: get_file(tx, FileKey(file.id)))
    if file.state != "done":
        raise RuntimeError(str(file.problem))
    return {
        "seconds": seconds,
        "check_seconds": checked[0][0] - taken,
        "checking_seconds": checked[0][1] - taken_processor,
        "deciding_seconds": ended_processor - checked[0][1] - statements[0],
        "writing_seconds": statements[0],
        "cpu_seconds": time.process_time(),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "counts": file.counts,
    }


def _processor_time_of_statements(db: Database) -> list[float]:
    """One number, which grows: SQLite works in this process. PostgreSQL's own is measured where its server is."""
    total, began = [0.0], threading.local()

    def begin(*_: object) -> None:
        began.at = time.thread_time()

    def end(*_: object) -> None:
        total[0] += time.thread_time() - began.at

    if db.is_sqlite:
        event.listen(db.engine, "before_cursor_execute", begin)
        event.listen(db.engine, "after_cursor_execute", end)
    return total


_TABLE = f"({', '.join(f'{name} text' for name in COLUMNS)})"
_UPSERT = (
    f"INSERT INTO members ({', '.join(COLUMNS)}) %s ON CONFLICT (external_id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name not in UNTOUCHED)
)


def _postgresql_limit(
    server: PostgresServer, url: str, path: Path, options: argparse.Namespace
) -> Iterator[float]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"CREATE TABLE members (id bigserial PRIMARY KEY, {_TABLE[1:]} WITH (fillfactor = 80)"
        )
        for name in UNTOUCHED:
            connection.execute(f"CREATE UNIQUE INDEX ON members ({name})")
    values = "SELECT " + ", ".join(f"nullif({name}, '')" for name in COLUMNS) + " FROM staging"
    script = f"CREATE TEMP TABLE staging {_TABLE};\n\\copy staging FROM '{path}' CSV\n{_UPSERT % values};\n"
    while True:
        if options.no_limit:
            yield 0.0
            continue
        started = time.perf_counter()
        psql = [str(server.bin_dir / "psql"), "-q", "-v", "ON_ERROR_STOP=1", url]
        subprocess.run(psql, input=script, text=True, check=True, env=os.environ)
        yield time.perf_counter() - started


def _sqlite_limit(database: Path, path: Path, options: argparse.Namespace) -> Iterator[float]:
    connection = pysqlite3.connect(str(database))
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "cache_size=-16384"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(f"CREATE TABLE members (id INTEGER PRIMARY KEY, {_TABLE[1:]}")
    for name in UNTOUCHED:
        connection.execute(f"CREATE UNIQUE INDEX members_{name} ON members ({name})")
    upsert = _UPSERT % f"VALUES ({', '.join('?' * len(COLUMNS))})"
    while True:
        if options.no_limit:
            yield 0.0
            continue
        started = time.perf_counter()
        with path.open(newline="") as stream:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(upsert, ([cell or None for cell in row] for row in csv.reader(stream)))
            connection.execute("COMMIT")
        yield time.perf_counter() - started


if __name__ == "__main__":
    main()
