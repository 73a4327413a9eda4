"""Members that a full file ended by omitting them, and how they come back (docs/decisions/0091).

`expiry_before_absence` marks such a member, and keeps the expiry_date that it had. Any record that says an expiry_date takes
the mark away: from then on the end is the sender's own.
"""

from collections.abc import Mapping
from typing import Any

from frontdesk.eligibility.model import Action, Submission

BEFORE_ABSENCE = "expiry_before_absence"
OPEN = "9999-12-31"  # stands for an access without an end


def given_after_absence(
    values: Mapping[str, Any], submission: Submission, *, reopens: bool, today: str
) -> tuple[Mapping[str, Any], bool]:
    """What the record changes on the stored values, and whether it opens the access of a member that was absent.

    The access gets back the expiry_date that it had before, unless that is past by `today` (`YYYY-MM-DD`).
    """
    given, before = submission.record.given, values[BEFORE_ABSENCE]
    if submission.action is Action.END_ABSENT:
        return {**given, BEFORE_ABSENCE: values["expiry_date"] or OPEN}, False
    if before is None or submission.action is Action.COMPARE:
        return given, False
    said = given.get("expiry_date")
    if reopens and said is None and submission.action is Action.ENROL:
        if "expiry_date" in given or before == OPEN:
            return {**given, "expiry_date": None, BEFORE_ABSENCE: None}, True
        if before >= today:
            return {**given, "expiry_date": before, BEFORE_ABSENCE: None}, True
    if "expiry_date" in given:
        return {**given, BEFORE_ABSENCE: None}, False
    return given, False
