"""The rows of a file into lines: what each is to submit, or why it is refused beforehand; nothing is written here.

The same rules and codes as a POST, except that a malformed e-mail costs only itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from frontdesk.db import Database
from frontdesk.eligibility import ValueCache, parse_member
from frontdesk.eligibility.model import Action, MemberRecord, Submission
from frontdesk.errors import Fault
from frontdesk.files.check import open_rows
from frontdesk.files.codes import REPEATED, UNKNOWN_PLAN
from frontdesk.files.model import ChunkRow, EligibilityFile, FileMode, Row
from frontdesk.files.repeats import IdentifierIndex
from frontdesk.plans import list_plans


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """From which row on, in chunks of how many rows, and what day it is (`YYYY-MM-DD`)."""

    skip_rows: int
    chunk_rows: int
    today: str


def read_lines(db: Database, file: EligibilityFile, reading: ReadPosition) -> Iterator[list[ChunkRow]]:
    """The rows that are not applied yet, by the chunk. The file has been checked: its mode and its date are known."""
    plan_ids = {plan.external_id: plan.id for plan in db.ask(lambda tx: list_plans(tx, file.account_id))}
    parser = _Parser(file, plan_ids, reading.today)
    rows = islice(open_rows(db, file)[1], reading.skip_rows, None)
    while chunk := [parser.line(row) for row in islice(rows, reading.chunk_rows)]:
        yield chunk


def refuse_differing(lines: Sequence[ChunkRow], repeats: IdentifierIndex) -> None:
    """Rows of one identifier that differ can't both be meant: none of them is submitted."""
    for line in lines:
        if line.external_id is not None and repeats.differ(line.external_id):
            line.faults, line.submission = [*line.faults, REPEATED], None


def _besides(record: MemberRecord) -> Iterator[Fault]:
    """The faults of a record that the reader has refused: that it found no identifier is a part of why."""
    return (fault for fault in record.faults if (fault.field, fault.code) != ("external_id", "required"))


class _Parser:
    def __init__(self, file: EligibilityFile, plan_ids: dict[str, int], today: str) -> None:
        self._file = file
        self._plan_ids = plan_ids
        self._today = today
        self._only_compares = file.mode == FileMode.COMPARE
        self._remembered = ValueCache()

    def line(self, row: Row) -> ChunkRow:
        file, values = self._file, row.values
        if row.action is Action.END and not values.get("expiry_date"):
            values = values | {"expiry_date": file.file_date}
        record = parse_member(values, today=self._today, lenient_email=True, remembered=self._remembered)
        plan_id = file.plan_id if row.plan is None else self._plan_ids.get(row.plan)
        faults = [*row.faults, *_besides(record)] if row.faults else []
        if plan_id is None:
            faults.append(UNKNOWN_PLAN)
        if faults or plan_id is None:
            return ChunkRow(row.place, record.external_id, None, faults)
        deed = Action.COMPARE if self._only_compares else row.action
        submission = Submission(file.account_id, plan_id, record, file.client, file.history_key, deed)
        return ChunkRow(row.place, record.external_id, submission, (), row.warnings)
