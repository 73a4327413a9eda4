"""`python -m bench.beside_load`: how long a single POST takes while an eligibility file loads, and while none does.

One connection sends one POST after the other; the file is loaded by `frontdesk file load`, a process of its own.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.contestants import Service, frontdesk
from bench.load import Measured
from frontdesk.config import read_config
from frontdesk.db import open_database
from frontdesk.formats.model import Format
from frontdesk.sandbox.sample_files import write_sample
from frontdesk.sandbox.sample_members import sample_members
from tests.postgres import PostgresServer

WANTED = 5.0  # times the quiet p99


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.beside_load")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--only", choices=("PostgreSQL", "SQLite"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "members.csv"
        with path.open("wb") as stream:
            for _ in write_sample(sample_members(options.rows, seed=1), Format.CSV, stream):
                pass
        for database, url in _databases(folder):
            if options.only in (None, database):
                with frontdesk(url, 1, folder) as service:
                    quiet = service.measure("POST", 1, options.seconds)
                    _show(database, quiet, _beside(service, url, path, options.seconds))


def _databases(folder: Path) -> Iterator[tuple[str, str]]:
    yield "SQLite", f"sqlite:///{folder}/frontdesk.db"
    with PostgresServer(durable=True) as server:
        yield "PostgreSQL", server.create_database("frontdesk")


def _beside(service: Service, url: str, path: Path, seconds: float) -> Measured:
    command = [sys.executable, "-m", "frontdesk", "file", "load", str(path), "--plan", "2", "--json"]
    environment = os.environ | {"FRONTDESK_DATABASE_URL": url}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as loading:
        _wait_for_first_rows(url)
        measured = service.measure("POST", 1, seconds)
        if loading.poll() is not None:
            raise RuntimeError("The load ended before the measurement: take more --rows.")
        loading.terminate()
    return measured


def _wait_for_first_rows(url: str) -> None:
    """The upload and the first reading write next to nothing."""
    db = open_database(read_config({"FRONTDESK_DATABASE_URL": url}).database_url)
    sql = "SELECT coalesce(max(rows_done), 0) FROM eligibility_files"
    while not db.ask(lambda tx: tx.exec_driver_sql(sql).scalar_one()):
        time.sleep(0.1)
    db.close()


def _show(database: str, quiet: Measured, beside: Measured) -> None:
    ratio = beside.p99 / quiet.p99
    print(
        f"{database:<10} POST p50 {quiet.p50 * 1000:.1f} ms, p99 {quiet.p99 * 1000:.1f} ms; beside a load "
        f"p50 {beside.p50 * 1000:.1f} ms, p99 {beside.p99 * 1000:.1f} ms ({beside.answered} POSTs): "
        f"{ratio:.1f} x, wanted {WANTED:.0f} x",
        flush=True,
    )


if __name__ == "__main__":
    main()
