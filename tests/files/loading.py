"""What the tests of eligibility files share: handing in a file, working on it, reading what is
stored and reported.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import func, select, text

from frontdesk.audit import Requester
from frontdesk.clock import Clock
from frontdesk.config import Uniqueness
from frontdesk.db import Database
from frontdesk.eligibility import enrol, parse_member, people
from frontdesk.eligibility.model import Submission
from frontdesk.eligibility.tables import member_history, members
from frontdesk.files.actions import (
    Upload,
    approve_file,
    begin_file,
    cancel_file,
    get_file,
    undo_file,
)
from frontdesk.files.claims import RunOptions
from frontdesk.files.model import EligibilityFile, FileKey, NewFile
from frontdesk.files.report import read_report
from frontdesk.files.run import run_next
from frontdesk.files.turns import FileTurns
from frontdesk.formats.model import FileMode
from frontdesk.reach import EVERY, Reach
from tests.factories import Customer
from tests.faults.callers import times
from tests.formats.reading import IDENTIFY, file_834

OPTIONS = RunOptions(Uniqueness.SERVICE)
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


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


COLUMNS = (*row(1), "email")


def csv_of(rows: Iterable[dict[str, Any]], columns: Iterable[str] = COLUMNS) -> bytes:
    page = io.StringIO()
    writer = csv.DictWriter(page, list(columns), restval="")
    writer.writeheader()
    writer.writerows(rows)
    return page.getvalue().encode()


def lines_of(rows: Iterable[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def coverages_of(member: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The coverages of a stored member, which SQLite keeps as text."""
    found = member["coverages"]
    coverages: list[dict[str, Any]] | None = json.loads(found) if isinstance(found, str) else found
    return coverages


