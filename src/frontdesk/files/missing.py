"""The members that a full file omits: ended, or listed for a person to approve. So are those that a file would move.

The feared days are the full file that lost half of its rows, and the file that was sent to another plan. So no member is ended
or moved when too many would be, until a person approves it (docs/files.md).
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

from frontdesk.db import Tx
from frontdesk.eligibility import find_access, list_keys_under, parse_member
from frontdesk.eligibility.model import Action, MemberAccess, Submission
from frontdesk.files import store
from frontdesk.files.check import CheckResult
from frontdesk.files.chunks import ChunkWriter
from frontdesk.files.claims import FileClaim
from frontdesk.files.jobs import newer_full_file
from frontdesk.files.model import (
    WARNED_FIELDS,
    WOULD_END,
    WOULD_MOVE,
    ChunkRow,
    FileMode,
    FileStep,
    RowOutcome,
)
from frontdesk.files.pace import ChunkPace
from frontdesk.files.threads import CommitTurn

ENDED_TOGETHER = 250  # members; SQLite has one writer, and others wait for it
LISTED_TOGETHER = 5000  # members, which are only read

_ENDING = ("expiry_date",)  # what an end changes

# Of the plan's members to end, of the file's rows to move; and at least so many members.
THRESHOLD_PERCENT, THRESHOLD_MEMBERS = 10, 25
SHRUNK_FACTOR = 2  # a file of less than half the rows of the last one


class ApprovalNeeded(Exception):
    """The file goes no further until a person approves it."""


def hold_moves(claim: FileClaim, check: CheckResult) -> None:
    """Raise ApprovalNeeded if too many members would leave other plans. The report then lists them, and those that a full file
    would end: a person approves the file as a whole."""
    if claim.file.counts:
        claim.drop_provisional()
    moving, limit = len(check.moving), _most(claim.file.rows_total or 0)
    if claim.file.approved or moving <= limit:
        return
    reason = f"{moving} members would move here from other plans, more than {limit}."
    listed = _would_move(claim, check)
    if check.mode is FileMode.FULL:
        missing = _count_missing(claim, check)
        of_ends = claim.db.ask(partial(_reason, claim=claim, missing=missing, unnamed=check.unnamed))
        reason, listed = f"{reason} {of_ends}".rstrip(), chain(listed, _would_end(claim, check))
    claim.add_provisional(listed)
    raise ApprovalNeeded(reason)


def end_missing(claim: FileClaim, writer: ChunkWriter, check: CheckResult, pace: ChunkPace | None) -> None:
    """End the plan's members that the file omits: their expiry_date becomes the file's date. Raises ApprovalNeeded.

    It is never before effective_date (docs/interface.md, Fields of a member): access that was to begin later ends on its
    first day, and the report warns of it. A member that was changed after the work on the file began is left alone: the
    change is newer than the file. Members that are ended already are not found again, so a killed run goes on where it
    stopped.
    """
    claim.drop_provisional()
    missing = _count_missing(claim, check)
    if claim.file.members_missing is None:
        claim.update(members_missing=missing)
    if not missing:
        return
    reason = claim.db.ask(partial(_reason, claim=claim, missing=missing, unnamed=check.unnamed))
    if reason or claim.file.dry_run:
        claim.add_provisional(_would_end(claim, check))
    if reason:
        raise ApprovalNeeded(reason)
    if claim.file.dry_run:
        return
    ended = 0
    chunks = (
        [_ending(claim, member, check) for member in batch]
        for batch in _missing(claim, check, limit=ENDED_TOGETHER)
    )
    for rows in chunks if pace is None else pace.cut(chunks):
        claim.checkpoint(FileStep.END, ended)
        writer.write(rows, CommitTurn())
        ended += len(rows)


def _most(number: int) -> int:
    """How many members may be ended or moved without a person's approval."""
    return max(number * THRESHOLD_PERCENT // 100, THRESHOLD_MEMBERS)


def _count_missing(claim: FileClaim, check: CheckResult) -> int:
    missing = 0
    for batch in _missing(claim, check, limit=LISTED_TOGETHER):
        claim.checkpoint(FileStep.END, 0)
        missing += len(batch)
    return missing


def _reason(tx: Tx, *, claim: FileClaim, missing: int, unnamed: int) -> str:
    """Why a person has to approve the ends, "" if not. Files of an account run one at a time, so a newer one has run by now or
    comes after this one."""
    file = claim.file
    if (newer := newer_full_file(tx, file, started=True)) is not None:
        return f"A newer full file of the plan, file {newer}, has come since. It may list members that this file omits."
    if file.approved or not missing:
        return ""
    before, rows = file.members_before or 0, file.rows_total or 0
    would_be = f"{missing} of the plan's {before} members would be ended"
    if missing > (limit := _most(before)):
        return f"{would_be}, more than {limit}."
    last = store.last_full_rows(tx, file.plan_id, file.id)
    if last is not None and rows * SHRUNK_FACTOR < last:
        return f"The file has {rows} rows, less than half of the {last} of the last full one."
    if unnamed:
        return f"{would_be}. The external_id of {unnamed} rows can't be read; they may be theirs."
    return ""


def _would_move(claim: FileClaim, check: CheckResult) -> Iterator[Sequence[RowOutcome]]:
    """The report's lines about the members that would move."""
    for start in range(0, len(check.moving), LISTED_TOGETHER):
        claim.checkpoint(FileStep.APPLY, 0)
        ids = check.moving[start : start + LISTED_TOGETHER]
        yield [
            RowOutcome(
                None,
                member.external_id,
                WOULD_MOVE,
                member.id,
                [("plan", "leaves_plan", f"The member would leave plan {member.plan_id}.")],
                left_plan_id=member.plan_id,
            )
            for member in claim.db.ask(partial(find_access, ids=ids))
        ]


def _would_end(claim: FileClaim, check: CheckResult) -> Iterator[Sequence[RowOutcome]]:
    """The report's lines about the members that are not ended, for a person to approve."""
    for batch in _missing(claim, check, limit=LISTED_TOGETHER):
        claim.checkpoint(FileStep.END, 0)
        yield [
            RowOutcome(
                None, member.external_id, WOULD_END, member.id, (), _named(_warnings(member, check)), _ENDING
            )
            for member in batch
        ]


def _missing(claim: FileClaim, check: CheckResult, *, limit: int) -> Iterator[Sequence[MemberAccess]]:
    """The members to end, in batches. Each batch is read before the one before it is written over."""
    file, after = claim.file, 0
    while True:
        keys, unnamed = claim.db.ask(partial(_unnamed, file.plan_id, check, after, limit))
        if not keys:
            return
        after = keys[-1][0]
        batch = [
            member
            for member in unnamed
            if (member.expiry_date is None or member.expiry_date > _last_day(member, check))
            and (file.started_at is None or member.updated_at <= file.started_at)
            and not check.names(member)
        ]
        if batch:
            yield batch


def _unnamed(
    plan_id: int, check: CheckResult, after_id: int, limit: int, tx: Tx
) -> tuple[Sequence[tuple[int, str]], list[MemberAccess]]:
    """The keys of the plan's next members, and the access of those that the file does not name by identifier. Most files name
    nearly all, so the other columns are read for few."""
    keys = list_keys_under(tx, plan_id, after_id=after_id, limit=limit)
    unnamed = [id_ for id_, key in keys if not check.identifiers.contains(key)]
    return keys, find_access(tx, unnamed) if unnamed else []


def _last_day(member: MemberAccess, check: CheckResult) -> str:
    return max(check.file_date, member.effective_date)


def _ending(claim: FileClaim, member: MemberAccess, check: CheckResult) -> ChunkRow:
    file, day = claim.file, _last_day(member, check)
    record = parse_member({"external_id": member.external_id, "expiry_date": day}, today=check.file_date)
    submission = Submission(
        file.account_id,
        file.plan_id,
        record,
        file.client,
        file.request_id,
        Action.END_ABSENT,
        file.id,
        file.started_at,
    )
    return ChunkRow(None, member.external_id, submission, _warnings(member, check))


def _warnings(member: MemberAccess, check: CheckResult) -> Sequence[str]:
    return () if _last_day(member, check) == check.file_date else ("ends_on_first_day",)


def _named(warnings: Sequence[str]) -> Sequence[Sequence[str]]:
    return [(WARNED_FIELDS[code], code) for code in warnings]
