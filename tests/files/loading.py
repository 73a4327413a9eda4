"""What the tests of eligibility files share: handing in a file, working on it, reading what is stored and reported."""

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sqlalchemy import func, select, text

from frontdesk.audit import Requester
from frontdesk.clock import Clock
from frontdesk.config import Uniqueness
from frontdesk.db import Database
from frontdesk.files.actions import (
    Upload,
    approve_file,
    begin_file,
    cancel_file,
    delete_left_content,
    get_file,
    undo_file,
)
from frontdesk.files.claims import RunOptions
from frontdesk.files.model import EligibilityFile, FileKey, NewFile
from frontdesk.files.report import read_report
from frontdesk.files.run import FileTurns, run_next
from frontdesk.formats.model import FileMode
from tests.factories import Customer
from tests.formats.reading import IDENTIFY

OPTIONS = RunOptions(Uniqueness.SERVICE)
COLUMNS = (
    "external_id",
    "member_id",
    "first_name",
    "last_name",
    "dob",
    "gender",
    "zipcode",
    "effective_date",
    "email",
)


def row(number: int, **changes: Any) -> dict[str, Any]:
    """A complete record, unique by number."""
    return {
        "external_id": f"E{number:05d}",
        "member_id": f"M{number:05d}",
        "first_name": "Robin",
        "last_name": "Sample" if number == 1 else f"Sample {number}",  # else they are similar
        "dob": "1980-02-03",
        "gender": "female",
        "zipcode": "02134",
        "effective_date": "2026-01-01",
    } | changes


def csv_of(rows: Iterable[dict[str, Any]], columns: Iterable[str] = COLUMNS) -> bytes:
    page = io.StringIO()
    writer = csv.DictWriter(page, list(columns), restval="")
    writer.writeheader()
    writer.writerows(rows)
    return page.getvalue().encode()


def lines_of(rows: Iterable[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


class Desk:
    """Hands in files of one customer's plan and works on them."""

    def __init__(self, db: Database, customer: Customer, clock: Clock, *, client: str = "client-1") -> None:
        self.db, self.customer, self.clock, self.client = db, customer, clock, client
        self.options = OPTIONS

    def hand_in(
        self, content: bytes, *, plan: int = 0, full: bool = False, **options: Any
    ) -> EligibilityFile:
        new = NewFile(self.customer.account_id, self.customer.plan_ids[plan])
        is_834 = content.startswith((b"ISA", b"\x1f\x8b"))
        if is_834 and options.get("mapping") is None and "mapping_name" not in options:
            options["mapping"] = {"834": IDENTIFY}
        new = replace(new, **{"mode": FileMode.FULL if full else None} | options)
        with self.db.write() as tx:
            file = begin_file(tx, new, self.requester())
        upload = Upload(self.db, file)
        upload.write(content)
        upload.flush()
        return upload.finish(self.requester())

    def load(self, content: bytes, **options: Any) -> EligibilityFile:
        return self.work(self.hand_in(content, **options))

    def hand_in_undo(self, file: EligibilityFile) -> EligibilityFile:
        with self.db.write() as tx:
            return undo_file(tx, FileKey(file.id), self.requester())

    def undo(self, file: EligibilityFile) -> EligibilityFile:
        return self.work(self.hand_in_undo(file))

    def cancel(self, file: EligibilityFile) -> EligibilityFile:
        with self.db.write() as tx:
            return cancel_file(tx, FileKey(file.id), self.requester())

    def approve(self, file: EligibilityFile) -> EligibilityFile:
        with self.db.write() as tx:
            approve_file(tx, FileKey(file.id), self.requester())
        return self.work(file)

    def break_off(self) -> None:
        """Begin an upload that never ends."""
        new = NewFile(self.customer.account_id, self.customer.plan_ids[0])
        with self.db.write() as tx:
            file = begin_file(tx, new, self.requester())
        upload = Upload(self.db, file)
        upload.write(b"external_id")
        upload.flush()

    def clean_up(self) -> None:
        delete_left_content(self.db, self.clock())

    def work_on_any(self) -> bool:
        return run_next(self.db, self.clock, self.options)

    def try_to_work(self, file: EligibilityFile, *, lease_seconds: float) -> bool:
        options = replace(self.options, lease_seconds=lease_seconds)
        return run_next(self.db, self.clock, options, only=file.id)

    def work(self, file: EligibilityFile) -> EligibilityFile:
        assert run_next(self.db, self.clock, self.options, only=file.id)
        return self.reread(file)

    def reread(self, file: EligibilityFile) -> EligibilityFile:
        return self.db.ask(lambda tx: get_file(tx, FileKey(file.id)))

    def report(self, file: EligibilityFile) -> list[dict[str, Any]]:
        text = b"".join(read_report(self.db, file.id)).decode()
        return [json.loads(line) for line in text.splitlines()]

    def outcomes(self, file: EligibilityFile) -> list[tuple[Any, str, str]]:
        """Row, outcome and code of each line of the report."""
        return [(line["row"], line["outcome"], line["code"]) for line in self.report(file)]

    def members(self) -> dict[str, dict[str, Any]]:
        """Every stored record that is not withdrawn, without the time of its last change and the digest of its row."""
        with self.db.read() as tx:
            rows = tx.exec_driver_sql(
                "SELECT * FROM members WHERE uniqueness_scope >= 0 ORDER BY id"
            ).mappings()
            return {
                found["external_id"]: {
                    name: found[name] for name in found if name not in ("updated_at", "row_digest")
                }
                for found in rows
            }

    def count(self, table: str) -> int:
        with self.db.read() as tx:
            return int(tx.execute(select(func.count()).select_from(text(table))).scalar_one())

    def requester(self) -> Requester:
        return Requester(self.client, "request-1", self.clock())


class Worker:
    """Takes turns, of no length by default: each ends at the next checkpoint if another account waits. Close it, or work to the
    end."""

    def __init__(self, desk: Desk, *, seconds: float = 0.0) -> None:
        options = replace(desk.options, chunk_rows=10)
        self.turns = FileTurns(desk.db, desk.clock, options, slice_seconds=seconds)

    def turn(self) -> bool:
        return self.turns.take()

    def work(self) -> None:
        while self.turn():
            pass

    def end(self) -> None:
        self.turns.close()