class Desk:
    """Hands in files of one customer's plan and works on them."""

    def __init__(self, db: Database, customer: Customer, clock: Clock) -> None:
        self.db = db
        self.customer = customer
        self.clock = clock
        self.options = OPTIONS
        self.client = "client-1"

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

    def load_834(self, *members: str, purpose: str = "2", **options: Any) -> EligibilityFile:
        return self.load(file_834(*members, purpose=purpose).encode(), **options)

    def post(self, plan: int = 0, **values: Any) -> None:
        """Write one member as a POST does, at the time of the desk."""
        record = parse_member(values, today="2026-06-01")
        account = self.customer.account_id
        plan_id = self.customer.plan_ids[plan]
        with self.db.write() as tx:
            submission = Submission(account, plan_id, record, "client", "request")
            enrol(tx, [submission], now=self.clock(), uniqueness=Uniqueness.SERVICE)

    def rename(self, old: str, new: str) -> None:
        """Give a member a new identifier, as `member rename` does."""
        decide = partial(enrol, now=self.clock(), uniqueness=Uniqueness.SERVICE)
        with self.db.write() as tx:
            pairs = [(old, new)]
            reach = Reach.of(self.customer.account_id)
            assert people.rename(tx, pairs, reach, self.requester(), decide) == [people.RENAMED]

    def hand_in_undo(self, file: EligibilityFile) -> EligibilityFile:
        with self.db.write() as tx:
            return undo_file(tx, FileKey(file.id, EVERY), self.requester())

    def undo(self, file: EligibilityFile) -> EligibilityFile:
        """Undo the file; a held undo is approved."""
        return self.approve_if_held(self.work(self.hand_in_undo(file)))

    def cancel(self, file: EligibilityFile) -> EligibilityFile:
        with self.db.write() as tx:
            return cancel_file(tx, FileKey(file.id, EVERY), self.requester())

    def approve(self, file: EligibilityFile, *, work: bool = True) -> EligibilityFile:
        with self.db.write() as tx:
            approve_file(tx, FileKey(file.id, EVERY), self.requester())
        return self.work(file) if work else file

    def approve_if_held(self, file: EligibilityFile) -> EligibilityFile:
        return self.approve(file) if file.state == "held" else file

    def work_on_any(self) -> bool:
        return run_next(self.db, self.clock, self.options)

    def try_to_work(self, file: EligibilityFile, *, lease_seconds: float) -> bool:
        options = replace(self.options, lease_seconds=lease_seconds)
        return run_next(self.db, self.clock, options, only=file.id)

    def work(self, file: EligibilityFile) -> EligibilityFile:
        assert run_next(self.db, self.clock, self.options, only=file.id)
        return self.reread(file)

    def reread(self, file: EligibilityFile) -> EligibilityFile:
        return self.db.ask(lambda tx: get_file(tx, FileKey(file.id, EVERY)))

    def report(self, file: EligibilityFile) -> list[dict[str, Any]]:
        text = b"".join(read_report(self.db, file.id)).decode()
        return [json.loads(line) for line in text.splitlines()]

    def outcomes(self, file: EligibilityFile) -> list[tuple[Any, str, str]]:
        """Row, outcome and code of each line of the report."""
        return [(line["row"], line["outcome"], line["code"]) for line in self.report(file)]

    def codes(self, file: EligibilityFile) -> list[tuple[str, str]]:
        return [(line["outcome"], line["code"]) for line in self.report(file)]

    def ends(self) -> dict[str, str | None]:
        """The last day of each member, by its external_id."""
        days = {key: member["expiry_date"] for key, member in self.members().items()}
        return {key: None if day is None else str(day) for key, day in days.items()}

    def stored(self) -> tuple[list[dict[str, Any]], list[tuple[Any, ...]]]:
        """The customer's members and each of their changes, without what the database numbers and
        the account's digests.
        """
        place = {plan: position for position, plan in enumerate(self.customer.plan_ids)}
        own = dict.fromkeys(("id", "account_id", "person_digest", "family_digest"))
        found = sorted(self.members().items(), key=lambda each: str(each[0]))

        def placed(coverages: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
            """The coverages without the numbers of plans."""
            return coverages and [each | {"plan": place[each["plan"]]} for each in coverages]

        records = [
            member
            | own
            | {"plan_id": place[member["plan_id"]], "coverages": placed(coverages_of(member))}
            for _, member in found
            if member["account_id"] == self.customer.account_id
        ]
        columns = (members.c.external_id, member_history.c.outcome, member_history.c.changes)
        query = select(*columns, member_history.c.changed_at).join_from(member_history, members)
        query = query.where(members.c.account_id == self.customer.account_id)
        with self.db.read() as tx:
            rows = tx.execute(query.order_by(members.c.external_id, member_history.c.id)).all()
        return records, [
            (
                key,
                outcome,
                {
                    **changes,
                    "plan_id": [*map(place.get, changes.get("plan_id", ()))],
                    "coverages": [*map(placed, changes.get("coverages", ()))],
                },
                at,
            )
            for key, outcome, changes, at in rows
        ]

    def members(self) -> dict[str, dict[str, Any]]:
        """Every stored record that is not withdrawn, without the time of its last change and the
        digest of its row.
        """
        query = "SELECT * FROM members WHERE uniqueness_scope >= 0 ORDER BY id"
        with self.db.read() as tx:
            rows = tx.exec_driver_sql(query).mappings().all()
        left_out = ("updated_at", "row_digest")
        return {
            found["external_id"]: {name: found[name] for name in found if name not in left_out}
            for found in rows
        }

    def count(self, table: str) -> int:
        with self.db.read() as tx:
            return int(tx.execute(select(func.count()).select_from(text(table))).scalar_one())

    def requester(self) -> Requester:
        return Requester(self.client, "request-1", self.clock())


def examples(test: Callable[..., None]) -> Callable[..., None]:
    """A property that is tried on a few examples, on many by `make nightly`."""
    unchecked = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    limited = settings(
        max_examples=times(6, long=400),
        deadline=None,
        derandomize=True,
        suppress_health_check=unchecked,
    )
    return limited(test)


def as_in_a_real_run(report: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines without the ids of similar members, which a new one has in the real run only."""
    return [
        line
        | {"outcome": line["outcome"].replace("would_end", "ended")}
        | {"hint": re.sub("It looks like .*|member [0-9]+", "", line["hint"])}
        for line in report
    ]


class Worker:
    """Takes turns, of no length by default: each ends at the next checkpoint if another account
    waits.
    """

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
