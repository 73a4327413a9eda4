"""The types of eligibility files: a file, its states, its rows and what became of them; every code with its one wording
(docs/files.md, docs/file-formats.md)."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from frontdesk.eligibility.fields import DROPPED
from frontdesk.eligibility.model import NO_CONTEXT, WARNINGS, Action, Outcome, RowContext, Submission
from frontdesk.errors import Fault, FrontdeskError, Malformed, RateLimited


class Format(StrEnum):
    """How a file is written; gzip may compress each (docs/file-formats.md)."""

    CSV = "csv"
    JSON_LINES = "jsonl"
    JSON = "json"
    X12 = "834"
    XLSX = "xlsx"


class FileMode(StrEnum):
    """What a file means for the plan: what the caller says, else what an 834 says of itself (BGN08), else a change."""

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
RETRY_AFTER_SECONDS = 60  # until some of the waiting files may have ended
NEEDS_MAPPING = "needs_mapping"  # the code of the problem of an 834 that is held for a mapping
ONLY_COMPARED = "only_compared"  # an 834 that nobody asked to compare
ENDED_BY_ABSENCE, NOTHING_TO_END = "ended_by_absence", "nothing_to_end"
ADDRESS_OF_SUBSCRIBER = "address_of_subscriber"


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

    def digest(self, sha256: str) -> str:
        """Equal for uploads of the same content that say the same of it."""
        return hashlib.sha256(repr((sha256, self)).encode("utf-8", "surrogatepass")).hexdigest()


class Retry(NamedTuple):
    """What makes an upload safe to repeat: the caller's key for it, and what the caller says of the file."""

    key: str
    new: NewFile


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


