"""The rows of a file, mapped to the values of a request body, and the faults that a reader finds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from frontdesk.eligibility.fields import read_external_id, read_external_ids
from frontdesk.eligibility.model import NO_CONTEXT, Action, RowContext
from frontdesk.errors import Fault
from frontdesk.formats.model import FORMAT_ROW_FAULTS, FileMode, Format
from frontdesk.formats.x12 import Family


@dataclass(slots=True)
class Row:
    """One member of a file, as every reader gives it. `place` is its number: the header of a CSV is row 1, the first line
    of JSON lines is 1, the ISA of an 834 is segment 1.

    `values` are the interface's fields, as a JSON body carries them; a row that ends a member has `external_id` and
    `expiry_date` only. `plan` is the external_id of the plan that the row names, None for the plan of the file. A row
    with `faults` of the reader is refused; its values hold the external_id at most, for the report. A `skipped` row is one
    that the mapping leaves out.

    A member that is not stored yet also takes `values_of_new`. `context` says what the values can't. In tables, rows of one
    `family` share an address. A row of an 834 is a `part` of a family if the text of that family says all of it; it
    `leans_on_other` if it needs the address of a family elsewhere in the file.
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
    part: "FamilyPart | None" = field(default=None, compare=False)
    leans_on_other: bool = field(default=False, compare=False)

    def row(self, _position: int) -> "Row":
        """This row, as of UnreadRows one of theirs."""
        return self

    @property
    def is_warned(self) -> bool:
        """True if the report has a warning about the row in every load (not `address_of_subscriber`)."""
        return any(code != ADDRESS_OF_SUBSCRIBER for code in self.warnings)


@dataclass(frozen=True, slots=True)
class UnreadRows:
    """Consecutive unparsed rows of a table from `place` on: `read(place, text)` parses one, at ten times the cost of the rest.

    Each of `texts` determines its row, with the file's columns, mapping and plan. `keys` are the external_ids as `read` would
    give them; "" or None without one.
    """

    place: int
    keys: Sequence[str | None]
    texts: Sequence[str]
    read: Callable[[int, str], Row]

    def __len__(self) -> int:
        return len(self.texts)

    def part(self, start: int) -> "UnreadRows":
        """The rows from the position `start` on."""
        return UnreadRows(self.place + start, self.keys[start:], self.texts[start:], self.read)

    def row(self, position: int) -> Row:
        return self.read(self.place + position, self.texts[position])


@dataclass(frozen=True, slots=True)
class UnreadLoops:
    """Rows of an 834 before they are read. In the order of the file, each is to be read, or passed if the members of its
    `family` are known; both give rows that came before, too."""

    read: Callable[[], Iterator[Row]]
    family: Family | None = None
    pass_by: Callable[[], Iterator[Row]] = lambda: iter(())


# A family of an 834, and the position of a member in it.
FamilyPart = tuple[Family, int]
# What a reader gives: a row, or several that need not be read to be recognised.
ReadItem = Row | UnreadRows | UnreadLoops


def keys_of(item: Row | UnreadRows) -> Sequence[str | None]:
    """The external_ids of the rows; None for a row without one that can be read."""
    if isinstance(item, UnreadRows):
        return read_external_ids(item.keys)
    return [read_external_id(item.values.get("external_id"))]


def read_loops(items: Iterable[ReadItem]) -> Iterator[Row | UnreadRows]:
    """The items, all read that are loops."""
    for item in items:
        if isinstance(item, UnreadLoops):
            yield from item.read()
        else:
            yield item


def read_rows(items: Iterable[ReadItem]) -> Iterator[Row]:
    for item in read_loops(items):
        if isinstance(item, UnreadRows):
            yield from map(item.row, range(len(item)))
        else:
            yield item


@dataclass(frozen=True, slots=True)
class FileHeader:
    """The data at the beginning of a file. `file_date` is `YYYY-MM-DD`.

    `ignored` names the columns (of JSON lines the keys, complete after the last row) that are no field. `columns` are what a
    table's rows are read by: its delimiter and the names of its columns. `encoding` is that of the text, None of a workbook.
    """

    format: Format
    mode: FileMode | None = None
    file_date: str | None = None
    ignored: Sequence[str] = field(default=())
    columns: Sequence[str] = ()
    encoding: str | None = None


# Faults of one row that a reader or the mapping finds. Other rows are not affected.
ROW_FAULTS = FORMAT_ROW_FAULTS | {
    "wrong_column_count": "The row has more or fewer cells than the header has columns: quote a cell that holds the delimiter.",
    "values_too_long": "The cells that the mapping makes values of have more than 65,536 characters, each counted for each rule.",
    "no_identifier": "The member lacks a value from which the mapping makes the identifier (identify): ask the sender for it, "
    "or name members in another way.",
    "identifier_shared": "Two people of the 834 have the same identifier, so both are refused: the mapping has to name "
    "members in another way (identify).",
    "nested_dependent": "A dependent is inside LS and LE: the sender has to give each member an INS loop.",
    "unknown_code": "The 834 has an unknown code; the message lists the known codes.",
    "unknown_plan": "The row's name of its plan is not among the `plans` of the mapping: add it there.",
}


# Those, and what all rows of a member together may have.
ROW_CODES = ROW_FAULTS | {
    "repeated_differently": "Another row has the same external_id and other values: keep one row, or make the identifier "
    "from more columns.",
    "no_medical_coverage": "The 834 has no coverage that counts: a stored member keeps its access, a new member is refused. If "
    "one of its coverages gives access, add its code (HD03) to `coverages` in the mapping.",
}

ADDRESS_OF_SUBSCRIBER = "address_of_subscriber"
REPEATED = Fault("external_id", "repeated_differently", ROW_CODES["repeated_differently"])
NO_MEDICAL_COVERAGE = Fault("effective_date", "no_medical_coverage", ROW_CODES["no_medical_coverage"])
UNKNOWN_PLAN = Fault("plan", "unknown_plan", ROW_FAULTS["unknown_plan"])
IDENTIFIER_SHARED = Fault("external_id", "identifier_shared", ROW_FAULTS["identifier_shared"])
