"""The rows of a file's lists as pages show them: covered, by initials and birth year."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from frontdesk.console.file_words import LABELS
from frontdesk.db import Tx
from frontdesk.eligibility.access_days import NO_END, loss_of_texts
from frontdesk.eligibility.covered import CoveredPerson
from frontdesk.eligibility.search import list_covered
from frontdesk.files.holds import day_begun
from frontdesk.files.model import EligibilityFile, RowOutcome
from frontdesk.files.report import ReportCursor, ReportFilter, ReportLine, report_lines
from frontdesk.files.report_rows import row_page
from frontdesk.plans import external_ids_of
from frontdesk.reach import Reach

ROWS_SHOWN = 25


class ListedRow(NamedTuple):
    """A row of a list. `person` is None of a row without a member, and of a member that was
    withdrawn, merged or erased. `last_day` and `returns` are those of the access that the row takes
    away, "" without one; `before` and `after` are days of access in words, "" of a row that left
    them. `lines` are those of the report.
    """

    row: RowOutcome
    person: CoveredPerson | None
    outcome: str
    last_day: str
    returns: str
    before: str
    after: str
    lines: Sequence[ReportLine]

    @property
    def rules(self) -> list[str]:
        """The sentences of the row's faults and warnings, each with the fields that it is about."""
        fields: dict[str, list[str]] = {}
        for line in self.lines:
            if line.hint:
                fields.setdefault(line.hint, []).append(line.field)
        return [f"{', '.join(of)}: {hint}" if any(of) else hint for hint, of in fields.items()]


class RowList(NamedTuple):
    """A page of a list, and the cursor of the next page."""

    rows: Sequence[ListedRow]
    next: ReportCursor | None


def read_list(
    tx: Tx, file: EligibilityFile, selection: ReportFilter, *, after: ReportCursor, now: datetime
) -> RowList:
    """A page of 25 rows of the file's report that have a selected line."""
    found, next_ = row_page(tx, file.id, selection, after=after, size=ROWS_SHOWN)
    covered = list_covered(tx, Reach.of(file.account_id), members_of(found), now=now)
    people = {person.id: person for person in covered}
    left = {row.left_plan_id for row in found if row.left_plan_id}
    plans = external_ids_of(tx, plan_ids=left) if left else {}
    today = day_begun(tx, file)
    return RowList([_listed(row, people, plans, today) for row in found], next_)


def members_of(rows: Collection[RowOutcome]) -> set[int]:
    """The ids of the members that the rows are about."""
    return {row.member_id for row in rows if row.member_id}


def _listed(
    row: RowOutcome, people: Mapping[int, CoveredPerson], plans: Mapping[int, str], today: str
) -> ListedRow:
    before, after, *_ = row.access or ("", "")
    loss = loss_of_texts(before, after, today)
    return ListedRow(
        row=row,
        person=people.get(row.member_id),
        outcome=LABELS.get(row.outcome, row.outcome),
        last_day=loss.last_day if loss else "",
        returns=loss.returns if loss else "",
        before=days_text(before) if row.access else "",
        after=days_text(after) if row.access else "",
        lines=[*report_lines(row, plans)],
    )


def days_text(intervals: str) -> str:
    """The days of access of a report's line in words.

    >>> days_text("2026-01-01/2026-06-30 2027-01-01/..")
    '2026-01-01 to 2026-06-30, from 2027-01-01 on'
    >>> days_text("")
    'no access'
    """
    if not intervals:
        return "no access"
    pairs = (interval.split("/") for interval in intervals.split())
    return ", ".join(
        f"from {begin} on" if end == NO_END else f"{begin} to {end}" for begin, end in pairs
    )
