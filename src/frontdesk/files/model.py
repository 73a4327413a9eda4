"""The types of eligibility files: a file, its states, its rows and what became of them (docs/files.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from frontdesk.eligibility.model import Action, Outcome, Submission
from frontdesk.errors import Fault, FrontdeskError, Malformed


class Format(StrEnum):
    """How a file is written; gzip may compress each (docs/file-formats.md)."""

    CSV = "csv"
    JSON_LINES = "jsonl"
    X12 = "834"


class FileMode(StrEnum):
    """What a file means for the plan. An 834 says so itself (BGN08); for other formats the caller decides."""

    CHANGE = "change"
    COMPARE = "compare"
    FULL = "full"


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


REFUSED, WARNED = "refused", "warned"
# Every key of a file's counts, in the order in which they are shown. A row with a warning counts twice.
COUNTS = (*map(str, Outcome), REFUSED, WARNED)

NEEDS_APPROVAL = "brake"  # the code of the problem of a held file


@dataclass(frozen=True, slots=True)
class Requester:
    """The client that asks for something, the id of its request, and the time of the request."""

    client: str
    request_id: str
    now: datetime


@dataclass(frozen=True, slots=True)
class NewFile:
    """What a caller says of a file. Without `format` the file's first letters decide; without `mapping` (its JSON object
    as sent) the account's own applies, if there is one."""

    account_id: int
    plan_id: int
    format: Format | None = None
    encoding: str = "utf-8"
    mapping: dict[str, Any] | None = None
    mode: FileMode = FileMode.CHANGE
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class EligibilityFile:
    """A file as stored. `counts` maps outcomes to rows; `problem` is `{code, message, place}`.

    `undoes_id` is set for an undo: a file without content that takes back what another file did. `epoch` counts the
    claims of workers (files.claims).
    """

    id: int
    account_id: int
    plan_id: int
    undoes_id: int | None
    format: Format | None
    encoding: str | None
    mapping: dict[str, Any] | None
    mode: FileMode
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
    def history_key(self) -> str:
        """The request id in the history of each member that this file changes."""
        return f"file-{self.id}"

    @property
    def needs_approval(self) -> bool:
        """True if a person has to approve the file before members are ended, or would have to after this dry run."""
        has_problem = self.problem is not None and self.problem["code"] == NEEDS_APPROVAL
        return self.state is FileState.HELD or (self.dry_run and has_problem)


@dataclass(slots=True)
class Row:
    """One member of a file, as every reader gives it. `place` is its number: the header of a CSV is row 1, the first line
    of JSON lines is 1, the ISA of an 834 is segment 1.

    `values` are the interface's fields, as a JSON body carries them; a row that ends a member has `external_id` and
    `expiry_date` only. `plan` is the external_id of the plan that the row names, None for the plan of the file. A row
    with `faults` of the reader is refused; its values hold the external_id at most, for the report.
    """

    place: int
    values: dict[str, object]
    action: Action = Action.ENROL
    plan: str | None = None
    faults: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileHeader:
    """What the beginning of a file says. `file_date` is `YYYY-MM-DD`.

    `ignored` names the columns (of JSON lines the keys, complete after the last row) that are no field.
    """

    format: Format
    mode: FileMode | None = None
    file_date: str | None = None
    ignored: Sequence[str] = field(default=())


@dataclass(slots=True)
class ChunkRow:
    """A parsed row: the submission, or the faults that refuse it before the database is asked.

    `place` is None for a member that a full file omits.
    """

    place: int | None
    external_id: str | None
    submission: Submission | None
    faults: Sequence[Fault] = ()
    warnings: Sequence[str] = ()


class RowOutcome(NamedTuple):
    """One line of the stored report: an Outcome or REFUSED. `place` is None for a member that a full file omits.

    `faults` are (field, code, message); `warnings` are (field, code).
    """

    place: int | None
    external_id: str | None
    outcome: str
    member_id: int = 0
    faults: Sequence[Sequence[str]] = ()
    warnings: Sequence[Sequence[str]] = ()


# The ways to make an identifier of an 834: the parts of a way are joined, the first way with all its parts is taken.
Alternatives = tuple[tuple[str, ...], ...]
PERSON_CODE = "person_code"
DEFAULT_KEY: Alternatives = (("REF*0F", PERSON_CODE), ("NM109",))
MEDICAL_LINES = ("HLT", "HMO", "PPO", "POS", "EPO", "MM", "PRA", "HE")
CLEAR_WORD = r"\N"


@dataclass(frozen=True, slots=True)
class FileMapping:
    """How a sender's files name things (docs/file-formats.md). `columns` maps a folded column name to a field, `plans` a
    plan of the file to a plan's external_id.

    `lines` are the insurance lines (HD03) of medical coverage; `person_code` is the reference that holds it.
    """

    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    delimiter: str | None = None
    clear: str = CLEAR_WORD
    plans: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    external_id: Alternatives = DEFAULT_KEY
    member_id: Alternatives = DEFAULT_KEY
    person_code: str = "REF*17"
    plan: Alternatives = ()
    lines: tuple[str, ...] = MEDICAL_LINES


NO_MAPPING = FileMapping()


class WrongState(FrontdeskError):
    """The state of the file does not allow the action."""

    code = "wrong_state"


class Unreadable(Malformed):
    """The file as a whole can't be used, so nothing of it is applied. `code` is one of FILE_FAULTS; `place` is as in Row,
    None for the whole file.

    `detail` names the place and never repeats the content: it may be health information.
    """

    def __init__(self, code: str, message: str, *, place: int | None = None, unit: str = "Row") -> None:
        super().__init__(message if place is None else f"{unit} {place}: {message}", code=code)
        self.place = place
