"""The brakes: before a file's first row is applied it is held, if it would end, move or repeat too many members.

The feared days are the full file that lost half of its rows, the file that was sent to another plan, and the sender that gave
everybody a new number. One rule holds for all three, and a person approves a file as a whole (docs/files.md).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain

from frontdesk.db import Tx
from frontdesk.eligibility import find_access, find_written, list_ids_under, parse_member
from frontdesk.eligibility.model import Action, MemberAccess, Submission
from frontdesk.files import store
from frontdesk.files.check import CheckResult
from frontdesk.files.claims import FileClaim
from frontdesk.files.jobs import newer_file, overtaken_by
from frontdesk.files.model import (
    WARNED_FIELDS,
    WOULD_BE_SIMILAR,
    WOULD_END,
    WOULD_MOVE,
    ChunkItem,
    ChunkRow,
    EligibilityFile,
    FileStep,
    RowOutcome,
)
from frontdesk.formats.model import FileMode

ENDED_TOGETHER = 250  # members; SQLite has one writer, and others wait for it
LISTED_TOGETHER = 5000  # members, which are only read

# Of the plan's open members for ends, else of the file's rows; and at least so many members.
THRESHOLD_PERCENT, THRESHOLD_MEMBERS = 10, 25
_RENAME = " If the sender renumbered them: frontdesk member rename --csv"
SHRUNK_FACTOR = 2  # a file of less than half the rows of the last one


class ApprovalNeeded(Exception):
    """The file goes no further until a person approves it. `code` is that of the first reason."""

    def __init__(self, reasons: Sequence[tuple[str, str]]) -> None:
        super().__init__(" ".join(text for _, text in reasons))
        self.code = reasons[0][0]


def hold_if_needed(claim: FileClaim, check: CheckResult) -> None:
    """Raise ApprovalNeeded if a person has to approve the file. The report then lists what it would do to which members.

    Of a full file the members to end are counted, and in a dry run listed.
    """
    file, members = claim.file, check.members
    missing = 0
    if check.mode is FileMode.FULL:
        missing = sum(map(len, _missing(claim, check, limit=LISTED_TOGETHER)))
    if check.mode is FileMode.FULL and file.members_missing is None:
        claim.update(members_missing=missing)
    reasons = claim.db.ask(partial(_reasons, file=claim.file, check=check, missing=missing))
    lists = [_would_end(claim, check)] if missing and (reasons or file.dry_run) else []
    if reasons:
        lists = [_would_move(claim, members.moving), _would_be_similar(claim, members.similar), *lists]
    for outcomes in chain(*lists):
        with claim.db.write() as tx:
            claim.save_chunk(tx, outcomes, rows_done=0)
        claim.refresh()
    if reasons:
        raise ApprovalNeeded(reasons)


def end_missing(claim: FileClaim, check: CheckResult, write: Callable[[Sequence[ChunkItem]], None]) -> None:
    """End the plan's members that the file omits: their expiry_date becomes the file's date.

    It is never before effective_date (docs/interface.md, Fields of a member): access that was to begin later ends on its
    first day, and the report warns of it. A member that was changed after the work on the file began is left alone: the
    change is newer than the file. Members that are ended already are not found again, so a killed run goes on where it
    stopped.
    """
    for batch in _missing(claim, check, limit=ENDED_TOGETHER):
        write([_ending(claim, member, check) for member in batch])


def _reasons(tx: Tx, *, file: EligibilityFile, check: CheckResult, missing: int) -> list[tuple[str, str]]:
    """Why a person has to approve the file, with the code of each reason."""
    if (newer := newer_file(tx, file, started=True)) is not None:
        return [("overtaken", overtaken_by(newer, file.id))]
    if file.approved:
        return []
    rows, moving, similar = file.rows_total or 0, len(check.members.moving), len(check.members.similar)
    found = []
    for code, number, what, remedy in (
        ("too_many_moves", moving, "would move members here from other plans", ""),
        (
            "too_many_similar",
            similar,
            "would create members who look like stored ones that it omits",
            _RENAME,
        ),
    ):
        if rule := _broken_rule(number, rows):
            found.append((code, f"{number} of the file's {rows} rows {what}, {rule}.{remedy}"))
    if missing and (text := _reason_of_ends(tx, file, missing=missing, unnamed=check.unnamed)):
        found.append(("too_many_ends", text))
    return found


def _broken_rule(number: int, of: int) -> str:
    if number <= max(of * THRESHOLD_PERCENT // 100, THRESHOLD_MEMBERS):
        return ""
    if of * THRESHOLD_PERCENT // 100 >= THRESHOLD_MEMBERS:
        return f"more than {THRESHOLD_PERCENT} % of {of}"
    return f"more than {THRESHOLD_MEMBERS}"


def _reason_of_ends(tx: Tx, file: EligibilityFile, *, missing: int, unnamed: int) -> str:
    before, rows = file.members_before or 0, file.rows_total or 0
    would_be = f"{missing} of the plan's {before} members would be ended"
    if rule := _broken_rule(missing, before):
        return f"{would_be}, {rule}."
    last = store.last_full_rows(tx, file.plan_id, file.id)
    if last is not None and rows * SHRUNK_FACTOR < last:
        return f"{would_be}, and the file has {rows} rows, less than half of the {last} of the last full one."
    if unnamed:
        return f"{would_be}. The external_id of {unnamed} rows can't be read; they may be theirs."
    return ""


def _missing(claim: FileClaim, check: CheckResult, *, limit: int) -> Iterator[Sequence[MemberAccess]]:
    """The members to end, in batches. Each batch is read before the one before it is written over."""
    after = found = 0
    while True:
        claim.checkpoint(FileStep.END, found)
        ids, batch = claim.db.ask(
            partial(_missing_after, file=claim.file, check=check, after=after, limit=limit)
        )
        if batch:
            yield batch
        if not ids:
            return
        after, found = ids[-1], found + len(batch)


def _missing_after(
    tx: Tx, *, file: EligibilityFile, check: CheckResult, after: int, limit: int
) -> tuple[Sequence[int], list[MemberAccess]]:
    """The ids of the plan's next members, and those of them to end. Most files name nearly all, so few are read."""
    ids = list_ids_under(tx, file.plan_id, after_id=after, limit=limit)
    if not ids:
        return [], []
    met = check.members.met
    named = set(met[bisect_left(met, ids[0]) : bisect_right(met, ids[-1])])
    batch = [
        member
        for member in find_access(tx, [id_ for id_ in ids if id_ not in named])
        if (member.expiry_date is None or member.expiry_date > _last_day(member, check))
        and (file.started_at is None or member.updated_at <= file.started_at)
    ]
    # The file created them, and the clock of another worker may be behind.
    written = find_written(tx, [member.id for member in batch], file.id) if batch else set()
    return ids, [member for member in batch if member.id not in written]


