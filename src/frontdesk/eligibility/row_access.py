"""The days of access that the row of a file, or a POST, gives to a stored member (pure)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from frontdesk import codes
from frontdesk.clock import AccountDay
from frontdesk.eligibility.days import OPEN
from frontdesk.eligibility.model import Action, MemberWarning, Submission
from frontdesk.eligibility.persons import Values

# Marks a member that was ended by absence, and keeps its earlier expiry_date. A record with an
# expiry_date clears the mark: from then on the end is the sender's own (docs/decisions/0091).
BEFORE_ABSENCE = "expiry_before_absence"


class FileTerms(NamedTuple):
    """How the rows of a file are decided. `day` (`YYYY-MM-DD`) is the one for which it lists its
    members. With `may_reopen`, a row without an expiry_date opens the access of a member again that
    a full file ended, if the account allows it.
    """

    day: str
    may_reopen: bool


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

    def row_of_stored(self, submission: Submission, values: Values) -> Submission:
        """The row of a file with the end that its context has for the stored member.

        An end that the row moves to the first day of access depends on the stored member, so the
        row gets no digest: the same row has to be read again.
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

    def given_after_absence(self, submission: Submission, values: Values) -> tuple[Values, bool]:
        """The changes of the stored values, and whether they reopen a member that was ended by
        absence.

        A reopened member gets its earlier expiry_date back, unless that is past.
        """
        given = submission.record.given
        before = values[BEFORE_ABSENCE]
        if before is None or submission.action is Action.COMPARE:
            return given, False
        if self._may_reopen(submission) and given.get("expiry_date") is None:
            end = None if "expiry_date" in given or before == OPEN else before
            if end is None or end >= self._days[submission.account_id].earliest:
                return {**given, "expiry_date": end, BEFORE_ABSENCE: None}, True
        return ({BEFORE_ABSENCE: None, **given} if "expiry_date" in given else given), False

    def _may_reopen(self, submission: Submission) -> bool:
        """Whether the record may open the access of a member that a full file ended. A new
        identifier for a member (`rename`) says nothing of its access.
        """
        if submission.action is not Action.ENROL or submission.intent.eligibility_id is not None:
            return False
        is_allowed = self._file is None or self._file.may_reopen
        return is_allowed and bool(self._plans[submission.plan_id]["reopens_absent"])

    def is_still_ended(self, submission: Submission, values: Values) -> bool:
        """Whether the record names no end, and the stored one has come. Without a warning nobody
        would notice that a member who was sent again still has no access.
        """
        if "expiry_date" in submission.record.given or submission.intent.eligibility_id is not None:
            return False
        end = values["expiry_date"]
        if end is None or submission.action is Action.COMPARE:
            return False
        day = self._file.day if self._file else self._days[submission.account_id].earliest
        return bool(end <= max(day, values["effective_date"]))
