"""Eligible members: the submitted records, the results of enrolment, and the entries of the
history.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from frontdesk.codes import Code
from frontdesk.eligibility.access_days import AccessPair, Spans, spans_of_access
from frontdesk.eligibility.coverages import CoverageChange
from frontdesk.errors import Fault
from frontdesk.idempotency.model import Once
from frontdesk.invitations.model import InvitationDecision, NotInvitedReason

# The nine fields of the answer's body, in the order of docs/interface.md.
ANSWERED = (
    "id",
    "external_id",
    "dob",
    "first_name",
    "last_name",
    "gender",
    "member_id",
    "zipcode",
    "metadata",
)
MOST_RECORDS = 1000  # of a batch
FIRST_DRY_RUN_ID = 2**62  # of members that exist in a dry run only; no database gets there
ADDRESS = ("zipcode", "city", "county", "state")
DERIVATION_CLIENT = "derivation"  # of history entries that a worker derived from coverages


class Outcome(StrEnum):
    """The effect of an accepted record: the `Eligibility-Outcome` of an answer. `ended` comes from
    the end of a member and from files, the last two from files only.
    """

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    MOVED = "moved"
    ENDED = "ended"
    REOPENED = "reopened"
    RESTORED = "restored"
    WITHDRAWN = "withdrawn"


class Action(StrEnum):
    """The operation: a POST enrols, a row of a file may also end or compare, a full file ends the
    members that it omits.
    """

    ENROL = "enrol"
    END = "end"
    COMPARE = "compare"


class MemberWarning(NamedTuple):
    """Something about an accepted record looks wrong. `detail` is what a sentence goes on with
    after `It`, such as a rule that a dropped value breaks; `member_id` is a similar stored member.
    """

    code: Code
    field: str
    detail: str = ""
    member_id: int = 0

    @classmethod
    def of(cls, code: Code, *, detail: str = "", member_id: int = 0) -> "MemberWarning":
        """The warning about the field that the code is always about."""
        return cls(code, code.field, detail, member_id)


@dataclass(slots=True)
class MemberRecord:
    """One record as sent. `given` holds the stored form of each good field by column; None clears
    the field.

    `faults` are those that the record has by itself; a record with a fault is never written.
    """

    external_id: str | None
    given: dict[str, Any]
    invite_immediately: bool = False
    faults: tuple[Fault, ...] = ()
    warnings: tuple[MemberWarning, ...] = ()
    ignored: tuple[str, ...] = ()


class StatedPerson(NamedTuple):
    """The person in a row of a file; "" for absent values. `role` is the `subscriber_relationship`.
    An 834 alone has a `family` (a digest of the family's number), a `sequence` (of birth), and the
    `former` values that a correction replaces.
    """

    first_name: str = ""
    last_name: str = ""
    dob: str = ""
    gender: str = ""
    role: str = ""
    family: str = ""
    sequence: str = ""
    former_first_name: str = ""
    former_last_name: str = ""
    former_dob: str = ""
    former_gender: str = ""


class RowContext(NamedTuple):
    """The data of a file's row besides the values of fields (eligibility.decide).

    `causes` explain absent required fields: each replaces the `required` of its field.
    `given_of_new` is for new members only; without a zip code they take the address of the stored
    subscriber with the family digest `address_of`. With `ends_access`, an end before the first day
    of access is an end on that day; with `keeps_earlier_end` the row names no day, and an earlier
    end stays. `former_id` is the identifier before a correction. With `shares_home`, the
    address is that of the family's subscriber. `coverages` is what an 834 says of the coverages that
    count: the dates and the plan follow from them. With `keeps_plan` the row names no plan of a
    stored member.
    """

    causes: tuple[Fault, ...] = ()
    given_of_new: Mapping[str, Any] | None = None
    address_of: str = ""
    ends_access: bool = False
    keeps_earlier_end: bool = False
    person: StatedPerson | None = None
    former_id: str = ""
    shares_home: bool = False
    coverages: tuple[CoverageChange, ...] = ()
    keeps_plan: bool = False


NO_CONTEXT = RowContext()


class Intent(NamedTuple):
    """What a record may do: create a member, update a stored one, move one from another plan of the
    account. With an `eligibility_id` it may change the member with this id only. With
    `drops_taken_email`, an e-mail that another member has is left out instead of refusing the
    record.
    """

    creates: bool = True
    updates: bool = True
    moves: bool = True
    eligibility_id: int | None = None
    drops_taken_email: bool = False


ANY_INTENT = Intent()


class Submission(NamedTuple):
    """A record with its plan, its client, and the file of which it is a row.

    With `unless_changed_since`, an END leaves a member alone that was changed after that time.
    `row_digest` is that of the row of a file (files.load); it is kept with the member that the row
    leaves behind. Only a row of a file has a `context`, only a request an `intent`. With `once`,
    the answer of the accepted record is stored in the chunk's transaction.
    """

    account_id: int
    plan_id: int
    record: MemberRecord
    client: str
    request_id: str
    action: Action = Action.ENROL
    file_id: int | None = None
    unless_changed_since: datetime | None = None
    row_digest: str | None = None
    context: RowContext = NO_CONTEXT
    intent: Intent = ANY_INTENT
    once: "Once[Enrolled] | None" = None

    @property
    def drops_taken_email(self) -> bool:
        """Whether the record is written without an e-mail that another member has."""
        return self.file_id is not None or self.intent.drops_taken_email


@dataclass(slots=True)
class StoredMember:
    """A member as its chunk sees it: `values` by column, which change in place while the chunk's
    records are decided, and the columns that `changed`. An erased member has an empty external_id
    (docs/erasure.md).
    """

    values: dict[str, Any]
    is_new: bool = False
    changed: set[str] = field(default_factory=set)


class Enrolled(NamedTuple):
    """The effect of one accepted record. `changes` is `{field: [from, to]}` without `email_folded`,
    `answered` the values of ANSWERED after the record. `left_plan` is the `external_id` of the plan
    that a moved member left; of a request only. `has_event`: the account asked for events, and one
    is stored. `access` is that of a stored member before and after the record, if it changed.
    """

    outcome: Outcome
    stored: StoredMember
    answered: tuple[Any, ...]
    changes: dict[str, list[Any]]
    warnings: tuple[MemberWarning, ...]
    invitation: InvitationDecision
    left_plan: str | None = None
    has_event: bool = False
    access: AccessPair | None = None

    @classmethod
    def unasked(
        cls, outcome: Outcome, stored: StoredMember, changes: dict[str, list[Any]]
    ) -> "Enrolled":
        """A change that no record has sent: nobody waits for an answer or gets an invitation."""
        return cls(outcome, stored, (), changes, (), NotInvitedReason.NOT_NEW)

    @property
    def left_plan_id(self) -> int | None:
        """The plan that a moved member left."""
        left, _ = self.changes.get("plan_id", (None, None))
        return left


class MemberAccess(NamedTuple):
    """A member of a plan, and the days of its access (`YYYY-MM-DD`), with its stored coverages if it
    has several. With `derive_on` another span of days follows, or another plan.
    """

    id: int
    external_id: str
    plan_id: int
    effective_date: str
    expiry_date: str | None
    expiry_before_absence: str | None
    coverages: Any
    updated_at: datetime
    derive_on: str | None

    @property
    def spans(self) -> Spans:
        return spans_of_access(self._asdict())


class MemberFilter(NamedTuple):
    """The members of a plan that a list wants: after an id, changed at or after a time, with access
    on a day (`YYYY-MM-DD`).
    """

    account_id: int
    plan_id: int
    after_id: int = 0
    updated_since: datetime | None = None
    eligible_on: str | None = None


class KnownMember(NamedTuple):
    """A stored member that a file lists, and the digest of the row that it agrees with."""

    id: int
    row_digest: str | None
    merged_into: int | None


class Relative(NamedTuple):
    """A member of a family, which is a digest; "" for none."""

    id: int
    family: str
    first_name: str
    dob: str


class SimilarPair(NamedTuple):
    """Two open members of an account that may be one person, the lower id first."""

    id: int
    other_id: int
    external_id: str
    other_external_id: str
    plan_id: int
    other_plan_id: int
    account_id: int


class HistoryEntry(NamedTuple):
    """The effect of one accepted request, or of a row of the file `file_id`, on a member. `changes`
    is `{field: [from, to]}`.
    """

    id: int
    member_id: int
    outcome: Outcome
    plan_id: int
    changes: dict[str, list[Any]]
    client: str
    request_id: str
    file_id: int | None
    changed_at: datetime
