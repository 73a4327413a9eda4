"""Members of the plan that a full file omits: which they are, and the end of their access.

The file's date becomes a member's expiry_date, or the day before the later day of which the file is
the list, but never a day before effective_date
(docs/interface.md, Fields of a member): access that begins later ends on its first day, with a
warning. A member that was changed after the file was started is not ended: the change is newer than
the file. Nor is one that a refused row may mean (files.kept).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from frontdesk import codes, eligibility
from frontdesk.db import Database, Tx
from frontdesk.eligibility.access_days import AccessNote, AccessPair
from frontdesk.eligibility.days import OPEN, day_after, day_before
from frontdesk.eligibility.model import Action, MemberAccess, MemberWarning, Submission
from frontdesk.eligibility.row_access import BEFORE_ABSENCE
from frontdesk.files import model
from frontdesk.files.check import CheckResult

ENDED_TOGETHER = 250  # members; SQLite has one writer, for which other writes wait
LISTED_TOGETHER = 5000  # members, read only


def find_missing(
    db: Database, file: model.EligibilityFile, check: CheckResult
) -> Iterator[Sequence[MemberAccess]]:
    """The members to end, as far as no refused row keeps them, in batches. A batch may be empty, so
    that the caller gets to its checkpoint while none is found.
    """
    after = 0
    while True:
        find_ids = partial(
            eligibility.list_ids_under, plan_id=file.plan_id, after_id=after, limit=LISTED_TOGETHER
        )
        ids = db.ask(find_ids)
        if not ids:
            return
        # Most files list nearly all members, so few are read.
        listed = check.met[bisect_left(check.met, ids[0]) : bisect_right(check.met, ids[-1])]
        omitted = sorted({*ids}.difference(listed))
        yield db.ask(partial(_to_end, ids=omitted, file=file, check=check))
        after = ids[-1]


def find_ends(
    db: Database,
    file: model.EligibilityFile,
    check: CheckResult,
    kept: Mapping[int, int],
    *,
    listed: Collection[int] = (),
) -> Iterator[list[model.ChunkItem]]:
    """The rows that end the missing members, by the chunk; some chunks are empty, as the batches
    are. A member in `kept` has a line with the number of its refused row, unless its id is `listed`.
    Members that are ended already are not found again, so another worker can continue.
    """
    for batch in find_missing(db, file, check):
        rest = [member for member in batch if member.id not in listed]
        for start in range(0, max(len(rest), 1), ENDED_TOGETHER):
            together = rest[start : start + ENDED_TOGETHER]
            yield [
                kept_line(member, kept[member.id])
                if member.id in kept
                else _ending(file, member, check)
                for member in together
            ]


def access_after(member: MemberAccess, check: CheckResult) -> AccessPair:
    """The access of a member that the file omits, before and after."""
    before = member.spans
    last_day = _last_day(member, check)
    after = [
        span._replace(end=min(span.end, last_day)) for span in before if span.begin <= last_day
    ]
    return AccessPair(before, after)


def would_end(member: MemberAccess, check: CheckResult, today: str) -> model.RowOutcome:
    """The line of a dry run about a member that the file omits."""
    warnings = model.stored_warnings(_warnings(member, check))
    return model.RowOutcome(
        place=None,
        external_id=member.external_id,
        outcome=model.WOULD_END,
        member_id=member.id,
        warnings=warnings,
        changed=("expiry_date",),
        access=tuple(AccessNote.of(access_after(member, check), today)),
    )


def kept_line(member: MemberAccess, row_number: int) -> model.RowOutcome:
    """The line about a member that the file omits and does not end, because of a refused row."""
    message = (
        f"Row {row_number} was refused and may be about this member, who is not ended. Correct the "
        "row; if its number was given to somebody new, rename the stored member with that number, "
        "then load the file again."
    )
    return model.RowOutcome(
        place=None,
        external_id=member.external_id,
        outcome=model.KEPT,
        member_id=member.id,
        faults=[("external_id", codes.rows.KEPT_BECAUSE_OF, message)],
    )


def _to_end(
    tx: Tx, ids: Sequence[int], *, file: model.EligibilityFile, check: CheckResult
) -> list[MemberAccess]:
    """Of these members the ones that the file ends."""
    batch = []
    for member in eligibility.find_access(tx, ids):
        last_day = _last_day(member, check)
        has_access = any(span.end > last_day for span in member.spans)
        has_access &= not _goes_on_elsewhere(member, file.plan_id, last_day)
        is_newer = file.started_at is not None and member.updated_at > file.started_at
        if has_access and not is_newer:
            batch.append(member)
    if not batch:
        return []
    # The file wrote these members, although the clock of another worker may be behind.
    written = eligibility.find_written(tx, [member.id for member in batch], file.id)
    return [member for member in batch if member.id not in written]


def _goes_on_elsewhere(member: MemberAccess, plan_id: int, last_day: str) -> bool:
    """Whether the member goes on under another plan after the last day: the plan's list need not
    name it any more. Its coverage of this plan ends as it was announced.
    """
    next_day = day_after(last_day)
    others = [span for span in member.spans if span.plan_id != plan_id]
    return any(span.begin <= next_day and span.end > last_day for span in others)


def _day_of_list(check: CheckResult) -> str:
    """The last day of access of the members that the file omits."""
    return day_before(check.list_day) if check.list_day else check.file_date


def _last_day(member: MemberAccess, check: CheckResult) -> str:
    day = max(_day_of_list(check), member.effective_date)
    if member.derive_on is None or member.expiry_date is None:
        return day
    return min(day, member.expiry_date)  # what follows is ended, not what ends by itself


def _warnings(member: MemberAccess, check: CheckResult) -> Sequence[MemberWarning]:
    if member.effective_date <= _day_of_list(check):
        return ()
    return (MemberWarning.of(codes.rows.ENDS_ON_FIRST_DAY),)


def _ending(
    file: model.EligibilityFile, member: MemberAccess, check: CheckResult
) -> model.ChunkRow:
    key = member.external_id
    plan_id = file.plan_id
    day = _last_day(member, check)
    record = eligibility.parse_member(
        {"external_id": key, "expiry_date": day}, today=check.file_date
    )
    record.given[BEFORE_ABSENCE] = member.expiry_date or OPEN
    by = (file.client, file.request_id, Action.END, file.id, file.started_at)
    submission = Submission(file.account_id, plan_id, record, *by)
    return model.ChunkRow(None, key, submission, _warnings(member, check))
