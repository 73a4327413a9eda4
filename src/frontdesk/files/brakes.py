"""The brakes: a file that would end, move or repeat too many members is held until a person
approves it as a whole (docs/files.md).

Examples are a full file that lost half of its rows, a file for another plan, and a sender that has
renumbered its members. The same limit applies to all three. A file is also held if most values of a
column stand for none, since its export may have lost them.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from frontdesk import codes, eligibility
from frontdesk.codes import Code
from frontdesk.db import Database, Tx
from frontdesk.eligibility.model import MemberAccess
from frontdesk.files import model, store
from frontdesk.files.absence import find_missing, kept_line, would_end
from frontdesk.files.actions import overtaken_by
from frontdesk.files.check import THRESHOLD_MEMBERS, CheckResult
from frontdesk.files.file_age import find_older_reason
from frontdesk.formats.model import FileMode

# Of the plan's open members for ends, else of the file's rows; and at least THRESHOLD_MEMBERS.
THRESHOLD_PERCENT = 10
PLACEHOLDERS_PERCENT = 50  # of a column's values in the sampled rows
SHRUNK_FACTOR = 2  # a file of less than half the rows of the last one
LISTED_TOGETHER = 5000  # members, read only

Reason = tuple[Code, str]


class ApprovalNeeded(Exception):
    """A person has to approve the file. `code` is that of the first reason, `detail` has all."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail

    @classmethod
    def of(cls, reasons: Sequence[Reason]) -> "ApprovalNeeded":
        code, _ = reasons[0]
        return cls(code, " ".join(text for _, text in reasons))


def find_reasons(
    tx: Tx, *, file: model.EligibilityFile, check: CheckResult, missing: int
) -> list[Reason]:
    """The reasons why a person has to approve the file. `missing`: how many members a full file
    omits.
    """
    # An approved change file is applied: of members that were changed since, its rows are refused.
    is_approved_change = file.approved and check.mode is FileMode.CHANGE
    overtaken = "" if is_approved_change else overtaken_by(tx, file)
    if overtaken:
        return [(codes.files.OVERTAKEN, overtaken)]
    if file.approved:
        return []
    reasons = []
    if older := find_older_reason(tx, file):
        reasons.append((codes.files.OLDER_THAN_APPLIED, older))
    reasons += _reasons_of_rows(file.rows_total or 0, check)
    if missing:
        last_rows = store.last_full_rows(tx, file.plan_id, file.id)
        reasons += _reasons_of_ends(file, check, missing=missing, last_rows=last_rows)
    return reasons


def _reasons_of_rows(rows: int, check: CheckResult) -> list[Reason]:
    reasons = []
    moving = len(check.moving)
    rule = _broken_rule(moving, rows)
    if rule:
        text = f"{moving} of the file's {rows} rows would move members here from other plans"
        reasons.append((codes.files.TOO_MANY_MOVES, f"{text}, {rule}."))
    similar = len(check.similar)
    rule = _broken_rule(similar, rows)
    if rule:
        text = f"{similar} of the file's {rows} rows would create members who look like stored ones"
        remedy = "If the sender renumbered them, rename the stored members first."
        reason = f"{text} that it omits, {rule}. {remedy}"
        reasons.append((codes.files.TOO_MANY_SIMILAR, reason))
    for field, found, of in check.placeholders:
        if found > max(of * PLACEHOLDERS_PERCENT // 100, THRESHOLD_MEMBERS):
            text = f"{found} of the first {of} values of {field} stand for none, such as "
            text += "none@none.com or 0000000000, and would be left out."
            reasons.append((codes.files.TOO_MANY_PLACEHOLDERS, text))
    return reasons


def _reasons_of_ends(
    file: model.EligibilityFile, check: CheckResult, *, missing: int, last_rows: int | None
) -> list[Reason]:
    """`last_rows`: of the plan's last full file."""
    rows = file.rows_total or 0
    before = file.members_before or 0
    rule = _broken_rule(missing, before)
    text = f"{missing} of the plan's {before} members would be ended"
    if rule:
        text += f", {rule}."
    elif last_rows is not None and rows * SHRUNK_FACTOR < last_rows:
        text += f", and the file has {rows} rows, "
        text += f"less than half of the {last_rows} of the last full one."
    elif check.unnamed:
        text += f". The external_id of {check.unnamed} rows can't be read; they may be theirs."
    else:
        return []
    return [(codes.files.TOO_MANY_ENDS, text)]


def _broken_rule(number: int, of: int) -> str:
    share = of * THRESHOLD_PERCENT // 100
    if number <= max(share, THRESHOLD_MEMBERS):
        return ""
    if share >= THRESHOLD_MEMBERS:
        return f"more than {THRESHOLD_PERCENT} % of {of}"
    return f"more than {THRESHOLD_MEMBERS}"


def list_affected(
    db: Database,
    file: model.EligibilityFile,
    check: CheckResult,
    *,
    is_held: bool,
    missing: int,
    kept: Mapping[int, int],
) -> Iterator[list[model.RowOutcome]]:
    """The report's lines about the members that the file would affect, in batches: all of them if
    the file is held, the ends also in a dry run. `missing`: how many members a full file would end.
    `kept` are those that it omits and would not, with the numbers of their refused rows.
    """
    if is_held:
        for batch in _find_members(db, check.moving):
            yield [_would_move(member) for member in batch]
        # Of several rows that look like the member, the first one.
        row_numbers = dict(reversed(check.similar))
        for batch in _find_members(db, sorted(row_numbers)):
            yield [_would_be_similar(member, row_numbers[member.id]) for member in batch]
    if (missing or kept) and (is_held or file.dry_run):
        for batch in find_missing(db, file, check):
            yield [
                kept_line(member, kept[member.id])
                if member.id in kept
                else would_end(member, check)
                for member in batch
            ]


def _find_members(db: Database, ids: Sequence[int]) -> Iterator[Sequence[MemberAccess]]:
    for start in range(0, len(ids), LISTED_TOGETHER):
        together = ids[start : start + LISTED_TOGETHER]
        yield db.ask(partial(eligibility.find_access, ids=together))


def _would_move(member: MemberAccess) -> model.RowOutcome:
    fault = ("plan", codes.rows.LEAVES_PLAN, f"The member would leave plan {member.plan_id}.")
    return model.RowOutcome(
        place=None,
        external_id=member.external_id,
        outcome=model.WOULD_MOVE,
        member_id=member.id,
        faults=[fault],
        left_plan_id=member.plan_id,
    )


def _would_be_similar(member: MemberAccess, row_number: int) -> model.RowOutcome:
    message = f"Row {row_number} would create a member who looks like this one."
    return model.RowOutcome(
        place=None,
        external_id=member.external_id,
        outcome=model.WOULD_BE_SIMILAR,
        member_id=member.id,
        faults=[("external_id", codes.warnings.SIMILAR_MEMBER, message)],
    )
