"""Ends the members of the plan that a full file omits, behind a safety threshold.

The feared day is the full file that lost half of its rows. So no member is ended when too many would be, until a person
approves it (docs/files.md).
"""

from collections.abc import Iterator, Sequence

from frontdesk.db import Tx
from frontdesk.eligibility import count_members_open, list_members_under, parse_member
from frontdesk.eligibility.model import Action, MemberAccess, Submission
from frontdesk.files import store
from frontdesk.files.check import CheckResult
from frontdesk.files.chunks import ChunkWriter
from frontdesk.files.claims import FileClaim
from frontdesk.files.jobs import newer_full_file
from frontdesk.files.model import ChunkRow, EligibilityFile, FileMode, FileStep
from frontdesk.files.pipeline import CommitTurn

THRESHOLD_PERCENT, THRESHOLD_MEMBERS = 10, 25  # of the plan's members, and at least so many
SHRUNK_FACTOR = 2  # a file of less than half the rows of the last one

BATCH = 250  # SQLite's other writers wait meanwhile


class ApprovalNeeded(Exception):
    """No member is ended until a person approves it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def members_before(tx: Tx, file: EligibilityFile, check: CheckResult) -> int | None:
    """The plan's members with access before a full file is applied; None for other files."""
    if check.mode is not FileMode.FULL:
        return None
    if file.members_before is not None:
        return file.members_before
    return count_members_open(tx, file.plan_id, check.file_date)


def end_missing(claim: FileClaim, writer: ChunkWriter, check: CheckResult) -> None:
    """End the plan's members that the file omits: their expiry_date becomes the file's date. Raises ApprovalNeeded.

    It is never before effective_date (docs/interface.md, Fields of a member): access that was to begin later ends on its
    first day, and the report warns of it. A member that was changed after the work on the file began is left alone: the
    change is newer than the file. Members that are ended already are not found again, so a killed run goes on where it
    stopped.
    """
    missing = 0
    for batch in _missing(claim, check):
        claim.checkpoint(FileStep.END, 0)
        missing += len(batch)
    if claim.file.members_missing is None:
        claim.update(members_missing=missing)
    if missing:
        _check_newer(claim)
        if not claim.file.approved:
            _check_threshold(claim, missing=missing, unnamed=check.unnamed)
    ended = 0
    for batch in _missing(claim, check):
        claim.checkpoint(FileStep.END, ended)
        rows = [_ending(claim.file, member, check) for member in batch]
        writer.write(rows, rows_done=0, turn=CommitTurn())
        ended += len(batch)


def _check_newer(claim: FileClaim) -> None:
    """Files of an account run one at a time, so a newer one has run by now or comes after this one."""
    newer = claim.db.ask(lambda tx: newer_full_file(tx, claim.file, started=True))
    if newer is not None:
        raise ApprovalNeeded(
            f"A newer full file of the plan, file {newer}, has come since. It may list members that this file omits."
        )


def _check_threshold(claim: FileClaim, *, missing: int, unnamed: int) -> None:
    file = claim.file
    before = file.members_before or 0
    would_be = f"{missing} of the plan's {before} members would be ended"
    limit = max(before * THRESHOLD_PERCENT // 100, THRESHOLD_MEMBERS)
    if missing > limit:
        raise ApprovalNeeded(f"{would_be}, more than {limit}.")
    last = claim.db.ask(lambda tx: store.last_full_rows(tx, file.plan_id, file.id))
    rows = file.rows_total or 0
    if last is not None and rows * SHRUNK_FACTOR < last:
        raise ApprovalNeeded(f"The file has {rows} rows, less than half of the {last} of the last full one.")
    if unnamed:
        raise ApprovalNeeded(
            f"{would_be}. The external_id of {unnamed} rows can't be read; they may be theirs."
        )


def _missing(claim: FileClaim, check: CheckResult) -> Iterator[Sequence[MemberAccess]]:
    """The members to end, in batches. Each batch is read before the one before it is written over."""
    file, after = claim.file, 0
    while True:
        at = after
        found = claim.db.ask(lambda tx, at=at: list_members_under(tx, file.plan_id, after_id=at, limit=BATCH))  # type: ignore[misc]
        if not found:
            return
        after = found[-1].id
        batch = [
            member
            for member in found
            if (member.expiry_date is None or member.expiry_date > _last_day(member, check))
            and (file.started_at is None or member.updated_at <= file.started_at)
            and not check.identifiers.contains(member.external_id)
        ]
        if batch:
            yield batch


def _last_day(member: MemberAccess, check: CheckResult) -> str:
    return max(check.file_date, member.effective_date)


def _ending(file: EligibilityFile, member: MemberAccess, check: CheckResult) -> ChunkRow:
    day = _last_day(member, check)
    record = parse_member({"external_id": member.external_id, "expiry_date": day}, today=check.file_date)
    submission = Submission(
        file.account_id,
        file.plan_id,
        record,
        file.client,
        file.history_key,
        Action.END,
        unless_changed_since=file.started_at,
    )
    warnings = () if day == check.file_date else ("ends_on_first_day",)
    return ChunkRow(None, member.external_id, submission, (), warnings)
