"""The types of eligibility files: a file, its states, its rows and what became of them; every code with its one wording
(docs/files.md, docs/file-formats.md)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from frontdesk.eligibility.fields import DROPPED
from frontdesk.eligibility.model import WARNINGS, Outcome, Submission
from frontdesk.errors import Fault, FrontdeskError
from frontdesk.formats.model import FILE_FAULTS, FileMode, Format
from frontdesk.mapping.model import ROW_CODES


class FileState(StrEnum):
    """Where a file is on its way (docs/states.md)."""

    RECEIVING = "receiving"
    WAITING = "waiting"
    RUNNING = "running"
    HELD = "held"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class FileStep(StrEnum):
    """The next work on a file: check that it can be read, apply its rows, end the members that a full file omits."""

    CHECK = "check"
    APPLY = "apply"
    END = "end"


# What a row became, besides the outcomes of members. A held file or a dry run would end the members that it omits; where they are
# too many, it would move members from other plans.
WOULD_END, WOULD_MOVE, WOULD_BE_SIMILAR = "would_end", "would_move", "would_be_similar"
REFUSED, SKIPPED, WARNED = "refused", "skipped", "warned"
# Every key of a file's counts, in the order in which they are shown. A row with a warning counts twice.
COUNTS = (*map(str, Outcome), WOULD_END, WOULD_MOVE, WOULD_BE_SIMILAR, REFUSED, SKIPPED, WARNED)
# The outcomes of rows that changed a member: what an undo takes back.
CHANGED = tuple(outcome.value for outcome in Outcome if outcome is not Outcome.UNCHANGED)

# Why a file is held until a person decides about it.
BRAKES = {
    "too_many_moves": "Too many members would move here from other plans; a person has to approve the file.",
    "too_many_similar": "Too many new members look like stored ones that the file omits, as if the sender had renumbered them; "
    "rename those first, or approve the file.",
    "too_many_ends": "Too many members would be ended, the file is much smaller than the last one, or a row without a readable "
    "external_id may be one of them; a person has to approve the file.",
    "overtaken": "A newer file of the plan was applied, so this one can only be cancelled.",
}
NEEDS_MAPPING = "needs_mapping"  # the code of the problem of an 834 that is held for a mapping
ONLY_COMPARED = "only_compared"  # an 834 that nobody asked to compare
BY_ABSENCE = (Outcome.ENDED.value, WOULD_END)  # of members that a full file omits, where there is no row
ENDED_BY_ABSENCE, NOTHING_TO_END = "ended_by_absence", "nothing_to_end"


@dataclass(frozen=True, slots=True)
class NewFile:
    """What a caller says of a file. Without `format` the file's first letters decide. `mapping` is its JSON object as sent,
    `mapping_name` names one that the account keeps; without both the account's default applies, if there is one. `sheet` and
    `header_row` go before those of the mapping, `mode` before what an 834 says of itself."""

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
    """The id of a file, and the account and the plan that it has to be of; None is any."""

    id: int
    account_id: int | None = None
    plan_id: int | None = None


@dataclass(frozen=True, slots=True)
class FileFilter:
    """Which files to list: the newest first, `limit` of them, of those with an id below `before_id`. None is any."""

    account_id: int | None
    limit: int
    plan_id: int | None = None
    state: FileState | None = None
    sha256: str | None = None
    before_id: int | None = None


@dataclass(frozen=True, slots=True)
class FileSettings:
    """How files of an account are treated. With `reopen_absent`, a later full file that lists a member without an expiry_date
    opens its access again, if the member was ended only because a full file omitted it. With `second_approver`, the client or
    person that handed a held file in can't approve it."""

    account_id: int
    reopen_absent: bool = True
    second_approver: bool = False


class MappingName(NamedTuple):
    """The name of a mapping, and its account."""

    account_id: int
    name: str


@dataclass(frozen=True, slots=True)
class StoredMapping:
    """A mapping that an account keeps: its JSON object as sent. One of the account's may be the default."""

    account_id: int
    name: str
    mapping: dict[str, Any]
    is_default: bool
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class EligibilityFile:
    """A file as stored. `counts` maps outcomes to rows, `codes` codes to lines of the report; `problem` is `{code, message,
    place}`, with a `suggestion` where a mapping is needed. The caller said `asked_mode`; `mode` holds once the file was checked.

    `undoes_id` is set for an undo: a file without content that takes back what another file did. `epoch` counts the
    claims of workers (files.claims).
    """

    id: int
    account_id: int
    plan_id: int
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
    rows_total: int | None
    rows_done: int
    chunks_done: int
    members_before: int | None
    members_missing: int | None
    counts: dict[str, int]
    codes: dict[str, int]
    ignored: list[str]
    problem: dict[str, Any] | None
    client: str
    request_id: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    epoch: int
    lease_until: datetime | None

    @property
    def needs_approval(self) -> bool:
        """True if a person has to approve the file before it goes on, or would have to after this dry run."""
        has_problem = self.problem is not None and self.problem["code"] in (*BRAKES, NEEDS_MAPPING)
        return self.state is FileState.HELD or (self.dry_run and has_problem)

    @property
    def needs_mapping(self) -> bool:
        """True if it is not said how the file, an 834, names its members. The problem has a `suggestion`."""
        return self.problem is not None and self.problem["code"] == NEEDS_MAPPING


