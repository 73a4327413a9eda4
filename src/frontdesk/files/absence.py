"""Full files: the members of the plan that the file does not name are ended, behind a brake.

The feared day is the full file with half its rows missing. So nobody is ended when too many would be, until a person has
approved it.
"""

from collections.abc import Callable, Iterator, Sequence

from frontdesk.db import Tx
from frontdesk.eligibility import count_members_open, list_members_under, parse_member
from frontdesk.eligibility.model import Action, MemberAccess, Submission
from frontdesk.files import store
from frontdesk.files.check import CheckResult
from frontdesk.files.chunks import Write, write_chunk
from frontdesk.files.claims import FileClaim
from frontdesk.files.jobs import overtaken
from frontdesk.files.model import ChunkRow, EligibilityFile, FileMode

BRAKE_SHARE, BRAKE_MEMBERS = 10, 25  # per cent of the plan's members, and at least so many
SHRUNK_SHARE = 2  # a file of less than half the rows of the last one

BATCH = 250  # SQLite's other writers wait meanwhile


class ApprovalNeeded(Exception):
    """Nobody is ended until a person approves it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def members_before(tx: Tx, file: EligibilityFile, checked: CheckResult) -> int | None:
    """How many of the plan's members have access, before anything of a full file is applied."""
    if checked.mode is not FileMode.FULL:
        return None
    if file.members_before is not None:
        return file.members_before
    return count_members_open(tx, file.plan_id, checked.file_date)


def end_missing(claim: FileClaim, checked: CheckResult, write: Write, breathe: Callable[[int], None]) -> None:
    """End the plan's members that the file does not name: expiry_date becomes the file's date. Raises Braked.

    It is never before effective_date (docs/interface.md, Fields of a member): access that was to begin later ends on its
    first day, and the report warns of it.
    Who was changed after the work on the file began is left alone: that is newer than the file. Those that are ended
    already are not found again, so a killed run goes on where it stopped.
    """
    missing = 0
    for batch in _missing(claim, checked):
        breathe(0)
        missing += len(batch)
    if claim.file.members_missing is None:
        claim.update(members_missing=missing)
    # Files of an account run one at a time, so what is newer has run by now or comes after this.
    newer = claim.db.ask(lambda tx: overtaken(tx, claim.file, begun=True))
    if missing and newer is not None:
        raise ApprovalNeeded(f"{newer} Whom it names may be missing here.")
    if not claim.file.approved:
        _brake(claim, missing=missing, unnamed=checked.unnamed)
    done = 0
    for batch in _missing(claim, checked):
        breathe(done)
        lines = [_line(claim.file, row, checked) for row in batch]
        write_chunk(claim, lines, write, rows=0)
        done += len(batch)


def _brake(claim: FileClaim, *, missing: int, unnamed: int) -> None:
    file = claim.file
    before = file.members_before or 0
    limit = max(before * BRAKE_SHARE // 100, BRAKE_MEMBERS)
    if missing > limit:
        raise ApprovalNeeded(f"{missing} of the plan's {before} members would be ended, more than {limit}.")
    last = claim.db.ask(lambda tx: store.last_full_rows(tx, file.plan_id, file.id))
    rows = file.rows_total or 0
    if missing and last is not None and rows * SHRUNK_SHARE < last:
        raise ApprovalNeeded(f"The file has {rows} rows, less than half of the {last} of the last full one.")
    if missing and unnamed:
        who = f"{missing} of the plan's {before} members would be ended"
        raise ApprovalNeeded(f"{who}, and {unnamed} rows, whose external_id can't be read, may be theirs.")


def _missing(claim: FileClaim, checked: CheckResult) -> Iterator[Sequence[MemberAccess]]:
    """Those to end, in batches; each batch is read before the one before it is written over."""
    file, after = claim.file, 0
    while True:
        at = after
        found = claim.db.ask(lambda tx, at=at: list_members_under(tx, file.plan_id, after_id=at, limit=BATCH))  # type: ignore[misc]
        if not found:
            return
        after = found[-1].id
        batch = [
            row
            for row in found
            if (row.expiry_date is None or row.expiry_date > _last_day(row, checked))
            and (file.started_at is None or row.updated_at <= file.started_at)
            and not checked.repeats.names(row.external_id)
        ]
        if batch:
            yield batch


def _last_day(row: MemberAccess, checked: CheckResult) -> str:
    return max(checked.file_date, row.effective_date)


def _line(file: EligibilityFile, row: MemberAccess, checked: CheckResult) -> ChunkRow:
    day = _last_day(row, checked)
    record = parse_member({"external_id": row.external_id, "expiry_date": day}, today=checked.file_date)
    submission = Submission(
        file.account_id,
        file.plan_id,
        record,
        file.client,
        file.history_key,
        Action.END,
        unless_changed_since=file.started_at,
    )
    warnings = () if day == checked.file_date else ("ends_on_first_day",)
    return ChunkRow(None, row.external_id, submission, (), warnings)
