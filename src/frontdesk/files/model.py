"""The types of eligibility files: a file, its states, its rows and what became of them; every code
with its one wording (docs/files.md, docs/file-formats.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from frontdesk import codes
from frontdesk.codes import Kind, Remedy
from frontdesk.eligibility.model import MemberWarning, Outcome, Submission
from frontdesk.errors import Fault, FrontdeskError, fault_of
from frontdesk.formats.model import FileMode, Format
from frontdesk.reach import Reach


class FileState(StrEnum):
    """Where a file is on its way (docs/states.md)."""

    RECEIVING = "receiving"
    WAITING = "waiting"
    RUNNING = "running"
    HELD = "held"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class DraftState(StrEnum):
    """Where an upload by steps is (files.drafts). Its content goes 24 h after the last step; of an
    applied one when the file has ended.
    """

    RECEIVING = "receiving"
    OPEN = "open"
    APPLIED = "applied"
    DISCARDED = "discarded"


class FileStep(StrEnum):
    """The next work on a file: check that it can be read, apply its rows, end the members that a
    full file omits.
    """

    CHECK = "check"
    APPLY = "apply"
    END = "end"


# What a row became, besides the outcomes of members. A dry run would end the members that the file
# omits. The others are of held files, and of dry runs that would be held: the members and rows for
# which a person has to approve the file.
WOULD_END = "would_end"
WOULD_LOSE = "would_lose"
WOULD_MOVE = "would_move"
WOULD_BE_SIMILAR = "would_be_similar"
WOULD_BE_OTHER = "would_be_other"
WOULD_BE_LATER = "would_be_later"
# A member that a full file omits, and does not end because a refused row may be about it.
KEPT = "kept"
REFUSED = "refused"
SKIPPED = "skipped"
WARNED = "warned"
# Stored members that lose or gain days of access, whatever else happens to them.
LOST = "lost"
GAINED = "gained"
HELD_LISTS = (WOULD_LOSE, WOULD_MOVE, WOULD_BE_SIMILAR, WOULD_BE_OTHER, WOULD_BE_LATER)
# Every key of a file's counts, in the order in which they are shown. A row with a warning, and one
# that takes or gives access, counts again.
_OF_MEMBERS = (WOULD_END, *HELD_LISTS, KEPT)
COUNTS = (*map(str, Outcome), *_OF_MEMBERS, REFUSED, SKIPPED, WARNED, LOST, GAINED)
# The outcomes of rows that changed a member: what an undo takes back.
CHANGED = tuple(outcome.value for outcome in Outcome if outcome is not Outcome.UNCHANGED)

# of members that a full file omits, where there is no row
BY_ABSENCE = (Outcome.ENDED.value, WOULD_END)

# Why a file is held.
HELD_FOR = (*codes.files.BRAKES, codes.files.NEEDS_MAPPING)


@dataclass(frozen=True, slots=True)
class NewFile:
    """What a caller says of a file. Without `format` the file's first letters decide. `mapping` is
    its JSON object as sent, `mapping_name` names one that the account keeps; without both the
    account's default applies, if there is one. `sheet` and `header_row` go before those of the
    mapping, `mode` before what an 834 says of itself.
    """

    account_id: int
    plan_id: int
    format: Format | None = None
    encoding: str = "utf-8"
    mapping: dict[str, Any] | None = None
    mode: FileMode | None = None
    dry_run: bool = False
    mapping_name: str | None = None
    sheet: str | None = None
    header_row: int | None = None
    file_name: str | None = None


class FileKey(NamedTuple):
    """The id of a file, the reach that it has to be in, and the plan that it has to be of; None is
    any plan.
    """

    id: int
    reach: Reach
    plan_id: int | None = None


@dataclass(frozen=True, slots=True)
class FileFilter:
    """Which files within reach to list: the newest first, `limit` of them, of those with an id
    below `before_id` that came before the time `created_before`. None is any.
    """

    reach: Reach
    limit: int
    plan_id: int | None = None
    state: FileState | None = None
    sha256: str | None = None
    before_id: int | None = None
    created_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class FileSettings:
    """How files of an account are treated. With `second_approver`, who handed a held file in can't
    approve it (files.approvers). A file is held if more than `most_members` of its members, and
    more than `most_percent` of them all, are concerned (files.brakes).
    """

    account_id: int
    second_approver: bool = False
    most_members: int = 25
    most_percent: int = 10


class MappingName(NamedTuple):
    """The name of a mapping, and its account."""

    account_id: int
    name: str


@dataclass(frozen=True, slots=True)
class StoredMapping:
    """A mapping that an account keeps: its JSON object as sent. One of the account's may be the
    default.
    """

    account_id: int
    name: str
    mapping: dict[str, Any]
    is_default: bool
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class EligibilityFile:
    """A file as stored. `counts` maps outcomes to rows, `codes` codes to lines of the report;
    `problem` is `{code, message, place}`, with a `suggestion` where a mapping is needed. The caller
    said `asked_mode`; `mode` holds once the file was checked. `shown` has the numbers, by code, that
    people saw when the file was held; an approval covers them. `sender` is GS02 of an 834.

    The content of a file with `draft_id` is that of a draft (files.drafts).

    `rows_checked` are those that were read before the first is applied, as of a few seconds ago.

    `undoes_id` is set for an undo: a file without content that takes back what another file did.
    `decided_by` is the actor that last approved or cancelled the file or accepted its mapping.
    `epoch` counts the claims of workers (files.claims).
    """

    id: int
    account_id: int
    plan_id: int
    draft_id: int | None
    undoes_id: int | None
    format: Format | None
    encoding: str | None
    delimiter: str | None
    file_name: str | None
    mapping: dict[str, Any] | None
    mapping_name: str | None
    mode: FileMode
    asked_mode: FileMode | None
    dry_run: bool
    state: FileState
    step: FileStep
    approved: bool
    size_bytes: int
    sha256: str | None
    file_date: str | None
    sender: str | None
    rows_total: int | None
    rows_checked: int | None
    rows_done: int
    chunks_done: int
    members_before: int | None
    members_missing: int | None
    counts: dict[str, int]
    codes: dict[str, int]
    ignored: list[str]
    problem: dict[str, Any] | None
    shown: dict[str, int] | None
    client: str
    request_id: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    decided_by: str | None
    decided_at: datetime | None
    epoch: int
    lease_until: datetime | None

    @property
    def needs_approval(self) -> bool:
        """True if a person has to approve the file before it goes on, or would have to after this
        dry run.
        """
        has_problem = self.problem is not None and self.problem["code"] in HELD_FOR
        return self.state is FileState.HELD or (self.dry_run and has_problem)

    @property
    def needs_mapping(self) -> bool:
        """True if it is not said how the file, an 834, names its members. The problem has a
        `suggestion`.
        """
        return self.problem is not None and self.problem["code"] == codes.files.NEEDS_MAPPING


@dataclass(slots=True)
class ChunkRow:
    """A parsed row that the database decides. `place` is None for a member that a full file omits."""

    place: int | None
    external_id: str | None
    submission: Submission
    warnings: Sequence[MemberWarning] = ()
    transaction_number: int = 0
    member_number: int = 0


StoredWarning = Sequence[Any]  # as JSON: field, code, and of some a detail and a member's id


def stored_warnings(warnings: Iterable[MemberWarning]) -> list[StoredWarning]:
    """Warnings as they are stored: field and code, then what the warning has besides: its detail,
    and the id of a similar member.
    """
    stored: list[StoredWarning] = []
    for code, field_, detail, member_id in warnings:
        if member_id:
            stored.append((field_, code, detail, member_id))
        elif detail:
            stored.append((field_, code, detail))
        else:
            stored.append((field_, code))
    return stored


@dataclass(frozen=True, slots=True)
class Draft:
    """An upload on its way through the steps. `version` counts its changes: who changes it names the
    version that they have seen. `suggestion` is what `mapping.suggest` says of the content, `mapping`
    what the file will be read by. `dry_run_id` is the dry run of the present plan, mode and mapping.
    """

    id: int
    account_id: int
    state: DraftState
    version: int
    file_name: str | None
    format: Format | None
    encoding: str
    size_bytes: int
    sha256: str | None
    plan_id: int | None
    mode: FileMode | None
    suggestion: dict[str, Any] | None
    mapping: dict[str, Any] | None
    dry_run_id: int | None
    file_id: int | None
    client: str
    created_at: datetime
    changed_at: datetime


class RowOutcome(NamedTuple):
    """What happened to a row: an Outcome, WOULD_END, KEPT, REFUSED, SKIPPED, or of HELD_LISTS.
    `place` is None for a member that a full file omits, and in most lists of held files. `member_id`
    is 0 where no stored member was found.

    `faults` are (field, code, message), also of KEPT and HELD_LISTS; `warnings` are as `stored_warnings`
    makes them. `access` has an AccessNote if the row changed the access of a stored member.
    `changed` names the fields of a stored member that the row changed; a moved member
    left `left_plan_id`. Of an 834, `transaction_number` counts the STs of the file, `member_number`
    the INS of that transaction.
    """

    place: int | None
    external_id: str | None
    outcome: str
    member_id: int = 0
    faults: Sequence[Sequence[str]] = ()
    warnings: Sequence[StoredWarning] = ()
    changed: Sequence[str] = ()
    left_plan_id: int | None = None
    transaction_number: int = 0
    member_number: int = 0
    access: Sequence[Any] = ()

    @classmethod
    def refused(
        cls, place: int | None, external_id: str | None, faults: Iterable[Fault]
    ) -> "RowOutcome":
        return cls(place, external_id, REFUSED, 0, [*map(tuple, faults)])


# A row of a chunk: one to write, or one with an outcome that needs no database. Its line in the
# report is ready: it is known (files.load), skipped, or refused for what it says.
ChunkItem = ChunkRow | RowOutcome


class FileActionRefused(FrontdeskError):
    """What is asked for a file can't be done; one fault of `field` says so."""

    field = "body"

    def __init__(
        self, detail: str, *, remedy: Remedy | None = None, ids: Mapping[str, int] | None = None
    ) -> None:
        super().__init__(detail, field=self.field, remedy=remedy, ids=ids)


class WrongState(FileActionRefused, kind=Kind.WRONG_STATE, code=codes.faults.WRONG_STATE):
    """The state of the file does not allow the action."""

    field = "state"


class SecondPersonNeeded(
    FileActionRefused, kind=Kind.SECOND_PERSON_NEEDED, code=codes.faults.SECOND_PERSON_NEEDED
):
    """The account wants files to be approved by another client or person than the one that handed
    them in.
    """

    field = "approver"


class DraftChanged(WrongState):
    """The draft has another version than the caller has seen."""

    field = "version"


class BrokeOff(WrongState):
    """The draft was deleted while its content arrived: nothing of it had come for some minutes."""


class TooManyBytes(FileActionRefused, kind=Kind.TOO_LARGE, code=codes.faults.TOO_MANY_BYTES):
    """The files of the account that wait have as many bytes as they may have."""


NO_PLAN = fault_of(codes.rows.NOT_FOUND)