@dataclass(slots=True)
class ChunkRow:
    """A parsed row that the database decides. `place` is None for a member that a full file omits."""

    place: int | None
    external_id: str | None
    submission: Submission
    warnings: Sequence[str] = ()


class RowOutcome(NamedTuple):
    """What happened to a row: an Outcome, WOULD_END, WOULD_MOVE, REFUSED or SKIPPED. `place` is None for a member that a
    full file omits, and one that would move. `member_id` is 0 where no stored member was found.

    `faults` are (field, code, message), also of WOULD_MOVE; `warnings` are (field, code), and of a value that
    was dropped the rule. `changed` names the fields of a stored member that the row changed; a moved member left `left_plan_id`.
    """

    place: int | None
    external_id: str | None
    outcome: str
    member_id: int = 0
    faults: Sequence[Sequence[str]] = ()
    warnings: Sequence[Sequence[str]] = ()
    changed: Sequence[str] = ()
    left_plan_id: int | None = None

    @classmethod
    def refused(cls, place: int | None, external_id: str | None, faults: Iterable[Fault]) -> "RowOutcome":
        return cls(place, external_id, REFUSED, 0, [*map(tuple, faults)])


# A row of a chunk: one to write, or one with an outcome that needs no database. Its line in the report is ready: it is known
# (files.load), skipped, or refused for what it says.
ChunkItem = ChunkRow | RowOutcome


class FileActionRefused(FrontdeskError):
    """What is asked for a file can't be done; one fault of `field` says so."""

    field = "body"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.faults = (Fault(self.field, self.code, detail),)


class WrongState(FileActionRefused, kind="wrong_state"):
    """The state of the file does not allow the action."""

    field = "state"


class SecondPersonNeeded(FileActionRefused, kind="second_person_needed"):
    """The account wants files to be approved by another client or person than the one that handed them in."""

    field = "approver"


class TooManyBytes(FileActionRefused, kind="too_large"):
    """The files of the account that wait have as many bytes as they may have."""

    code = "too_many_bytes"


# Every problem of a file: what makes it unreadable, what holds it, what ends it early.
FILE_PROBLEMS = FILE_FAULTS | {
    **BRAKES,
    "needs_mapping": "The mapping does not say how the 834 names its members (identify). A person has to accept the suggested "
    "mapping or give another.",
    "only_compared": "BGN08 is 4 (for comparison). Nothing was written; the report lists the differences. If the sender means "
    'a full file, set this in the mapping: {"834": {"verify": "full"}}',
    "all_refused": "The first 10,000 rows were all refused, so the rest was not read.",
    "bad_mapping": "The mapping can't be used: correct the part that the message names.",
    "internal": "A fault of the service; applied rows stay applied, and the report lists them.",
}

_DROPPED = {f"{name}_dropped": name for name in DROPPED}

# Every code of a report besides those of a POST: of refused rows, of warnings, of members that a full file omits.
REPORT_CODES = ROW_CODES | {
    "address_of_subscriber": "The dependent has no address; its subscriber's was used.",
    "identity_conflict": "The stored member with this external_id has another name, birth date, role or family: correct the "
    "record, free the number (frontdesk member rename), or name members in another way.",
    "added_and_ended": "The 834 adds the member (INS03 = 021), and ends every coverage that counts.",
    "untidy_file": "The 834 has small faults with a clear meaning: space, wrong counts, no BGN08, an older version, …",
    "not_found": "The account has no such plan.",
    "too_many_taken": "Too many records of the client had a value of another account's record today; send the row again "
    "tomorrow (UTC).",
    "not_now": "Other requests keep changing the same record; send the row again.",
    "not_stored": "A fault of the service; send the row again.",
    "differs": "Only compared: the stored record has another value.",
    "ended_by_absence": "A full file omits the member.",
    "leaves_plan": "The member would leave another plan of the account.",
    "ends_on_first_day": "The access would end before it begins, so it ends on its first day.",
    NOTHING_TO_END: "The row ends a member that the plan does not have.",
    "still_ended": "The member's access has ended, and the row has no expiry_date, so it stays ended; to reopen it, clear "
    "expiry_date.",
    "changed_since": "The record was changed after the file, so the undo leaves it as it is.",
    **{
        code: f"The {name} of the row can't be used; the row was applied without it, and a stored value stays."
        for code, name in _DROPPED.items()
        if code not in WARNINGS
    },
}

# The field that each warning is about, where it is not the external_id.
WARNED_FIELDS = {
    "dob_not_midnight": "dob",
    "dob_shifted_one_day": "dob",
    "state_not_recognised": "state",
    "relationship_code_hipaa_unknown": "relationship_code_hipaa",
    "no_medical_coverage": "effective_date",
    "address_of_subscriber": "zipcode",
    "plan_inactive": "plan",
    "email_taken": "email",
    "still_ended": "expiry_date",
    "ends_on_first_day": "expiry_date",
} | _DROPPED

NO_PLAN = Fault("plan", "not_found", REPORT_CODES["not_found"])
