"""A file's rows into chunks of submissions, applied one after the other from where the last worker stopped.

It knows neither formats (`readers`) nor the rules of a record (`eligibility`), and no door.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from frontdesk.config import Uniqueness
from frontdesk.db import Tx
from frontdesk.eligibility import Deed, Enrolled, Remembered, Submission, enrol, parse_member
from frontdesk.errors import Fault, FrontdeskError
from frontdesk.files import modes, store
from frontdesk.files.ahead import ahead
from frontdesk.files.check import Checked, check, open_rows
from frontdesk.files.chunks import Line, Write, write_chunk
from frontdesk.files.claims import Claim
from frontdesk.files.jobs import EligibilityFile, Step
from frontdesk.files.rehearsal import rehearsing
from frontdesk.files.rows import Intent, Purpose, Row
from frontdesk.plans import list_plans

# SQLite has one writer, so a chunk is short for the sake of those who wait.
SQLITE_ROWS, POSTGRESQL_ROWS = 500, 2000

DIFFERING = Fault("external_id", "repeated_differently", "stands in the file again, with other values")
UNKNOWN_PLAN = Fault("plan", "unknown_plan", "is not the external_id of a plan of the account")

_DEEDS = {Intent.ENROL: Deed.ENROL, Intent.END: Deed.END, Intent.COMPARE: Deed.COMPARE}


class Stopped(Exception):
    """The worker was told to stop; another goes on after the last committed chunk."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What goes along with a piece of work: the installation's rule, whether to stop, and who watches.

    `watch(step, done, total)` counts rows; `total` is None while it is not known. `chunk_rows` None: what suits the
    database.
    """

    uniqueness: Uniqueness
    stop: Callable[[], bool] = lambda: False
    watch: Callable[[str, int, int | None], None] = lambda _step, _done, _total: None
    chunk_rows: int | None = None

    def breathe(self, claim: Claim, step: str, done: int) -> None:
        """Between two pieces. Raises Stopped."""
        self.watch(step, done, claim.file.rows_total)
        if self.stop():
            raise Stopped


def run_load(claim: Claim, turn: Turn) -> None:
    """Check, apply, and, for a full file, end. Raises Unreadable, Stopped, LostClaim, Unavailable."""

    def breathe(rows: int) -> None:
        claim.update()
        turn.breathe(claim, Step.CHECK, rows)

    checked = check(claim, breathe)
    _begin(claim, checked)
    with _writer(claim, turn) as write:
        if claim.file.step == Step.APPLY:
            _apply(claim, checked, turn, write)
            claim.update(step=Step.END.value)
        if checked.mode is Purpose.FULL:
            modes.end_missing(claim, checked, write, lambda done: turn.breathe(claim, Step.END, done))


def _begin(claim: Claim, checked: Checked) -> None:
    """Write down what the first reading found. A dry run starts anew each time: what it rehearsed is not stored."""
    file = claim.file
    now = claim.clock()
    with claim.db.write() as tx:
        if file.dry_run:
            store.delete_outcomes(tx, file.id)
            claim.save(tx, step=Step.CHECK.value, chunks_done=0, rows_done=0, counts={})
        if file.step == Step.CHECK or file.dry_run:
            claim.save(
                tx,
                step=Step.APPLY.value,
                format=checked.head.format.value,
                mode=checked.mode.value,
                file_date=checked.file_date,
                ignored=list(checked.head.ignored),
                rows_total=checked.rows,
                members_before=modes.members_before(tx, file, checked),
                started_at=file.started_at or now,
            )
    claim.refresh()


def _writer(claim: Claim, turn: Turn) -> AbstractContextManager[Write]:
    if claim.file.dry_run:
        return rehearsing(claim.clock, turn.uniqueness)

    def write(tx: Tx, submissions: Sequence[Submission]) -> Sequence[Enrolled | FrontdeskError]:
        return enrol(tx, submissions, now=claim.clock(), uniqueness=turn.uniqueness, audited=False)

    return nullcontext(write)


def _apply(claim: Claim, checked: Checked, turn: Turn, write: Write) -> None:
    size = turn.chunk_rows or (SQLITE_ROWS if claim.db.is_sqlite else POSTGRESQL_ROWS)
    chunks = _lines(claim, checked, size)
    # SQLite lets go of the interpreter at every row, and would wait for the reading thread each time.
    for lines in chunks if claim.db.is_sqlite else ahead(chunks):
        turn.breathe(claim, Step.APPLY, claim.file.rows_done)
        write_chunk(claim, lines, write, rows_done=claim.file.rows_done + len(lines))
    turn.breathe(claim, Step.APPLY, claim.file.rows_done)


def _lines(claim: Claim, checked: Checked, size: int) -> Iterator[list[Line]]:
    """The rows that are not applied yet, in chunks."""
    file, clock = claim.file, claim.clock
    parse = Parser(file, checked, claim.db.ask(lambda tx: _plan_ids(tx, file)), clock())
    rows = islice(open_rows(claim)[1], file.rows_done, None)
    while chunk := [parse.line(row) for row in islice(rows, size)]:
        yield chunk


def _plan_ids(tx: Tx, file: EligibilityFile) -> dict[str, int]:
    return {plan.external_id: plan.id for plan in list_plans(tx, file.account_id)}


class Parser:
    """Turns rows into lines: the same rules and codes as a POST, except that a malformed e-mail costs only itself."""

    def __init__(
        self, file: EligibilityFile, checked: Checked, plan_ids: dict[str, int], now: datetime
    ) -> None:
        self._file = file
        self._checked = checked
        self._plan_ids = plan_ids
        self._today = now.date().isoformat()
        self._remembered = Remembered()

    def line(self, row: Row) -> Line:
        values = row.values
        if row.intent is Intent.END and not values.get("expiry_date"):
            values = values | {"expiry_date": self._checked.file_date}
        record = parse_member(values, today=self._today, lenient_email=True, remembered=self._remembered)
        key = record.external_id
        plan_id = self._file.plan_id if row.plan is None else self._plan_ids.get(row.plan)
        faults = [*row.faults, *record.faults] if row.faults else []
        if key is not None and self._checked.repeats.differ(key):
            faults.append(DIFFERING)
        if plan_id is None:
            faults.append(UNKNOWN_PLAN)
        if faults or plan_id is None:
            return Line(row.place, key, None, faults)
        deed = Deed.COMPARE if self._checked.mode is Purpose.COMPARE else _DEEDS[row.intent]
        file = self._file
        submission = Submission(file.account_id, plan_id, record, file.client, file.history_key, deed)
        return Line(row.place, key, submission, (), row.warnings)