class FileQuota(NamedTuple):
    """How many files of an account, and bytes of them, may arrive, wait or run at a time."""

    files: int
    size_bytes: int


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
    place}`, with a `suggestion` where a mapping is needed. `idempotency_digest` is that of the upload that brought the
    `idempotency_key`. The caller said `asked_mode`; `mode` holds once the file was checked.

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
    idempotency_key: str | None
    idempotency_digest: str | None

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
class Row:
    """One member of a file, as every reader gives it. `place` is its number: the header of a CSV is row 1, the first line
    of JSON lines is 1, the ISA of an 834 is segment 1.

    `values` are the interface's fields, as a JSON body carries them; a row that ends a member has `external_id` and
    `expiry_date` only. `plan` is the external_id of the plan that the row names, None for the plan of the file. A row
    with `faults` of the reader is refused; its values hold the external_id at most, for the report. A `skipped` row is one
    that the mapping leaves out.

    A member that is not stored yet also takes `values_of_new`. `context` says what the values can't. In tables, rows of one
    `family` share an address.
    """

    place: int
    values: dict[str, object]
    action: Action = Action.ENROL
    plan: str | None = None
    faults: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()
    values_of_new: Mapping[str, object] | None = None
    context: RowContext = NO_CONTEXT
    skipped: bool = False
    family: str = ""

    @property
    def is_warned(self) -> bool:
        """True if the report has a warning about the row each time; an address of the subscriber's is told when it is new."""
        return any(code != ADDRESS_OF_SUBSCRIBER for code in self.warnings)

    @property
    def key(self) -> object:
        """The external_id as the row has it."""
        return self.values.get("external_id")


@dataclass(frozen=True, slots=True)
class UnreadRows:
    """Rows of a table, one after the other from `place` on, before their values are made: `read(place, text)` makes those of
    one, at ten times the cost of the rest.

    Each of `texts` says all that its row says, under the file's columns and mapping, and names the file's plan. `keys` are the
    external_ids as `read` would have them; "" or None where there is none.
    """

    place: int
    keys: Sequence[str | None]
    texts: Sequence[str]
    read: Callable[[int, str], Row]

    def __len__(self) -> int:
        return len(self.texts)

    def part(self, start: int, end: int | None = None) -> "UnreadRows":
        """The rows from the position `start`, up to `end`."""
        return UnreadRows(self.place + start, self.keys[start:end], self.texts[start:end], self.read)

    def row(self, position: int) -> Row:
        return self.read(self.place + position, self.texts[position])

    def rows(self) -> Iterator[Row]:
        return map(self.row, range(len(self)))


# What a reader gives: a row, or several of a table that need not be read to be recognised.
ReadItem = Row | UnreadRows


def count_rows(item: ReadItem) -> int:
    return len(item) if isinstance(item, UnreadRows) else 1


def read_rows(items: Iterable[ReadItem]) -> Iterator[Row]:
    """The rows, all read."""
    for item in items:
        if isinstance(item, UnreadRows):
            yield from item.rows()
        else:
            yield item


@dataclass(frozen=True, slots=True)
class FileHeader:
    """What the beginning of a file says. `file_date` is `YYYY-MM-DD`.

    `ignored` names the columns (of JSON lines the keys, complete after the last row) that are no field. `columns` are what a
    table's rows are read by: its delimiter and the names of its columns. `encoding` is that of the text, None of a workbook.
    """

    format: Format
    mode: FileMode | None = None
    file_date: str | None = None
    ignored: Sequence[str] = field(default=())
    columns: Sequence[str] = ()
    encoding: str | None = None

    @property
    def delimiter(self) -> str | None:
        """Of a CSV."""
        return self.columns[0] if self.columns else None


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

    @property
    def is_plainly_unchanged(self) -> bool:
        """True for a row of a stored member that changed nothing and has no warning."""
        return (
            self.outcome == Outcome.UNCHANGED
            and bool(self.member_id and self.place is not None)
            and not self.warnings
        )

    @property
    def is_by_absence(self) -> bool:
        """True for a member that a full file omits, and ends or would end."""
        return self.place is None and self.outcome in (Outcome.ENDED, WOULD_END)

    @classmethod
    def refused(cls, place: int | None, external_id: str | None, faults: Iterable[Fault]) -> "RowOutcome":
        return cls(place, external_id, REFUSED, 0, [*map(tuple, faults)])

    @classmethod
    def unchanged(cls, place: int | None, external_id: str | None, member_id: int) -> "RowOutcome":
        return cls(place, external_id, Outcome.UNCHANGED.value, member_id)


# A row of a chunk: one to write, or one with an outcome that needs no database. Its line in the report is ready: it is known
# (files.rows), skipped, or refused for what it says.
ChunkItem = ChunkRow | RowOutcome


class WrongState(FrontdeskError, kind="wrong_state"):
    """The state of the file does not allow the action."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.faults = (Fault("state", self.code, detail),)


class SecondPersonNeeded(FrontdeskError, kind="second_person_needed"):
    """The account wants files to be approved by another client or person than the one that handed them in."""

    def __init__(self) -> None:
        super().__init__("The client or operator that handed the file in can't approve it.")
        self.faults = (Fault("approver", self.code, self.detail),)


class TooManyFiles(RateLimited, kind="rate_limited"):
    """The account has as many files waiting as it may have."""

    def __init__(self, most: int) -> None:
        detail = f"The account has {most} files that wait or run; send this one when some of them have ended."
        super().__init__(detail, retry_after_seconds=RETRY_AFTER_SECONDS)
        self.faults = (Fault("body", "too_many_files", detail),)


class TooManyBytes(FrontdeskError, kind="too_large"):
    """The files of the account that wait have as many bytes as they may have."""

    def __init__(self, most: int) -> None:
        detail = f"The account's files that wait or run may have {most} bytes together; send this one when some have ended."
        super().__init__(detail)
        self.faults = (Fault("body", "too_many_bytes", detail),)


class Unreadable(Malformed):
    """The file as a whole can't be used, so nothing of it is applied. `code` is one of FILE_FAULTS; `place` is as in Row,
    None for the whole file.

    `detail` names the place and never repeats the content: it may be health information.
    """

    def __init__(self, code: str, message: str, *, place: int | None = None, unit: str = "Row") -> None:
        super().__init__(message if place is None else f"{unit} {place}: {message}", code=code)
        self.place = place


def no_rows(message: str, *, skipped: bool) -> Unreadable:
    """What is wrong with a file without a member; with `skipped`, its rows are left out by the mapping."""
    return Unreadable("no_rows", "The mapping leaves out every row of the file." if skipped else message)


# Faults of the whole file; nothing of it is applied.
FILE_FAULTS = {
    "empty": "There is nothing in the file.",
    "no_rows": "There is no member in the file.",
    "no_header": "No row of the first ones names a field of a member: name the columns in a mapping, or their row by header_row.",
    "no_key_column": "No column of a CSV holds the external_id: name the column in a mapping.",
    "repeated_column": "Two columns hold the same field: give one of them null in the mapping.",
    "missing_column": "The mapping names a column that the file does not have: correct its name in the one or the other.",
    "unknown_encoding": "The declared encoding is not one that is read: declare another.",
    "wrong_encoding": "The bytes are not in the declared encoding: declare the one that the file has.",
    "not_text": "The file is an image or other binary data, not a text: send it as CSV or .xlsx.",
    "not_workbook": "The file is a ZIP archive, or another kind of file, and no workbook (.xlsx): save it as one, or as CSV.",
    "bad_workbook": "The workbook is damaged or cut off, or declares entities: save it again.",
    "old_workbook": "The file is a workbook of an older kind (.xls): save it as .xlsx.",
    "encrypted_workbook": "The workbook has a password: save it without one.",
    "no_sheet": "The workbook has no sheet, or none of the name that the mapping or the upload gives: name one of its sheets.",
    "sheet_too_large": "The sheet reaches too far, or its texts are too many, to be read in bounded memory: save it as CSV.",
    "bad_json_array": "Something other than values with commas between them stands in the JSON array, or behind it.",
    "line_too_long": "A line, row or segment is longer than any member can be.",
    "rows_run_together": "A quotation mark is not closed, so it can't be told where rows end.",
    "cut_off": "The file ends in the middle: send the whole file again.",
    "not_gzip": "The compressed data is damaged: pack the file again.",
    "too_large": "The content is larger than what is read.",
    "zip_bomb": "The compressed data unpacks to far more than any list of members would.",
    "too_sparse": "Too much of the file is blank, or belongs to no member.",
    "looks_like_ssn": "Most values of an identifier look like social security numbers: take another column, or say "
    '"ssn": "plain" in a mapping.',
    "not_x12": "The file does not begin with an ISA segment, or the segment is damaged: send the file as it was written.",
    "wrong_version": "The file is not an 834 of version 005010X220A1, or of 004010X095A1.",
    "wrong_order": "A segment stands where it has no place.",
    "wrong_count": "A count or control number of SE, GE or IEA does not agree with the file. Wrong counts pass with "
    '"counts": "lenient" in the mapping.',
    "unknown_purpose": "BGN08 is neither blank nor one of 2, 4 and RX: say the mode with the upload.",
    "wrong_date": "BGN03, the date of the file, is not a real date.",
    "mixed_purposes": "The transactions of the file have different BGN08: send them as files of their own, or say the mode "
    "with the upload.",
}

# Faults of one row that a reader finds. The row is refused, its neighbours are not.
ROW_FAULTS = {
    "wrong_column_count": "The row has more or fewer cells than the header has columns: quote a cell that holds the delimiter.",
    "bad_quoting": "The quotation marks of the row don't match: double those inside a cell.",
    "not_json": "The line is not one JSON object as a request body would carry it.",
    "cell_error": "A cell of a workbook that is read holds an error of Excel, such as #N/A.",
    "values_too_long": "The cells that the mapping makes values of have more than 65,536 characters, each counted for each rule.",
    "no_identifier": "The member does not carry what the mapping makes the identifier from (identify): ask the sender "
    "for it, or name members in another way.",
    "identifier_shared": "Two people of the 834 carry one identifier, so both are refused: the mapping has to name members in "
    "another way (identify).",
    "nested_dependent": "A dependent stands inside LS and LE: the sender has to give each member an INS loop.",
    "unknown_code": "The 834 carries a code that has no meaning here; the message lists those that have one.",
    "unknown_plan": "The plan that the row names is not among the `plans` of the mapping: add it there.",
}

# Every problem of a file: what makes it unreadable, what holds it, what ends it early.
FILE_PROBLEMS = FILE_FAULTS | {
    **BRAKES,
    "needs_mapping": "The mapping does not say how the 834 names its members (identify). A person has to accept the suggested "
    "mapping or give another.",
    "only_compared": "The file says that it is for comparing (BGN08 = 4). Nothing was written; the report lists what differs.",
    "all_refused": "The first 10,000 rows were all refused, so the rest was not looked at.",
    "bad_mapping": "The mapping can't be used: correct the part that the message names.",
    "internal": "A fault of the service; what was applied stands, and the report lists it.",
}

_DROPPED = {f"{name}_dropped": name for name in DROPPED}

# Every code of a report besides those of a POST: of refused rows, of warnings, of members that a full file omits.
REPORT_CODES = ROW_FAULTS | {
    "repeated_differently": "The same external_id stands in the file with other values: keep one row, or make the "
    "identifier from more columns.",
    "no_medical_coverage": "The 834 carries no coverage that counts (`coverages` of the mapping): a member keeps its access, a "
    "new one is refused.",
    "address_of_subscriber": "The dependent has no address of its own; that of its subscriber was taken.",
    "identity_conflict": "The stored member with this external_id has another name, birth date, role or family: correct the "
    "record, free the number (frontdesk member rename), or name members in another way.",
    "added_and_ended": "The 834 adds the member (INS03 = 021), and ends every coverage that counts.",
    "untidy_file": "The 834 has faults that were read as they are meant: space, wrong counts, no BGN08, an older version, …",
    "not_found": "The plan is not one of the account.",
    "too_many_taken": "Too many records of the client had the value of another record today; hand the row in tomorrow (UTC).",
    "not_now": "Others keep writing the same record; hand the row in again.",
    "not_stored": "A fault of the service; hand the row in again.",
    "differs": "Only compared: the stored record has another value.",
    "ended_by_absence": "A full file does not name the member.",
    "leaves_plan": "The member is under another plan of the account, which it would leave.",
    "ends_on_first_day": "The access was to begin after the day on which it ends; it ends on the day it begins.",
    NOTHING_TO_END: "The row ends a member that the plan does not have, so there was nothing to end.",
    "still_ended": "The access of the member has ended, and the row has no expiry_date, so it stays ended; clear it to go on.",
    "changed_since": "The record was changed again after the file; the undo leaves it as it is.",
    **{
        code: f"The {name} of the row can't be used; the row was kept without it, and a stored one stays."
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

NOT_NOW = Fault("external_id", "not_now", REPORT_CODES["not_now"])
NOT_STORED = Fault("external_id", "not_stored", REPORT_CODES["not_stored"])
REPEATED = Fault("external_id", "repeated_differently", REPORT_CODES["repeated_differently"])
UNKNOWN_PLAN = Fault("plan", "unknown_plan", REPORT_CODES["unknown_plan"])
NO_MEDICAL_COVERAGE = Fault("effective_date", "no_medical_coverage", REPORT_CODES["no_medical_coverage"])
IDENTIFIER_SHARED = Fault("external_id", "identifier_shared", ROW_FAULTS["identifier_shared"])
NO_PLAN = Fault("plan", "not_found", REPORT_CODES["not_found"])
