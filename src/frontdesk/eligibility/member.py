"""What goes into an enrolment and what comes out: submissions, stored members, outcomes; no rule is here."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from frontdesk.eligibility.parse import MemberRecord
from frontdesk.invitations import Decision

# The body of the answer: exactly the nine documented fields, in the document's order.
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


class Outcome(StrEnum):
    """What an accepted record did (the answer's `Eligibility-Outcome`; the last three come from files only)."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    MOVED = "moved"
    ENDED = "ended"
    RESTORED = "restored"
    WITHDRAWN = "withdrawn"


class Action(StrEnum):
    """What a record asks for. A POST always enrols; a row of a file may end a member's access, or only compare."""

    ENROL = "enrol"
    END = "end"
    COMPARE = "compare"


class Submission(NamedTuple):
    """One record that somebody hands in: what it says, under which plan, and who is responsible for it.

    An END with `unless_changed_since` leaves alone who was changed later than that.
    """

    account_id: int
    plan_id: int
    record: MemberRecord
    client: str
    request_id: str
    deed: Action = Action.ENROL
    unless_changed_since: datetime | None = None


@dataclass(slots=True)
class StoredMember:
    """A member as the chunk sees it: `values` by column, changed in place as the chunk's records are decided."""

    values: dict[str, Any]
    is_new: bool = False
    is_changed: bool = False


class Enrolled(NamedTuple):
    """The outcome of one accepted record. `changes` is `{field: [from, to]}` without derived columns; `answered` holds the
    values of ANSWERED as the record left them."""

    outcome: Outcome
    stored: StoredMember
    answered: tuple[Any, ...]
    changes: dict[str, list[Any]]
    warnings: tuple[str, ...]
    invitation: Decision

    @property
    def answer(self) -> dict[str, Any]:
        """The body of the answer; a new member's id is there once the chunk is written."""
        return {**dict(zip(ANSWERED, self.answered, strict=True)), "id": self.stored.values["id"]}
