"""Personal data: kinds of columns, erasures, legal holds (docs/erasure.md)."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from frontdesk import codes
from frontdesk.codes import Kind
from frontdesk.errors import FrontdeskError


class ColumnKind(StrEnum):
    """The kind of a column, which decides its treatment by an erasure."""

    ID = "id"  # of the service's own rows: stays
    TIME = "time"  # of an event, and the days of access: stays
    FACT = "fact"  # words, numbers and codes of the service: stays
    PERSON = "person"  # a value of one member, or made from one: erased
    PERSONS = "persons"  # values of several members in one cell: the person's part is erased
    # A caller's name for a request, a file, a visit or a doctor: stays, and must not name a member.
    REFERENCE = "reference"
    ACCOUNT = "account"  # data of an account, an operator or a user of the console: stays
    PROOF = "proof"  # credentials of an API client, a user or an installation: stays


class ErasureCause(StrEnum):
    REQUEST = "request"
    RETENTION = "retention"


class RetentionKind(StrEnum):
    """Data with a limited retention (docs/configuration.md)."""

    REPORTS = "reports"  # of files, row by row
    INVITATIONS = "invitations"  # the addresses of settled invitations
    WITHDRAWN = "withdrawn"  # withdrawn members
    ENDED = "ended"  # members without access any more
    HISTORY = "history"  # the values of a member's old changes
    AUDIT = "audit"
    USERS = "users"  # users of the console who have ended
    EVENTS = "events"  # that an account reads or is sent
    MAILBOX = "mailbox"  # mails that a sandbox caught
    ANSWERS = "answers"  # stored answers to requests with an idempotency key
    COUNTERS = "counters"  # failed attempts, tokens, request counters, links and sessions of users


class Person(NamedTuple):
    """A member identified by ids only, never by its own values."""

    member_id: int
    account_id: int


class Erasure(NamedTuple):
    """The fact of an erasure. `is_new` is False if the member had been erased before."""

    member_id: int
    account_id: int
    erased_at: datetime
    cause: ErasureCause
    is_new: bool = False


class LegalHold(NamedTuple):
    """Keeps the member's data from being erased or pruned. `reference` names the case, never the
    person.
    """

    member_id: int
    account_id: int
    reference: str
    held_at: datetime
    actor: str


class UnderLegalHold(FrontdeskError, kind=Kind.WRONG_STATE):
    def __init__(self, hold: LegalHold) -> None:
        detail = (
            f"Member {hold.member_id} is under legal hold ({hold.reference}); nothing was changed."
        )
        super().__init__(detail, code=codes.operators.LEGAL_HOLD, field="member")


class FilesUnfinished(FrontdeskError, kind=Kind.WRONG_STATE):
    """Files of the account that have not ended, and drafts, may hold rows of the member."""

    def __init__(self, file_ids: Sequence[int], draft_ids: Sequence[int] = ()) -> None:
        details = []
        if file_ids:
            details.append(
                "Files of the account have not ended and may hold the member: "
                f"{_listed(file_ids)}. Let them end, or cancel them."
            )
        if draft_ids:
            details.append(
                "Uploads of the account that are not applied may hold the member: "
                f"{_listed(draft_ids)}. Discard them, or wait: they go a day after their last step."
            )
        detail = " ".join(details)
        super().__init__(detail, code=codes.operators.FILES_UNFINISHED, field="files")


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids[:5])) + (", …" if ids[5:] else "")
