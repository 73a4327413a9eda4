"""Checks of a caller's words, opened records, and their limits."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from frontdesk import codes
from frontdesk.codes import Kind
from frontdesk.eligibility.search import Truncation
from frontdesk.errors import FrontdeskError

HOUR = timedelta(hours=1)
CHECKS_AN_HOUR = 10  # of one person, by all users
OPEN_TIME = timedelta(minutes=15)
PEOPLE_AN_HOUR = 20  # that one user opens without a fresh second factor
SEARCHES_AN_HOUR = 60  # of one user: letter by letter a search tells a name and a birth date
FACTS_NEEDED = 3  # different fields that matched, before support's new address gets a mail
MOST_READ = 1000  # disclosures of a person or a user that are looked at


class CheckedField(StrEnum):
    """A field of which a caller may be asked."""

    DOB = "dob"
    LAST_NAME = "last_name"
    FIRST_NAME = "first_name"
    ZIPCODE = "zipcode"
    EMAIL = "email"
    PHONE = "phone"
    EXTERNAL_ID = "external_id"


class CheckAnswer(StrEnum):
    """Whether the caller's words agree with the record; they differ from an absent value."""

    MATCHES = "matches"
    DIFFERS = "differs"


class OpeningReason(StrEnum):
    """Why a record is opened."""

    CALLER_ON_THE_LINE = "caller_on_the_line"
    MAIL_QUESTION = "mail_question"
    CORRECTION = "correction"
    COMPLAINT = "complaint"
    AUDIT = "audit"


class DisclosureKind(StrEnum):
    """What a user learned of a member: whether words agree with the record, or the record."""

    CHECKED = "checked"
    OPENED = "opened"


class Holder(NamedTuple):
    """Who holds what was opened, checked or found: a user (`user:12`) in a session. It ends with the
    session, whose number no other one gets; its rows stay for an hour, because they count.
    """

    actor: str
    session_id: int


class Disclosure(NamedTuple):
    """What `actor` learned of a member in a session; for a check, of which field and with which
    result.
    """

    member_id: int
    actor: str
    kind: DisclosureKind
    session_id: int | None
    at: datetime
    field: CheckedField | None = None
    answer: CheckAnswer | None = None


class CallersWords(NamedTuple):
    """What a caller says of a field of the person, to a user in a session."""

    member_id: int
    session_id: int
    field: CheckedField
    text: str


# Answers that prove nothing of a caller: the e-mail address is what a caller wants changed, and the page
# of the person prints the external_id, as letters and cards of a customer do.
NO_FACTS = frozenset({CheckedField.EMAIL, CheckedField.EXTERNAL_ID})


class CallersChecks(NamedTuple):
    """What the caller of a user's session said of a person within the last hour: by field, the newest
    first, whether it matched. `left`: how many more checks of the person this hour allows, by anyone.
    """

    matches: Mapping[CheckedField, bool]
    left: int

    @property
    def facts(self) -> frozenset[CheckedField]:
        """The fields of which the caller knew the value, without NO_FACTS."""
        known = frozenset(field for field, agrees in self.matches.items() if agrees)
        return known - NO_FACTS


class Opening(NamedTuple):
    """A user opens the record of a person: why, and for which case. `session_id` is the user's
    session, `has_fresh_factor` whether its second factor was given a short time ago.
    """

    member_id: int
    reason: OpeningReason
    case: str
    session_id: int
    has_fresh_factor: bool = False


class FileNames(NamedTuple):
    """The names in the lists of a file, as a session sees them."""

    file_id: int
    session_id: int


class OpenedNames(NamedTuple):
    """The names in the lists of a file that were opened by a user, in a session, at a time."""

    file_id: int
    actor: str
    session_id: int
    at: datetime


class OpenedRecord(NamedTuple):
    """The person whose record is open in the session until a time. Of a merged member it is the
    kept one.
    """

    member_id: int
    until: datetime


class KeptSearch(NamedTuple):
    """Who was found by a search of `actor` in a session. `number` is random: whoever holds it and the session
    sees the search. `truncated` as in FoundPeople.
    """

    number: str
    actor: str
    session_id: int
    account_id: int
    member_ids: tuple[int, ...]
    truncated: Truncation | None
    at: datetime


class FreshFactorNeeded(FrontdeskError, kind=Kind.WRONG_STATE):
    """The user has opened the records of many people, and has to give the second factor again."""

    def __init__(self) -> None:
        detail = (
            f"You have opened the records of {PEOPLE_AN_HOUR} people within an hour. Give your "
            "second factor again to open another."
        )
        super().__init__(detail, code=codes.operators.FRESH_FACTOR_NEEDED)


class RecordNotOpen(FrontdeskError, kind=Kind.WRONG_STATE):
    """The session has not opened the record, or its 15 minutes are over."""

    def __init__(self) -> None:
        detail = "This record is not open in your session. Open it with a reason and a case number."
        super().__init__(detail, code=codes.operators.RECORD_NOT_OPEN)


class NamesNotOpen(FrontdeskError, kind=Kind.WRONG_STATE):
    """The session has not opened the names of the file, or its 15 minutes are over."""

    def __init__(self) -> None:
        detail = "The names of this file are not open in your session. Open them with a reason."
        super().__init__(detail, code=codes.operators.NAMES_NOT_OPEN)


def counted_times(now: datetime, span: timedelta) -> tuple[datetime, datetime]:
    """The times that count: after the first, up to the second. They reach into the future, because
    clocks differ; a later one was recorded before a clock was set back.
    """
    return now - span, now + span