def _would_move(claim: FileClaim, moving: Sequence[int]) -> Iterator[Sequence[RowOutcome]]:
    def fault(member: MemberAccess) -> Sequence[str]:
        return "plan", "leaves_plan", f"The member would leave plan {member.plan_id}."

    return _listed(claim, moving, WOULD_MOVE, fault)


def _would_be_similar(claim: FileClaim, similar: Sequence[tuple[int, int]]) -> Iterator[Sequence[RowOutcome]]:
    """Each stored member, with the first row that looks like it."""
    places = dict(reversed(similar))

    def fault(member: MemberAccess) -> Sequence[str]:
        message = f"Row {places[member.id]} would create a member who looks like this one."
        return "external_id", "similar_member", message

    return _listed(claim, sorted(places), WOULD_BE_SIMILAR, fault)


def _listed(
    claim: FileClaim, ids: Sequence[int], outcome: str, fault: Callable[[MemberAccess], Sequence[str]]
) -> Iterator[Sequence[RowOutcome]]:
    for start in range(0, len(ids), LISTED_TOGETHER):
        claim.checkpoint(FileStep.APPLY, 0)
        yield [
            RowOutcome(
                None,
                member.external_id,
                outcome,
                member.id,
                [fault(member)],
                left_plan_id=member.plan_id if outcome == WOULD_MOVE else None,
            )
            for member in claim.db.ask(partial(find_access, ids=ids[start : start + LISTED_TOGETHER]))
        ]


def _would_end(claim: FileClaim, check: CheckResult) -> Iterator[Sequence[RowOutcome]]:
    for batch in _missing(claim, check, limit=LISTED_TOGETHER):
        yield [
            RowOutcome(
                None,
                member.external_id,
                WOULD_END,
                member.id,
                (),
                [(WARNED_FIELDS[code], code) for code in _warnings(member, check)],
                changed=("expiry_date",),
            )
            for member in batch
        ]


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
