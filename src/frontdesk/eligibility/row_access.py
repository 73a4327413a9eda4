"""The days of access and the plan that a row of a file, or a POST, gives to a member (pure).

An 834 says what becomes of coverages, and the dates follow from them; all other dates replace the
coverages by one of every line (docs/834.md, Access).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from frontdesk import codes
from frontdesk.clock import AccountDay
from frontdesk.codes import Code
from frontdesk.eligibility.coverages import (
    MOST_COVERAGES,
    Coverage,
    apply_changes,
    as_stored,
    coverages_in_force,
    derive,
    kept_coverages,
    lacks_a_day,
    simplified,
    until,
)
from frontdesk.eligibility.days import OPEN, day_before
from frontdesk.eligibility.fields import INVERTED_DATES
from frontdesk.eligibility.model import Action, MemberWarning, Submission
from frontdesk.eligibility.persons import Values
from frontdesk.errors import fault_of

# Marks a member that was ended by absence, and keeps its earlier expiry_date. A record with an
# expiry_date clears the mark: from then on the end is the sender's own (docs/decisions/0091).
BEFORE_ABSENCE = "expiry_before_absence"
_TOO_MANY_COVERAGES = fault_of(codes.rows.TOO_MANY_COVERAGES)
DATES = frozenset(("effective_date", "expiry_date"))


class FileTerms(NamedTuple):
    """How the rows of a file are decided. `day` (`YYYY-MM-DD`) is the one for which it lists its
    members, `today` the one on which it began: what was shown then is what an approval means.

    A full file is one with `may_reopen`: the dates of its rows are all, and a row without an
    expiry_date opens the access of a member again that a full file ended, if the account allows it.
    With `unless_changed_since`, a row of a member is refused that another than the file has changed
    after that time.
    """

    day: str
    today: str
    may_reopen: bool
    unless_changed_since: datetime | None = None


class GivenAccess(NamedTuple):
    """The changes of the stored values, and whether they reopen a member that was ended by absence.
    The submission has the plan of the record.
    """

    submission: Submission
    given: Values
    is_reopened: bool = False


class RowAccess:
    """The rules for the days of access of one chunk. `days` are by account, `plans` rows of
    `plans.find_owners` by id.
    """

    def __init__(
        self, file: FileTerms | None, days: Mapping[int, AccountDay], plans: Mapping[int, Values]
    ) -> None:
        self._file = file
        self._days = days
        self._plans = plans

    def row_of_new(self, submission: Submission) -> Submission:
        """The row of a file with the dates of its coverages for a new member."""
        if not submission.context.coverages:
            return submission
        return self._by_coverages(submission, None)

    def row_of_stored(self, submission: Submission, values: Values) -> Submission:
        """The row of a file with its dates for the stored member: those of its coverages, or of a
        table.
        """
        if submission.context.coverages:
            return self._by_coverages(submission, values)
        submission = _with_end(submission, values)
        if submission.action is Action.ENROL and submission.record.given.get("effective_date"):
            submission = self._by_begin(submission, values)
        return self._with_announced_move(submission, values)

    def _with_announced_move(self, submission: Submission, values: Values) -> Submission:
        """The row of a table for a member with an announced move to another plan: the list of today's plan
        says nothing of that, and its dates hold until then.
        """
        given = submission.record.given
        is_of_plan = submission.plan_id == values["plan_id"]
        if "coverages" in given or not is_of_plan or submission.action is not Action.ENROL:
            return submission
        today = self._today(submission)
        announced = [
            each
            for each in coverages_in_force(values)
            if each.plan_id != submission.plan_id and each.begin > today
        ]
        if not announced or given.keys().isdisjoint(DATES):
            return submission
        begin = given.get("effective_date") or values["effective_date"]
        first = min(each.begin for each in announced)
        end = min(given.get("expiry_date") or OPEN, day_before(first))
        if end < begin:
            return submission
        own = Coverage("", "", submission.plan_id, begin, end)
        return self._with_coverages(submission, [own, *announced], [], agrees=False)

    def keeps_plan(self, submission: Submission, values: Values) -> bool:
        """Whether the member of a file's row stays in its plan: the row does not say another, or
        only that of a coverage that is yet to begin, without a day.
        """
        if submission.context.keeps_plan:
            return True
        if self._file is None or not submission.record.given.keys().isdisjoint(DATES):
            return False
        today = self._today(submission)
        announced = (each.plan_id for each in kept_coverages(values) if each.begin > today)
        return not submission.context.coverages and submission.plan_id in announced

    def given_to_stored(self, submission: Submission, values: Values) -> GivenAccess:
        """The changes of the stored values, after an end by absence too: a reopened member gets its
        earlier access back, unless that is past. Dates that are not of an 834 replace all
        coverages.
        """
        given = submission.record.given
        if submission.action is Action.COMPARE:
            return GivenAccess(submission, given)
        if BEFORE_ABSENCE in given:  # ended by absence: the coverages stay for the return
            before = values[BEFORE_ABSENCE] or given[BEFORE_ABSENCE]
            return GivenAccess(submission, {**given, BEFORE_ABSENCE: before, "derive_on": None})
        if "coverages" not in given and values["coverages"] is not None:
            if given.keys() & DATES:
                given = {**given, "coverages": None, "derive_on": None}
            elif submission.plan_id != values["plan_id"]:
                given = {**given, **self._moved(submission, values)}
        if values[BEFORE_ABSENCE] is None:
            return GivenAccess(submission, given)
        return self._after_absence(submission, values, given)

    def is_still_ended(self, submission: Submission, values: Values) -> bool:
        """Whether the record names no end, and the stored one has come. Without a warning nobody
        would notice that a member who was sent again still has no access.
        """
        if "expiry_date" in submission.record.given or submission.intent.eligibility_id is not None:
            return False
        end = values["expiry_date"]
        if end is None or submission.action is Action.COMPARE:
            return False
        day = self._file.day if self._file else self._today(submission)
        return bool(end <= max(day, values["effective_date"]))

    def end_warning(self, submission: Submission, values: Values) -> MemberWarning | None:
        """What a record without an end has to be told of the stored end: that it has come, or, of
        the row of a table, that it is still to come and stays.
        """
        if self.is_still_ended(submission, values):
            return MemberWarning.of(codes.warnings.STILL_ENDED)
        is_table = submission.file_id is not None and submission.context.person is None
        says_none = (
            submission.action is Action.ENROL and "expiry_date" not in submission.record.given
        )
        if is_table and says_none and values["expiry_date"] is not None:
            return MemberWarning.of(codes.rows.END_STAYS)
        return None

    def _today(self, submission: Submission) -> str:
        if self._file is not None:
            return self._file.today
        return self._days[submission.account_id].earliest

    def _by_coverages(self, submission: Submission, values: Values | None) -> Submission:
        """The row with what its coverages make of those of the member, None for a new one."""
        today = self._today(submission)
        before = [] if values is None else coverages_in_force(values)
        changes = submission.context.coverages
        applied = apply_changes(before, changes, today=today, plan_id=submission.plan_id)
        if applied.is_inverted:
            record = submission.record
            faults = (*record.faults, INVERTED_DATES)
            return submission._replace(record=replace(record, faults=faults))
        coverages = applied.coverages
        if len(simplified(coverages, today) if coverages else ()) > MOST_COVERAGES:
            record = submission.record
            faults = (*record.faults, _TOO_MANY_COVERAGES)
            return submission._replace(record=replace(record, faults=faults))
        if not coverages or (values is None and applied.leaves_first_day):
            return submission
        warnings = []
        if applied.leaves_first_day:
            warnings.append(codes.rows.ENDS_ON_FIRST_DAY)
        is_full = self._file is not None and self._file.may_reopen
        if is_full and applied.stated:
            coverages = applied.stated
            first = min(each.begin for each in coverages)
            others = [each for each in applied.coverages if each not in coverages]
            in_force = until(others, first, today) if first > today else []
            if in_force:
                coverages = [*in_force, *coverages]
                warnings.append(codes.rows.STAYS_UNTIL_THEN)
            if lacks_a_day(coverages, _announced_between(before, today, first)):
                warnings.append(codes.rows.BEGIN_POSTPONED)
        else:
            if applied.goes_on:
                warnings.append(codes.rows.OTHER_COVERAGE_OPEN)
            if applied.is_postponed:
                warnings.append(codes.rows.BEGIN_POSTPONED)
        # Where other coverages stay, the row alone does not say what the record has.
        agrees = [*coverages] == [*applied.stated]
        return self._with_coverages(submission, coverages, warnings, agrees=agrees)

    def _by_begin(self, submission: Submission, values: Values) -> Submission:
        """The row of a table with a begin: one after the stored end clears that, and before one
        that comes later what is in force stays. What is yet to begin is replaced.
        """
        record = submission.record
        given = record.given
        begin = given["effective_date"]
        stored_end = values["expiry_date"] or OPEN
        before = values[BEFORE_ABSENCE] or stored_end
        if "expiry_date" in given:
            end = given["expiry_date"] or OPEN
        elif stored_end >= begin:
            end = before
        else:
            end = before if before >= begin else OPEN
            given = given | {"expiry_date": None if end == OPEN else end}
            submission = submission._replace(record=replace(record, given=given))
        today = self._today(submission)
        if begin <= today or end < begin:
            return submission
        before = coverages_in_force(values)
        in_force = until(before, begin, today)
        other_plans = [
            each
            for each in before
            if today < each.begin < begin and each.plan_id != submission.plan_id
        ]
        later = Coverage("", "", submission.plan_id, begin, end)
        coverages = [*in_force, *other_plans, later] if in_force else [later]
        warnings = [codes.rows.STAYS_UNTIL_THEN] if in_force else []
        if lacks_a_day(coverages, _announced_between(before, today, begin)):
            warnings.append(codes.rows.BEGIN_POSTPONED)
        if in_force:
            return self._with_coverages(submission, coverages, warnings, agrees=False)
        return _with_warnings(submission, warnings)

    def _with_coverages(
        self,
        submission: Submission,
        coverages: Sequence[Coverage],
        warnings: Sequence[Code],
        *,
        agrees: bool,
    ) -> Submission:
        """The row with these coverages, and the dates and the plan that follow from them. One that
        does not agree with the record, or is warned of, gets no digest: it has to be read again.
        """
        today = self._today(submission)
        coverages = simplified(coverages, today)
        derived = derive(coverages, today)
        record = submission.record
        given: dict[str, Any] = {
            **record.given,
            "effective_date": derived.effective_date,
            "expiry_date": derived.expiry_date,
        }
        if submission.action is Action.COMPARE:
            return submission._replace(record=replace(record, given=given))
        given["coverages"] = as_stored(coverages)
        given["derive_on"] = derived.derive_on
        submission = submission._replace(record=replace(record, given=given))
        submission = _with_warnings(submission, warnings)
        return submission._replace(
            plan_id=derived.plan_id,
            row_digest=submission.row_digest if agrees and not warnings else None,
        )

    def _moved(self, submission: Submission, values: Values) -> Values:
        """The coverages of a member that moves to the plan of the record."""
        kept = [each._replace(plan_id=submission.plan_id) for each in kept_coverages(values)]
        derived = derive(kept, self._today(submission))
        is_absent = values[BEFORE_ABSENCE] is not None
        return {"coverages": as_stored(kept), "derive_on": None if is_absent else derived.derive_on}

    def _after_absence(self, submission: Submission, values: Values, given: Values) -> GivenAccess:
        today = self._today(submission)
        if self._may_reopen(submission) and given.get("expiry_date") is None:
            if "expiry_date" in given:
                return GivenAccess(submission, {**given, BEFORE_ABSENCE: None}, is_reopened=True)
            stored = {**values, **given, BEFORE_ABSENCE: values[BEFORE_ABSENCE]}
            kept = derive(kept_coverages(stored), today)
            if kept.expiry_date is None or kept.expiry_date >= today:
                back = {
                    "effective_date": kept.effective_date,
                    "expiry_date": kept.expiry_date,
                    "derive_on": kept.derive_on,
                    BEFORE_ABSENCE: None,
                }
                is_of_plan = submission.plan_id == values["plan_id"]
                plan_id = kept.plan_id if is_of_plan else submission.plan_id
                submission = submission._replace(plan_id=plan_id)
                return GivenAccess(submission, {**given, **back}, is_reopened=True)
        if "expiry_date" in given:
            given = {BEFORE_ABSENCE: None, **given}
        return GivenAccess(submission, given)

    def _may_reopen(self, submission: Submission) -> bool:
        """Whether the record may open the access of a member that a full file ended. A new
        identifier for a member (`rename`) says nothing of its access.
        """
        if submission.action is not Action.ENROL or submission.intent.eligibility_id is not None:
            return False
        is_allowed = self._file is None or self._file.may_reopen
        return is_allowed and bool(self._plans[submission.plan_id]["reopens_absent"])


def _with_warnings(submission: Submission, warnings: Iterable[Code]) -> Submission:
    record = submission.record
    told = (*record.warnings, *map(MemberWarning.of, warnings))
    return submission._replace(record=replace(record, warnings=told))


def _announced_between(coverages: Iterable[Coverage], today: str, begin: str) -> list[str]:
    """The first days of those that are yet to begin, and begin before `begin`."""
    return [each.begin for each in coverages if today < each.begin < begin]


def _with_end(submission: Submission, values: Values) -> Submission:
    """The row of a table with the end that its context has for the stored member.

    An end that the row moves to the first day of access depends on the stored member, so the row
    gets no digest: the same row has to be read again.
    """
    context = submission.context
    record = submission.record
    given = record.given
    stored_end = values["expiry_date"] or OPEN
    if context.keeps_earlier_end and stored_end < given["expiry_date"]:
        # A table lists its terminated employees every night: the first night counts.
        given = given | {"expiry_date": stored_end}
        submission = submission._replace(record=replace(record, given=given))
    begin = given.get("effective_date") or values["effective_date"]
    if not context.ends_access or not begin or (given.get("expiry_date") or begin) >= begin:
        return submission
    given = given | {"expiry_date": begin}
    warnings = (*record.warnings, MemberWarning.of(codes.rows.ENDS_ON_FIRST_DAY))
    record = replace(record, given=given, warnings=warnings)
    return submission._replace(record=record, row_digest=None)
